"""Runs torch's own DistributedTest over fccl and prints as JSON how each test ended.

The tests ask for the backend BACKEND; for "gloo", FCCL_TORCH_REPLACES must have put fccl in its place.
Each test forks its ranks from this process, so nothing here may start a thread.
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = tempfile.mkdtemp()
os.environ.setdefault("BACKEND", "fccl")
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.update(
    CUDA_VISIBLE_DEVICES="",
    TEMP_DIR=FOLDER,
    INIT_METHOD=f"file://{FOLDER}/shared_init_file",
    MASTER_ADDR="localhost",
)
for name in ("barrier", "test_dir", "init_dir"):
    Path(FOLDER, name).mkdir()

import torch  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

torch.set_num_threads(1)
for features in common_distributed.DistTestCases.backend_feature.values():
    features.add(os.environ["BACKEND"])

from torch.testing._internal.distributed import distributed_test  # noqa: E402
from torch.testing._internal.distributed.distributed_test import (  # noqa: E402
    DistributedTest,
    TestDistBackend,
)

# The profiler's events of fccl begin with its name, whatever the group is called.
distributed_test.PROFILING_SUPPORTED_BACKENDS.clear()
distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.clear()


class TestFccl(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    @classmethod
    def _run(cls, rank, *arguments, **options):
        hosts = int(os.environ.get("FCCL_TEST_HOSTS", "1"))
        if hosts > 1:
            os.environ["FCCL_HOST_ID"] = str(rank * hosts // int(os.environ["WORLD_SIZE"]))
        super()._run(rank, *arguments, **options)


class Report(unittest.TextTestResult):
    """Sorts the tests by how they ended."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.passed = []

    def addSuccess(self, test):  # noqa: N802  # the name is unittest's
        super().addSuccess(test)
        self.passed.append(test)

    def as_json(self):
        faults = [(test, text) for test, text in [*self.failures, *self.errors]]
        return {
            "passed": [name_of(test) for test in self.passed],
            "skipped": {name_of(test): reason for test, reason in self.skipped},
            "failed": {name_of(test): text for test, text in faults},
        }


def name_of(test):
    return test.id().rsplit(".", 1)[-1]


if __name__ == "__main__":
    # The tests' own runner would write to standard output what the caller reads from it.
    patterns = sys.argv[1:]
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{pattern}*" for pattern in patterns] or None
    tests = loader.loadTestsFromTestCase(TestFccl)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=Report).run(tests)
    print(json.dumps(result.as_json()))
