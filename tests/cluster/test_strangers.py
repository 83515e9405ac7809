"""Somebody on the network without the secrets of a job changes nothing in it; see tests/attack."""

import os
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/attack"))
import campaign

BUILD = Path(os.environ.get("FCCL_TEST_LIBRARY", ROOT / "build/libfccl.so")).parent

pytestmark = pytest.mark.skipif(
    not (BUILD / "tests/attack/outsider").exists(),
    reason=f"{BUILD} has no outsider; it is built with the tests, where libfabric's headers are",
)


@pytest.mark.parametrize("place", campaign.PLACES)
def test_an_outsider_changes_nothing_and_is_counted(place: str) -> None:
    outcome = campaign.run(BUILD, campaign.PLACES[place], "net", seconds=4, elements=50_000)
    assert outcome.faults() == [], outcome.complaints
    posted = outcome.posted_by_attack()
    # A host without a rank is turned away before it can post anything.
    reaches = place != "a third host"
    assert posted and all((number > 0) == reaches for number in posted.values()), posted
    assert outcome.dropped > 0
    assert all(said["read"]["well"] == 0 for said in outcome.outsiders)
    assert all(victim["rounds"] >= 1 for victim in outcome.victims)
