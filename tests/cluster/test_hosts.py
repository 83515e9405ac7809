"""Hosts are as apart as real ones: names, namespaces, memory, links with a rate."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.emulator

EXCHANGE = [sys.executable, str(Path(__file__).with_name("exchange.py"))]
NAMESPACES = "for kind in ipc net pid uts mnt; do readlink /proc/self/ns/$kind; done | xargs"


def test_ranks_of_two_hosts_differ_in_name_and_namespaces_and_those_of_one_do_not(run):
    said = run("2x2", "--prefix", "--", "bash", "-c", f"echo $(hostname) $({NAMESPACES})")
    assert said.returncode == 0, said.stderr
    seen = dict(line.split(" ", 1) for line in said.stdout.splitlines())
    own = subprocess.run(["bash", "-c", NAMESPACES], capture_output=True, text=True).stdout.split()
    assert seen["[0]"] == seen["[1]"] and seen["[2]"] == seen["[3]"]
    words = [*seen["[0]"].split(), *seen["[2]"].split(), *own]
    assert {"node0", "node1"} < set(words)
    assert len(set(words)) == 2 * 6 + 5, "two hosts or the machine share a namespace"


def test_a_host_sees_its_own_links_processes_and_memory_and_the_names_of_all(run):
    script = "ls /sys/class/net /dev/shm | xargs; touch /dev/shm/mine; getent hosts node1"
    said = run("2x1", "--rails", "2", "--", "bash", "-c", script)
    assert said.returncode == 0, said.stderr
    assert said.stdout.count("eth0 eth1 lo") == 2
    assert "mine" not in said.stdout
    assert len(re.findall(r"10\.77\.0\.2 +node1", said.stdout)) == 2
    assert not Path("/dev/shm/mine").exists()


def test_each_rail_joins_every_host(run):
    send = (
        "import os, socket, time\n"
        "rank = int(os.environ['RANK'])\n"
        "ends = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(2)]\n"
        "for rail, end in enumerate(ends):\n"
        "  end.bind((f'10.77.{rail}.{rank + 1}', 9))\n"
        "  end.settimeout(0.1)\n"
        "heard, until = [set(), set()], time.monotonic() + 20\n"
        "while time.monotonic() < until and min(map(len, heard)) < 3 or until - time.monotonic() > 19.5:\n"
        "  for rail, end in enumerate(ends):\n"
        "    [end.sendto(b'.', (f'10.77.{rail}.{host + 1}', 9)) for host in range(3)]\n"
        "    try: heard[rail].add(end.recvfrom(1)[1][0])\n"
        "    except TimeoutError: pass\n"
        "assert min(map(len, heard)) == 3, heard\n"
    )
    said = run("3x1", "--rails", "2", "--", sys.executable, "-c", send)
    assert said.returncode == 0, said.stderr


def test_a_link_has_its_rate_in_both_directions_and_its_bytes_are_counted(run, tmp_path):
    rate, total = 100e6 / 8, 5_000_000
    limit = rate * 1448 / 1514  # the share of an Ethernet frame that TCP's headers leave for payload
    seen = []
    for _ in range(3):  # a busy machine may be slower than its links
        said = run("2x1", "--rate", "100mbit", "--counters", "bytes.json", "--", *EXCHANGE, str(total))
        assert said.returncode == 0, said.stderr
        seen.append([float(line) / limit for line in said.stdout.split()])
        assert max(seen[-1]) < 1.1, "the link is faster than it may be"
        if min(seen[-1]) > 0.9:
            break
    else:
        pytest.fail(f"parts of the rate that were reached: {seen}")
    for link in json.loads((tmp_path / "bytes.json").read_text())["links"]:
        # The headers of the frames and the acknowledgements of the other direction come on top.
        assert 1.0 <= link["sent"] / total < 1.08
        assert 1.0 <= link["received"] / total < 1.08
    assert re.search(r"^node1 +0 +\d+ +\d+$", said.stderr, re.M)


def test_two_clusters_at_once_do_not_meet(begin):
    both = [begin("2x1", "--rate", "1gbit", "--", *EXCHANGE, "1000000") for _ in range(2)]
    for process in both:
        said, complained = process.communicate(timeout=60)
        assert process.returncode == 0, complained
        assert len(said.split()) == 2


def test_packets_are_steered_unless_it_is_said_that_they_are_not(run):
    steering = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
    assert int(run("2x1", "--", "cat", steering).stdout.split()[0], 16) > 0
    assert run("2x1", "--unsteered", "--", "cat", steering).stdout.split() == ["0", "0"]
