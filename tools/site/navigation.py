"""The navigation of the site, which is docs/index.md: its headings, its groups and its links."""

import re
from pathlib import Path

_HEADING = re.compile(r"^## (.+?)(?::.*)?$")
_GROUP = re.compile(r"^- ([^\[\]]+):$")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)\)")
_PLAIN = re.compile(r"[a-z]+(?= |$)")
Entry = dict[str, str | list]


def make(docs: Path, more: dict[str, dict[str, list]]) -> list[Entry]:
    """The entries for mkdocs; `more` has further groups of a section."""
    nav: list[Entry] = [{"Home": "index.md"}]
    section: list[Entry] | None = None
    group: list[Entry] = []
    for line in (docs / "index.md").read_text().splitlines():
        if heading := _HEADING.match(line):
            section = []
            nav.append({heading[1]: section})
            section += [{title: entries} for title, entries in more.get(heading[1], {}).items()]
        elif found := _GROUP.match(line):
            group = []
            section.append({found[1]: group})
        elif section is not None:
            entries = [_entry(docs, title, target) for title, target in _LINK.findall(line)]
            (group if line.startswith(" ") else section).extend(entries)
    return nav


def _entry(docs: Path, title: str, target: str) -> Entry:
    """A page, or a folder with all its pages."""
    shown = title[0].upper() + title[1:] if _PLAIN.match(title) else title
    if not (docs / target).is_dir():
        return {shown: target}
    pages = sorted((docs / target).glob("*.md"))
    return {shown: [f"{target}/index.md", *({title_of(page): f"{target}/{page.name}"} for page in pages)]}


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)[1]
