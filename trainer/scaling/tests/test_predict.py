"""The prediction for AWS's instances: the calls of a dry run, at the prices that fccl-info tells."""

import json
from pathlib import Path

import pytest

from trainer.fsdp.arguments import parse as parse_fsdp
from trainer.fsdp.dry_run import collectives_per_step, groups_of, shapes_only
from trainer.scaling import figures
from trainer.scaling.__main__ import _predict
from trainer.scaling.arguments import OrderError, parse
from trainer.scaling.predict import MODEL, predicted

pytestmark = pytest.mark.slow


def order_of(out: Path, *words: str):
    return parse(["--predict", "p4d,p5", "--out", str(out), *words, "--", "-m", "trainer.fsdp"])


def test_a_prediction_has_the_calls_of_a_dry_run_and_aws_published_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles, points = [], []
    finish = figures._finish

    def look(figure, places, path) -> None:
        titles.append(places[0].get_title())
        points.append({line.get_label(): line.get_xydata().tolist() for line in places[0].lines})
        finish(figure, places, path)

    monkeypatch.setattr(figures, "_finish", look)
    _predict(order_of(tmp_path))
    left = json.loads((tmp_path / "predicted.json").read_text())
    assert left["predicted"] and left["published"]["efficiency"] == 0.87
    instances = ["p4d.24xlarge", "p5.48xlarge"]
    assert [(row["instance"], row["nodes"]) for row in left["rows"]] == [
        (instance, nodes) for instance in instances for nodes in (1, 2, 4, 8, 16)
    ]
    for row in left["rows"]:
        settings = parse_fsdp([*MODEL, "--ranks", str(row["ranks"]), "--global-batch", str(row["ranks"])])
        tallies = collectives_per_step(settings, groups_of(shapes_only(settings))).values()
        assert row["calls"] == sum(tally.calls for tally in tallies) > 0
        assert row["bytes"] == sum(tally.bytes for tally in tallies) > 0
        compute, seconds = row["compute_seconds"], row["collective_seconds"]
        assert row["efficiency_nothing_overlaps"] == compute / (compute + seconds)
        assert row["efficiency_all_overlaps"] == compute / max(compute, seconds)
    p4d, p5 = (
        [row["collective_seconds"] for row in left["rows"] if row["instance"] == each and row["nodes"] > 1]
        for each in instances
    )
    assert all(slow > fast for slow, fast in zip(p4d, p5, strict=True))
    assert titles[0].startswith("predicted")
    assert [16, 0.87] in points[0]["published by AWS: 87 %, p5, NCCL"]
    assert (tmp_path / "predicted.png").exists() and (tmp_path / "predicted.csv").exists()


def test_a_prediction_without_fccl_info_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OrderError, match="nowhere for prices, but there is no such program"):
        predicted(order_of(tmp_path, "--fccl-info", str(tmp_path / "nowhere")))
