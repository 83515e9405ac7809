"""Settings of a host's kernel: a congestion control that any host may have, and why the kernel refused."""

import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools/cluster"))
import settings

pytestmark = pytest.mark.emulator

FOLDER = Path("/proc/sys/net/ipv4")


class Kernel:
    """A kernel that lets hosts have these only; `taken` is what was asked of it."""

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed
        self.taken: list[str] = []

    def take(self, name: str) -> None:
        self.taken.append(name)
        if name not in self.allowed.split():
            raise PermissionError(1, "Operation not permitted")

    def settle(self) -> str:
        return settings.settle_congestion_control(self.take, lambda: self.allowed)


def test_every_host_has_a_congestion_control_that_needs_no_permission_and_paces_by_no_timer(run):
    said = run("2x1", "--rate", "1gbit", "--", "cat", str(FOLDER / "tcp_congestion_control"))
    assert said.returncode == 0, said.stderr
    had = said.stdout.split()
    assert had in (["reno"] * 2, ["cubic"] * 2)
    if "reno" in (FOLDER / "tcp_allowed_congestion_control").read_text().split():
        assert had == ["reno"] * 2


def test_the_machine_keeps_its_own_congestion_control(run):
    before = (FOLDER / "tcp_congestion_control").read_text()
    assert run("2x1", "--", "true").returncode == 0
    assert (FOLDER / "tcp_congestion_control").read_text() == before


def test_the_first_line_says_which_congestion_control_hosts_have(run):
    said = run("2x1", "--rate", "1gbit", "--rails", "2", "--", "cat", str(FOLDER / "tcp_congestion_control"))
    name = said.stdout.split()[0]
    first = said.stderr.splitlines()[0]
    assert first == f"cluster: hosts 2, rails 2, rate 1gbit, congestion control of TCP {name}"


@pytest.mark.parametrize("allowed", ["reno bbr", "bbr reno cubic", "reno"])
def test_reno_is_taken_wherever_hosts_may_have_it_so_that_all_machines_emulate_the_same(allowed):
    kernel = Kernel(allowed)
    assert kernel.settle() == "reno"
    assert kernel.taken == ["reno"]


def test_cubic_is_taken_where_the_machine_keeps_reno_for_itself():
    assert Kernel("bbr cubic").settle() == "cubic"


def test_a_kernel_that_keeps_all_of_them_is_told_with_the_setting_that_decides():
    with pytest.raises(OSError, match="cannot set the congestion control of TCP") as refused:
        Kernel("bbr").settle()
    text = str(refused.value)
    assert "refused reno (Operation not permitted) and cubic (Operation not permitted)" in text
    assert "net.ipv4.tcp_allowed_congestion_control decides, which is: bbr." in text
    assert "Add reno to it" in text


def test_a_cluster_whose_hosts_may_have_none_names_the_host_and_what_decides(run):
    wanting = "import sys; sys.path.insert(0, sys.argv.pop(1)); import settings, cluster; "
    wanting += "settings.CONGESTION_CONTROLS = ('none-such',); sys.exit(cluster.main(sys.argv[1:]))"
    said = run("2x1", "--", "true", program=[sys.executable, "-c", wanting, str(ROOT / "tools/cluster")])
    assert said.returncode == 1
    assert "cluster: node0 cannot be made: cannot set the congestion control of TCP" in said.stderr
    allowed = (FOLDER / "tcp_allowed_congestion_control").read_text().strip()
    assert f"refused none-such (No such file or directory) for {FOLDER}" in said.stderr
    assert f"tcp_allowed_congestion_control decides, which is: {allowed}." in said.stderr


def test_a_setting_that_cannot_be_written_is_told_with_its_purpose_and_what_was_seen(tmp_path):
    with pytest.raises(OSError, match="cannot keep IPv6 off the links") as refused:
        settings.give(tmp_path / "none/disable_ipv6", "1", "keep IPv6 off the links")
    text = str(refused.value)
    assert f"writing 1 to {tmp_path}/none/disable_ipv6 failed: No such file or directory" in text
    assert "run ./dev cluster as such" in text
