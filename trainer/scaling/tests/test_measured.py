"""Sizes and rails of emulated hosts, measured for a chart."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
TRAINER = ["--hidden", "64", "--layers", "2", "--seq-len", "32", "--global-batch", "1", "--steps", "8"]


pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

COMPUTE = 0.2
ATTEMPTS = 3


def measure(folder: Path, *words: str, trainer: list[str] = TRAINER) -> list[dict[str, Any]]:
    """The rows that the command leaves in `folder`."""
    if subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True).returncode:
        pytest.skip("namespaces cannot be made here")
    command = [sys.executable, "-m", "trainer.scaling", *words, "--out", str(folder)]
    ended = subprocess.run(
        [*command, "--", "-m", "trainer.fsdp", *trainer], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    print(ended.stdout)
    assert {"scaling.json", "scaling.csv", "scaling.png"} <= {file.name for file in folder.iterdir()}
    return json.loads((folder / "scaling.json").read_text())["rows"]


def test_two_hosts_hold_half_of_the_state_each_and_are_as_efficient_as_their_sleep_says(
    tmp_path: Path,
) -> None:
    words = ["--hosts", "1,2", "--rate", "1gbit", "--compute", str(COMPUTE)]
    apart = []
    # Other work on the machine lengthens steps.
    while len(apart) < ATTEMPTS and (not apart or apart[-1] > 0.1):
        one, two = measure(tmp_path / str(len(apart)), *words)
        assert one["efficiency"] == 1 and one["emulated"] and two["emulated"]
        assert two["efficiency"] == two["per_second"] / (one["per_second"] * 2 / 1)
        assert abs(2 * two["state_bytes_per_rank"] / one["state_bytes_per_rank"] - 1) < 0.05
        assert two["bytes_per_host"] > 0
        assert min(one["step_seconds"], two["step_seconds"]) >= COMPUTE
        # Collectives are exposed in all of a step but its sleep.
        apart.append(abs(two["efficiency"] / (COMPUTE / two["step_seconds"]) - 1))
    assert apart[-1] <= 0.1, apart


def test_more_rails_take_less_time_for_an_epoch(tmp_path: Path) -> None:
    # A step moves some 10 MB each way: 0.8 s by one rail.
    trainer = [*TRAINER, "--hidden", "256", "--global-batch", "2"]
    words = ["--hosts", "2", "--rails", "0,1,2", "--rate", "100mbit"]
    within, one, two = measure(tmp_path / "out", *words, trainer=trainer)
    assert [row["rails"] for row in (within, one, two)] == [0, 1, 2]
    assert not within["emulated"] and within["bytes_per_host"] == 0
    assert within["epoch_seconds"] < two["epoch_seconds"] < 0.8 * one["epoch_seconds"]
    assert one["collective_share"] > within["collective_share"]
