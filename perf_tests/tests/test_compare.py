"""The comparison of two builds, over binaries that say what they are told: turns, ratios, what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Takes its time for 64 bytes from a file beside it; 4096 bytes take ten times as long, and in place twice.
BINARY = """#!{python}
import json, sys
from pathlib import Path
me, times = Path(sys.argv[0]), iter(Path(sys.argv[0] + ".times").read_text().split())
with (me.parents[2] / "turns").open("a") as turns:
    words = {{"no": "warm", "--fresh": "fresh", "mpi": "as a peer", "arena": "in an arena"}}
    words["limit"] = "at the limit"
    said = [word for flag, word in words.items() if flag in sys.argv]
    print(me.parents[1].name, me.name, *said, file=turns)
time, queued = float(next(times)), 0.0
Path(sys.argv[0] + ".times").write_text(" ".join([*times, str(time)]))
if time < 0:
    time, queued = -time, 1e6
def side(factor):
    return dict(time=time * factor, p50=0, p99=0, queued=queued, nwrong=0)
in_place = me.name not in ("alltoall_perf", "sendrecv_perf")
results = [
    dict(size=size, out_of_place=side(factor), in_place=side(2 * factor) if in_place else None)
    for size, factor in ((64, 1), (4096, 10))
]
report = Path(sys.argv[sys.argv.index("-J") + 1])
report.write_text(json.dumps(dict(config=dict(iterations=100), results=results)))
"""
MPIRUN = f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
program = next(i for i, word in enumerate(words) if word.endswith("_perf"))
os.execv(words[program], words[program:])
"""


def make_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def builds(tmp_path):
    """Adds the binaries of a build with the times of their batches in order; negative if disturbed."""
    make_program(tmp_path / "bin" / "mpirun.openmpi", MPIRUN)

    def add(build, **times):
        for collective, of_batches in times.items():
            binary = tmp_path / build / "perf_tests" / f"{collective}_perf"
            make_program(binary, BINARY.format(python=sys.executable))
            Path(f"{binary}.times").write_text(" ".join(map(str, of_batches)))

    return add


@pytest.fixture
def compare(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [
                *(sys.executable, ROOT / "perf_tests" / "compare.py", "--build", tmp_path / "new"),
                *("--ranks", "1", "--batches", "3", "--rows", tmp_path / "rows.csv", *arguments),
            ],
            env=os.environ | {"PATH": f"{tmp_path / 'bin'}:/nowhere", "I_MPI_ROOT": "/nowhere"},
            text=True,
            capture_output=True,
        )

    return run


def turns(tmp_path):
    return (tmp_path / "turns").read_text().splitlines()


def test_two_builds_take_turns(builds, compare, tmp_path):
    for build in ("new", "older"):
        builds(build, all_gather=[1], reduce_scatter=[1], all_reduce=[1])
    ended = compare("--old", tmp_path / "older", "--collectives", "all_gather", "all_reduce")
    assert ended.returncode == 0, ended.stderr
    assert turns(tmp_path) == 3 * ["new all_gather_perf", "older all_gather_perf"] + 3 * [
        "new all_reduce_perf",
        "older all_reduce_perf",
    ]


def test_memory_that_peers_map_is_for_the_new_build_alone(builds, compare, tmp_path):
    builds("new", all_gather=[1])
    builds("older", all_gather=[1])
    ended = compare(
        *("--old", tmp_path / "older", "--collectives", "all_gather", "--buffers", "arena"),
    )
    assert ended.returncode == 0, ended.stderr
    assert turns(tmp_path) == 3 * ["new all_gather_perf in an arena", "older all_gather_perf"]


def test_a_ratio_is_of_medians_and_above_one_where_the_new_build_is_faster(builds, compare, tmp_path):
    builds("new", all_gather=[10, 90, 20])
    builds("older", all_gather=[30, 1, 50])
    said = compare("--old", tmp_path / "older", "--collectives", "all_gather").stdout
    assert "64       20.00 (  3)       30.00 (  3)              1.50" in said
    assert "4096      200.00 (  3)      300.00 (  3)              1.50" in said


def test_a_batch_that_was_disturbed_does_not_count(builds, compare, tmp_path):
    builds("new", all_gather=[10, -90, -90])
    builds("older", all_gather=[10])
    said = compare("--old", tmp_path / "older", "--collectives", "all_gather").stdout
    assert "64       10.00 (  1)       10.00 (  3)              1.00" in said
    assert "8 of them disturbed" in said


def test_the_last_lines_are_the_median_of_each_collective_and_its_worst_size(builds, compare, tmp_path):
    builds("new", all_gather=[10], reduce_scatter=[10], all_reduce=[10], alltoall=[20])
    builds("older", all_gather=[10], reduce_scatter=[9], all_reduce=[20], alltoall=[30])
    ended = compare("--old", tmp_path / "older")
    assert ended.returncode == 0, ended.stderr
    summary = [line for line in ended.stdout.splitlines() if line.startswith("old / fccl, ")]
    assert summary == [
        "old / fccl, all_gather: 1.000 in the median of 4; worst 1.000 at 64 bytes out of place",
        "old / fccl, reduce_scatter: 0.900 in the median of 4; worst 0.900 at 64 bytes out of place",
        "old / fccl, all_reduce: 2.000 in the median of 4; worst 2.000 at 64 bytes out of place",
        "old / fccl, alltoall: 1.500 in the median of 2; worst 1.500 at 64 bytes out of place",
    ]


def test_the_worst_size_is_where_the_new_build_lost_most(builds, compare, tmp_path):
    builds("new", all_gather=[10])
    builds("older", all_gather=[10])
    slower = tmp_path / "new" / "perf_tests" / "all_gather_perf"
    slower.write_text(slower.read_text().replace("(4096, 10)", "(4096, 12)"))
    said = compare("--old", tmp_path / "older", "--collectives", "all_gather").stdout
    assert "0.917 in the median of 4; worst 0.833 at 4096 bytes out of place" in said


def test_a_collective_that_the_old_build_lacks_is_left_out_aloud(builds, compare, tmp_path):
    builds("new", all_gather=[1], reduce_scatter=[1], all_reduce=[1], alltoall=[1])
    builds("older", all_gather=[1], reduce_scatter=[1], all_reduce=[1])
    ended = compare("--old", tmp_path / "older")
    assert ended.returncode == 0, ended.stderr
    assert f"compare: alltoall is left out: {tmp_path / 'older'} has no alltoall_perf" in ended.stderr
    assert not [turn for turn in turns(tmp_path) if "alltoall" in turn]


def test_an_old_build_without_any_perf_binary_is_refused(builds, compare, tmp_path):
    builds("new", all_gather=[1])
    ended = compare("--old", tmp_path / "empty")
    assert ended.returncode == 2
    assert f"{tmp_path / 'empty'} has no perf binary to compare with; is it a build folder?" in ended.stderr


@pytest.mark.parametrize("chosen", ["alltoall", "sendrecv"])
def test_peers_are_compared_without_what_must_be_chosen(builds, compare, tmp_path, chosen):
    builds("new", all_gather=[1], reduce_scatter=[1], all_reduce=[1], alltoall=[1], sendrecv=[1])
    assert compare("--batches", "1").returncode == 0
    collectives = ["all_gather_perf", "reduce_scatter_perf", "all_reduce_perf"]
    assert turns(tmp_path) == [f"new {each}{peer}" for each in collectives for peer in ("", " as a peer")]
    assert compare("--batches", "1", "--collectives", chosen).returncode == 0
    assert turns(tmp_path)[6:] == [f"new {chosen}_perf", f"new {chosen}_perf as a peer"]


def test_an_old_build_and_an_mpi_may_be_compared_at_once(builds, compare, tmp_path):
    builds("new", all_gather=[1])
    builds("older", all_gather=[1])
    arguments = ["--old", tmp_path / "older", "--collectives", "all_gather", "--batches", "1"]
    assert compare(*arguments, "--libraries", "fccl", "old", "openmpi").returncode == 0
    assert turns(tmp_path) == [
        "new all_gather_perf",
        "older all_gather_perf",
        "new all_gather_perf as a peer",
    ]


@pytest.mark.parametrize("arguments", [["--libraries", "fccl", "old"], ["--old", "x", "--libraries", "fccl"]])
def test_the_library_old_and_its_build_are_named_together_or_not_at_all(compare, arguments):
    ended = compare(*arguments)
    assert ended.returncode == 2
    assert "the library old is the build that --old names: give both or neither" in ended.stderr


def test_the_best_peer_is_the_fastest_of_those_that_count(builds, compare, tmp_path):
    builds("new", all_gather=[10])
    builds("older", all_gather=[15])
    arguments = ["--old", tmp_path / "older", "--collectives", "all_gather"]
    ended = compare(*arguments, "--libraries", "fccl", "openmpi", "old")
    assert ended.returncode == 0, ended.stderr
    assert (
        "64       10.00 (  3)       10.00 (  3)       15.00 (  3)              1.00 openmpi\n" in ended.stdout
    )
    assert "best peer / fccl, all_gather: 1.000 in the median of 4" in ended.stdout


def test_buffers_that_peers_map_are_a_library_of_their_own_beside_private_ones(builds, compare, tmp_path):
    builds("new", all_gather=[10])
    ended = compare("--collectives", "all_gather", "--libraries", "fccl", "fccl_arena", "openmpi")
    assert ended.returncode == 0, ended.stderr
    in_turn = ["new all_gather_perf", "new all_gather_perf in an arena", "new all_gather_perf as a peer"]
    assert turns(tmp_path) == 3 * in_turn
    assert "openmpi / fccl_arena, all_gather: 1.000" in ended.stdout


def test_a_row_says_which_fraction_of_the_limit_it_is_and_the_limit_is_no_peer(builds, compare, tmp_path):
    builds("new", all_gather=[10, 8, 4, 20])
    libraries = ["fccl", "fccl_arena", "limit", "openmpi"]
    ended = compare("--collectives", "all_gather", "--libraries", *libraries)
    assert ended.returncode == 0, ended.stderr
    assert turns(tmp_path)[2:4] == ["new all_gather_perf at the limit", "new all_gather_perf as a peer"]
    rows = [line.split() for line in ended.stdout.splitlines() if line.lstrip().startswith("64 ")]
    assert [row[-6:] for row in rows] == 2 * [["2.00", "openmpi", "2.50", "openmpi", "0.40", "0.50"]]
    assert "limit / fccl  limit / fccl_arena\n" in ended.stdout
    # With a single peer besides the limit there is no line of the best one.
    assert "best peer / fccl," not in ended.stdout


def test_the_last_lines_are_the_median_and_the_worst_fraction_of_the_limit(builds, compare):
    builds("new", all_gather=[10, 4], all_reduce=[10, 9])
    ended = compare("--collectives", "all_gather", "all_reduce", "--libraries", "fccl", "limit")
    assert ended.returncode == 0, ended.stderr
    assert [line for line in ended.stdout.splitlines() if line.startswith("limit / fccl, ")] == [
        "limit / fccl, all_gather: 0.400 in the median of 4; worst 0.400 at 64 bytes out of place",
        "limit / fccl, all_reduce: 0.900 in the median of 4; worst 0.900 at 64 bytes out of place",
    ]


@pytest.mark.parametrize("arguments", [["--collectives", "alltoall"], ["--cluster", "2x1"]])
def test_the_limit_is_of_one_host_and_of_collectives_that_have_loops(compare, arguments):
    ended = compare(*arguments, "--libraries", "fccl", "limit")
    assert ended.returncode == 2
    assert "the limit is that of one host, for all_gather, reduce_scatter, all_reduce" in ended.stderr


def test_inputs_are_compared_one_kind_after_the_other(builds, compare, tmp_path):
    builds("new", all_gather=[10])
    ended = compare("--collectives", "all_gather", "--batches", "1", "--inputs", "warm", "fresh")
    assert ended.returncode == 0, ended.stderr
    assert turns(tmp_path) == [
        *("new all_gather_perf warm", "new all_gather_perf warm as a peer"),
        *("new all_gather_perf fresh", "new all_gather_perf fresh as a peer"),
    ]
    kinds = {
        line.split(",")[0] for line in (tmp_path / "rows.csv").read_text().splitlines() if line[0] in "wf"
    }
    assert kinds == {"warm", "fresh"}


def test_more_ranks_than_cores_leave_out_peers_that_spin_and_count_every_row(builds, compare, tmp_path):
    builds("new", all_gather=[-10])
    crowd = str(len(os.sched_getaffinity(0)) + 1)
    ended = compare("--collectives", "all_gather", "--batches", "1", "--ranks", crowd)
    assert ended.returncode == 0, ended.stderr
    assert turns(tmp_path) == ["new all_gather_perf", "new all_gather_perf as a peer"]
    assert " 0 of them disturbed" in ended.stdout


def test_the_ratios_are_drawn(builds, compare, tmp_path):
    builds("new", all_gather=[10], all_reduce=[10])
    arguments = ["--collectives", "all_gather", "all_reduce", "--inputs", "warm", "fresh", "--batches", "1"]
    ended = compare(*arguments, "--plot", tmp_path / "plots" / "ratios.png")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "plots" / "ratios.png").read_bytes().startswith(b"\x89PNG")
