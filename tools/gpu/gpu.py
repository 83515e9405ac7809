#!/usr/bin/env python3
"""Asks a GPU what it can do, and what the library does on it, within a time: one table, one JSON file."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import pack
import probes
import steps
import table
from programs import Programs
from run import Ended, run

SECONDS = 480
MOST_SECONDS_OF_A_PROBE = 240
WRONG_USE = 2


def parse(words: list[str]) -> argparse.Namespace:
    """The command line; ends the program if it means nothing."""
    parser = argparse.ArgumentParser(prog="./dev gpu", description=__doc__)
    parser.add_argument("probe", nargs="*", help="run only these; their names are those of the table (all)")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=f"for all ({SECONDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the rows go (BUILD/gpu.json)")
    parser.add_argument(
        "--pack",
        type=Path,
        metavar="FOLDER",
        help="run nothing: make a folder that does this on another machine",
    )
    parser.add_argument("--build", type=Path, default=Path("build-gpu"), help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, default=Path("build"), help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.seconds <= 0:
        parser.error(f"--seconds wants a number above 0, but got {given.seconds:g}")
    if given.json and not given.json.parent.is_dir():
        parser.error(f"--json wants a file in a folder that is there, but got {given.json}")
    given.json = given.json or given.build / "gpu.json"
    return given


def run_all(chosen: list[probes.Probe], seconds: float, file: Path, gpu: str | None) -> list[Ended]:
    """Each probe in turn, the rows so far in the file; the last ones are not run when the time is over."""
    end = time.monotonic() + seconds
    done = []
    for number, probe in enumerate(chosen):
        left = end - time.monotonic()
        # What a probe leaves over is the next ones'; none takes so much that the last one gets nothing.
        share = min(MOST_SECONDS_OF_A_PROBE, max(left / (len(chosen) - number), left / 2))
        print(f"gpu: {probe.name} (at most {max(share, 0):.0f} s)", file=sys.stderr, flush=True)
        done.append(run(probe, share))
        for row in done[-1].rows:
            row.update(
                {"gpu": gpu, "ranks_per_gpu": row.get("ranks_per_gpu"), "ranks_are": row.get("ranks_are")}
            )
        about = {"host": os.uname().nodename, "gpu": gpu, "date": time.strftime("%Y-%m-%d %H:%M:%S")}
        file.write_text(json.dumps(about | {"rows": rows_of(done)}, indent=1) + "\n")
    return done


def rows_of(done: list[Ended]) -> list[dict]:
    """All rows, in the order of the probes."""
    return [row for each in done for row in each.rows]


def first_gpu(programs: Programs) -> tuple[str | None, str]:
    """What the driver calls the first GPU, if there is one; and this, or why there is none."""
    said = steps.gpus_of(programs).strip()
    if not said.startswith("gpu 0 "):
        return None, said
    name = said.splitlines()[0].partition(": ")[2]
    return name, name


def main(words: list[str]) -> int:
    """The exit status: 0 if nothing that was run was wrong or failed, and also where there is no GPU."""
    given = parse(words)
    if given.pack:
        return pack.make(given.pack, given.build, given.tree)
    known = probes.all_probes(given.build, given.tree)
    if unknown := set(given.probe) - {probe.name for probe in known}:
        names = ", ".join(probe.name for probe in known)
        print(f"gpu: no probe is called {', '.join(sorted(unknown))}; there are {names}", file=sys.stderr)
        return WRONG_USE
    chosen = [probe for probe in known if not given.probe or probe.name in given.probe]
    gpu, told = first_gpu(Programs(given.tree.resolve()))
    print(f"gpu: {told}", file=sys.stderr)
    done = run_all(chosen, given.seconds, given.json, gpu)
    rows = rows_of(done)
    print(table.text(rows))
    print(f"gpu: {len(rows)} rows in {given.json}")
    bad = [row for row in rows if row["verdict"] in ("wrong", "failed")]
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
