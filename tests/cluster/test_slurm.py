"""A Slurm on hosts of a cluster: its nodes, the jobs of deploy/slurm in it, and what it leaves: nothing."""

import importlib.util
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from conftest import ROOT, left_of, wait_until

pytestmark = pytest.mark.slurm

PROGRAM = [sys.executable, str(ROOT / "tools/slurm/slurm.py")]
JOBS = ROOT / "deploy/slurm"
BINARIES = Path(os.environ.get("FCCL_BUILD", ROOT / "build")) / "perf_tests"
DAEMONS = ("munged", "slurmctld", "slurmd", "srun")
JOB_LIMIT = 120
SMALL = ["all_gather_perf", "-b", "8", "-e", "64K", "-f", "64", "-n", "2"]
# sbatch --wait looks after 2, 6, 14, 30 s and so on.
AWAIT_JOB = """
until [[ $(scontrol show job 1) =~ JobState=(COMPLETED|FAILED|CANCELLED) ]]; do sleep 0.2; done
[[ $(scontrol show job 1) =~ ExitCode=([0-9]+) ]]; status=${BASH_REMATCH[1]}
"""
JOB = ["--", "bash", "-c", f'sbatch "$@"; {AWAIT_JOB} exit $status', "sbatch"]


@pytest.fixture(autouse=True)
def there_is_a_slurm():
    if missing := [program for program in DAEMONS if shutil.which(program) is None]:
        pytest.skip(f"there is no {' and no '.join(missing)}: ./dev slurm installs them")


@pytest.fixture
def slurm(run, environment):
    """Runs a command in a Slurm to its end."""
    environment["FCCL_TESTS_PATH"] = str(BINARIES)

    def run_in_slurm(*words):
        return run(*words, program=PROGRAM, limit=JOB_LIMIT)

    return run_in_slurm


def rows(text):
    """The lines of a perf binary that tell of a size."""
    return re.findall(r"^ +\d+ +\d+ +float .*$", text, re.M)


def assert_measured(text, hosts, ranks):
    found = re.findall(r"^#  Rank +(\d+) Group +0 Pid +\d+ on +(\w+) ", text, re.M)
    assert [int(rank) for rank, _ in found] == list(range(ranks)), text
    assert {host for _, host in found} == {f"node{host}" for host in range(hosts)}, text
    assert "# Out of bounds values : 0 OK" in text
    assert rows(text), text


def test_every_host_is_an_idle_node_with_its_number_of_processors(slurm):
    said = slurm("3x2", "--ranks", "3,1,2", "--", "sinfo", "-h", "-N", "-o", "%N %c %T")
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == ["node0 3 idle", "node1 1 idle", "node2 2 idle"]


def test_the_status_is_that_of_the_command_and_its_lines_have_the_label_of_its_host(slurm):
    said = slurm("2x1", "--prefix", "--", "bash", "-c", "srun -N 2 hostname; exit 7")
    assert said.returncode == 7, said.stderr
    assert sorted(said.stdout.splitlines()) == ["[node0] node0", "[node0] node1"]


def test_a_command_sees_nothing_of_the_clusters_ranks(slurm):
    said = slurm("2x1", "--", "bash", "-c", "env | grep -cE '^(RANK|WORLD_SIZE|FCCL_SLURM_KEY)='")
    assert said.stdout == "0\n"


def test_sbatch_waits_for_a_job_that_measures_on_all_hosts_with_nothing_wrong(slurm, tmp_path):
    said = slurm("2x2", "--", "sbatch", "--wait", str(JOBS / "fccl-tests.sbatch"), *SMALL)
    output = (tmp_path / "fccl-tests-1.out").read_text()
    assert said.returncode == 0, output + said.stderr
    assert_measured(output, hosts=2, ranks=4)


def test_a_job_by_mpirun_measures_on_all_hosts_with_nothing_wrong(slurm, tmp_path):
    said = slurm("2x2", *JOB, str(JOBS / "fccl-tests-mpirun.sbatch"), *SMALL)
    output = (tmp_path / "fccl-tests-mpirun-1.out").read_text()
    assert said.returncode == 0, output + said.stderr
    assert_measured(output, hosts=2, ranks=4)


def test_mpirun_in_an_allocation_measures_on_all_hosts(slurm):
    words = ["mpirun", "--mca", "pml", "^ucx", "--mca", "btl", "tcp,self", str(BINARIES / "all_reduce_perf")]
    said = slurm("2x2", "--", "salloc", "-N", "2", "--ntasks-per-node", "2", *words, "-b", "8", "-e", "8")
    assert said.returncode == 0, said.stderr
    assert_measured(said.stdout, hosts=2, ranks=4)


def test_a_killed_task_fails_the_job_and_its_output_names_the_rank(slurm, tmp_path):
    kill = (
        f"sbatch --output=job.out {JOBS}/fccl-tests.sbatch all_reduce_perf -b 1M -e 1M -n 20 -N 100000\n"
        "until (($(grep -c ' 1048576 .* float ' job.out) > 1)); do sleep 0.1; done 2>/dev/null\n"
        "kill -KILL $(pgrep -x all_reduce_perf | tail -n 1); SECONDS=0\n"
        f"{AWAIT_JOB} echo $status $SECONDS"
    )
    said = slurm("2x2", "--", "bash", "-c", kill)
    status, seconds = said.stdout.splitlines()[-1].split()
    assert int(status) != 0
    assert int(seconds) < 15
    assert re.search(r"rank [01] \(pid \d+ on node0\) died", (tmp_path / "job.out").read_text())


def test_torchrun_trains_on_all_hosts_and_the_loss_falls(slurm, environment, tmp_path):
    if importlib.util.find_spec("fccl") is None:
        pytest.skip("the package fccl is not installed beside this pytest")
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["RANKS_PER_HOST"] = "1"
    options = [f"--chdir={ROOT}", f"--output={tmp_path}/job.out"]
    words = ["--steps", "30", "--layers", "2", "--runs", str(tmp_path), "--name", "job"]
    said = slurm("2x1", *JOB, *options, str(JOBS / "fsdp.sbatch"), *words)
    output = (tmp_path / "job.out").read_text()
    assert said.returncode == 0, output + said.stderr
    rows_of_run = (tmp_path / "job/metrics.jsonl").read_text().splitlines()
    losses = [row["loss"] for row in map(json.loads, rows_of_run) if "loss" in row]
    assert losses[-1] < losses[0]


def test_srun_over_two_hosts_without_pmix_is_told_what_to_do(slurm):
    said = slurm("2x1", "--", "srun", "-N", "2", str(BINARIES / "all_gather_perf"), "-b", "8", "-e", "8")
    assert said.returncode != 0
    assert "start them by srun --mpi=pmix" in said.stderr


def test_a_job_that_wants_efa_says_that_there_is_none(slurm, environment, tmp_path):
    environment["FI_PROVIDER"] = "efa"
    said = slurm("2x2", *JOB, str(JOBS / "fccl-tests.sbatch"))
    assert said.returncode != 0
    assert 'offers no provider "efa" on this host' in (tmp_path / "fccl-tests-1.out").read_text()


@pytest.mark.parametrize("job", ["fccl-tests", "fccl-tests-mpirun"])
def test_a_job_without_binaries_says_which_setting_names_their_folder(slurm, environment, tmp_path, job):
    environment["FCCL_TESTS_PATH"] = "/nowhere"
    said = slurm("2x2", *JOB, str(JOBS / f"{job}.sbatch"))
    assert said.returncode == 1
    output = (tmp_path / f"{job}-1.out").read_text()
    assert "has no program /nowhere/all_gather_perf: set FCCL_TESTS_PATH" in output


def test_a_command_that_does_not_exist_is_named(slurm):
    said = slurm("2x1", "--", "no-such-command")
    assert said.returncode == 1
    assert "slurm: node0: cannot start no-such-command: No such file or directory" in said.stderr


def test_without_its_programs_it_says_the_line_that_installs_them(slurm, environment, tmp_path):
    environment["PATH"] = str(tmp_path)
    said = slurm("2x1", "--", "true")
    assert said.returncode == 1
    assert "there is no munged, slurmctld, slurmd, sinfo in PATH" in said.stderr
    assert "apt-get install -y --no-install-recommends munge" in said.stderr


def test_a_daemon_that_ends_is_named_with_the_end_of_its_log(slurm, environment, tmp_path):
    broken = tmp_path / "slurmd"
    broken.write_text("#!/bin/sh\necho cannot begin >&2\nexit 3\n")
    broken.chmod(0o755)
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    said = slurm("2x1", "--", "true")
    assert said.returncode == 1
    assert "slurm: node0: slurmd ended with status 3; its log ends so:\n  cannot begin" in said.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_daemons_and_jobs(begin, tmp_path, number):
    process = begin(
        "2x1", "--", "srun", "-N", "2", "bash", "-c", "echo started; setsid sleep 600", program=PROGRAM
    )
    assert [process.stdout.readline() for _ in range(2)] == ["started\n"] * 2
    wait_until(lambda: len(left_of(tmp_path, 0)) > 8)
    process.send_signal(number)
    status = process.wait(20)
    assert status == (-9 if number == signal.SIGKILL else 128 + number)
    assert left_of(tmp_path) == []
