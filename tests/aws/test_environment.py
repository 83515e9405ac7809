"""Two ranks train under every environment variable that AWS's files set."""

import os

import pytest
from pair import SENTENCE, Ended, train_under
from table import ENVIRONMENT, Row

ROWS = pytest.mark.parametrize("row", ENVIRONMENT, ids=lambda row: row.name)


def sentences(ended: Ended) -> list[str]:
    return [line for line in ended.said.splitlines() if line.startswith(SENTENCE)]


@pytest.fixture(scope="module")
def one_host() -> dict[str, Ended]:
    """Every row, in one pair of processes."""
    ended = train_under([row.environment for row in ENVIRONMENT])
    return {row.name: each for row, each in zip(ENVIRONMENT, ended, strict=True)}


@ROWS
def test_two_ranks_of_a_host_train_under(row: Row, one_host: dict[str, Ended]) -> None:
    ended = one_host[row.name]
    assert ended.statuses == [0, 0], ended.said
    # Ranks that share a processor have nothing to tell at this level.
    has_news = "NCCL_DEBUG" in row.environment and len(os.sched_getaffinity(0)) > 1
    assert ("fccl info" in ended.said) == has_news, ended.said


@pytest.mark.slow
@ROWS
def test_two_hosts_train_or_end_with_a_sentence_under(row: Row) -> None:
    ended = train_under([row.environment], hosts=2)[0]
    if "FI_PROVIDER" not in row.environment:
        assert ended.statuses == [0, 0], ended.said
        return
    # A machine with EFA trains.
    assert ended.statuses in ([0, 0], [2, 2]), ended.said
    if ended.statuses == [2, 2]:
        assert len(sentences(ended)) == 2, ended.said
        assert all("FI_PROVIDER" in each for each in sentences(ended)), ended.said


@pytest.mark.slow
def test_two_ranks_train_under_all_of_them_together() -> None:
    together = {name: value for row in ENVIRONMENT for name, value in row.environment.items()}
    ended = train_under([together])[0]
    assert ended.statuses == [0, 0], ended.said
