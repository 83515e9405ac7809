"""Tidy: clang-tidy 19 finds nothing in the changed C++ files, or in all of them when it is asked to."""

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Fault, Tree, Verdicts

CLANG_TIDY = "clang-tidy-19"
DATABASE = "build/lint"  # the folder with compile_commands.json
DIAGNOSTIC = re.compile(r"^(\S+?):(\d+):\d+: (?:error|warning): (.*?)(?: \[([\w.,-]+)\])?$", re.MULTILINE)


def faults(tree: Tree, every_file: bool = False) -> Iterator[Fault]:
    sources = sources_of(tree)
    chosen = sources if every_file else affected(tree, sources)
    verdicts = Verdicts(tree, "tidy", tree.text(".clang-tidy"))
    pending = [path for path in chosen if not verdicts.is_clean(path)]
    found: set[Fault] = set()
    with ThreadPoolExecutor(2) as pool:
        for path, ours in zip(pending, pool.map(lambda path: faults_of(tree, path), pending), strict=True):
            if not ours:
                verdicts.remember_clean(path)
            found |= ours
    yield from sorted(found)


def sources_of(tree: Tree) -> list[str]:
    """The sources that have a compile command of their own."""
    entries = json.loads((tree.root / DATABASE / "compile_commands.json").read_text())
    found = {entry["file"].removeprefix(f"{tree.root}/") for entry in entries}
    return sorted(found & set(tree.known))


def faults_of(tree: Tree, path: str) -> set[Fault]:
    command = [CLANG_TIDY, "--quiet", "-p", DATABASE, path]
    said = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    found = set()
    for file, line, what, rule in DIAGNOSTIC.findall(said.stdout):
        name = str((tree.root / file).resolve()).removeprefix(f"{tree.root}/")
        found.add(Fault(name, int(line), f"{what} (tidy, {rule.split(',')[0]})"))
    if said.returncode != 0 and not found:
        found.add(Fault(path, 1, f"clang-tidy failed: {said.stderr.strip()[-300:]} (tidy)"))
    return found


def affected(tree: Tree, sources: list[str]) -> list[str]:
    """The changed sources, and for each changed header its own source or the first that includes it."""
    changed = tree.changed
    chosen = set(changed) & set(sources)
    for header in changed & set(tree.headers):
        own = str(Path(header).with_suffix(".cpp"))
        chosen.update(
            [own] if own in sources else [path for path in sources if header in tree.closure(path)][:1]
        )
    return sorted(chosen)
