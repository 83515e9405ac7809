"""Suites: each folder of tests in Python is one that a suite of ./dev test or ./dev test all runs."""

import re
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, Tree

SUITES = (".ci/test.sh", ".ci/test_all.sh")
FOLDER = re.compile(r"[\w./-]+")


def faults(tree: Tree) -> Iterator[Fault]:
    named = {word for path in SUITES if path in tree.known for word in FOLDER.findall(tree.text(path))}
    for path in tree.files:
        if re.fullmatch(r"test_\w+\.py", Path(path).name) and named.isdisjoint(map(str, Path(path).parents)):
            yield Fault(path, 1, f"no suite runs it: {' and '.join(SUITES)} do not name its folder (suites)")
