"""On which interface of its host the bootstrap listens, where users' networks are odd."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from conftest import ROOT

LIBRARY = Path(os.environ.get("FCCL_TEST_LIBRARY", ROOT / "build/libfccl.so"))
RANK = str(Path(__file__).parent / "leaving_rank.py")
TIMEOUT = 8
# An interface that is up, carries the default route, and leads to nobody.
NOWHERE = (
    "set -e; ip link add nowhere type veth peer name nobody; ip link set nobody up; "
    "ip address add 10.99.0.1/24 dev nowhere; ip link set nowhere up; "
    "ip route replace default dev nowhere; "
)
# A host whose own name stands for its loopback, as some distributions write /etc/hosts.
LOOPBACK_NAME = (
    "set -e; echo 127.0.0.1 node0 > hosts; mount --bind hosts /etc/hosts; export MASTER_ADDR=node0; "
)

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason=f"{LIBRARY} is not built; FCCL_TEST_LIBRARY names another"
)


@pytest.fixture
def join(run, tmp_path):
    """Two hosts of two links; what each rank says, in the order of the ranks, after `first` ran on node0."""

    def join_once(first: str = "", **variables: str) -> list[dict]:
        words = [sys.executable, RANK, str(LIBRARY), str(tmp_path), "all_gather", "destroy"]
        settings = " ".join(f"export {name}={shlex.quote(value)};" for name, value in variables.items())
        script = f"{settings} if ((RANK == 0)); then {first}:; fi; exec {shlex.join(words)}"
        said = run("2x1", "--rails", "2", "--", "bash", "-c", script)
        ranks = [json.loads(line) for line in said.stdout.splitlines()]
        assert len(ranks) == 2, said.stdout + said.stderr
        return sorted(ranks, key=lambda each: each["rank"])

    return join_once


@pytest.mark.parametrize(
    "variable, text",
    [
        ("FCCL_SOCKET_IFNAME", "=eth1,eth0"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo,veth"),
        ("GLOO_SOCKET_IFNAME", "eth1"),
    ],
)
def test_hosts_meet_on_interfaces_that_are_named_as_users_of_nccl_and_gloo_do(join, variable, text):
    assert [each["code"] for each in join(**{variable: text})] == [0, 0]


def test_hosts_meet_though_the_default_route_leads_nowhere_where_the_master_is_known(join):
    assert [each["code"] for each in join(NOWHERE)] == [0, 0]


def test_hosts_meet_though_the_name_of_the_master_stands_for_its_loopback(join):
    assert [each["code"] for each in join(LOOPBACK_NAME)] == [0, 0]


def test_a_root_on_an_interface_that_leads_nowhere_is_named_with_it_and_the_others(join):
    root, other = join(NOWHERE, FCCL_INIT_TIMEOUT="2", MASTER_ADDR="")
    assert root["code"] == TIMEOUT
    listening = "(nowhere, the interface of the default route)"
    assert "The root listens at 10.99.0.1:" in root["text"]
    assert listening in root["text"]
    assert "this host also has eth0 (10.77.0.1), eth1 (10.77.1.1)" in root["text"]
    assert other["code"] == TIMEOUT
    assert listening in other["text"]
    assert "FCCL_SOCKET_IFNAME" in root["text"]
