"""Writes pages, which are in GitHub's Markdown, so that mkdocs' Python-Markdown reads them alike."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(\w*) ?(.*)$")
_ITEM = re.compile(r"^(-|\*|\d+\.) +")
_INDENT = 4


def converted(text: str) -> str:
    """The same page: lists indented by four columns, and blocks of output under a title."""
    return "\n".join(_converted(text.splitlines())) + "\n"


def _converted(lines: list[str]) -> Iterator[str]:
    fence = ""
    marker = 0  # the width of the marker of the list that is open
    for line in lines:
        found = _FENCE.match(line)
        if not fence and line[:1].strip():
            item = _ITEM.match(line)
            marker = len(item[0]) if item else 0
        if found and not fence:
            fence = found[2]
            title = f' title="{found[4].capitalize()}"' if found[4] else ""
            line = f"{found[1]}{fence}{found[3]}{title}"
        elif found and found[2] == fence and not found[3]:
            fence = ""
        yield _indented(line, marker)


def _indented(line: str, marker: int) -> str:
    depth = len(line) - len(line.lstrip())
    if not marker or depth < marker or not line.strip():
        return line
    steps, rest = divmod(depth, marker)
    return " " * (_INDENT * steps + rest) + line.lstrip()
