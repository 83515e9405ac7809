"""The steps of ./dev gpu over the fake driver: what runs on a GPU runs here, and what is wrong is told."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import killed
import measured
import pack
import paths
import pytest
import steps
import sums
import training
from measured import Sweep
from probes import PARTS
from programs import PATHS, Programs, Ranks, started

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


@pytest.mark.parametrize(("seconds", "deadline"), [(100.0, "20"), (12.5, "6"), (1.0, "3")])
def test_the_deadline_of_a_call_comes_before_the_run_is_killed(seconds, deadline):
    words = Sweep("all_gather", Ranks(2, "threads"), "-b 8").words(PROGRAMS, seconds)
    assert words[words.index("-T") + 1] == deadline


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
    rows = list(killed.rows(PROGRAMS, 2 * PATIENCE))
    assert [row["verdict"] for row in rows] == ["measured"] * len(PATHS), rows
    assert all(path in row["what"] for path, row in zip(PATHS, rows, strict=True))
    assert all(f"rank {killed.RANKS - 1}" in row["note"] for row in rows), rows


def name_of(sweep: Sweep) -> str:
    return f"{sweep.variables['FCCL_CUDA_PATH']}-{sweep.collective}-{sweep.flags.split()[-1]}"


@needs_build
@pytest.mark.parametrize("sweep", [each for each in paths.sweeps() if "bits" in each.case], ids=name_of)
def test_slots_of_a_gpu_give_the_right_bits(fake_gpu, sweep):
    (row,) = rows_of(sweep)
    assert row["verdict"] == "works", row
    assert f"path {sweep.variables['FCCL_CUDA_PATH']}" in row["note"]


def test_large_buffers_go_by_slots_on_two_to_eight_ranks():
    large = [each for each in paths.sweeps() if each.figures]
    assert {(each.collective, each.variables["FCCL_CUDA_PATH"]) for each in large} == {
        ("all_gather", "host"),
        ("all_gather", "peer"),
        ("reduce_scatter", "peer"),
        ("all_reduce", "peer"),
    }
    assert all(
        {each.ranks.count for each in large if each.collective == name} == {2, 4, 8}
        for name in ("all_gather", *paths.SUMS)
    )


@needs_build
def test_the_sums_of_a_gpu_have_the_processors_bits(fake_gpu, monkeypatch):
    monkeypatch.setenv("FCCL_TEST_PAIRS", "some")
    pairs, sanitized = sums.rows(PROGRAMS, PATIENCE)
    assert pairs["verdict"] in ("works", "unsupported"), pairs
    # The sanitizer knows no fake driver.
    assert sanitized["what"].startswith(sums.SANITIZER)


def test_a_sum_that_differs_is_a_wrong_row(monkeypatch):
    row = sums.tested("sums", ["bash", "-c", "echo '[  FAILED  ] 1 test'; exit 1"], PATIENCE)
    assert row["verdict"] == "wrong"
    assert "status 1" in row["note"]


@pytest.mark.parametrize(("differing", "verdict"), [({}, "works"), ({"peer": (7.25, 5.5000001)}, "wrong")])
def test_losses_by_each_path_must_have_the_same_bits(differing, verdict):
    losses = dict.fromkeys(PATHS, (7.25, 5.5)) | differing
    assert training.agreement("losses", losses)["verdict"] == verdict


def test_a_path_that_did_not_train_fails_the_comparison():
    row = training.agreement("losses", {"bounce": (7.25, 5.5)})
    assert row["verdict"] == "failed"
    assert "bounce" in row["note"]


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
    folder, out = tmp_path / "pack", tmp_path / "out"
    assert pack.make(folder, tmp_path / "no-probes", TREE, without_torch=True) == 0
    said = capsys.readouterr().out
    assert "not built, so not in the folder" in said
    assert "without the torch backend" in said
    # As a transfer may leave it.
    (folder / "build/fccl-info").chmod(0o644)
    ran = subprocess.run(
        ["sh", str(folder / "run"), "conformance", "--seconds", "90", "--out", str(out)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("gpu: ")
    rows = json.loads((out / "gpu.json").read_text())["rows"]
    assert rows[-1]["verdict"] == "works"
    assert rows[-1]["gpu"].startswith("Simulated GPU")
    linked = subprocess.run(
        ["ldd", folder / "build/perf_tests/all_gather_perf"], capture_output=True, text=True
    )
    assert "libfccl.so" in linked.stdout


def test_without_a_python_for_the_torch_backend_nothing_is_packed(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FCCL_PACK_PYTHON", sys.executable + " -E")
    assert pack.make(tmp_path / "pack", tmp_path, tmp_path) == pack.FAILED
    said = capsys.readouterr().err
    assert "no Python 3.10 or later with torch 2.11" in said
    assert "--without-torch" in said
    assert not (tmp_path / "pack").exists()


@pytest.fixture
def packed(tmp_path):
    """The least that a good folder holds."""
    for name in ("lib/libfccl.so.0", "python/fccl/libfccl.so.0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\x7fELF" + pack.OF_DEVICE)
    (tmp_path / pack.ADAPTER).write_bytes(b"\x7fELF")
    return tmp_path


def test_a_good_folder_has_nothing_wrong(packed):
    assert pack.wrong_with(packed, with_torch=True) == ""


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [
        ("lib/libfccl.so.0", "no device", "libfccl.so.0 was built without CUDA"),
        ("python/fccl/libfccl.so.0", "no device", "libfccl.so.0 was built without CUDA"),
        ("python/fccl/libfccl_torch-2.11.so", None, "it has no python/fccl/libfccl_torch-2.11.so"),
    ],
)
def test_a_folder_that_would_be_of_no_use_on_a_gpu_is_refused(packed, name, content, wrong):
    (packed / name).unlink()
    if content is not None:
        (packed / name).write_text(content)
    assert wrong in pack.wrong_with(packed, with_torch=True)


def test_the_trainers_own_words_are_told_and_not_those_of_its_launcher():
    said = "trainer: --device cuda: torch finds no GPU\nE1125 06:44:43.1 12 api.py:9] failed\nTraceback\n"
    assert training.complaint_of(said) == "trainer: --device cuda: torch finds no GPU"
    assert (
        training.complaint_of("E1125 06:44:43.1 12 api.py:9] failed")
        == "E1125 06:44:43.1 12 api.py:9] failed"
    )


@needs_build
@pytest.mark.slow
def test_a_packed_folder_asks_the_first_part_of_its_questions(fake_gpu, monkeypatch, tmp_path):
    python, lack = pack.python_with_torch()
    if python is None:
        pytest.skip(lack)
    if not (ROOT / "build-gpu/first_minute_probe").exists():
        pytest.skip("the probes are not built: ./dev gpu builds them")
    monkeypatch.delenv("LD_LIBRARY_PATH")
    folder, out = tmp_path / "pack", tmp_path / "out"
    assert pack.make(folder, ROOT / "build-gpu", TREE) == 0
    monkeypatch.setenv("LD_LIBRARY_PATH", str(FAKE_DRIVER))
    begin = time.monotonic()
    words = [str(folder / "run"), "--part", "first", "--out", str(out)]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert time.monotonic() - begin < 480
    assert len(ran.stdout) <= 12_000
    assert len(list(out.iterdir())) <= 8
    rows = json.loads((out / "first.json").read_text())["rows"]
    assert {row["verdict"] for row in rows} <= {"works", "measured", "unsupported"}
    assert {row["probe"] for row in rows} == set(PARTS["first"])


def test_a_folder_that_holds_something_is_not_packed_into(tmp_path, capsys):
    (tmp_path / "mine").touch()
    assert pack.make(tmp_path, tmp_path, tmp_path) == pack.FAILED
    assert "not empty" in capsys.readouterr().err
