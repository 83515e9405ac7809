#!/usr/bin/env python3
"""Runs a perf binary as its users do, and reads its status, table and JSON file as their parsers do."""

import argparse
import csv
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

TOP_KEYS = [
    "version",
    "start_time",
    "args",
    "env",
    "nccl_version",
    "config",
    "results",
    "out_of_bounds",
    "average_bus_bandwidth",
    "errors",
    "end_time",
]
CONFIG_KEYS = [
    "nthreads",
    "ngpus",
    "minimum_bytes",
    "maximum_bytes",
    "warmup_iters",
    "iterations",
    "aggregated_iterations",
    "validation",
    "graph",
    "blocking_collectives",
    "per_iter_timing",
    "per_iter_skip",
    "parallel_init",
    "devices",
]
ITERATION_KEYS = [
    "skipped_iterations",
    "min_us",
    "max_us",
    "avg_us",
    "p50_us",
    "p95_us",
    "p99_us",
    "stdev_us",
    "cv_pct",
    "times_us",
]


# A row as AWS's nccl_to_csv.py wants it: 13 words, of types and operators that it knows, nothing in front.
ROW_OF_AWS = re.compile(
    r"^\s*\d+\s+\d+\s+(float|double|int|half)\s+(sum|prod|max|min|none)\s+-?\d+"
    r"(\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+(\d+|N/A)){2}\s*$"
)
MEAN_OF_AWS = re.compile(r"^# Avg bus bandwidth\s*:\s*[\d.]+(e[+-]?\d+)?\s*$", re.MULTILINE)
AWS_KNOWS = ({"float", "double", "half"}, {"sum", "prod", "max", "min", "none"})
CSV_TIMES = ["time_us", "algbw_gb_per_s", "busbw_gb_per_s"]


class FaultError(Exception):
    """Something that the run printed or returned is not as it must be."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise FaultError(what)


def read_table(text: str) -> list[tuple[int, float, float]]:
    """Size, time and bus bandwidth out of place of each row, found from the right as SuperBench does."""
    lines = [line for line in text.splitlines() if re.match(r"\s*\d", line)]
    rows = [line.split() for line in lines]
    for line, tokens in zip(lines, rows, strict=True):
        if tokens[2] in AWS_KNOWS[0] and tokens[3] in AWS_KNOWS[1] and "N/A" not in tokens:
            require(ROW_OF_AWS.match(line) is not None, f"nccl_to_csv.py of AWS would not read: {line}")
    require(MEAN_OF_AWS.search(text) is not None, "no line of the mean that AWS's scripts would read")
    for tokens in rows:
        require(len(tokens) == 13, f"a row has {len(tokens)} words, not 13: {tokens}")
        in_place = tokens[-4:]
        require(in_place == ["N/A"] * 4 or in_place[-1] == "0", f"a row is wrong in place: {tokens}")
        require(tokens[-5] == "0", f"a row has wrong elements: {tokens}")
    return [(int(tokens[0]), float(tokens[-8]), float(tokens[-6])) for tokens in rows]


def check_json(path: Path, rows: list[tuple[int, float, float]], arguments: list[str]) -> None:
    """The file has the keys of nccl-tests' version 3 and says what the table says."""
    document = json.loads(path.read_text())
    require(list(document) == TOP_KEYS, f"the file has the keys {list(document)}")
    require(document["version"] == 3 and document["errors"] == [], "version or errors")
    missing = set(CONFIG_KEYS) - set(document["config"])
    require(not missing, f"config lacks {missing}")
    require(len(document["results"]) == len(rows), f"{len(document['results'])} results, {len(rows)} rows")
    for result, (size, time, bandwidth) in zip(document["results"], rows, strict=True):
        side = result["out_of_place"]
        require(result["size"] == size and side["nwrong"] == 0, f"size {size} differs: {result}")
        require(abs(side["time"] - time) <= 0.006 * max(1, time), f"time {time} differs: {side}")
        require(abs(side["bus_bw"] - bandwidth) <= 0.006, f"bandwidth {bandwidth} differs: {side}")
        require(side["p50"] <= side["p99"], f"p50 and p99: {side}")
        if "-I" in arguments:
            iterations = result["in_place_per_iter"]
            require(set(ITERATION_KEYS) <= set(iterations), f"iterations have {list(iterations)}")


def check_path(path: Path, name: str, copied: float | None) -> None:
    """Every call of every row went this way, and of each byte of its size the processor copied so many."""
    for result in json.loads(path.read_text())["results"]:
        for place in ("out_of_place", "in_place"):
            side = result[place]
            require(side["path"] == name, f"{place} went by {side['path']}, not {name}: {result['size']}")
            if copied is not None:
                times = side["copied"] / result["size"]
                require(times == copied, f"{times} times the size was copied {place}: {result['size']}")


def check_csv(path: Path, text: str) -> None:
    """A row for each direction that the table has, with the same words and finer numbers."""
    with path.open(newline="") as file:
        rows = iter(list(csv.DictReader(file)))
    for tokens in (line.split() for line in text.splitlines() if re.match(r"\s*\d", line)):
        for place, first in (("out_of_place", 5), ("in_place", 9)):
            if tokens[first] == "N/A":
                continue
            row = next(rows)
            found = [row[name] for name in ("size_bytes", "count", "type", "op", "root", "place", "wrong")]
            require(
                found == [*tokens[:5], place, "0"], f"the CSV file has {row} where the table has {tokens}"
            )
            for name, shown in zip(CSV_TIMES, tokens[first : first + 3], strict=True):
                near = abs(float(row[name]) - float(shown)) <= max(0.0051, 0.06 * float(shown))
                require(near, f"{name} is {row[name]} in the CSV file, {shown} in the table")
    require(next(rows, None) is None, "the CSV file has more rows than the table")


def launch(launcher: str, processes: int, command: list[str]) -> list[str]:
    """The command line that starts `command` on so many processes."""
    if launcher == "none":
        return command
    if "mpich" in launcher or "hydra" in launcher:
        return [launcher, "-np", str(processes), *command]
    return [launcher, "--allow-run-as-root", "--oversubscribe", "-np", str(processes), *command]


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as listening:
        listening.bind(("", 0))
        return listening.getsockname()[1]


def run(
    launcher: str, processes: int, command: list[str], environment: dict[str, str], meeting: Path
) -> subprocess.CompletedProcess[str]:
    """Returns the output and status of the command; local processes must all end as the first one does."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    if launcher not in ("local", "network"):
        return subprocess.run(launch(launcher, processes, command), env=environment, **how)
    name, where = "FCCL_TESTS_LOCAL", str(meeting)
    if launcher == "network":
        name, where = "FCCL_TESTS_NETWORK", f"localhost:{free_port()}"
        environment = environment | {"FCCL_TESTS_NETWORK_SECRET": "between us"}
    else:
        meeting.touch()
    places = [environment | {name: f"{process}/{processes}:{where}"} for process in range(processes)]
    others = [subprocess.Popen(command, env=place, stdout=subprocess.DEVNULL) for place in places[1:]]
    ran = subprocess.run(command, env=places[0], **how)
    ended = [other.wait() for other in others]
    require(
        set(ended) <= {ran.returncode}, f"the first process ended with {ran.returncode}, others with {ended}"
    )
    return ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launcher", default="none", help="an mpirun, local, network or none")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--rows", type=int, help="how many rows there must be")
    parser.add_argument("--says", default="", help="a regular expression that the output must match")
    parser.add_argument("--no-table", action="store_true", help="columns were added: look at the status only")
    parser.add_argument("--json", action="store_true", help="ask for the JSON file and read it")
    parser.add_argument("--path", default="", help="the path that each row of the JSON file must name")
    parser.add_argument("--copied", type=float, help="bytes that a processor copied over the size, in a row")
    parser.add_argument("--csv", action="store_true", help="ask for the CSV file and read it")
    parser.add_argument("--prints", choices=("json", "csv"), help="ask for this on stdout, and read it there")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    command = given.command[given.command[:1] == ["--"] :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        if given.json:
            command += ["-J", str(path)]
        if given.csv:
            command += ["--csv", str(Path(folder) / "rows.csv")]
        printed = Path(folder) / "printed"
        if given.prints:
            apart = 'exec "$@" 3>&1 >"$0" 2>&3'  # the report into a file, stderr into the output that is read
            command = ["bash", "-c", apart, str(printed), *command, f"--{given.prints}", "-"]
        environment = os.environ | dict(each.split("=", 1) for each in given.environment)
        ran = run(given.launcher, given.processes, command, environment, Path(folder) / "meeting")
        print(ran.stdout)
        require(ran.returncode == given.status, f"exit status {ran.returncode}, wanted {given.status}")
        require(re.search(given.says, ran.stdout) is not None, f"the output does not say '{given.says}'")
        if given.status != 0 or given.no_table:
            return
        rows = read_table(ran.stdout)
        require(len(rows) > 0 if given.rows is None else len(rows) == given.rows, f"{len(rows)} rows")
        require("# Out of bounds values : 0 OK\n" in ran.stdout, "no line says that nothing was wrong")
        if given.json or given.prints == "json":
            check_json(printed if given.prints else path, rows, command)
        if given.path:
            check_path(path, given.path, given.copied)
        if given.csv or given.prints == "csv":
            check_csv(printed if given.prints else Path(folder) / "rows.csv", ran.stdout)


if __name__ == "__main__":
    try:
        main()
    except FaultError as fault:
        sys.exit(f"run_perf.py: {fault}")
