"""Keeps pytest's process single-threaded, as the ranks are, and runs some tests on two hosts as well."""

import pytest
import torch

torch.set_num_threads(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if marker := metafunc.definition.get_closest_marker("two_hosts"):
        marks = [] if marker.kwargs.get("every_change") else [pytest.mark.slow]
        spreads = [pytest.param(1, id="one_host"), pytest.param(2, id="two_hosts", marks=marks)]
        metafunc.parametrize("spread", spreads, indirect=True)


@pytest.fixture(autouse=True)
def spread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tells run_ranks the number of hosts, unless the environment of the tests does."""
    if hosts := getattr(request, "param", None):
        monkeypatch.setenv("FCCL_TEST_HOSTS", str(hosts))
