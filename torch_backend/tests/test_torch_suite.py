"""torch's own suite for process groups passes, but for what is known to come later."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Tests that cannot pass, by pattern: why, and what their failure must say.
KNOWN = {
    r"test_.*_product$": ("ReduceOp.PRODUCT comes later", "is not implemented yet"),
    r"test_ddp_logging_data_cpu$": ("torch names the group of a plugin 'custom'", "'custom' != 'fccl'"),
}
PASSING = 63


def known(name):
    return next((entry for pattern, entry in KNOWN.items() if re.match(pattern, name)), None)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_distributed_tests_of_torch_pass_but_for_known_ones():
    command = [sys.executable, str(Path(__file__).with_name("torch_suite.py"))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1400)
    report = json.loads(ran.stdout.splitlines()[-1])
    for name, reason in sorted(report["skipped"].items()):
        print(f"skipped by torch: {name}: {reason}")
    unexpected = []
    for name, text in sorted(report["failed"].items()):
        reason, words = known(name) or ("unknown", None)
        print(f"failed: {name}: {reason}")
        if words is None or words not in text:
            unexpected.append(f"{name}: {text}")
    assert not unexpected, "\n".join(unexpected)
    assert len(report["passed"]) >= PASSING, f"only {len(report['passed'])} tests passed"
