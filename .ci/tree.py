"""The files of the repository as the checks see them, and the faults that the checks find in them."""

import hashlib
import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

CPP_SUFFIXES = (".h", ".hpp", ".cpp", ".cu")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


@dataclass(frozen=True, order=True)
class Fault:
    """One breach of one rule: where it is and what is wrong."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class Tree:
    """The files below a folder that git would see: tracked files and new ones, but not ignored ones."""

    def __init__(self, root: Path):
        self.root = root.resolve()

    @cached_property
    def files(self) -> list[str]:
        listed = self.git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")
        return sorted(path for path in set(listed) if path and (self.root / path).is_file())

    @cached_property
    def cpp(self) -> list[str]:
        return [path for path in self.files if path.endswith(CPP_SUFFIXES)]

    @cached_property
    def headers(self) -> list[str]:
        return [path for path in self.cpp if path.endswith((".h", ".hpp"))]

    @cached_property
    def python(self) -> list[str]:
        return [
            path
            for path in self.files
            if path.endswith(".py") or self.text(path).startswith("#!/usr/bin/env python3")
        ]

    @cached_property
    def changed(self) -> frozenset[str]:
        """The files that changed since this branch left origin/main, or else by the last commit."""
        for base in (["merge-base", "origin/main", "HEAD"], ["rev-parse", "--verify", "HEAD~1"]):
            try:
                commit = self.git(*base).strip()
            except subprocess.CalledProcessError:
                continue
            if commit != self.git("rev-parse", "HEAD").strip():
                new = self.git("ls-files", "--others", "--exclude-standard")
                return frozenset(self.git("diff", "--name-only", commit).splitlines() + new.splitlines())
        return self.known

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout

    @cache  # noqa: B019  (a tree lives as long as the process)
    def text(self, path: str) -> str:
        return (self.root / path).read_bytes().decode(errors="replace")

    def includes(self, path: str) -> list[tuple[int, str, str]]:
        """The line, the kind of quote (< or ") and the name of each include of a C++ file."""
        text = self.text(path)
        return [(line_of(text, found.start(2)), found[1], found[2]) for found in INCLUDE.finditer(text)]

    @cache  # noqa: B019
    def closure(self, path: str) -> frozenset[str]:
        """The file itself and every file of the repository that it includes, however indirectly."""
        seen, pending = {path}, [path]
        while pending:
            current = pending.pop()
            near = str(Path(current).parent)
            for _, _, name in self.includes(current):
                for folder in (near, "src", "include", "tests", "perf_tests", "torch_backend/csrc", "."):
                    candidate = str(Path(folder) / name)
                    if candidate in self.known and candidate not in seen:
                        seen.add(candidate)
                        pending.append(candidate)
        return frozenset(seen)

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.files)


class Verdicts:
    """Remembers, in build/lint, the contents on which a slow check found no fault: it need not look again."""

    def __init__(self, tree: Tree, check: str, salt: str):
        self.tree, self.salt = tree, salt
        self.folder = tree.root / "build" / "lint" / check

    def stamp(self, path: str) -> Path:
        state = hashlib.sha256(self.salt.encode())
        for part in sorted(self.tree.closure(path)):
            state.update(part.encode() + b"\0" + self.tree.text(part).encode() + b"\0")
        return self.folder / state.hexdigest()

    def is_clean(self, path: str) -> bool:
        return self.stamp(path).exists()

    def remember_clean(self, path: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stamp(path).touch()


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


TOKEN = re.compile(
    r'R"(?P<mark>[^()\\ ]*)\(.*?\)(?P=mark)"'  # a raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"  # a character, not the separator in 1'000
    r"|//(?:\\\n|[^\n])*|/\*.*?\*/"
    r"|^[ \t]*#(?:\\\n|[^\n])*",  # a line for the preprocessor
    re.DOTALL | re.MULTILINE,
)


def bare_cpp(text: str) -> str:
    """C++ with strings, comments and preprocessor lines blanked out; the rest stays where it is."""
    return TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]), text)
