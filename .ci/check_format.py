"""Format: C++ is laid out as .clang-format says, and the lines of all files end cleanly."""

import re
import subprocess
from collections.abc import Iterator

from tree import Fault, Tree, line_of

CLANG_FORMAT = "clang-format-19"
UNCLEAN = re.compile(r"[ \t]+$|\r$|\t", re.MULTILINE)
WITH_TABS = ("LICENSE", ".md", ".txt", ".xml")


def faults(tree: Tree) -> Iterator[Fault]:
    if tree.cpp:
        command = [CLANG_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", *tree.cpp]
        said = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
        for path, line in re.findall(r"^(.+?):(\d+):\d+: error:", said.stderr, re.MULTILINE):
            yield Fault(
                path,
                int(line),
                "is not laid out as .clang-format says; ./dev lint --fix lays it out (format)",
            )
    for path in tree.files:
        text = tree.text(path)
        if "\0" in text or path.endswith(WITH_TABS):
            continue
        if found := UNCLEAN.search(text):
            yield Fault(
                path, line_of(text, found.start()), "has a tab, or a space at the end of a line (format)"
            )
        if text and not text.endswith("\n"):
            yield Fault(path, text.count("\n") + 1, "does not end with a newline (format)")


def fix(tree: Tree) -> None:
    """Lays out every C++ file anew."""
    if tree.cpp:
        subprocess.run([CLANG_FORMAT, "-i", *tree.cpp], cwd=tree.root, check=True)
