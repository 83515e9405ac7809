"""The last two steps: the costs between the hosts, and the death of a rank."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from fleet import Plan
from judged import row
from runs import Setting, note_all, where_of

COSTS = re.compile(r"^latency=.*$", re.MULTILINE)
CALIBRATED = 5  # repetitions of a point
SOON = 15.0  # seconds in which the others must have ended: a deadline is 20
UNTIL_CALLS = 60.0
ROW_OF_TABLE = re.compile(r"^ *\d", re.MULTILINE)
LOOK_SECONDS = 5.0
# A table's row is printed between two calls. So long after it the processes have met, and make calls again.
UNTIL_CALLS_AGAIN = 0.3
ENDLESS = ["-b", "4M", "-e", "4M", "-n", "20", "-c", "0", "-N", "0", "-T", "20"]


def calibrate(setting: Setting, seconds: float) -> Iterator[dict]:
    """The five costs that FCCL_COSTS takes, as measured between the hosts."""
    if len(setting.hosts) < 2:
        yield row("FCCL_COSTS", "not run", "there is one host only")
        return
    words = ["TREE/perf_tests/all_gather_perf", "--calibrate", "-n", str(CALIBRATED), "-T", "60"]
    plan = Plan(words, setting.everywhere, setting.ranks, {"FCCL_TRANSPORT": setting.provider})
    plan.nics = setting.first_nics(setting.common_nics)
    with setting.fleet.job(plan) as job:
        done = job.wait(seconds)
    note_all(setting, job, plan, "calibrate")
    about = {"where": where_of(setting, plan)}
    first = job.ranks[0]
    costs = COSTS.search(first.said)
    if not done or first.status != 0 or not costs:
        why = f"status {first.status}: {first.last_words}" if done else f"not done after {seconds:.0f} s"
        yield row("FCCL_COSTS", "failed", why, **about)
        return
    setting.costs = costs[0]
    yield row("FCCL_COSTS", "works", costs[0], **about)


def death(setting: Setting, seconds: float) -> Iterator[dict]:
    """Kills the last rank in a call: whether the others end soon, and name it."""
    words = ["TREE/perf_tests/all_reduce_perf", *ENDLESS]
    plan = Plan(words, setting.everywhere, setting.ranks)
    plan.variables = {"FCCL_TRANSPORT": setting.provider}
    plan.nics = setting.first_nics(setting.common_nics)
    about = {"case": "kill -9 in a call", "where": where_of(setting, plan)}
    what = "the other ranks of all_reduce end"
    with setting.fleet.job(plan) as job:
        if not calls_are_made(job, min(UNTIL_CALLS, seconds / 2)):
            yield row(what, "failed", f"no call was made: {job.ranks[0].last_words}", **about)
            return
        time.sleep(UNTIL_CALLS_AGAIN)
        killed = job.ranks[-1]
        job.kill(killed)
        ended = job.wait(SOON)
    note_all(setting, job, plan, "death")
    yield from judge(job.ranks, ended, what, about)


def calls_are_made(job: object, seconds: float) -> bool:
    """True once the table has a row."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not job.ranks[0].has_ended:
        if ROW_OF_TABLE.search(job.said(LOOK_SECONDS)):
            return True
        time.sleep(0.1)
    return False


def line_about(number: int, complained: str) -> str:
    """The last line that names the rank, or its process where it died between two calls; "" if none does."""
    named = re.compile(rf"\brank {number}\b|\bprocess {number} of this run is gone\b")
    lines = [line.strip() for line in complained.splitlines() if named.search(line)]
    return lines[-1] if lines else ""


def judge(ranks: list, ended: bool, what: str, about: dict) -> Iterator[dict]:
    """Rows about the survivors of a kill of the last rank."""
    number = len(ranks) - 1
    survivors = ranks[:-1]
    if not ended:
        stuck = [at for at, rank in enumerate(survivors) if rank.status is None]
        yield row(what, "failed", f"ranks {stuck} had not ended {SOON:.0f} s after the kill", **about)
        return
    naming = list(filter(None, (line_about(number, rank.complained) for rank in survivors)))
    well = [at for at, rank in enumerate(survivors) if rank.status == 0]
    if well:
        yield row(what, "wrong", f"ranks {well} ended well", **about)
        return
    took = max(rank.seconds for rank in survivors)
    note = f"after the kill of rank {number}"
    yield row(what, "measured", note, value=took * 1e3, unit="ms", **about)
    said = naming[0] if naming else survivors[0].last_words
    verdict = "works" if len(naming) == len(survivors) else "wrong"
    yield row(
        "the dead rank is named", verdict, f"by {len(naming)} of {len(survivors)} others: {said}", **about
    )
