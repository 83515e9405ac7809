"""The folder of deploy/metrics and Debian's promtool, for the tests."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOYED = ROOT / "deploy" / "metrics"
sys.path.insert(0, str(ROOT / "tools" / "dashboards"))


@pytest.fixture(scope="session")
def promtool() -> str:
    """The program that ./dev unpacks, or an installed one."""
    fetched = ROOT / "build" / "prometheus" / "usr" / "bin" / "promtool"
    found = str(fetched) if fetched.exists() else shutil.which("promtool")
    if found is None:
        pytest.skip("there is no promtool: ./dev dashboards and ./dev test all fetch it")
    return found
