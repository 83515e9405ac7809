"""torch's own suite for process groups passes, but for what is known to come later."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Tests that cannot pass, by pattern: why, and what their failure must say.
KNOWN = {
    r"test_.*_product$": ("ReduceOp.PRODUCT comes later", "is not implemented yet"),
    r"test_ddp_logging_data_cpu$": ("torch names the group of a plugin 'custom'", "'custom' != "),
}


def known(name):
    return next((entry for pattern, entry in KNOWN.items() if re.match(pattern, name)), None)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("backend", "ranks", "passing"), [("fccl", 3, 63), ("gloo", 4, 92)], ids=["as_fccl", "as_gloo"]
)
def test_the_distributed_tests_of_torch_pass_but_for_known_ones(backend, ranks, passing):
    command = [sys.executable, str(Path(__file__).with_name("torch_suite.py"))]
    chosen = {"BACKEND": backend, "WORLD_SIZE": str(ranks), "FCCL_TORCH_REPLACES": "gloo"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1400, env={**os.environ, **chosen})
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
    assert len(report["passed"]) >= passing, f"only {len(report['passed'])} tests passed"
