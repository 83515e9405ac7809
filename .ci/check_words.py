"""Words: the library writes a word that a GPU may be waiting for by release_to_device and not otherwise."""

import re
from collections.abc import Iterator

from tree import Fault, Tree

WORDS = "src/device/words.h"
# A variable, a member, a parameter, an array or a function that gives one.
DECLARED = re.compile(r"\bDeviceWord\b(?:\s*const\b|[^<>(){};]*>)?\s*[&*]*\s*(\w+)")
# Matches a write to one of NAMES, which code may also call or index first.
WRITES = (
    r"\b(?:NAMES)\)?(?:\([^()]*\)|\[[^\]]*\])?\s*"
    r"(?:(?:\.|->)\s*(?:store|exchange|compare_exchange\w*|fetch_\w+)\s*\(|(?:[-+&|^]?=)(?!=)|\+\+|--)"
)


def faults(tree: Tree) -> Iterator[Fault]:
    ours = [path for path in tree.cpp if path.startswith("src/") and path != WORDS]
    declared = {path: set(DECLARED.findall(tree.text(path))) for path in ours}
    for path in ours:
        near = [path, *(f"src/{name}" for _, quote, name in tree.includes(path) if quote == '"')]
        names = set().union(*(declared.get(file, set()) for file in near))
        if not names:
            continue
        writes = re.compile(WRITES.replace("NAMES", "|".join(sorted(names))))
        for line, text in enumerate(tree.text(path).splitlines(), 1):
            if writes.search(text):
                what = "writes a DeviceWord; only release_to_device does, which has the fence"
                yield Fault(path, line, f"{what} (words)")
