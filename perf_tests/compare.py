#!/usr/bin/env python3
"""Compares FCCL with Open MPI and MPICH, or with an older build of itself: in turn, and by medians.

A batch is one run of one binary, which measures all sizes. Batches of FCCL and of each peer follow one
another (A B C A B C ...), so that what the machine does meanwhile meets all of them. A row counts if its
ranks waited for a processor for less than --tolerance of the time that was measured. The printed ratio is the
median time of the peer over that of FCCL: above 1, FCCL is faster. The last lines say for each peer and
collective the median of all ratios, and where the least one was. All rows, also those that do not count, are
kept in a CSV file with the commands that made them.

With --old the peer is FCCL itself, called old, as that build folder has it with its own perf binaries.

With --cluster the ranks are on hosts that ./dev cluster makes. They share this machine's processors, so every
row counts.
"""

import argparse
import csv
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce"]
# With an older build; but not on hosts that a cluster makes, where that one may have no plan for it.
ON_ONE_HOST = ["alltoall", "sendrecv"]
PLACEMENTS = ["out_of_place", "in_place"]
MPIRUNS = {"openmpi": ["mpirun.openmpi", "mpirun"], "mpich": ["mpirun.mpich", "mpiexec.hydra"]}
# Both put rank r on core r, so that no library owes its time to another binding.
BINDING = {
    "openmpi": ["--allow-run-as-root", "--bind-to", "core", "--map-by", "core"],
    "mpich": ["-bind-to", "core"],
}
# A library may be there a second time with settings that make it faster: its MPI, and what mpirun is told.
TUNED = {"openmpi_han": ("openmpi", ["--mca", "coll_han_priority", "100"])}
ENVIRONMENT = {
    "FCCL_TESTS_LAUNCHER": "",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


@dataclass(frozen=True)
class Row:
    """One measured size of one batch; times in microseconds."""

    collective: str
    library: str
    batch: int
    size: int
    placement: str
    time: float
    p50: float
    p99: float
    queued: float
    wrong: float
    undisturbed: bool


def find_mpirun(mpi: str) -> str | None:
    return next((found for name in MPIRUNS[mpi] if (found := shutil.which(name))), None)


def binary_of(build: Path, collective: str) -> Path:
    return build / "perf_tests" / f"{collective}_perf"


def command_of(given: argparse.Namespace, collective: str, library: str, report: Path) -> list[str]:
    """The command line of one batch; FCCL's ranks, old or new, are started by the first MPI that there is."""
    mpi, settings = TUNED.get(library, (library, []))
    if mpi not in MPIRUNS:
        mpi = next(each for each in MPIRUNS if find_mpirun(each))
    mpirun = find_mpirun(mpi)
    if mpirun is None:
        raise SystemExit(
            f"compare: there is none of {', '.join(MPIRUNS[mpi])}; install it or choose other --libraries"
        )
    binary = str(binary_of(given.old if library == "old" else given.build, collective))
    sizes = ["-b", given.minbytes, "-e", given.maxbytes, "-f", str(given.stepfactor), "-n", str(given.iters)]
    extra = [] if library in ("fccl", "old") else ["--peer", "mpi"]
    if library == "fccl" and given.buffers:
        extra = ["--buffers", given.buffers]
    if given.cluster:
        launch = ["./dev", "cluster", given.cluster, *shlex.split(given.links), "--", mpirun]
    else:
        launch = [mpirun, *BINDING[mpi], "-np", str(given.ranks)]
    return [
        *[*launch, *settings, binary, *sizes],
        *["-w", str(given.warmup_iters), "-d", given.datatype, "-J", str(report), *extra],
    ]


def rows_of(
    document: dict, given: argparse.Namespace, collective: str, library: str, batch: int
) -> Iterator[Row]:
    calls = document["config"]["iterations"]
    for result in document["results"]:
        for placement in PLACEMENTS:
            side = result[placement]
            if side is None:  # AlltoAll and sends do not work in place
                continue
            measured = side["time"] * calls * given.ranks
            yield Row(
                *(collective, library, batch, result["size"], placement),
                *(side["time"], side["p50"], side["p99"], side["queued"], side["nwrong"]),
                given.cluster is not None or side["queued"] <= given.tolerance * measured,
            )


def run_within(limit: float, command: list[str]) -> tuple[int | None, str]:
    """How it ended and what it said; None if it took longer, as MPI_Finalize of MPICH may, and was ended."""
    environment = os.environ | ENVIRONMENT
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


def run_batch(given: argparse.Namespace, collective: str, library: str, batch: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = command_of(given, collective, library, report)
        status, said = run_within(given.limit, command)
        # A binary makes the file first, and writes when it has measured all.
        if status is None and report.exists() and report.stat().st_size > 0:
            print(f"compare: measured, but not ended: {shlex.join(command)}", file=sys.stderr)
        elif status != 0:
            how = f"took more than {given.limit} s (--limit)" if status is None else f"ended with {status}"
            raise SystemExit(f"compare: {shlex.join(command)}\n{how} and said:\n{said}")
        return list(rows_of(json.loads(report.read_text()), given, collective, library, batch))


def write_rows(path: Path, rows: Iterable[Row], commands: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        file.writelines(f"# {command}\n" for command in commands)
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def median(rows: list[Row], **wanted: object) -> tuple[float | None, int]:
    """The median time of the rows that have these values and count, and how many there are."""
    times = [
        row.time
        for row in rows
        if row.undisturbed and all(getattr(row, key) == wanted[key] for key in wanted)
    ]
    return (statistics.median(times) if times else None), len(times)


def sizes_of(rows: list[Row], collective: str, placement: str) -> list[int]:
    return sorted({row.size for row in rows if (row.collective, row.placement) == (collective, placement)})


def print_table(rows: list[Row], collective: str, placement: str, libraries: list[str]) -> None:
    sizes = sizes_of(rows, collective, placement)
    if not sizes:
        return
    peers = [library for library in libraries if library != "fccl"]
    print(
        f"\n{collective}, {placement.replace('_', ' ')}: median us of (undisturbed batches), and peer / fccl"
    )
    print(
        f"{'size':>12}"
        + "".join(f"{library:>18}" for library in libraries)
        + "".join(f"{peer:>10}" for peer in peers)
    )
    for size in sizes:
        found = {
            library: median(rows, collective=collective, library=library, size=size, placement=placement)
            for library in libraries
        }
        line = f"{size:>12}"
        for time, count in found.values():
            line += f"{'-' if time is None else f'{time:.2f}':>12} ({count:>3})"
        own = found["fccl"][0]
        for peer in peers:
            time = found[peer][0]
            line += f"{'-' if time is None or not own else f'{time / own:.2f}':>10}"
        print(line)


def ratios_to(rows: list[Row], peer: str, collective: str) -> dict[tuple[int, str], float]:
    """The time of the peer over that of FCCL, by size and placement, where both have a median."""
    ratios = {}
    for placement in PLACEMENTS:
        for size in sizes_of(rows, collective, placement):
            wanted = {"collective": collective, "size": size, "placement": placement}
            own, theirs = (median(rows, library=library, **wanted)[0] for library in ("fccl", peer))
            if own and theirs:
                ratios[size, placement] = theirs / own
    return ratios


def print_summary(rows: list[Row], collectives: list[str], libraries: list[str]) -> None:
    for peer in libraries:
        for collective in collectives:
            if peer == "fccl" or not (ratios := ratios_to(rows, peer, collective)):
                continue
            size, placement = min(ratios, key=ratios.__getitem__)
            middle = statistics.median(ratios.values())
            print(
                f"{peer} / fccl, {collective}: {middle:.3f} in the median of {len(ratios)}; "
                f"worst {ratios[size, placement]:.3f} at {size} bytes {placement.replace('_', ' ')}"
            )


def choose_what_to_compare(given: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if given.libraries is None:
        peers = ["old"] if given.old else [mpi for mpi in MPIRUNS if find_mpirun(mpi)]
        given.libraries = ["fccl", *peers]
    if "fccl" not in given.libraries:
        parser.error("--libraries must name fccl: the ratios are to it")
    if ("old" in given.libraries) != (given.old is not None):
        parser.error("the library old is the build that --old names: give both or neither")
    if given.collectives is None:
        given.collectives = [*COLLECTIVES, *(ON_ONE_HOST if given.old and not given.cluster else [])]
    for collective in list(given.collectives):
        if given.old and not binary_of(given.old, collective).exists():
            print(f"compare: {collective} is left out: {given.old} has no {collective}_perf", file=sys.stderr)
            given.collectives.remove(collective)
    if not given.collectives:
        parser.error(f"{given.old} has no perf binary to compare with; is it a build folder?")
    if not given.cluster and given.ranks > len(os.sched_getaffinity(0)):
        parser.error(f"{given.ranks} ranks need as many cores; here are {len(os.sched_getaffinity(0))}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=Path("build"), help="the build folder (build)")
    parser.add_argument(
        "--old", type=Path, metavar="BUILD", help="an older build folder of FCCL, to compare this one with"
    )
    parser.add_argument(
        "--collectives",
        nargs="+",
        choices=[*COLLECTIVES, *ON_ONE_HOST],
        help=f"{', '.join(COLLECTIVES)}; with --old also {', '.join(ON_ONE_HOST)}",
    )
    parser.add_argument(
        "--libraries",
        nargs="+",
        choices=["fccl", "old", *MPIRUNS, *TUNED],
        help="fccl and every MPI that is there; with --old fccl and old",
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument(
        "--cluster", metavar="HxR", help="hosts, and ranks of each, in place of --ranks (as root)"
    )
    parser.add_argument(
        "--links", default="--rate 1gbit", help="what else ./dev cluster is told (--rate 1gbit)"
    )
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
    given = parser.parse_args()
    choose_what_to_compare(given, parser)
    return given


def main() -> None:
    given = parse_arguments()
    rows: list[Row] = []
    for collective in given.collectives:
        for batch in range(given.batches):
            for library in given.libraries:
                rows += run_batch(given, collective, library, batch)
        for placement in PLACEMENTS:
            print_table(rows, collective, placement, given.libraries)
        sys.stdout.flush()
    commands = [
        shlex.join(command_of(given, each, library, Path("report.json")))
        for each in given.collectives
        for library in given.libraries
    ]
    write_rows(given.rows, rows, commands)
    disturbed = sum(not row.undisturbed for row in rows)
    wrong = sum(row.wrong for row in rows)
    print()
    print_summary(rows, given.collectives, given.libraries)
    print(f"{len(rows)} rows in {given.rows}, {disturbed} of them disturbed; {wrong:g} wrong elements")


if __name__ == "__main__":
    main()
