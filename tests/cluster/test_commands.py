"""Commands: once per rank, across the hosts, their statuses, and what is refused."""

import shutil
import subprocess
import sys

import pytest
from conftest import PROGRAM

pytestmark = pytest.mark.emulator

SHOW = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT $(hostname)"


def test_a_command_runs_once_per_rank_with_the_variables_of_torchrun(run):
    said = run("2x3", "--ranks", "3,1", "--", "bash", "-c", SHOW)
    assert said.returncode == 0, said.stderr
    assert sorted(said.stdout.splitlines()) == [
        "0 4 0 3 10.77.0.1 29500 node0",
        "1 4 1 3 10.77.0.1 29500 node0",
        "2 4 2 3 10.77.0.1 29500 node0",
        "3 4 0 1 10.77.0.1 29500 node1",
    ]


def test_a_prefix_names_the_rank_of_every_line(run):
    said = run("2x1", "--prefix", "--", "bash", "-c", "echo a; echo b >&2; printf c")
    assert sorted(said.stdout.splitlines()) == ["[0] a", "[0] c", "[1] a", "[1] c"]
    first, *labelled = said.stderr.splitlines()
    assert first.startswith("cluster: ") and sorted(labelled) == ["[0] b", "[1] b"]


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit $((RANK == 3 ? 7 : 0))", 7),
        ("((RANK != 2)) || kill -SEGV $$", 128 + 11),
        ("sleep $((RANK == 1)); exit $((RANK == 1 ? 5 : RANK == 2 ? 6 : 0))", 6),
    ],
)
def test_the_status_is_that_of_the_first_rank_that_failed(run, script, status):
    assert run("2x2", "--", "bash", "-c", script).returncode == status


def test_a_command_that_does_not_exist_is_named(run):
    said = run("2x1", "--", "no-such-command")
    assert said.returncode == 127
    assert "cannot start no-such-command (by PATH): No such file or directory" in said.stderr


def test_when_a_rank_has_failed_the_others_are_ended_after_a_while(run):
    folder = PROGRAM[1].rsplit("/", 1)[0]
    impatient = "import sys; sys.path.insert(0, sys.argv.pop(1)); import machine, cluster; "
    impatient += (
        "machine.GRACE_AFTER_FAILURE = machine.GRACE_AFTER_TERM = 0.3; sys.exit(cluster.main(sys.argv[1:]))"
    )
    stubborn = "((RANK != 1)) || exit 4; trap 'echo asked' TERM; while :; do sleep 0.1; done"
    program = [sys.executable, "-c", impatient, folder]
    said = run("3x1", "--", "bash", "-c", stubborn, program=program)
    assert said.returncode == 4
    assert said.stdout.split() == ["asked", "asked"]


def test_torchrun_runs_once_per_host(run, tmp_path):
    stand_in = tmp_path / "torchrun"
    stand_in.write_text("#!/bin/sh\necho $(hostname) $*\n")
    stand_in.chmod(0o755)
    said = run("2x1", "--ranks", "3,1", "--", str(stand_in), "train.py", "--nnodes")
    assert said.returncode == 0, said.stderr
    assert sorted(said.stdout.splitlines()) == [
        f"node{host} --nnodes=2 --nproc-per-node={ranks} --node-rank={host} --master-addr=10.77.0.1 "
        "--master-port=29500 train.py --nnodes"
        for host, ranks in ((0, 3), (1, 1))
    ]


@pytest.mark.parametrize(
    ("mpirun", "rank", "arguments"),
    [
        ("mpirun.openmpi", "OMPI_COMM_WORLD_RANK", []),
        ("mpirun.mpich", "PMI_RANK", []),
        ("mpirun.openmpi", "OMPI_COMM_WORLD_RANK", ["--map-by", "node"]),
    ],
)
def test_mpirun_runs_across_the_hosts_slot_by_slot_unless_told_otherwise(run, mpirun, rank, arguments):
    if not shutil.which(mpirun):
        pytest.skip(f"{mpirun} is not installed")
    show = f"echo ${rank} $(hostname)"
    said = run("2x1", "--ranks", "3,1", "--rails", "2", "--", mpirun, *arguments, "sh", "-c", show)
    assert said.returncode == 0, said.stderr
    hosts = [line.split()[1] for line in sorted(said.stdout.splitlines())]
    wanted = ["node0", "node1", "node0", "node0"] if arguments else ["node0", "node0", "node0", "node1"]
    assert hosts == wanted


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["2", "--", "true"], "HxR wants"),
        (["65x1", "--", "true"], "HxR wants 1 to 64 hosts"),
        (["2x2", "--ranks", "3", "--", "true"], "--ranks wants 2 numbers"),
        (["2x2", "--rails", "0", "--", "true"], "--rails wants 1 to 16"),
        (["2x2", "--rate", "fast", "--", "true"], "--rate wants a number and a unit, as in 500mbit"),
        (["2x2", "--rate", "1", "--", "true"], "but got 1"),
        (["2x2", "--"], "say -- and a COMMAND"),
        (["2x2", "--", "torchrun", "--standalone", "train.py"], "leave out --standalone"),
        (["link", "node0", "0", "sideways"], "usage:"),
    ],
)
def test_an_order_that_means_nothing_is_refused(run, words, complaint):
    said = run(*words)
    assert said.returncode == 2
    assert complaint in said.stderr


def test_a_rate_that_tc_refuses_is_refused_in_its_words_with_what_it_was_told(run):
    said = run("2x1", "--rate", "0bit", "--", "true")
    assert said.returncode == 1
    assert (
        "could not set up the cluster's network: 'tc qdisc add dev host0rail0 root tbf rate 0bit"
        in said.stderr
    )
    assert "Command failed" in said.stderr
    assert "--rate decides this" in said.stderr


def test_who_may_not_make_namespaces_is_told_what_is_missing(run):
    powerless = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *PROGRAM]
    said = run("2x1", "--", "true", program=powerless)
    assert said.returncode == 1
    assert "run it as root" in said.stderr


def test_nothing_to_steer_is_said(environment, tmp_path):
    alone = environment | {"FCCL_CLUSTER_CONTROL": "fccl-cluster-none"}
    said = subprocess.run([*PROGRAM, "counters"], env=alone, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1
    assert "fccl-cluster-none" in said.stderr
