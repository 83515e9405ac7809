"""Python: every file compiles, and ruff finds no fault by .ci/ruff.toml, in its content or its layout."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, Tree

CONFIG = Path(__file__).parent / "ruff.toml"
# The one that .ci/requirements.txt pins, in whichever environment there is.
RUFF = next((str(path) for path in sorted(CONFIG.parent.parent.glob(".venv*/bin/ruff"))), "ruff")


def ruff(tree: Tree, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [RUFF, arguments[0], "--config", str(CONFIG), "--no-cache", *arguments[1:], *tree.python]
    return subprocess.run(command, cwd=tree.root, capture_output=True, text=True)


def faults(tree: Tree) -> Iterator[Fault]:
    for path in tree.python:
        try:
            compile(tree.text(path), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            yield Fault(path, error.lineno or 1, f"does not compile: {error.msg} (python)")
    if not tree.python:
        return
    for said in (
        ruff(tree, "check", "--output-format", "json"),
        ruff(tree, "format", "--check", "--output-format", "json"),
    ):
        if said.returncode > 1 and not said.stdout:
            raise RuntimeError(f"ruff could not run: {said.stderr.strip()}")
        for each in json.loads(said.stdout):
            path = str(Path(each["filename"]).resolve().relative_to(tree.root))
            what = (
                each["message"] if each["code"] != "unformatted" else f"{each['message']} by ./dev lint --fix"
            )
            yield Fault(path, each["location"]["row"], f"{what} (python, {each['code']})")


def fix(tree: Tree) -> None:
    """Mends what ruff can mend and lays out every Python file anew."""
    ruff(tree, "check", "--fix")
    ruff(tree, "format")
