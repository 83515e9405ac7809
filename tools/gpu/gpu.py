#!/usr/bin/env python3
"""Asks a GPU what it can do, and what the library does on it, within a time: one table, one JSON file."""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kept
import pack
import probes
import steps
import table
from programs import Programs
from run import Ended, run
from starting import die_with_parent

SECONDS = 470
WRONG_USE = 2


def parse(words: list[str]) -> argparse.Namespace:
    """The command line; ends the program if it means nothing."""
    parser = argparse.ArgumentParser(prog="./dev gpu", description=__doc__)
    parser.add_argument("probe", nargs="*", help="run only these; their names are those of the table (all)")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=f"for all ({SECONDS})")
    parser.add_argument(
        "--part", choices=probes.PARTS, help="run only those of this part, of at most 8 minutes"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="keep rows, table and logs there, at most 4 files of a part; print at most 12,000 characters",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the rows go (BUILD/gpu.json)")
    parser.add_argument(
        "--pack",
        type=Path,
        metavar="FOLDER",
        help="run nothing: make a folder that does this on another machine",
    )
    parser.add_argument(
        "--without-torch", action="store_true", help="make that folder without the torch backend"
    )
    parser.add_argument("--build", type=Path, default=Path("build-gpu"), help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, default=Path("build"), help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.seconds <= 0:
        parser.error(f"--seconds wants a number above 0, but got {given.seconds:g}")
    if given.json and not given.json.parent.is_dir():
        parser.error(f"--json wants a file in a folder that is there, but got {given.json}")
    if given.part and given.probe:
        parser.error("--part and the names of probes exclude each other")
    given.folder = kept.Folder(given.out, given.part or "gpu") if given.out and not given.pack else None
    given.json = given.json or (given.folder.rows if given.folder else given.build / "gpu.json")
    return given


@contextlib.contextmanager
def kept_open(programs: Programs, gpu: str | None) -> Iterator[None]:
    """Keeps the GPU open: a driver may shut it down behind its last process, and the next pays for it."""
    if gpu is None:
        yield
        return
    holder = subprocess.Popen(
        [programs.info, "gpus", "--hold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )
    try:
        yield
    finally:
        holder.kill()
        holder.wait()


def run_all(
    chosen: list[probes.Probe], end: float, done: list[Ended], given: argparse.Namespace, gpu: str | None
) -> None:
    """Each probe in turn, the rows so far in the file; the last ones are not run when the time is over."""
    for number, probe in enumerate(chosen):
        # Fixed shares: what a probe leaves over is the next ones', and none takes what is theirs.
        weights = sum(each.seconds for each in chosen[number:])
        share = (end - time.monotonic()) * probe.seconds / weights
        print(f"gpu: {probe.name} (at most {max(share, 0):.0f} s)", file=sys.stderr, flush=True)
        done.append(run(probe, share))
        if given.folder:
            given.folder.note(probe.name, done[-1].complained)
        for row in done[-1].rows:
            row.update(
                {"gpu": gpu, "ranks_per_gpu": row.get("ranks_per_gpu"), "ranks_are": row.get("ranks_are")}
            )
        about = {"host": os.uname().nodename, "gpu": gpu, "date": time.strftime("%Y-%m-%d %H:%M:%S")}
        kept.write_rows(given.json, about, rows_of(done))


def rows_of(done: list[Ended]) -> list[dict]:
    """All rows, in the order of the probes."""
    return [row for each in done for row in each.rows]


def first_gpu(programs: Programs) -> tuple[str | None, str]:
    """The driver's name of the first GPU or None, and the same name or the reason why no GPU was found."""
    said = steps.gpus_of(programs).strip()
    if not said.startswith("gpu 0 "):
        return None, said
    name = said.splitlines()[0].partition(": ")[2]
    return name, name


def end_of_first(chosen: list[probes.Probe], end: float) -> float:
    """When the share of the probe that must find the GPU closed is over."""
    now = time.monotonic()
    weights = {probe.name: probe.seconds for probe in chosen}
    return now + (end - now) * weights.get(probes.FIRST, 0) / sum(weights.values())


def main(words: list[str]) -> int:
    """The exit status: 0 if nothing that was run was wrong or failed, and also where there is no GPU."""
    given = parse(words)
    if given.pack:
        return pack.make(given.pack, given.build, given.tree, given.without_torch)
    known = probes.all_probes(given.build, given.tree)
    wanted = list(probes.PARTS[given.part]) if given.part else given.probe
    if unknown := set(wanted) - {probe.name for probe in known}:
        names = ", ".join(probe.name for probe in known)
        print(f"gpu: no probe is called {', '.join(sorted(unknown))}; there are {names}", file=sys.stderr)
        return WRONG_USE
    end = time.monotonic() + given.seconds
    if given.folder:
        given.folder.describe_machine()
    chosen = [probe for probe in known if not wanted or probe.name in wanted]
    programs = Programs(given.tree.resolve())
    gpu, told = first_gpu(programs)
    print(f"gpu: {told}", file=sys.stderr)
    done: list[Ended] = []
    run_all(
        [probe for probe in chosen if probe.name == probes.FIRST], end_of_first(chosen, end), done, given, gpu
    )
    with kept_open(programs, gpu):
        run_all([probe for probe in chosen if probe.name != probes.FIRST], end, done, given, gpu)
    rows = rows_of(done)
    bad = [row for row in rows if row["verdict"] in kept.BAD]
    if given.folder:
        print(given.folder.finish(rows))
    else:
        print(table.text(rows))
        print(f"gpu: {len(rows)} rows in {given.json}")
        for row in bad:
            print(f"gpu: {row['probe']}: {row['case']}: {row['what']}: {row['verdict']}: {row['note']}")
    if not any(each.ran for each in done):
        print(f"gpu: {told}")
        print("gpu: everything is built, and nothing was run: there is no GPU here that CUDA 13 can use")
    elif missed := [each.probe.name for each in done if not each.ran]:
        print(f"gpu: not run: {', '.join(missed)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
