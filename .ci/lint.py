"""Runs the checks on the repository, one line each: OK, or the faults it found."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import check_chains
import check_format
import check_headers
import check_interface
import check_layers
import check_limits
import check_names
import check_prose
import check_python
import check_suites
import check_symbols
import check_tidy
import check_words
from tree import Fault, Tree

Check = Callable[[], Iterable[Fault]]


def run(name: str, check: Check) -> int:
    begin = time.monotonic()
    try:
        found = sorted(check())
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        found = [Fault(".ci", 1, f"the check could not run: {error} ({name})")]
    seconds = time.monotonic() - begin
    print(f"{name:<8} {'OK' if not found else f'{len(found)} faults'} ({seconds:.1f} s)", flush=True)
    for fault in found:
        print(f"  {fault}", flush=True)
    return len(found)


def checks_of_text(tree: Tree) -> dict[str, Check]:
    return {
        "layers": lambda: check_layers.faults(tree),
        "chains": lambda: check_chains.faults(tree),
        "limits": lambda: check_limits.faults(tree),
        "words": lambda: check_words.faults(tree),
        "interface": lambda: check_interface.faults(tree),
        "names": lambda: check_names.faults(tree),
        "prose": lambda: check_prose.faults(tree),
        "format": lambda: check_format.faults(tree),
        "python": lambda: check_python.faults(tree),
        "suites": lambda: check_suites.faults(tree),
    }


def checks_that_compile(tree: Tree, every_file: bool) -> dict[str, Check]:
    return {
        "headers": lambda: check_headers.faults(tree, every_file=every_file),
        "symbols": lambda: check_symbols.faults(tree),
        "tidy": lambda: check_tidy.faults(tree, every_file=every_file),
    }


def main(arguments: list[str]) -> int:
    if unknown := set(arguments) - {"--all", "--fix", "--quick"}:
        print(f"lint knows --all, --fix and --quick, but not {' '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    root = Path(__file__).parent.parent
    if "--fix" in arguments:
        check_format.fix(Tree(root))
        check_python.fix(Tree(root))
    tree = Tree(root)
    checks = checks_of_text(tree)
    if "--quick" not in arguments:
        checks |= checks_that_compile(tree, every_file="--all" in arguments)
    count = sum(run(name, check) for name, check in checks.items())
    print(f"lint: {count} faults" if count else "lint: clean")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
