#!/usr/bin/env python3
"""Asks a Prometheus every query of the dashboards in deploy/metrics, while a job with a late rank runs."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import exporters
import picture
from job import Job
from panels import Panel, all_panels
from prometheus import Prometheus

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("FCCL_BUILD", ROOT / "build")) / "perf_tests" / "all_reduce_perf"
UNPACKED = ROOT / "build" / "prometheus" / "usr" / "bin" / "prometheus"
USAGE = "./dev dashboards [--picture FILE.png] [--seconds N]"
_PAUSE = 1.0
# A chart of one moment shows nothing.
_SHOWN_SECONDS = 30.0


def parse(words: list[str]) -> argparse.Namespace:
    """The options; ends the program if they mean nothing."""
    parser = argparse.ArgumentParser(prog="./dev dashboards", usage=USAGE, description=__doc__)
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw all panels into this file")
    parser.add_argument("--seconds", type=float, default=90, help="the most that is waited for series (90)")
    given = parser.parse_args(words)
    if given.picture and given.picture.suffix != ".png":
        parser.error(f"--picture wants a file NAME.png, but got {given.picture}")
    return given


def prometheus_program() -> Path:
    """The program, unpacked by ./dev or installed."""
    installed = shutil.which("prometheus")
    if not UNPACKED.exists() and installed is None:
        raise OSError(f"there is no prometheus in PATH and no {UNPACKED}: ./dev dashboards fetches it")
    return UNPACKED if UNPACKED.exists() else Path(installed)


def series_of(prometheus: Prometheus, panel: Panel) -> list[dict]:
    """The series of all queries of a panel."""
    return [each for query in panel.queries for each in prometheus.series(query)]


def counts(prometheus: Prometheus, panels: list[Panel]) -> dict[str, int]:
    """The number of series of each panel; 0 if one of its queries has none."""
    found = {}
    for panel in panels:
        series = [len(prometheus.series(query)) for query in panel.queries]
        found[panel.name] = sum(series) if all(series) else 0
    return found


def await_series(prometheus: Prometheus, job: Job, panels: list[Panel], seconds: float) -> dict[str, int]:
    """The numbers of series once every panel has one, or after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        found = counts(prometheus, panels)
        if fault := job.fault():
            raise OSError(fault)
        if all(found.values()) or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE)


def ask_all(given: argparse.Namespace, folder: Path) -> int:
    """Prints the number of series of each panel; 1 if one has none."""
    panels = all_panels()
    job = Job(BINARY, folder)
    try:
        targets = {
            "fccl": job.ports,
            "dcgm": [exporters.serve(exporters.page_of_dcgm)],
            "efa": [exporters.serve(exporters.page_of_efa)],
        }
        prometheus = Prometheus(prometheus_program(), folder, targets, interval="1s")
        job.be_late()
        found = await_series(prometheus, job, panels, given.seconds)
        for name, number in found.items():
            print(f"{name}: {number} series")
        if given.picture:
            time.sleep(_SHOWN_SECONDS)
            charts = [picture.chart(each.name, series_of(prometheus, each)) for each in panels]
            picture.draw(charts, given.picture, folder / "panels.html")
        prometheus.end()
    finally:
        job.end()
    if empty := [name for name, number in found.items() if number == 0]:
        print(f"dashboards: no series for {', '.join(empty)}", file=sys.stderr)
    return 1 if empty else 0


def main(words: list[str]) -> int:
    """The exit status of the program."""
    given = parse(words)
    try:
        if not BINARY.exists():
            raise OSError(f"there is no {BINARY}: run ./dev build first")
        with tempfile.TemporaryDirectory(prefix="fccl-dashboards-") as folder:
            return ask_all(given, Path(folder))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"dashboards: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
