"""The runner of the GPU's probes: whatever one does, its time is bounded and rows say what became of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import gpu
import pytest
import table
from probes import Probe
from run import run

ROOT = Path(__file__).resolve().parents[2]
ROW = {
    "question": 2,
    "case": "c",
    "what": "w",
    "verdict": "measured",
    "value": 1.5,
    "unit": "us",
    "note": "n",
}
SAY_ROW = f"echo '{json.dumps(ROW)}'"
MOMENT = 20  # seconds in which a probe that was killed is gone, on a busy machine


def probe_of(script: str) -> Probe:
    return Probe("sample", ["bash", "-c", script, "sample"])


def test_the_rows_of_a_probe_are_kept_with_its_name():
    ended = run(probe_of(SAY_ROW), 30)
    assert ended.rows == [{"probe": "sample"} | ROW]
    assert ended.ran


def test_a_probe_is_told_its_time():
    ended = run(probe_of(f'[ "$*" = "--seconds 30" ] && {SAY_ROW}'), 30)
    assert ended.rows == [{"probe": "sample"} | ROW]


def test_a_probe_that_hangs_is_killed_at_its_limit_with_all_that_it_started(tmp_path):
    pids = tmp_path / "pids"
    ended = run(probe_of(f"{SAY_ROW}; sleep 600 & echo $! $$ >{pids}; wait"), 1, grace=0.2)
    assert ended.rows[0] == {"probe": "sample"} | ROW
    assert ended.rows[1]["verdict"] == "failed"
    assert "killed: not done after 1 s" in ended.rows[1]["note"]
    assert gone([int(pid) for pid in pids.read_text().split()])


def test_a_probe_that_ends_leaves_nothing_behind(tmp_path):
    pids = tmp_path / "pids"
    begin = time.monotonic()
    run(probe_of(f"sleep 600 & echo $! >{pids}; {SAY_ROW}"), 300)
    assert time.monotonic() - begin < MOMENT
    assert gone([int(pids.read_text())])


def test_a_probe_whose_part_was_killed_says_so_itself():
    row = ROW | {"verdict": "failed", "note": "rank 1 was ended by signal Killed"}
    ended = run(probe_of(f"sleep 600 & kill -9 $!; wait $!; echo '{json.dumps(row)}'; exit 1"), 30)
    assert [each["note"] for each in ended.rows] == ["rank 1 was ended by signal Killed"]


def test_a_probe_that_crashes_is_a_row_with_its_last_words():
    (row,) = run(probe_of("echo ouch >&2; kill -SEGV $$"), 30).rows
    assert row["verdict"] == "failed"
    assert row["note"] == "ended by signal SIGSEGV; ouch"


@pytest.mark.parametrize("status", [1, 2, 139])
def test_a_status_that_no_row_explains_is_a_row(status):
    (row,) = run(probe_of(f"exit {status}"), 30).rows
    assert row["verdict"] == "failed"
    assert row["note"].startswith(f"ended with status {status}")


def test_a_probe_that_says_nothing_has_not_succeeded():
    (row,) = run(probe_of("exit 0"), 30).rows
    assert row["verdict"] == "failed"


@pytest.mark.parametrize("line", ["garbage", "[1, 2]", '{"what": "half a row"}', '{"value": '])
def test_lines_that_are_no_rows_are_a_failure_and_the_rows_are_kept(line):
    ended = run(probe_of(f"echo '{line}'; {SAY_ROW}"), 30)
    assert ended.rows[0] == {"probe": "sample"} | ROW
    assert ended.rows[1]["verdict"] == "failed"
    assert line in ended.rows[1]["note"]


def test_bytes_that_are_no_text_do_not_end_the_runner():
    assert run(probe_of("printf '\\377\\376\\n'"), 30).rows[0]["verdict"] == "failed"


def test_a_program_that_is_not_there_is_a_row():
    (row,) = run(Probe("sample", ["/no/such/probe"]), 30).rows
    assert "could not be started" in row["note"]


def test_when_the_time_is_over_the_rest_is_not_run():
    ended = run(probe_of("exit 1"), 0.5)
    assert not ended.ran
    assert ended.rows[0]["verdict"] == "not run"


def test_the_table_has_each_row_below_its_case():
    other = {"what": "v", "value": None, "verdict": "works", "note": ""}
    rows = [{"probe": "a"} | ROW, {"probe": "a"} | ROW | other]
    lines = table.text(rows).splitlines()
    assert lines[0] == "a (question 2): c"
    assert lines[1].split() == ["w", "1.5", "us", "n"]
    assert lines[2].split() == ["v", "works"]
    assert len(lines) == 3


def test_a_line_of_the_table_names_the_gpu_and_who_shared_it():
    row = {"probe": "a", "gpu": "NVIDIA H100, driver 13.0", "ranks_per_gpu": 4, "ranks_are": "threads"} | ROW
    line = table.text([row]).splitlines()[1]
    assert "NVIDIA H100, 4 threads" in line


@pytest.fixture
def say(monkeypatch, tmp_path, capsys):
    """Runs the whole program over these probes; gives its status, what it printed and its file of rows."""

    def run_main(*scripts: str) -> tuple[int, str, dict]:
        known = [Probe(f"probe_{number}", ["bash", "-c", script]) for number, script in enumerate(scripts)]
        monkeypatch.setattr(gpu.probes, "all_probes", lambda build, tree: known)
        status = gpu.main(["--build", str(tmp_path), "--seconds", "60"])
        return status, capsys.readouterr().out, json.loads((tmp_path / "gpu.json").read_text())

    return run_main


def test_without_a_gpu_the_program_says_that_nothing_was_run_and_succeeds(say):
    row = json.dumps(ROW | {"verdict": "not run", "value": None})
    status, said, written = say(f"echo '{row}'; exit 77", f"echo '{row}'; exit 77")
    assert status == 0
    assert [each["gpu"] for each in written["rows"]] == [None, None]
    assert said.splitlines()[-1].startswith("gpu: everything is built, and nothing was run: there is no GPU")


def test_a_wrong_row_fails_the_program_and_stands_at_its_end(say):
    row = json.dumps(ROW | {"verdict": "wrong", "note": "3 wrong words"})
    status, said, written = say(SAY_ROW, f"echo '{row}'; exit 1")
    assert status == 1
    assert said.splitlines()[-1] == "gpu: probe_1: c: w: wrong: 3 wrong words"
    assert [each["probe"] for each in written["rows"]] == ["probe_0", "probe_1"]


def test_probes_that_were_not_run_beside_others_are_named(say):
    status, said, _ = say(SAY_ROW, f"{SAY_ROW}; exit 77")
    assert status == 0
    assert said.splitlines()[-1] == "gpu: not run: probe_1"


def test_a_probe_that_there_is_not_is_refused(say, capsys):
    assert gpu.main(["no_such_probe"]) == 2
    assert "no probe is called no_such_probe; there are conformance" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_before_any_probe_runs(tmp_path, capsys):
    with pytest.raises(SystemExit):
        gpu.main(["--json", str(tmp_path / "nowhere" / "gpu.json")])
    assert "a folder that is there" in capsys.readouterr().err


def test_a_probe_ends_with_a_runner_that_is_killed(tmp_path):
    pid = tmp_path / "pid"
    begin = "import sys; sys.path.insert(0, sys.argv[1]); from probes import Probe; from run import run; "
    begin += "run(Probe('p', ['bash', '-c', 'echo $$ >' + sys.argv[2] + '; exec sleep 600']), 600)"
    runner = subprocess.Popen([sys.executable, "-c", begin, str(ROOT / "tools/gpu"), str(pid)])
    deadline = time.monotonic() + MOMENT
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    runner.kill()
    runner.wait()
    assert gone([int(pid.read_text())])


def gone(pids: list[int]) -> bool:
    """Whether these processes end within a moment."""
    deadline = time.monotonic() + MOMENT
    while any(runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(runs(pid) for pid in pids)


def runs(pid: int) -> bool:
    """Whether there is such a process, and it is not only waiting to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
