"""Images, an etcd, and the run that nothing disturbed, each made once; and a look at what the tests leave."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.images import four_colours
from trainer.ddp.tests.jobs import IMAGES, Job
from trainer.fsdp.tests.test_launched import processes_that_name

ENDING_SECONDS = 10


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No process, etcd among them, whose command names a folder of the tests."""
    folder = f"{tmp_path_factory.getbasetemp()}/"
    yield
    deadline = time.monotonic() + ENDING_SECONDS
    while (left := processes_that_name(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == [], [Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0") for each in left]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return four_colours(tmp_path_factory.mktemp("images"), IMAGES // 4)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Job:
    # Imports torchvision, which some versions of torch lack; their tests are skipped.
    from trainer.ddp.tests.ranks import train_on

    job = Job(tmp_path_factory.mktemp("undisturbed"), data)
    train_on(2, job.folder, job.trainer)
    return job


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    server = EtcdServer(tmp_path_factory.mktemp("etcd"), "--enable-v2")
    yield server
    server.stop()
