"""Rows of a chart, from runs that are made up."""

import csv
import json
import subprocess
from pathlib import Path

import pytest

from trainer.scaling import figures, sizes
from trainer.scaling.arguments import OrderError, parse
from trainer.scaling.figures import draw_measured
from trainer.scaling.rows import rows_of, write
from trainer.scaling.sizes import Measured, Size


def measured(step_seconds: float, ranks: int) -> Measured:
    return Measured(step_seconds, 100 * ranks, 6000, 1000 // ranks, 5000, 0.1 * ranks, 70)


@pytest.fixture
def rows() -> list[dict]:
    runs = {
        Size(hosts, hosts, rails): [measured(0.5 + hosts / 10 / rails, hosts)]
        for rails in (1, 2)
        for hosts in (1, 2)
    }
    return rows_of(runs, 0.2)


def test_the_first_row_has_the_efficiency_one(rows: list[dict]) -> None:
    assert rows[0]["efficiency"] == 1


def test_efficiency_is_throughput_over_that_of_as_many_ranks_like_the_first(rows: list[dict]) -> None:
    for row in rows:
        ideal = rows[0]["per_second"] * row["ranks"] / rows[0]["ranks"]
        assert row["ideal"] == ideal and row["efficiency"] == row["per_second"] / ideal


def test_of_several_turns_the_median_counts() -> None:
    turns = [measured(seconds, 1) for seconds in (9.0, 0.5, 1.0)]
    assert rows_of({Size(1, 1, 1): turns}, 0.0)[0]["step_seconds"] == 1.0


def test_rows_and_charts_are_written(rows: list[dict], tmp_path: Path) -> None:
    write(tmp_path, "scaling", rows, {"cores": 2})
    draw_measured(tmp_path / "scaling.png", rows, 2)
    assert {file.name for file in tmp_path.iterdir()} == {"scaling.json", "scaling.csv", "scaling.png"}
    assert json.loads((tmp_path / "scaling.json").read_text()) == {"cores": 2, "rows": rows}
    with (tmp_path / "scaling.csv").open() as file:
        table = list(csv.DictReader(file))
    assert table == [{name: str(value) for name, value in row.items()} for row in rows]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list:
    """The axes of the pictures that the test draws."""
    seen: list = []
    finish = figures._finish

    def look(figure: object, places: object, path: Path) -> None:
        seen.extend(figure.axes)
        finish(figure, places, path)

    monkeypatch.setattr(figures, "_finish", look)
    return seen


def test_every_chart_says_how_it_was_measured_and_throughput_has_the_ideal_line(
    rows: list[dict], tmp_path: Path, drawn: list
) -> None:
    draw_measured(tmp_path / "scaling.png", rows, 2)
    names = ["tokens per second", "seconds of an epoch", "MiB of state per rank"]
    names += ["percent of a step in collectives"]
    assert [axes.get_title() for axes in drawn] == [f"{name} (emulated, 2 cores)" for name in names]
    lines = {line.get_label(): list(map(float, line.get_ydata())) for line in drawn[0].lines}
    assert set(lines) == {"1 rails", "2 rails", "ideal"}
    assert lines["ideal"] == [rows[0]["per_second"], 2 * rows[0]["per_second"]]
    assert lines["2 rails"] == [row["per_second"] for row in rows if row["rails"] == 2]


def test_a_chart_of_real_work_on_one_host_claims_no_emulation(tmp_path: Path, drawn: list) -> None:
    alone = rows_of({Size(1, ranks, 0): [measured(0.5, ranks)] for ranks in (1, 2)}, 0.0)
    draw_measured(tmp_path / "scaling.png", alone, 2)
    assert drawn[0].get_title() == "tokens per second (2 cores)"


def test_of_a_run_that_failed_the_trainers_own_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "./dev train: no such text\nTraceback\nnode0 eth0 12 bytes\n"
    ended = subprocess.CompletedProcess([], 2, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_words, **_options: ended)
    order = parse(["--hosts", "1", "--out", str(tmp_path), "--", "-m", "trainer.fsdp"])
    with pytest.raises(OrderError, match=r"status 2: \./dev train: no such text \(all of it"):
        sizes.run(order, Size(1, 1, 1), "failed")
    assert (tmp_path / "runs" / "failed.log").read_text() == said


@pytest.mark.parametrize(
    "words", ["--hosts 2,1", "--rate fast", "--rails 17", "--compute soon", "--predict p3"]
)
def test_a_wrong_argument_is_refused(words: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*words.split(), "--out", "x", "--", "-m", "trainer.fsdp"])
    assert ended.value.code == 2 and words.split()[0] in capsys.readouterr().err
