"""Runs of the C++ trainer that several tests look at, each made once."""

import pytest

from trainer.cpp.tests.runs import Runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))
