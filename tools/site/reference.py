"""The pages of the C and C++ reference: Markdown made of the headers' declarations and comments."""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from declared import Declared, introductions, read
from doxygen_filter import COMMENT, SECTION, filtered, lines_of

# The page of each header: its name in the site, its title, and its line for the reader.
PAGES = {
    "fccl.h": (
        "reference/c_functions.md",
        "C functions",
        "For programmers in C: every function, type and constant of `fccl/fccl.h`.",
    ),
    "fccl.hpp": (
        "reference/cpp_functions.md",
        "C++ functions",
        "For programmers in C++: every class and function of `fccl/fccl.hpp` and of the headers beside it.",
    ),
}
_JOINED = {"fccl.hpp": ("operators.hpp", "memory.hpp")}
# Each of these has a meaning in Markdown, and may be written with a backslash.
_MARKDOWN = re.compile(r"([\\*_>\[\]#|{}])")
_WORD = re.compile(r"\b(?:(?:fccl|FCCL_)\w+|docs/[\w/.]*\w)")
DOCS = Path(__file__).resolve().parents[2] / "docs"
Prose = Callable[[str], str]


class Names:
    """Where each name of the headers has its anchor: the page, and the anchor there."""

    def __init__(self, found: dict[str, list[Declared]]) -> None:
        self._places: dict[str, tuple[str, str]] = {}
        for each in found["fccl.h"]:
            self._places[each.name] = (PAGES["fccl.h"][0], anchor_of(each))
            if each.kind == "enum":
                for name, _, _ in each.rows:
                    self._places[name] = (PAGES["fccl.h"][0], anchor_of(each))
        self._settings = set(_WORD.findall((DOCS / "reference/environment.md").read_text()))

    def prose_of(self, page: str) -> Prose:
        """What turns a text of a comment into Markdown of that page, with links."""

        def link(text: str, shown: str) -> str:
            if text in self._places:
                target, anchor = self._places[text]
                return f"[{shown}]({'' if target == page else Path(target).name}#{anchor})"
            if text.startswith("docs/") and (found := sorted(DOCS.glob(f"{text.removeprefix('docs/')}*"))):
                return f"[{shown}](../{found[0].relative_to(DOCS)})"
            return f"[{shown}](environment.md)" if text in self._settings else shown

        def prose(text: str) -> str:
            parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
            return "".join(
                link(part.strip("`"), part)
                if part.startswith("`")
                else re.sub(_WORD, lambda word: link(word[0], word[0]), _escaped(part))
                for part in parts
            )

        return prose


def _escaped(text: str) -> str:
    # Underlines within a name emphasise nothing, and its link needs them bare.
    marked = _MARKDOWN.sub(r"\\\1", text).replace("<", "&lt;")
    return re.sub(r"\\_(?=\w)|(?<=\w)\\_", "_", marked)


def anchor_of(declared: Declared) -> str:
    """The anchor of a declaration: its name, where HTML lets it."""
    return re.sub(r"[^\w:]+", "-", declared.name).strip("-")


def make(folder: Path, headers: Path) -> dict[str, str]:
    """The text of each page, by its name in the site."""
    found, heads = read(folder), introductions(folder)
    names = Names(found)
    pages = {}
    for header, (page, title, reader) in PAGES.items():
        prose = names.prose_of(page)
        lines = [f"# {title}", "", reader, ""]
        for part in (header, *_JOINED.get(header, ())):
            text = filtered((headers / part).read_text())
            if part != header:
                lines += [f"## {part}", ""]
            lines += [*_described(heads[part], prose), *_body(found[part], text, prose)]
        pages[page] = "\n".join(lines) + "\n"
    return pages


def _body(found: list[Declared], text: str, prose: Prose) -> Iterator[str]:
    """The declarations of a header under the headings of its sections."""
    sections = list(_sections(text))
    for number, each in enumerate(found):
        while sections and sections[0][0] < each.line:
            _, title, introduction = sections.pop(0)
            yield from [f"## {prose(title)}", ""]
            for paragraph in introduction:
                yield from [prose(paragraph), ""]
        if each.kind != "define":
            yield from _entry(each, 3, prose)
        elif number == 0 or found[number - 1].kind != "define":
            yield from _defines(found[number:])


def _defines(found: list[Declared]) -> Iterator[str]:
    """The constants at the head of the list, in one block."""
    defines = list(itertools.takewhile(lambda each: each.kind == "define", found))
    yield "".join(f'<a id="{anchor_of(each)}"></a>' for each in defines)
    yield from ["", "```cpp", *(line for each in defines for line in each.signatures), "```", ""]


def _sections(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line, title and introduction of each section of a header."""
    for comment, following in itertools.pairwise(COMMENT.finditer(text)):
        section = SECTION.match(comment[0])
        if not section:
            continue
        introduction = lines_of(section["rest"])
        if text[comment.end() : following.start()] == "\n":
            introduction = lines_of(following[0])
        paragraphs = "\n".join(introduction).strip().split("\n\n")
        yield (
            text.count("\n", 0, comment.start()) + 1,
            section["title"],
            [each for each in paragraphs if each],
        )


def _entry(each: Declared, level: int, prose: Prose) -> Iterator[str]:
    """A heading, the declaration, the comment, the table of what is inside, and the methods."""
    yield from [f"{'#' * level} `{each.short}` {{#{anchor_of(each)}}}", ""]
    nameless = [line for method in each.inside if method.is_nameless for line in method.signatures]
    between = "\n\n" if any("\n" in signature for signature in each.signatures) else "\n"
    signatures = between.join(each.signatures)
    yield from ["```cpp", signatures, *(["", *nameless] if nameless else []), "```", ""]
    if each.about is not None:
        yield from _described(each.about, prose)
    for method in each.inside:
        if method.is_nameless and method.about is not None:
            yield from _described(method.about, prose)
    if each.rows:
        yield from _table(each, prose)
    for method in each.inside:
        if not method.is_nameless:
            yield from _entry(method, level + 1, prose)


def _table(each: Declared, prose: Prose) -> Iterator[str]:
    has_meaning = any("".join(about.itertext()).strip() for _, _, about in each.rows)
    columns = ["name", "value" if each.kind == "enum" else "type", *(["meaning"] if has_meaning else [])]
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for name, value, about in each.rows:
        meaning = " ".join(_described(about, prose)).strip() if has_meaning else ""
        yield f"| {' | '.join([f'`{name}`', f'`{value}`', *([meaning] if has_meaning else [])])} |"
    yield ""


def _described(about: Element, prose: Prose) -> Iterator[str]:
    """Doxygen's description as Markdown, a paragraph, a list or a block of code at a time."""
    for paragraph in about.findall("para"):
        text = paragraph.text or ""
        for child in paragraph:
            if child.tag == "programlisting":
                yield from [prose(text), "", "```cpp", *_code(child), "```", ""]
                text = ""
            elif child.tag == "itemizedlist":
                yield from [prose(text), ""]
                for item in child.findall("listitem/para"):
                    term = item.find("bold")
                    rest = "".join(item.itertext()).removeprefix(term.text).strip()
                    yield f"- **{term.text}** {prose(rest)}"
                text = ""
                yield ""
            else:
                text += "".join(child.itertext())
            text += child.tail or ""
        if text.strip():
            yield from [prose(text), ""]


def _code(listing: Element) -> list[str]:
    lines = []
    for line in listing.iter("codeline"):
        for space in line.iter("sp"):
            space.text = " "
        lines.append("".join(line.itertext()))
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return [line[indent:] for line in lines]
