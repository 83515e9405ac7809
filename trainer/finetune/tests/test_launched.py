"""AWS's line as it stands from a foreign folder, and a run whose rank dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from trainer.finetune.tests.folders import write_alpaca, write_model, write_samsum
from trainer.finetune.tests.runs import EXACT, SHORT

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[3] / "examples" / "finetuning.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
LIMIT_SECONDS = 280


def start(folder: Path, launcher: list[str], *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*TORCHRUN, *launcher, str(SCRIPT), *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_DATASETS_CACHE": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def lives(process: int) -> bool:
    """Whether it runs still; one that nobody has waited for has no command line any more."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def ranks_of(folder: Path) -> list[int]:
    """Processes that run the script in this folder, without the launcher and the loader's workers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            parent = (process / "status").read_text().partition("PPid:\t")[2].split()[0]
            ours = Path(os.readlink(process / "cwd")) == folder and "torch.distributed.run" not in words
            by_torchrun = b"torch.distributed.run" in Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue
        if ours and by_torchrun and str(SCRIPT) in words:
            found.append(int(process.name))
    return found


@pytest.mark.slow
def test_awss_line_runs_from_a_foreign_folder(tmp_path: Path) -> None:
    write_model(write_samsum(tmp_path) / "meta-llama/Llama-2-7b-hf")
    line = "--num_epochs=5 --batch_size_training=3 --enable_fsdp --model_name meta-llama/Llama-2-7b-hf "
    line += "--output_dir ."
    port = ["--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    process = start(
        tmp_path, ["--nproc_per_node=2", "--nnodes=1", *port], *line.split(), "--context_length", "128"
    )
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, printed
    assert (tmp_path / "fine-tuned-meta-llama/Llama-2-7b-hf/.metadata").is_file()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["status"], summary["epochs"], summary["backend"]) == ("finished", 5, "fccl")
    assert summary["eval_loss"][-1] < summary["eval_loss"][0]
    AutoModelForCausalLM.from_pretrained(tmp_path / "hf")


@pytest.mark.slow
def test_a_run_whose_rank_dies_goes_on_in_its_folder_as_if_none_had(tmp_path: Path) -> None:
    model, data = write_model(tmp_path / "tiny"), write_alpaca(tmp_path / "alpaca.json")
    words = [
        "--model_name",
        str(model),
        "--data_path",
        str(data),
        *SHORT,
        *EXACT,
        "--enable_fsdp",
        "--num_epochs",
        "2",
    ]
    words += ["--save_every", "10", "--use_peft"]
    launcher = ["--standalone", "--nproc-per-node", "2", "--monitor-interval", "0.2"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder in (whole, cut):
        folder.mkdir()
    process = start(whole, launcher, *words, "--output_dir", str(whole))
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, printed
    process = start(cut, [*launcher, "--max-restarts", "2"], *words, "--output_dir", str(cut))
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not (cut / "metrics.jsonl").exists():
        time.sleep(0.05)
    while time.monotonic() < deadline and len((cut / "metrics.jsonl").read_text().splitlines()) < 15:
        time.sleep(0.02)
    os.kill(max(ranks_of(cut)), signal.SIGKILL)
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, printed
    assert "goes on after step" in printed
    undisturbed, lines = lines_of(whole), lines_of(cut)
    assert len({line["attempt"] for line in lines}) == 2
    for one, other in zip(undisturbed, lines, strict=True):
        assert {**one, "attempt": 0, "loss": 0} == {**other, "attempt": 0, "loss": 0}
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-9)
    before, after = (
        AutoModelForCausalLM.from_pretrained(folder / "hf").state_dict() for folder in (whole, cut)
    )
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not (cut / "resume").exists()


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_fewer_ranks_where_it_is_told_to(tmp_path: Path) -> None:
    model, data = write_model(tmp_path / "tiny"), write_alpaca(tmp_path / "alpaca.json", 120)
    words = ["--model_name", str(model), "--data_path", str(data), "--output_dir", str(tmp_path), *SHORT]
    words += [*EXACT, "--enable_fsdp", "--num_epochs", "1", "--norun_validation", "--save_every", "5"]
    process = start(tmp_path, ["--standalone", "--nproc-per-node", "2"], *words)
    metrics = tmp_path / "metrics.jsonl"
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text().count("\n") >= 8):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    ranks = ranks_of(tmp_path)
    process.kill()
    process.communicate()
    while any(lives(rank) for rank in ranks):
        time.sleep(0.02)
    before = lines_of(tmp_path)
    process = start(tmp_path, ["--standalone", "--nproc-per-node", "1"], *words, "--auto_resume")
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, printed
    lines = lines_of(tmp_path)
    kept = [line for line in lines if line["attempt"] == before[0]["attempt"]]
    assert len(kept) in range(5, len(before) + 1, 5) and kept == before[: len(kept)]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert {len(line["samples"]) for line in kept} == {4}
    assert {len(line["samples"]) for line in lines[len(kept) :]} == {2}
    taken = [sample for line in lines for sample in line["samples"]]
    assert len(taken) == len(set(taken)) and max(taken) < len(taken) + 2
