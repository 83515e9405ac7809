"""How ./dev efa reaches hosts, judges runs, and packs its folder."""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import archive
import efa
import ending
import fleet
import judged
import packing
import pytest
import runs
import sweeps
from efa_host import GIB, host_of, write
from fleet import FleetError, Rank

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build"
PROGRAM = [sys.executable, str(ROOT / "tools/efa/efa.py")]

needs_build = pytest.mark.skipif(
    not all((TREE / name).exists() for name in (*packing.PROGRAMS, *packing.OWN)),
    reason=f"the programs of ./dev efa are not built in {TREE}",
)


@pytest.fixture
def tree(tmp_path):
    """A tree whose fccl-info shows nothing."""
    write(tmp_path / "tree/fccl-info", "#!/bin/sh\n")
    return tmp_path / "tree"


def run(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    return subprocess.run(
        [*PROGRAM, *map(str, words)], env=environment | variables, capture_output=True, text=True, timeout=120
    )


def test_a_run_where_there_is_no_efa_ends_with_2_and_the_sentence(tree):
    if list(Path("/sys/class/infiniband").glob("*")):
        pytest.skip("there is an RDMA device here")
    said = run("--hosts", "localhost", "--tree", tree)
    assert said.returncode == 2
    assert f"efa: {socket.gethostname()} has no EFA: it is " in said.stderr


def test_a_run_without_hosts_ends_with_2_and_names_both_ways(tree):
    said = run("--tree", tree)
    assert said.returncode == 2
    assert re.search(r"no hosts are named: .*salloc -N 2 --exclusive ./run.*--hosts A,B", said.stderr)


def test_a_host_that_ssh_does_not_reach_is_named(tree, tmp_path):
    write(tmp_path / "bin/ssh", "#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n")
    (tmp_path / "bin/ssh").chmod(0o755)
    said = run("--hosts", "nowhere", "--tree", tree, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert said.returncode == 2
    assert "the agent on nowhere cannot be reached" in said.stderr
    assert "Permission denied (publickey)." in said.stderr


def test_slurm_is_asked_for_the_hosts_of_its_allocation(tmp_path, monkeypatch):
    write(
        tmp_path / "scontrol",
        '#!/bin/sh\n[ "$*" = "show hostnames node[0-1]" ] && printf "node0\\nnode1\\n"\n',
    )
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert fleet.names_of_hosts(None, {"SLURM_JOB_NODELIST": "node[0-1]"}) == (["node0", "node1"], "srun")
    with pytest.raises(FleetError, match="does not know the hosts of node9"):
        fleet.names_of_hosts(None, {"SLURM_JOB_NODELIST": "node9"})


def test_a_step_of_srun_has_the_processors_of_the_host_and_joins_no_mpi():
    words = fleet.words_to_reach("node1", "srun", {"SLURM_JOB_CPUS_PER_NODE": "96(x2)"})
    assert words[0] == "srun"
    assert {"--nodelist=node1", "--cpus-per-task=96", "--overlap", "--mpi=none"} <= set(words)
    assert fleet.words_to_reach("localhost", "ssh", {}) == []
    assert fleet.words_to_reach("user@b", "ssh", {})[-1] == "user@b"


def test_hosts_named_twice_are_refused():
    with pytest.raises(FleetError, match="names a host twice"):
        fleet.names_of_hosts("a,b,a", {})


def test_the_table_has_each_number_of_nics_once_and_none_that_the_hosts_lack():
    assert sweeps.counts_of_nics(32) == [0, 1, 2, 4, 32]
    assert sweeps.counts_of_nics(4) == [0, 1, 2, 4]
    assert sweeps.counts_of_nics(1) == [0, 1]


def test_the_largest_size_is_what_the_rate_and_the_memory_allow():
    assert sweeps.largest_size(50.0, 90, 0, 8) == GIB
    assert sweeps.largest_size(0.05, 40, 0, 1) == 16 << 20
    assert sweeps.largest_size(50.0, 90, 20 * GIB, 8) == 128 << 20
    assert sweeps.largest_size(1e-9, 1, 0, 1) == sweeps.LARGEST[0]
    assert [sweeps.size_text(size) for size in (8, 4 << 10, 16 << 20, GIB)] == ["8", "4K", "16M", "1G"]


def test_a_larger_size_is_measured_if_the_last_one_says_that_it_fits():
    about = runs.Setting(None, [host_of("p5.48xlarge", 32, memory=80 * GIB)], "efa", 8, print)
    rows = [{"time_us": "100000"}, {"time_us": "200000"}]
    assert sweeps.next_fits(about, rows, 128 << 20, 30)
    assert not sweeps.next_fits(about, rows, 128 << 20, 20)
    assert not sweeps.next_fits(about, rows, GIB, 9000)
    about.ranks = 96
    assert not sweeps.next_fits(about, rows, 128 << 20, 30)


def test_the_start_of_ranks_counts_against_the_time_of_a_larger_size():
    rows = [{"time_us": "100000"}, {"time_us": "100000"}]
    assert sweeps.start_of(rows, 5) == pytest.approx(3)
    assert sweeps.start_of(rows, 1) == 0


class Ended:
    """A job that has ended."""

    def __init__(self, ranks, rows=""):
        self.ranks = ranks
        self.rows = rows


def csv_of(*rows):
    head = "size_bytes,place,time_us,busbw_gb_per_s,wrong"
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize(
    ("status", "wrong", "verdict", "note"),
    [
        (0, 0, "works", ""),
        (7, 0, "wrong", "0 wrong elements"),
        (0, 3, "wrong", "3 wrong elements"),
        (3, 0, "failed", "status 3: it broke"),
        (None, 0, "failed", "not done after 9 s; it broke"),
    ],
)
def test_what_became_of_a_run_is_its_verdict(status, wrong, verdict, note):
    complained = (
        "it broke" if status != 0 else "fccl info: between hosts: efa (libfabric 2.4) on rdmap79s0-rdm"
    )
    ranks = [Rank(0, 0, 0, complained=complained), Rank(1, 0, status, complained=complained)]
    found = runs.measured_of(Ended(ranks, csv_of((8, "out_of_place", 30, 0.1, wrong))), 9)
    assert (found.verdict, found.fault) == (verdict, note)
    assert found.side(8)["time_us"] == "30"
    assert status != 0 or found.network == "efa (libfabric 2.4) on rdmap79s0-rdm"


def test_a_run_without_rows_failed():
    assert runs.measured_of(Ended([Rank(0, 0, 0)]), 9).verdict == "failed"


@pytest.mark.parametrize(
    ("statuses", "words", "ended", "found"),
    [
        ((3, 3), "rank 2 (pid 9 on b) died", True, ["measured", "works"]),
        ((1, 1), "process 2 of this run is gone, so process 0 ends", True, ["measured", "works"]),
        ((1, 1), "process 1 of this run is gone, so process 2 ends", True, ["measured", "wrong"]),
        ((3, 3), "the job is over", True, ["measured", "wrong"]),
        ((3, 3), "rank 20 died", True, ["measured", "wrong"]),
        ((0, 3), "rank 2 died", True, ["wrong"]),
        ((3, None), "rank 2 died", False, ["failed"]),
    ],
)
def test_survivors_of_a_kill_must_end_soon_and_name_the_dead_rank(statuses, words, ended, found):
    ranks = [Rank(0, place, status, 0.35, complained=words) for place, status in enumerate(statuses)]
    rows = list(ending.judge([*ranks, Rank(1, 0, -9)], ended, "they end", {}))
    assert [row["verdict"] for row in rows] == found
    assert found != ["failed"] or "ranks [1]" in rows[0]["note"]


def test_costs_are_the_line_that_begins_with_latency():
    said = "# table\nlatency=20us,message=1us,wire=100Gbit/s,add=9GB/s,host=9GB/s,error=5%\n"
    assert ending.COSTS.search(said)[0].startswith("latency=20us")


def test_a_rank_is_told_its_place_its_nics_and_the_settings_of_the_caller(monkeypatch):
    monkeypatch.setenv("FI_EFA_USE_DEVICE_RDMA", "1")
    plan = fleet.Plan([], [0, 1], 2, {"FCCL_TRANSPORT": "efa"}, {1: ["rdmap79s0"]}, apart=True)
    told = fleet.variables_of(plan, 3, Rank(1, 1), 4, "a:4000")
    assert (
        told.items()
        >= {
            "FCCL_TESTS_NETWORK": "3/4:a:4000",
            "FCCL_NICS": "rdmap79s0",
            "FCCL_TRANSPORT": "efa",
            "FCCL_HOST_ID": "host3",
            "FI_EFA_USE_DEVICE_RDMA": "1",
        }.items()
    )


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (FleetError("the agent on b has ended"), "the agent on b has ended"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_lost_host_or_an_interrupt_ends_the_steps_and_the_rows_are_kept(monkeypatch, tmp_path, error, note):
    def rails(setting, seconds):
        yield judged.row("the first", "works")
        raise error

    monkeypatch.setitem(efa.MEASURING, "rails", rails)
    kept_in = archive.Archive(tmp_path, "tcp")
    about = runs.Setting(None, [host_of("p5.48xlarge", 0)], "tcp", 1, kept_in.note)
    efa.run_all(about, time.monotonic() + 100, kept_in)
    rows = json.loads((tmp_path / "efa.json").read_text())["rows"]
    of_rails = [(row["verdict"], row["note"]) for row in rows if row["probe"] == "rails"]
    assert of_rails == [("works", ""), ("failed", note)]
    assert {row["verdict"] for row in rows if row["probe"] in ("pair", "death")} == {"not run"}


@needs_build
@pytest.mark.slow
def test_one_host_runs_what_one_host_can_and_leaves_an_archive(tmp_path):
    said = run("--hosts", "localhost", "--provider", "tcp", "--seconds", "60", "--out", tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    (packed,) = tmp_path.glob(f"fccl-efa-{socket.gethostname()}-*.tar.gz")
    with tarfile.open(packed) as opened:
        files = {Path(name).name: name for name in opened.getnames()}
        rows = json.load(opened.extractfile(files["efa.json"]))["rows"]
    assert {"efa.json", "efa.txt", "steps.log", "agents.log", "all_gather.csv"} <= set(files)
    assert list(dict.fromkeys(row["probe"] for row in rows)) == list(efa.SHARES)
    not_run = {row["probe"] for row in rows if row["verdict"] == "not run"}
    assert not_run == {"devices", "limits", "pair", "table", "calibrate"}


@needs_build
def test_a_packed_folder_is_small_and_tells_what_it_wants(tmp_path):
    folder = tmp_path / "pack"
    assert packing.make(folder, TREE) == 0
    assert packing.size_of(folder) < packing.MOST_BYTES
    assert not list(folder.glob("lib/libfabric*"))
    said = subprocess.run([folder / "run", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert said.stdout.startswith("usage: ./run ")
    assert packing.make(folder, TREE) == packing.FAILED


@needs_build
def test_a_library_that_is_newer_than_that_of_the_hosts_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(packing.NEWEST, "GLIBC", (2, 20))
    assert packing.make(tmp_path / "pack", TREE) == packing.FAILED
    assert "wants GLIBC_2." in capsys.readouterr().err


def test_what_is_not_built_is_not_packed(tmp_path, capsys):
    assert packing.make(tmp_path / "pack", tmp_path) == packing.FAILED
    assert "not built" in capsys.readouterr().err


def test_the_oldest_python_of_the_hosts_takes_the_program():
    if (python := shutil.which("python3.9")) is None or subprocess.run([python, "-V"]).returncode != 0:
        pytest.skip("there is no python3.9")
    said = subprocess.run([python, *PROGRAM[1:], "--help"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    "words", [["--seconds", "0"], ["--ranks", "0"], ["--out", "/nowhere"], ["--provider", "udp"]]
)
def test_what_means_nothing_is_refused(words):
    with pytest.raises(SystemExit) as refused:
        efa.parse(words)
    assert refused.value.code == 2
    assert isinstance(efa.parse([]), argparse.Namespace)
