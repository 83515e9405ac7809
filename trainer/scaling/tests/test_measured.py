"""Two sizes of emulated hosts, measured for a chart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TRAINER = ["--hidden", "64", "--layers", "2", "--seq-len", "32", "--global-batch", "1", "--steps", "8"]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_two_hosts_hold_half_of_the_state_each(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True).returncode:
        pytest.skip("namespaces cannot be made here")
    words = ["--hosts", "1,2", "--rate", "1gbit", "--compute", "0.2", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "trainer.scaling", *words, "--", "-m", "trainer.fsdp", *TRAINER]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    one, two = json.loads((tmp_path / "out" / "scaling.json").read_text())["rows"]
    assert one["efficiency"] == 1 and one["emulated"] and two["emulated"]
    assert abs(2 * two["state_bytes_per_rank"] / one["state_bytes_per_rank"] - 1) < 0.05
    assert two["bytes_per_host"] > 0
    assert min(one["step_seconds"], two["step_seconds"]) >= 0.2
