"""The pages of the project, and the fenced blocks in them: which are run, and how."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "*/README.md", "*/*/README.md")
    for path in ROOT.glob(pattern)
    if not path.relative_to(ROOT).parts[0].startswith((".", "build"))
)
PROGRAMS = {"c", "cpp", "python", "cmake"}
# Languages of blocks that people read and no test runs.
DATA = {"text", "json", "mermaid", "yaml"}

_FENCE = re.compile(r"^( *)```(.*)$")
_FIRST_LINE = re.compile(
    r"^(?://|#|/\*) (?P<file>[\w.]+)(?P<fails>, which fails)?: (?P<command>.+?)(?: \*/)?$"
)
_COMMENT = re.compile(r"(?:^|\s+)# .*$")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it begins, the words behind its fence, its text, the output shown after it."""

    page: str
    line: int
    words: tuple[str, ...]
    text: str
    output: str | None = None

    @property
    def language(self) -> str:
        """The first word behind the fence, or "" without one."""
        return self.words[0] if self.words else ""

    @property
    def place(self) -> str:
        """The block's page and line, for messages and for names of tests."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Program:
    """The first line of a program: its file, the command that runs it, and whether that command fails."""

    file: str
    command: str
    fails: bool


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page; one that is marked `text output` belongs to the block before it."""
    found: list[Block] = []
    for block in _fenced(page, (ROOT / page).read_text()):
        if block.words == ("text", "output"):
            before = found.pop()
            block = Block(before.page, before.line, before.words, before.text, block.text)
        found.append(block)
    return found


def _fenced(page: str, text: str) -> Iterator[Block]:
    opened: tuple[int, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, lines = (number, fence[1], fence[2]), []
        elif fence and opened is not None:
            yield Block(page, opened[0], tuple(opened[2].split()), "\n".join(lines) + "\n")
            opened = None
        elif opened is not None:
            lines.append(line.removeprefix(opened[1]))
    assert opened is None, f"{page}:{opened and opened[0]}: the fence is not closed"


def program_of(block: Block) -> Program:
    """Reads the block's first line, which must be `FILE: COMMAND` or `FILE, which fails: COMMAND`."""
    first = block.text.splitlines()[0] if block.text.strip() else ""
    said = _FIRST_LINE.match(first)
    assert said, (
        f"{block.place}: a program says in its first line how it is run, "
        f"as in `// sum.cpp: g++ sum.cpp && ./a.out`, but this one begins with `{first}`"
    )
    return Program(said["file"], said["command"], bool(said["fails"]))


def commands_of(block: Block) -> list[str]:
    """The commands of a shell block, one per line, without comments."""
    joined = block.text.replace("\\\n", " ")
    lines = (_COMMENT.sub("", line) for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines if line.strip()]
