"""Rows of the probes that are written in Python: one line of JSON each, as row.h has them."""

import json

NO_GPU = 77
VERDICTS = ("measured", "works", "unsupported", "wrong", "failed", "not run")


class Rows:
    """Prints the answers to one question, and remembers whether one of them was bad."""

    def __init__(self, question: int) -> None:
        self._question = question
        self.well = True

    def say(self, case: str, what: str, verdict: str, note: str = "") -> None:
        """A row without a figure."""
        self._print({"case": case, "what": what, "verdict": verdict, "value": None, "unit": "", "note": note})

    def works(self, case: str, what: str, well: bool, note: str = "") -> None:
        """A feature, tried: it works, or something wrong came of it."""
        self.say(case, what, "works" if well else "wrong", note)

    def measured(self, case: str, what: str, value: float, unit: str, note: str = "") -> None:
        """A figure."""
        row = {"case": case, "what": what, "verdict": "measured", "value": value, "unit": unit, "note": note}
        self._print(row)

    def _print(self, row: dict) -> None:
        assert row["verdict"] in VERDICTS, row
        self.well = self.well and row["verdict"] not in ("wrong", "failed")
        print(json.dumps({"question": self._question} | row), flush=True)
