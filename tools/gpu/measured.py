"""Runs of the perf binaries on GPU memory, and the rows that come of their reports."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from programs import Programs, Ranks, Run, started

WRONG_DATA = 7
# Seconds: of a call of a perf binary; and what it needs before its calls begin.
DEADLINE, LEAST_DEADLINE, UNTIL_CALLS = 20, 3, 6


def row(what: str, verdict: str, note: str = "", ranks: Ranks | None = None, **more: object) -> dict:
    """One answer; `more`: case, value, unit."""
    blank = {"question": None, "case": "", "value": None, "unit": ""}
    shared = {"ranks_per_gpu": ranks.count if ranks else None, "ranks_are": ranks.are if ranks else None}
    return blank | shared | more | {"what": what, "verdict": verdict, "note": note}


@dataclass(frozen=True)
class Sweep:
    """One run of a perf binary: the collective, its ranks, flags and variables."""

    collective: str
    ranks: Ranks
    flags: str
    case: str = ""
    hosts: int = 1
    variables: dict = field(default_factory=dict)
    figures: bool = False  # rows tell its times and bandwidths, too

    @property
    def processes(self) -> int:
        """How many there are."""
        return self.ranks.count if self.ranks.are == "processes" else 1

    def words(self, programs: Programs, seconds: float) -> list[str]:
        """The command line; only the first process writes the report. The deadline comes before the kill."""
        threads = self.ranks.count // self.processes
        deadline = max(LEAST_DEADLINE, min(DEADLINE, int(seconds) - UNTIL_CALLS))
        flags = ["--device", "cuda", "-t", str(threads), "-T", str(deadline), *self.flags.split()]
        flags += ["-J", "FOLDER/report.json"]
        return [programs.perf(self.collective), *flags]


def measure(programs: Programs, sweep: Sweep, seconds: float) -> Iterator[dict]:
    """A row that says whether every result was right; then the figures of its sizes, if asked for."""
    if seconds < 1:
        yield row(sweep.collective, "not run", "the time of the step was over", sweep.ranks, case=sweep.case)
        return
    with started(sweep.words(programs, seconds), sweep.processes, sweep.hosts, sweep.variables) as run:
        run.wait(seconds)
        yield from rows_of(sweep, run, seconds)


def rows_of(sweep: Sweep, run: Run, seconds: float) -> Iterator[dict]:
    """The rows that a run yields when it has ended."""
    about = {"ranks": sweep.ranks, "case": sweep.case}
    bad = next((each for each in run.processes if each.status not in (0, WRONG_DATA)), None)
    if bad:
        ended = "killed" if bad.status is None else f"status {bad.status}"
        after = f"not done after {seconds:.0f} s; " if bad.status is None else ""
        yield row(sweep.collective, "failed", f"{ended}: {after}{bad.last_words}", **about)
        return
    try:
        report = json.loads((run.folder / "report.json").read_text())
        results = report["results"]
    except (OSError, ValueError, KeyError) as error:
        yield row(sweep.collective, "failed", f"its report cannot be read: {error}", **about)
        return
    sides = [result[side] for result in results for side in ("out_of_place", "in_place") if result[side]]
    wrong = sum(side["nwrong"] for side in sides)
    config = report["config"]
    path = f"path {config['cuda_path']}; {len(sides)} checks"
    if wrong or not sides or report["out_of_bounds"]["okay"] != "true":
        yield row(sweep.collective, "wrong", f"{wrong:.0f} wrong elements; {path}", **about)
    else:
        yield row(sweep.collective, "works", path, **about)
    if sweep.figures:
        yield from figures_of(sweep, results)


def figures_of(sweep: Sweep, results: list[dict]) -> Iterator[dict]:
    """The time of the smallest size and the bus bandwidth of the largest."""
    about = {"ranks": sweep.ranks, "case": sweep.case}
    small, large = results[0], results[-1]
    yield row(
        f"{sweep.collective} of {small['size']} bytes",
        "measured",
        f"mean of {small['actual_iterations']}, out of place",
        value=small["out_of_place"]["time"],
        unit="us",
        **about,
    )
    yield row(
        f"{sweep.collective} of {large['size']} bytes, busbw",
        "measured",
        f"mean of {large['actual_iterations']}, out of place",
        value=large["out_of_place"]["bus_bw"],
        unit="GB/s",
        **about,
    )
