"""The step that asks for the bits of a GPU's sums: all pairs of bfloat16; and compute-sanitizer."""

import os
import shutil
from collections.abc import Iterator

from measured import row
from programs import Programs, Ranks, started

ALONE = Ranks(1, "threads")
CASE = "kernels of sums"
PAIRS = "*DeviceSums.of_pairs*"
# It serialises streams, so it must see no word that a queue waits for.
WITHOUT_WAITS = "*DeviceSums.have_the_bits*"
SANITIZER = "compute-sanitizer"
FOUND = 9  # its status if it found something


def rows(programs: Programs, seconds: float) -> Iterator[dict]:
    """A row for all pairs of bfloat16, and one for the sanitizer."""
    pairs = os.environ.get("FCCL_TEST_PAIRS", "all")
    words = [programs.conformance, f"--gtest_filter={PAIRS}"]
    yield tested(f"{pairs} pairs of bfloat16 have the processor's bits", words, seconds * 0.7, pairs)
    if sanitizer := shutil.which(SANITIZER):
        words = [
            sanitizer,
            f"--error-exitcode={FOUND}",
            programs.conformance,
            f"--gtest_filter={WITHOUT_WAITS}",
        ]
        yield tested(f"{SANITIZER} finds nothing", words, seconds * 0.3)
    else:
        note = f"there is no {SANITIZER}"
        yield row(f"{SANITIZER} finds nothing", "not run", note, ALONE, case=CASE)


def tested(what: str, words: list[str], seconds: float, pairs: str = "some") -> dict:
    """The row of one run of the conformance program."""
    with started(words, variables={"FCCL_TEST_PAIRS": pairs}) as run:
        run.wait(seconds)
        (process,) = run.processes
        said = process.said()
        if process.status == 0 and "[  SKIPPED ]" in said:
            return row(what, "unsupported", process.last_words, ALONE, case=CASE)
        if process.status == 0 and "[  PASSED  ] 1 test" in said:
            return row(what, "works", f"{process.seconds:.1f} s", ALONE, case=CASE)
        ended = "killed" if process.status is None else f"status {process.status}"
        verdict = "wrong" if process.status in (1, FOUND) else "failed"
        return row(what, verdict, f"{ended}: {process.last_words}", ALONE, case=CASE)
