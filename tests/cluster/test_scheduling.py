"""All hosts are one group for the kernel's scheduler, so a rank that yields lets those of other hosts run."""

import signal
import sys

import pytest
from conftest import ROOT, wait_until

sys.path.insert(0, str(ROOT / "tools/cluster"))
import scheduling

pytestmark = pytest.mark.emulator

GROUPS = "/proc/self/cgroup"


@pytest.fixture
def root():
    """The folder of groups."""
    with scheduling.group() as group:
        if group is None:
            pytest.skip("the kernel does not schedule by session here, or permits no groups")
        return group.parent


def test_sessions_on_all_hosts_are_in_one_group_of_their_cluster(root, run):
    said = run("2x2", "--", "setsid", "--wait", "cat", GROUPS)
    assert said.returncode == 0, said.stderr
    groups = [line for line in said.stdout.splitlines() if "/fccl-cluster-" in line]
    assert len(groups) == 4 and len(set(groups)) == 1, said.stdout


def test_a_group_is_gone_after_its_cluster(root, begin):
    process = begin("2x1", "--", "true")
    assert process.wait(20) == 0
    assert not (root / f"fccl-cluster-{process.pid}").exists()


def test_the_group_of_a_cluster_that_was_killed_is_removed_by_the_next_one(root, begin, run):
    process = begin("2x1", "--", "bash", "-c", "echo started; sleep 600")
    process.stdout.readline()
    group = root / f"fccl-cluster-{process.pid}"
    assert group.exists()
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    wait_until(lambda: not (group / "cgroup.procs").read_text())
    assert run("2x1", "--", "true").returncode == 0
    assert not group.exists()
