"""The runner of the GPU's probes: whatever one does, its time is bounded and rows say what became of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import gpu
import kept
import probes
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

    def run_main(*scripts: str, more: tuple[str, ...] = ()) -> tuple[int, str, dict]:
        known = [Probe(f"probe_{number}", ["bash", "-c", script]) for number, script in enumerate(scripts)]
        monkeypatch.setattr(gpu.probes, "all_probes", lambda build, tree: known)
        monkeypatch.setenv("CUDA_LOG_FILE", str(tmp_path / "cuda.log"))
        status = gpu.main(["--build", str(tmp_path), "--seconds", "60", *more])
        written = tmp_path / ("out/gpu.json" if more else "gpu.json")
        return status, capsys.readouterr().out, json.loads(written.read_text())

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


def test_a_folder_takes_all_rows_in_few_files_and_little_is_printed(say, tmp_path):
    rows = [ROW | {"what": f"figure {number}", "note": "n" * 300} for number in range(400)]
    rows += [
        ROW | {"what": f"fault {number}", "verdict": "failed", "note": "f" * 300} for number in range(400)
    ]
    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    status, said, written = say(f"cat {tmp_path}/rows; echo ouch >&2; exit 1", more=("--out", str(out)))
    assert status == 1
    assert len(written["rows"]) == 800
    assert len(said) <= 12_000
    assert "fault 0" in said
    assert "figure 0" in said
    assert "probe_0: 400 measured, 400 failed" in said
    assert len(list(out.iterdir())) <= 8
    assert "figure 399" in (out / "gpu.txt").read_text()
    assert "==== probe_0\nouch" in (out / "steps.log").read_text()


def test_what_is_printed_says_how_much_has_no_room():
    rows = [ROW | {"probe": "a", "what": f"answer {number}", "value": None} for number in range(1000)]
    said = kept.summary(rows, "the end")
    assert len(said) <= kept.MOST_CHARACTERS
    assert said.splitlines()[-2].endswith(" more")
    assert said.splitlines()[-1] == "the end"


def test_each_probe_is_in_one_part_and_no_part_takes_longer_than_eight_minutes():
    names = [name for part in probes.PARTS.values() for name in part]
    assert len(names) == len(set(names))
    one_queue = {f"{name}_with_one_queue" for name in ("enqueue", "blocking")}
    assert set(names) == {*probes.PROBES, *probes.STEPS, *one_queue}
    assert all(sum(part.values()) <= gpu.SECONDS for part in probes.PARTS.values())
    assert next(iter(probes.PARTS["first"])) == probes.FIRST


def test_each_probe_has_its_share_of_the_time(monkeypatch, tmp_path, capsys):
    known = [Probe("long", ["bash", "-c", SAY_ROW], 30), Probe("short", ["bash", "-c", SAY_ROW], 10)]
    monkeypatch.setattr(gpu.probes, "all_probes", lambda build, tree: known)
    assert gpu.main(["--build", str(tmp_path), "--seconds", "4000"]) == 0
    said = capsys.readouterr().err
    assert "gpu: long (at most 3000 s)" in said or "gpu: long (at most 29" in said
    assert "gpu: short (at most 4000 s)" in said or "gpu: short (at most 39" in said


def test_a_part_and_names_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        gpu.main(["--part", "first", "perf"])
    assert "exclude each other" in capsys.readouterr().err


def test_a_probe_that_there_is_not_is_refused(say, capsys):
    assert gpu.main(["no_such_probe"]) == 2
    assert "no probe is called no_such_probe; there are first_minute" in capsys.readouterr().err


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
    """Tells if these processes end within a moment."""
    deadline = time.monotonic() + MOMENT
    while any(runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(runs(pid) for pid in pids)


def runs(pid: int) -> bool:
    """Tells if the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
