"""A run's figure, its events of TensorBoard, its lines and its sample say what they should."""

import json
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trainer.fsdp.arguments import Settings, SettingsError, parse
from trainer.fsdp.attempt import Attempt
from trainer.fsdp.collectives import none
from trainer.fsdp.data import ByteTokenizer
from trainer.fsdp.figure import PANELS, figure_of
from trainer.fsdp.report import Report, title_of
from trainer.fsdp.training import _farewell

EVENTS = "trainer.fsdp.events"
SUMMARY = {"status": "finished", "prompt": "", "sample": "", "trained_steps": 0}


def line_of(step: int) -> dict[str, Any]:
    return {
        "step": step,
        "loss": 5 - step / 10,
        "seconds": step / 100,
        "tokens_per_second": 1000.0 + step,
        "collective_share": step / 50,
        "offloading": {"kept": step},
    }


LINES = [*map(line_of, range(1, 11)), {"step": 10, "validation_loss": 3.5}]


@pytest.fixture
def tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of this name, which is only looked for."""
    package = ModuleType("tensorboard")
    package.__spec__ = ModuleSpec("tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboard", package)


def report_in(folder: Path, settings: Settings, lines: list[dict[str, Any]], first_step: int = 0) -> Report:
    report = Report(Attempt(folder, 7 + first_step, None), settings, first_step)
    for line in lines:
        if "loss" in line:
            report.step(line, line["tokens_per_second"], line["collective_share"])
        else:
            report.validation(line["step"], line["validation_loss"])
    return report


def test_figure_shows_loss_time_speed_and_collectives_over_the_steps() -> None:
    figure = figure_of("a title", LINES)
    assert figure.get_suptitle() == "a title"
    for axes, (name, label, factor) in zip(figure.axes, PANELS, strict=True):
        steps, values = axes.lines[0].get_data()
        assert list(steps) == list(range(1, 11))
        assert list(values) == [line_of(step)[name] * factor for step in range(1, 11)]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", label)
    losses = figure.axes[0]
    assert [line.get_label() for line in losses.lines] == ["training", "validation"]
    assert list(losses.lines[1].get_data()[1]) == [3.5]


def test_figure_of_a_run_without_a_step_is_empty() -> None:
    assert [len(axes.lines) for axes in figure_of("nothing", []).axes] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("--ranks 2", "tiny, full_shard, 2 ranks over fccl: run"),
        (
            "--ranks 4 --strategy hybrid_shard --fsdp1 --backend gloo",
            "tiny, hybrid_shard of 2, FullyShardedDataParallel, 4 ranks over gloo: run",
        ),
        ("--ranks 4 --tensor-parallel 2", "tiny, full_shard, tensor parallel 2, 4 ranks over fccl: run"),
    ],
)
def test_title_names_model_strategy_ranks_and_run(words: str, title: str) -> None:
    assert title_of(parse(words.split()), Path("runs/run")) == title


def test_report_counts_the_history_of_earlier_attempts(tmp_path: Path) -> None:
    settings = parse(["--steps", "10"])
    report_in(tmp_path, settings, LINES[:6])._metrics.close()
    report = report_in(tmp_path, settings, LINES[4:], first_step=4)
    summary = report.close({}, none())
    lines = list(map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines()))
    assert [line["step"] for line in lines] == [*range(1, 11), 10]
    assert [line["attempt"] for line in lines] == [7] * 4 + [11] * 7
    assert (summary["attempts"], summary["first_loss"], summary["last_loss"]) == (2, 4.9, 4.0)
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_terminal_lines_tell_of_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trainer.fsdp.report.SECONDS_BETWEEN_LINES", 0)
    report_in(tmp_path, parse(["--steps", "10"]), LINES[:2]).close({}, none())
    printed = "".join(capfd.readouterr())
    assert printed.splitlines() == [
        "step 1 of 10: loss 4.900, 1,001 tokens/s, 2% in collectives",
        "step 2 of 10: loss 4.800, 1,002 tokens/s, 4% in collectives",
    ]


def test_tensorboard_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(SettingsError, match="needs the package tensorboard: pip install tensorboard"):
        parse(["--tensorboard"])


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tensorboard: None) -> Iterator[list[Any]]:
    """A list in the place of torch's writer: it holds what events hand to that."""
    calls: list[Any] = []

    class Writer:
        def __init__(self, folder: str, purge_step: int | None) -> None:
            calls.append((folder, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            calls.append((name, value, step))

        def close(self) -> None:
            calls.append("closed")

    stand_in = ModuleType("torch.utils.tensorboard")
    stand_in.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", stand_in)
    sys.modules.pop(EVENTS, None)
    yield calls
    sys.modules.pop(EVENTS, None)


def test_events_are_the_numbers_of_the_metrics(tmp_path: Path, written: list[Any]) -> None:
    settings = parse(["--steps", "10", "--tensorboard"])
    report_in(tmp_path, settings, [LINES[4], LINES[-1]], first_step=4).close({}, none())
    assert written == [
        (str(tmp_path / "tensorboard"), 5),
        ("loss", 4.5, 5),
        ("seconds", 0.05, 5),
        ("tokens_per_second", 1005.0, 5),
        ("collective_share", 0.1, 5),
        ("validation_loss", 3.5, 10),
        "closed",
    ]


def test_tensorboard_reads_the_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the package tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = parse(["--steps", "10", "--tensorboard"])
    report_in(tmp_path, settings, LINES).close({}, none())
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    losses = [(event.step, round(event.value, 3)) for event in events.Scalars("loss")]
    assert losses == [(step, round(5 - step / 10, 3)) for step in range(1, 11)]


def test_sample_says_where_the_prompt_ends() -> None:
    facts = {**SUMMARY, "prompt": "a = [\n  1,", "sample": " 2,\n]"}
    assert _farewell(facts, Path("run"), parse([])) == "prompt: a = [\n          1,\nsample:  2,\n        ]"
    assert _farewell(SUMMARY, Path("run"), parse([])) == ""


def test_bytes_that_are_no_text_are_shown_as_numbers() -> None:
    assert ByteTokenizer().decode([65, 0xE2, 66, ByteTokenizer.end_of_text]) == "A\\xe2B"
