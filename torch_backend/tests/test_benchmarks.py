"""The programs that measure: they end well, and what they compare has right results."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def lines_of(program: str, *words: str, ranks: int = 2) -> list[str]:
    """The lines that the program prints on so many ranks."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    ran = subprocess.run(
        [*launcher, str(BENCHMARKS / program), *words], capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_collectives_of_every_contestant_have_no_wrong_elements(ranks):
    lines = lines_of("collectives.py", "--most", "32K", "--factor", "32", "--turns", "2", ranks=ranks)
    assert lines[0].startswith(f"{ranks} ranks")
    rows = [line.split() for line in lines if line.startswith(("all_gather", "reduce_scatter", "all_reduce"))]
    assert [row[:3] for row in rows] == [
        [collective, size, inputs]
        for collective in ("all_gather", "reduce_scatter", "all_reduce")
        for size in ("1024", "32768")
        for inputs in ("warm", "fresh")
    ]
    assert all(row[-1] == "0" for row in rows), lines


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_a_step_of_fsdp2_is_timed_with_every_subject_and_the_memory_that_was_asked_for(kept):
    words = ["--kept-memory"] if kept else []
    lines = lines_of("fsdp_step.py", "--steps", "1", "--length", "16", *words)
    names = [line[:20].strip() for line in lines[-5:]]
    assert names == ["fccl", "fccl.fsdp", "fccl without arena", "gloo", "gloo, arena"]
    [settings] = [line for line in lines if line.startswith("the C library's memory")]
    assert ("MALLOC_TRIM_THRESHOLD_=" in settings) == kept, settings
