"""The steps of ./dev gpu over the fake driver: what runs on a GPU runs here, and what is wrong is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import killed
import measured
import pack
import pytest
import steps
from measured import Sweep
from programs import Programs, Ranks, started

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build"
FAKE_DRIVER = TREE / "tests" / "devices" / "fake_driver"
PROGRAMS = Programs(TREE)
PATIENCE = 100.0
SIZES = "-b 48 -e 48K -f 1000 -n 2"

needs_build = pytest.mark.skipif(
    not (FAKE_DRIVER / "libcuda.so.1").exists() or not Path(PROGRAMS.conformance).exists(),
    reason=f"the fake driver is not built in {TREE}: it wants the headers of CUDA",
)


@pytest.fixture
def fake_gpu(monkeypatch):
    """A driver with one simulated GPU, which answers at once."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(FAKE_DRIVER))
    monkeypatch.setenv("FAKE_CUDA_GPUS", "1")
    monkeypatch.setenv("FAKE_CUDA_DELAY_US", "0")


def rows_of(sweep: Sweep) -> list[dict]:
    return list(measured.measure(PROGRAMS, sweep, PATIENCE))


@needs_build
@pytest.mark.parametrize("are", ["threads", "processes"])
def test_ranks_that_share_a_gpu_are_right_and_their_rows_say_who_they_are(fake_gpu, are):
    rows = rows_of(Sweep("all_reduce", Ranks(3, are), SIZES, "ranks", figures=True))
    assert [row["verdict"] for row in rows] == ["works", "measured", "measured"], rows
    assert {(row["ranks_per_gpu"], row["ranks_are"], row["case"]) for row in rows} == {(3, are, "ranks")}
    assert [row["unit"] for row in rows[1:]] == ["us", "GB/s"]
    assert all(row["value"] > 0 for row in rows[1:])


@needs_build
def test_two_hosts_of_one_machine_are_right(fake_gpu):
    variables = {"FCCL_TRANSPORT": "tcp"}
    (row,) = rows_of(Sweep("all_gather", Ranks(4, "processes"), SIZES, "hosts", 2, variables))
    assert row["verdict"] == "works", row


@needs_build
def test_a_path_that_was_asked_for_is_named(fake_gpu):
    (row,) = rows_of(Sweep("broadcast", Ranks(2, "threads"), SIZES, variables={"FCCL_CUDA_PATH": "blocking"}))
    assert row["verdict"] == "works", row
    assert "path blocking" in row["note"]


@needs_build
def test_a_run_that_fails_is_a_row_with_its_last_words(fake_gpu):
    (row,) = rows_of(Sweep("all_gather", Ranks(2, "threads"), "-b 8X"))
    assert (row["verdict"], row["note"].partition(":")[0]) == ("failed", "status 255")


@needs_build
def test_a_run_that_is_not_done_in_time_is_killed_and_a_row(fake_gpu):
    sweep = Sweep("all_gather", Ranks(2, "processes"), "-b 8 -e 8 -N 0")
    (row,) = measured.measure(PROGRAMS, sweep, 2.0)
    assert row["verdict"] == "failed"
    assert "not done after 2 s" in row["note"]


def test_a_run_without_time_is_not_begun():
    (row,) = measured.measure(Programs(Path("/nowhere")), Sweep("all_gather", Ranks(2, "threads"), ""), 0.5)
    assert row["verdict"] == "not run"


@pytest.mark.parametrize(
    ("wrong", "okay", "verdict"), [(0, "true", "works"), (3, "true", "wrong"), (0, "false", "wrong")]
)
def test_wrong_elements_of_a_report_make_a_wrong_row(tmp_path, wrong, okay, verdict):
    side = {"nwrong": wrong, "time": 1.0, "bus_bw": 1.0}
    report = {
        "config": {"cuda_path": "auto"},
        "results": [{"size": 8, "out_of_place": side, "in_place": None}],
        "out_of_bounds": {"okay": okay},
    }
    script = f"echo '{json.dumps(report)}' >FOLDER/report.json"
    with started(["bash", "-c", script]) as run:
        run.wait(PATIENCE)
        (row,) = measured.rows_of(Sweep("sample", Ranks(2, "threads"), ""), run, PATIENCE)
    assert row["verdict"] == verdict


@needs_build
def test_a_kill_in_a_call_ends_the_others_soon(fake_gpu):
    rows = list(killed.rows(PROGRAMS, PATIENCE))
    assert [row["verdict"] for row in rows] == ["measured", "measured"], rows
    assert all(f"rank {killed.RANKS - 1}" in row["note"] for row in rows), rows


def run_step(name: str, **variables: str) -> tuple[int, list[dict]]:
    ended = subprocess.run(
        [sys.executable, steps.__file__, name, "--tree", str(TREE), "--seconds", str(PATIENCE)],
        env=dict(os.environ) | variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


@needs_build
def test_the_conformance_of_the_fake_driver_is_one_good_row(fake_gpu):
    status, rows = run_step("conformance")
    assert status == 0, rows
    assert rows[-1]["verdict"] == "works"


@needs_build
def test_without_a_gpu_a_step_says_why_and_runs_nothing():
    status, (row,) = run_step("threads", CUDA_VISIBLE_DEVICES="")
    assert status == steps.NO_GPU
    assert row["verdict"] == "not run"
    assert "cannot use a GPU" in row["note"]


@needs_build
def test_without_a_gpu_the_packages_that_training_lacks_are_named_too(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    python.chmod(0o755)
    status, rows = run_step("fsdp", CUDA_VISIBLE_DEVICES="", FCCL_GPU_PYTHON=str(python))
    assert status == steps.NO_GPU
    assert [row["verdict"] for row in rows] == ["not run", "not run"]
    assert "cannot use a GPU" in rows[0]["note"]
    assert "No module named" in rows[1]["note"]


def test_a_step_over_nothing_built_says_so(tmp_path, capsys):
    assert steps.main(["perf", "--seconds", "9", "--tree", str(tmp_path)]) == steps.NO_GPU
    assert "not built" in json.loads(capsys.readouterr().out)["note"]


@needs_build
def test_a_packed_folder_runs_by_itself_and_names_what_it_lacks(fake_gpu, tmp_path, capsys):
    folder = tmp_path / "pack"
    assert pack.make(folder, tmp_path / "no-probes", TREE) == 0
    said = capsys.readouterr().out
    assert "not built, so not in the folder" in said
    assert "without the torch backend" in said
    ran = subprocess.run(
        [str(folder / "run"), "conformance", "--seconds", "90"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = json.loads((tmp_path / "gpu.json").read_text())["rows"]
    assert rows[-1]["verdict"] == "works"
    assert rows[-1]["gpu"].startswith("Simulated GPU")
    linked = subprocess.run(
        ["ldd", folder / "build/perf_tests/all_gather_perf"], capture_output=True, text=True
    )
    assert "libfccl.so" in linked.stdout


def test_a_folder_that_holds_something_is_not_packed_into(tmp_path, capsys):
    (tmp_path / "mine").touch()
    assert pack.make(tmp_path, tmp_path, tmp_path) == pack.FAILED
    assert "not empty" in capsys.readouterr().err
