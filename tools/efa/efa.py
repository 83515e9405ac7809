#!/usr/bin/env python3
"""Tells whether EFA works between hosts, and how fast it is: a table, and an archive of rows and logs."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu"))

import agent  # noqa: E402
import ending  # noqa: E402
import judged  # noqa: E402
import kept  # noqa: E402
import sweeps  # noqa: E402
from archive import Archive  # noqa: E402
from fleet import Fleet, FleetError, names_of_hosts  # noqa: E402
from judged import row  # noqa: E402
from runs import Setting, default_ranks  # noqa: E402

SECONDS = 900
WRONG_USE = NO_EFA = 2
PROVIDERS = ("efa", "tcp")
# Each step and its share of the seconds; what a step leaves over is the next ones'.
SHARES = {
    "machine": 5,
    "devices": 5,
    "limits": 5,
    "rails": 30,
    "loopback": 60,
    "pair": 150,
    "collectives": 270,
    "table": 200,
    "calibrate": 120,
    "death": 55,
}
OF_EFA = ("devices", "limits")
MEASURING = {
    "rails": sweeps.rails,
    "loopback": sweeps.loopback,
    "pair": sweeps.pair,
    "collectives": sweeps.collectives,
    "table": sweeps.nics_table,
    "calibrate": ending.calibrate,
    "death": ending.death,
}


def add_places(parser: argparse.ArgumentParser) -> None:
    """The options that the command of a pack adds: programs, libraries, and the command for other hosts."""
    parser.add_argument("--tree", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    parser.add_argument("--libraries", type=Path, default=ROOT / "build", help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)


def parse(words: list[str]) -> argparse.Namespace:
    """The command line; ends the program if it means nothing."""
    called = "./run" if "--run" in words else "./dev efa"
    parser = argparse.ArgumentParser(prog=called, description=__doc__)
    parser.add_argument("--provider", choices=PROVIDERS, default="efa", help="what carries the bytes (efa)")
    parser.add_argument(
        "--hosts", metavar="A,B", help="reach these by ssh; without it those of the Slurm allocation, by srun"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=f"for all ({SECONDS})")
    parser.add_argument(
        "--ranks", type=int, metavar="N", help="of each host (one for each GPU of a P instance, else 1)"
    )
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the archive (.)")
    parser.add_argument(
        "--pack", type=Path, metavar="FOLDER", help="run nothing: make a folder that does this"
    )
    add_places(parser)
    given = parser.parse_args(words)
    if given.seconds <= 0:
        parser.error(f"--seconds wants a number above 0, but got {given.seconds:g}")
    if given.ranks is not None and given.ranks < 1:
        parser.error(f"--ranks wants a number from 1 on, but got {given.ranks}")
    if not given.out.is_dir():
        parser.error(f"--out wants a folder that is there, but got {given.out}")
    return given


def rows_of(step: str, setting: Setting, seconds: float) -> Iterator[dict]:
    """The rows of one step."""
    if step in OF_EFA and setting.provider != "efa":
        yield row(step, "not run", "these are of an EFA, and the provider is tcp")
    elif step == "machine":
        yield from judged.machine_rows(setting.hosts, setting.provider)
    elif step == "devices":
        yield from judged.device_rows(setting.hosts)
    elif step == "limits":
        yield from judged.limit_rows(setting.hosts)
    elif seconds < 1:
        yield row(step, "not run", "the time of all steps was over")
    else:
        yield from MEASURING[step](setting, seconds)


def run_all(setting: Setting, end: float, archive: Archive) -> list[dict]:
    """Every step in turn, until a host is lost or somebody interrupts; the rows so far are in the file."""
    rows: list[dict] = []
    for number, step in enumerate(SHARES):
        weights = sum(list(SHARES.values())[number:])
        share = (end - time.monotonic()) * SHARES[step] / weights
        print(f"efa: {step} (at most {max(share, 0):.0f} s)", file=sys.stderr, flush=True)
        try:
            for told in rows_of(step, setting, share):
                rows.append({"probe": step} | told)
                archive.write(rows)
        except (FleetError, KeyboardInterrupt) as error:
            rows.append({"probe": step} | row(step, "failed", str(error) or "interrupted"))
            missing = list(SHARES)[number + 1 :]
            rows += [{"probe": each} | row(each, "not run", f"{step} ended the run") for each in missing]
            archive.write(rows)
            break
    return rows


def run_on(given: argparse.Namespace, folder: Path) -> int:
    """Reaches the hosts and runs the steps; the status is 1 if a row is wrong or failed."""
    end = time.monotonic() + given.seconds
    names, how = names_of_hosts(given.hosts, os.environ)
    print(f"efa: {', '.join(names)}, by {how}", file=sys.stderr, flush=True)
    command = [str(given.run)] if given.run else [sys.executable, str(Path(__file__).resolve())]
    archive = Archive(folder, given.provider)
    fleet = Fleet(names, how, [*command, "agent"], archive.file("agents.log"))
    try:
        hosts = fleet.describe()
        archive.note("hosts", "\n".join(map(str, hosts)))
        if given.provider == "efa" and (lack := judged.without_efa(hosts)):
            print(f"efa: {lack}", file=sys.stderr)
            return NO_EFA
        ranks = given.ranks or default_ranks(hosts)
        setting = Setting(fleet, hosts, given.provider, ranks, archive.note)
        if not setting.common_nics:
            print(
                f"efa: a host has no NIC for provider {given.provider}: see fccl-info topology there",
                file=sys.stderr,
            )
            return 1
        rows = run_all(setting, end, archive)
    finally:
        fleet.end()
    if setting.costs:
        archive.file("costs.txt").write_text(setting.costs + "\n")
    for name, text in setting.logs.items():
        archive.file(name).write_text(text)
    packed = archive.close(rows, given.out)
    print(kept.summary(rows, f"efa: {len(rows)} rows; the table, efa.json and the logs are in {packed}"))
    return 1 if any(each["verdict"] in kept.BAD for each in rows) else 0


def main(words: list[str]) -> int:
    """The exit status of the program."""
    if words[:1] == ["agent"]:
        parser = argparse.ArgumentParser()
        add_places(parser)
        places = parser.parse_args(words[1:])
        return agent.work(places.tree.resolve(), places.libraries.resolve())
    given = parse(words)
    if given.pack:
        import packing

        return packing.make(given.pack, given.tree)
    if not (given.tree / "fccl-info").exists():
        print(f"efa: there is no {given.tree / 'fccl-info'}: run ./dev build", file=sys.stderr)
        return WRONG_USE
    try:
        with tempfile.TemporaryDirectory(prefix="fccl-efa-run-") as folder:
            return run_on(given, Path(folder))
    except FleetError as error:
        print(f"efa: {error}", file=sys.stderr)
        return WRONG_USE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
