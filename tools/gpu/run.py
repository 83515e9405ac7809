"""Runs one probe within its limit, and makes rows of whatever becomes of it."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import IO

from probes import Probe
from starting import die_with_parent

NO_GPU = 77
SOMETHING_WRONG = 1
GRACE = 10.0  # beyond its limit, for a probe to end by itself
LAST_WORDS = 400  # characters of what a probe complained
KEYS = {"question", "case", "what", "verdict", "value", "unit", "note"}


@dataclass
class Ended:
    """A probe, the rows that came of it, and whether it asked a GPU anything."""

    probe: Probe
    rows: list[dict] = field(default_factory=list)
    ran: bool = False
    complained: str = ""

    def add(self, what: str, verdict: str, note: str) -> None:
        """A row about the probe itself."""
        row = dict.fromkeys(("question", "value")) | {"case": "", "unit": ""}
        self.rows.append({"probe": self.probe.name} | row | {"what": what, "verdict": verdict, "note": note})


def run(probe: Probe, seconds: float, grace: float = GRACE) -> Ended:
    """Ends with the probe, or at its limit, when it and all that it has started are killed."""
    ended = Ended(probe)
    if seconds < 1:
        ended.add("the whole probe", "not run", "the time of all probes was over")
        return ended
    # Files, since the end of a pipe could be held by a process that even a kill does not end.
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            status = wait_for(start(probe, seconds, said, complained), seconds + grace)
        except OSError as error:
            ended.add("the whole probe", "failed", f"could not be started: {error}")
            return ended
        read_rows(ended, text_of(said))
        ended.complained = text_of(complained)
        judge(ended, status, ended.complained, seconds)
    return ended


def start(probe: Probe, seconds: float, said: IO[bytes], complained: IO[bytes]) -> subprocess.Popen:
    """The probe in a session of its own, which ends with this process."""
    return subprocess.Popen(
        [*probe.words, "--seconds", f"{seconds:.0f}"],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=complained,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def wait_for(process: subprocess.Popen, seconds: float) -> int | None:
    """The status; None if the probe had to be killed, with all that it had started."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def text_of(file: IO[bytes]) -> str:
    """All that was written into it."""
    file.seek(0)
    return file.read().decode(errors="replace")


def read_rows(ended: Ended, said: str) -> None:
    """Rows of the lines that are rows; one failure for all that are none."""
    strange = []
    for line in said.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and row.keys() >= KEYS:
            ended.rows.append({"probe": ended.probe.name} | row)
        elif line.strip():
            strange.append(line)
    if strange:
        note = f"{len(strange)} lines are no rows, the first: {strange[0][:LAST_WORDS]}"
        ended.add("its output", "failed", note)


def judge(ended: Ended, status: int | None, complained: str, seconds: float) -> None:
    """Adds rows for the exit status; a status that reports a fault needs a row that names it."""
    words = " ".join(complained.split())[-LAST_WORDS:]
    ended.ran = status != NO_GPU
    told = any(row["verdict"] in ("wrong", "failed", "not run") for row in ended.rows)
    if status is None:
        ended.add("the whole probe", "failed", f"killed: not done after {seconds:.0f} s; {words}")
    elif status < 0:
        ended.add("the whole probe", "failed", f"ended by signal {signal.Signals(-status).name}; {words}")
    elif status not in (0, SOMETHING_WRONG, NO_GPU) or (status == SOMETHING_WRONG and not told):
        ended.add("the whole probe", "failed", f"ended with status {status}; {words}")
    elif not ended.rows:
        ended.add("the whole probe", "failed", f"ended well without a row; {words}")
