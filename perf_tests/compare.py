#!/usr/bin/env python3
"""Compares FCCL with every MPI that there is, or with an older build of itself: in turn, and by medians.

A batch is one run of one binary, which measures all sizes. Batches of FCCL and of each peer follow one
another (A B C A B C ...), so that what the machine does meanwhile meets all of them. A row counts if its
ranks waited for a processor for less than --tolerance of the time that was measured. The printed ratio is the
median time of the peer over that of FCCL: above 1, FCCL is faster. The last lines say for each peer and
collective the median of all ratios, and where the least one was. All rows, also those that do not count, are
kept in a CSV file with the commands that made them.

Besides the MPIs as they come there are some with settings that make them faster (libraries.py); the best
peer is the fastest of all. fccl_arena is FCCL with buffers that peers map. limit is what the host allows:
the time of its bare loops over that of FCCL is the fraction of it that FCCL comes to. --inputs repeats all
for inputs that rotate through memory, that stay in caches (warm), and that every rank has written just before
the call (fresh).

With --old the peer is FCCL itself, called old, as that build folder has it with its own perf binaries.

With --cluster the ranks are on hosts that ./dev cluster makes. They share this machine's processors, so every
row counts.
"""

import argparse
import csv
import importlib
import importlib.util
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from libraries import FROM_MPIRUN, LIBRARIES, LIMITED, MPIRUNS, OWN, binary_of, find_mpirun, launch_of
from medians import PLACEMENTS, Cell, Medians, Row

COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce"]
# With an older build; but not on hosts that a cluster makes, where that one may have no plan for it.
ON_ONE_HOST = ["alltoall", "sendrecv"]
ROOTED = ["broadcast", "reduce", "gather", "scatter"]
INPUTS = {"rotating": [], "warm": ["--rotate", "no"], "fresh": ["--fresh"]}


@dataclass(frozen=True)
class Turn:
    """One batch of one library."""

    inputs: str
    collective: str
    library: str
    batch: int = 0


def command_of(given: argparse.Namespace, turn: Turn, report: Path) -> list[str]:
    """The command line of one batch; FCCL's ranks, old or new, are started by the first MPI that there is."""
    library = turn.library
    binary = str(binary_of(given.old if library == "old" else given.build, turn.collective))
    sizes = ["-b", given.minbytes, "-e", given.maxbytes, "-f", str(given.stepfactor), "-n", str(given.iters)]
    flags = [*LIBRARIES[library].flags, *INPUTS[turn.inputs]]
    if library == "fccl" and given.buffers:
        flags += ["--buffers", given.buffers]
    launch = launch_of(library, given.ranks)
    if given.cluster:
        mpirun, settings = launch[0], LIBRARIES[library].settings
        launch = ["./dev", "cluster", given.cluster, *shlex.split(given.links), "--", mpirun, *settings]
    return [
        *[*launch, binary, *sizes],
        *["-w", str(given.warmup_iters), "-d", given.datatype, "-J", str(report), *flags],
    ]


def shares_cores(given: argparse.Namespace) -> bool:
    """Tells if the ranks share processors: every row then has time in which ranks wait for one."""
    return given.cluster is not None or given.ranks > len(os.sched_getaffinity(0))


def rows_of(document: dict, given: argparse.Namespace, turn: Turn) -> Iterator[Row]:
    calls = document["config"]["iterations"]
    for result in document["results"]:
        for placement in PLACEMENTS:
            side = result[placement]
            if side is None:  # AlltoAll and sends do not work in place
                continue
            measured = side["time"] * calls * given.ranks
            yield Row(
                *(turn.inputs, turn.collective, turn.library, turn.batch, result["size"], placement),
                *(side["time"], side["p50"], side["p99"], side["queued"], side["nwrong"]),
                shares_cores(given) or side["queued"] <= given.tolerance * measured,
            )


def run_within(limit: float, command: list[str], settings: dict[str, str]) -> tuple[int | None, str]:
    """How it ended and what it said; None if it took longer, as MPI_Finalize of MPICH may, and was ended."""
    environment = os.environ | FROM_MPIRUN | settings
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            said, _ = process.communicate(timeout=limit)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            process.terminate()
            said, _ = process.communicate()
            return None, said


def run_batch(given: argparse.Namespace, turn: Turn) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = command_of(given, turn, report)
        status, said = run_within(given.limit, command, LIBRARIES[turn.library].environment)
        # A binary makes the file first, and writes when it has measured all.
        if status is None and report.exists() and report.stat().st_size > 0:
            print(f"compare: measured, but not ended: {shlex.join(command)}", file=sys.stderr)
        elif status != 0:
            how = f"took more than {given.limit} s (--limit)" if status is None else f"ended with {status}"
            raise SystemExit(f"compare: {shlex.join(command)}\n{how} and said:\n{said}")
        return list(rows_of(json.loads(report.read_text()), given, turn))


def write_rows(path: Path, rows: Iterable[Row], commands: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        file.writelines(f"# {command}\n" for command in commands)
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def own_of(libraries: list[str]) -> list[str]:
    """FCCL, of this build, in its kinds of memory."""
    return [library for library in libraries if library in OWN and library != "old"]


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def print_table(medians: Medians, cells: list[Cell], libraries: list[str]) -> None:
    if not cells:
        return
    own = own_of(libraries)
    limited = own if "limit" in libraries else []
    first = cells[0]
    print(
        f"\n{first.collective}, {first.placement.replace('_', ' ')}, inputs {first.inputs}: "
        "median us (of so many undisturbed batches), "
        "and the fastest peer's time / FCCL's (above 1: FCCL is faster)"
        + (", limit's / FCCL's" if limited else "")
    )
    print(
        f"{'size':>12}"
        + "".join(f"{library:>18}" for library in libraries)
        + "".join(f"{'best / ' + each:>18}{'':16}" for each in own)
        + "".join(f"{'limit / ' + each:>20}" for each in limited)
    )
    for cell in cells:
        line = f"{cell.size:>12}"
        for library in libraries:
            time = medians.median(cell, library)
            line += f"{'-' if time is None else f'{time:.2f}':>12} ({medians.count(cell, library):>3})"
        for each in own:
            best = medians.best(cell, each)
            line += f"{ratio_text(best.ratio):>18} {best.peer:<15}" if best else f"{'-':>18}{'':16}"
        for each in limited:
            fraction = medians.ratio(cell, "limit", each)
            line += f"{'-' if fraction is None else f'{fraction:.2f}':>20}"
        print(line.rstrip())


def print_worst(ratios: dict[Cell, float], of: str) -> None:
    if not ratios:
        return
    worst = min(ratios, key=ratios.__getitem__)
    print(
        f"{of}: {statistics.median(ratios.values()):.3f} in the median of {len(ratios)}; "
        f"worst {ratios[worst]:.3f} at {worst.size} bytes {worst.placement.replace('_', ' ')}"
    )


def print_summary(medians: Medians, given: argparse.Namespace) -> None:
    """Compares each library of FCCL with each peer, with the limit, and with the best of several peers."""
    own = own_of(given.libraries)
    peers = [library for library in given.libraries if library not in own]
    has_many_peers = len([peer for peer in peers if peer != "limit"]) > 1
    for inputs, each in itertools.product(given.inputs, own):
        kind = "" if given.inputs == ["rotating"] else f", {inputs}"
        for peer, collective in itertools.product(peers, given.collectives):
            cells = medians.cells(inputs, collective)
            ratios = {cell: ratio for cell in cells if (ratio := medians.ratio(cell, peer, each))}
            print_worst(ratios, f"{peer} / {each}, {collective}{kind}")
        for collective in given.collectives if has_many_peers else []:
            cells = medians.cells(inputs, collective)
            ratios = {cell: best.ratio for cell in cells if (best := medians.best(cell, each))}
            print_worst(ratios, f"best peer / {each}, {collective}{kind}")


def choose_what_to_compare(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    crowded = not given.cluster and shares_cores(given)
    if given.libraries is None:
        peers = ["old"] if given.old else [mpi for mpi in MPIRUNS if find_mpirun(mpi)]
        # The others spin, so that each of their calls takes milliseconds.
        given.libraries = ["fccl", *(each for each in peers if not crowded or each in ("old", "openmpi"))]
    if given.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot draws with matplotlib, which this Python lacks; ./dev bench has one with it")
    if "fccl" not in given.libraries:
        parser.error("--libraries must name fccl: the ratios are to it")
    if ("old" in given.libraries) != (given.old is not None):
        parser.error("the library old is the build that --old names: give both or neither")
    if given.collectives is None:
        given.collectives = [*COLLECTIVES, *(ON_ONE_HOST if given.old and not given.cluster else [])]
    if "limit" in given.libraries and (given.cluster or set(given.collectives) - set(LIMITED)):
        parser.error(
            f"the limit is that of one host, for {', '.join(LIMITED)}; leave the others out, or limit"
        )
    for collective in list(given.collectives):
        if given.old and not binary_of(given.old, collective).exists():
            print(f"compare: {collective} is left out: {given.old} has no {collective}_perf", file=sys.stderr)
            given.collectives.remove(collective)
    if not given.collectives:
        parser.error(f"{given.old} has no perf binary to compare with; is it a build folder?")


def add_what_to_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--build", type=Path, default=Path("build"), help="the build folder (build)")
    parser.add_argument(
        "--old", type=Path, metavar="BUILD", help="an older build folder of FCCL, to compare this one with"
    )
    parser.add_argument(
        "--collectives",
        nargs="+",
        choices=[*COLLECTIVES, *ON_ONE_HOST, *ROOTED],
        help=f"{', '.join(COLLECTIVES)}; with --old also {', '.join(ON_ONE_HOST)}",
    )
    parser.add_argument(
        "--libraries",
        nargs="+",
        choices=LIBRARIES,
        help="fccl and every MPI that is there; with --old fccl and old",
    )
    parser.add_argument(
        "--inputs",
        nargs="+",
        choices=INPUTS,
        default=["rotating"],
        help="what calls find in caches (rotating)",
    )
    parser.add_argument(
        "--ranks", type=int, default=2, help="with more than there are cores, every row counts (2)"
    )
    parser.add_argument(
        "--cluster", metavar="HxR", help="hosts, and ranks of each, in place of --ranks (as root)"
    )
    parser.add_argument(
        "--links", default="--rate 1gbit", help="what else ./dev cluster is told (--rate 1gbit)"
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_what_to_compare(parser)
    parser.add_argument("--batches", type=int, default=7, help="runs of each binary (7)")
    parser.add_argument("-b", "--minbytes", default="64")
    parser.add_argument("-e", "--maxbytes", default="64M")
    parser.add_argument("-f", "--stepfactor", type=int, default=4)
    parser.add_argument("-n", "--iters", type=int, default=100)
    parser.add_argument("-w", "--warmup-iters", type=int, default=5)
    parser.add_argument("-d", "--datatype", default="float", help="one that MPI can reduce (float)")
    parser.add_argument(
        "--buffers", choices=["private", "arena"], help="FCCL's alone; peers and old builds have private ones"
    )
    parser.add_argument("--limit", type=float, default=120, help="seconds of a batch, then it is ended (120)")
    parser.add_argument(
        "--tolerance", type=float, default=0.02, help="of the time, that a row may wait (0.02)"
    )
    parser.add_argument(
        "--rows", type=Path, default=Path("build/compare.csv"), help="where all rows go (build/compare.csv)"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="a picture of times, rates and ratios (matplotlib)"
    )
    given = parser.parse_args()
    choose_what_to_compare(given, parser)
    return given


def main() -> None:
    given = parse_arguments()
    rows: list[Row] = []
    for inputs, collective in itertools.product(given.inputs, given.collectives):
        for batch, library in itertools.product(range(given.batches), given.libraries):
            rows += run_batch(given, Turn(inputs, collective, library, batch))
        medians = Medians(rows)
        for placement in PLACEMENTS:
            print_table(medians, medians.cells(inputs, collective, placement), given.libraries)
        sys.stdout.flush()
    commands = [
        shlex.join(command_of(given, Turn(inputs, each, library), Path("report.json")))
        for inputs, each in itertools.product(given.inputs, given.collectives)
        for library in given.libraries
    ]
    write_rows(given.rows, rows, commands)
    if given.plot:
        importlib.import_module("plot").draw(Medians(rows), given.inputs, given.collectives, given.plot)
    disturbed = sum(not row.undisturbed for row in rows)
    wrong = sum(row.wrong for row in rows)
    print()
    print_summary(Medians(rows), given)
    print(f"{len(rows)} rows in {given.rows}, {disturbed} of them disturbed; {wrong:g} wrong elements")


if __name__ == "__main__":
    main()
