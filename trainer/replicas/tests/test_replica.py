"""When the line of a step is written, with a manager that does what the test says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from trainer.replicas import replica
from trainer.replicas.replica import Berth, Replica


class StepCommitter:
    """Commits each step, unless the others have committed it: `newer` is their state then."""

    def __init__(self, load_state_dict: Any, state_dict: Any, **options: Any) -> None:
        self.load, self.state, self.options = load_state_dict, state_dict, options
        self.step, self.newer = 0, None

    def start_quorum(self) -> None:
        if self.newer:
            self.load(self.newer)
            self.step, self.newer = self.newer["last"]["step"], None

    def current_step(self) -> int:
        return self.step

    def num_participants(self) -> int:
        return 2

    def should_commit(self) -> bool:
        self.step += 1
        return True

    def shutdown(self, wait: bool) -> None:
        assert not wait


class Trained:
    """A number."""

    value = 0

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.value = state["value"]

    def digest(self) -> str:
        return str(self.value)


@pytest.fixture
def rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Replica, Trained]]:
    monkeypatch.setattr(replica, "Manager", StepCommitter)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    (tmp_path / "replica-0").mkdir()
    trained = Trained()
    yield Replica(Berth(tmp_path, 0, 2), trained), trained
    dist.destroy_process_group()


def step(rank: tuple[Replica, Trained]) -> None:
    one, trained = rank
    assert one.meet() and one.may_commit()
    trained.value += 1
    one.record(0.5 * trained.value)


def lines(folder: Path) -> list[tuple[int, float, str]]:
    file = folder / "replica-0" / "metrics.jsonl"
    written = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [(line["step"], line["loss"], line["digest"]) for line in written]


def test_the_line_of_a_step_is_written_when_the_replicas_meet_again(
    rank: tuple[Replica, Trained], tmp_path: Path
) -> None:
    step(rank)
    assert lines(tmp_path) == []
    step(rank)
    assert lines(tmp_path) == [(1, 0.5, "1")]
    rank[0].leave()
    assert lines(tmp_path) == [(1, 0.5, "1"), (2, 1.0, "2")]


def test_a_step_that_only_the_others_have_committed_is_taken_from_them(
    rank: tuple[Replica, Trained], tmp_path: Path
) -> None:
    step(rank)
    taken = {"trained": {"value": 2}, "last": {"step": 2, "loss": 1.0, "participants": 2}}
    rank[0]._manager.newer = taken
    step(rank)
    rank[0].leave()
    assert lines(tmp_path) == [(1, 0.5, "1"), (2, 1.0, "2"), (3, 1.5, "3")]


def test_a_step_of_the_others_may_take_longer_than_a_call(rank: tuple[Replica, Trained]) -> None:
    options = rank[0]._manager.options
    assert options["quorum_timeout"] >= 10 * options["timeout"]


def test_a_rank_that_starts_anew_writes_no_step_that_it_was_given(
    rank: tuple[Replica, Trained], tmp_path: Path
) -> None:
    rank[0]._manager.newer = {"trained": {"value": 7}, "last": {"step": 7, "loss": 3.5, "participants": 1}}
    step(rank)
    rank[0].leave()
    assert lines(tmp_path) == [(8, 4.0, "8")]
