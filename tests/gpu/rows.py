"""Rows of the probes that are written in Python: one line of JSON each, as row.h has them."""

import json

NO_GPU = 77
VERDICTS = ("measured", "works", "unsupported", "wrong", "failed", "not run")


class Rows:
    """Prints the answers to one question, and remembers whether one of them was bad."""

    def __init__(self, question: int) -> None:
        self._question = question
        self.well = True

    def say(
        self, case: str, what: str, verdict: str, value: float | None = None, *, unit: str = "", note: str = ""
    ) -> None:
        """Prints one row at once."""
        assert verdict in VERDICTS, verdict
        self.well = self.well and verdict not in ("wrong", "failed")
        row = {"question": self._question, "case": case, "what": what, "verdict": verdict}
        print(json.dumps(row | {"value": value, "unit": unit, "note": note}), flush=True)

    def works(self, case: str, what: str, well: bool, note: str = "") -> None:
        """A feature, tried: it works, or something wrong came of it."""
        self.say(case, what, "works" if well else "wrong", note=note)
