"""The trainer as it is started by hand: what a run leaves, and what Ctrl-C leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.fsdp import __main__ as entry
from trainer.fsdp.tests.runs import BACKEND, SMALL, on_ranks

REPOSITORY = Path(__file__).parents[3]
LIMIT_SECONDS = 120


def start(runs: Path, *words: str) -> subprocess.Popen:
    launcher = [sys.executable, "-m", "trainer.launch", "--standalone", "--nproc-per-node", "2"]
    trainer = ["-m", "trainer.fsdp", *SMALL, "--backend", BACKEND, "--runs", str(runs), *words]
    return subprocess.Popen(
        launcher + trainer,
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_that_name(text: str) -> list[int]:
    def command(process: Path) -> bytes:
        try:
            return (process / "cmdline").read_bytes()
        except OSError:
            return b""

    return [
        int(process.name) for process in Path("/proc").glob("[0-9]*") if text.encode() in command(process)
    ]


def test_run_leaves_metrics_curve_configuration_summary_and_sample(tmp_path: Path) -> None:
    words = ["--name", "whole", "--validate-every", "10", "--save-every", "20", "--sample-tokens", "8"]
    log = tmp_path / "whole.log"
    on_ranks(2, log, lambda: entry.main([*SMALL, "--backend", BACKEND, "--runs", str(tmp_path), *words]))
    said = log.read_text()
    assert "prompt: " in said and "sample: " in said
    files = {file.name for file in (tmp_path / "whole").iterdir()}
    assert files == {"metrics.jsonl", "loss.png", "config.json", "summary.json", "checkpoints"}
    summary = json.loads((tmp_path / "whole" / "summary.json").read_text())
    assert (summary["status"], summary["backend"], summary["ranks"]) == ("finished", BACKEND, 2)
    assert summary["first_loss"] > 5 and summary["last_loss"] < summary["first_loss"]
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["hidden"] == 64


def test_interrupt_leaves_a_marked_run_and_no_process(tmp_path: Path) -> None:
    process = start(tmp_path, "--name", "cut", "--steps", "100000")
    metrics = tmp_path / "cut" / "metrics.jsonl"
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 128 + signal.SIGINT, printed
    assert "interrupted after step" in printed and "Traceback" not in printed
    summary = json.loads((tmp_path / "cut" / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert processes_that_name(str(tmp_path)) == []


@pytest.mark.slow
def test_compiled_blocks_give_the_losses_of_blocks_as_they_are(tmp_path: Path) -> None:
    losses = {}
    for name, words in (("compiled", ["--compile"]), ("as-they-are", [])):
        exact = ["--precision", "fp64", "--optimizer", "sgd", "--layers", "2", "--steps", "4"]
        process = start(tmp_path, "--name", name, *exact, *words)
        printed, _ = process.communicate(timeout=5 * LIMIT_SECONDS)
        assert process.returncode == 0, printed
        lines = map(json.loads, (tmp_path / name / "metrics.jsonl").read_text().splitlines())
        losses[name] = [line["loss"] for line in lines]
    assert len(losses["compiled"]) == 4
    assert losses["compiled"] == pytest.approx(losses["as-they-are"], rel=0, abs=1e-9)


def test_wrong_words_are_refused_by_one_line_before_any_rank_is_started() -> None:
    checked = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "trainer.fsdp.check", "--global-batch", "7"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    said = [line for line in checked.stderr.splitlines() if not line.startswith("import time:")]
    assert (checked.returncode, checked.stdout) == (2, "")
    assert len(said) == 1 and said[0].startswith("./dev train: --global-batch 7 does not divide")
    assert "torch" not in checked.stderr, "it takes seconds to import torch"


def test_wrong_setting_is_one_line_and_status_two(tmp_path: Path) -> None:
    process = start(tmp_path, "--global-batch", "7")
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 2
    assert printed.strip().splitlines() == [
        "./dev train: --global-batch 7 does not divide among 2 ranks times --grad-accum 1: "
        "choose a multiple of 2"
    ]
