"""Prose: sentences begin with their subject or an imperative verb, in plain words, one a line in pages."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prose import (
    FULL_STOP,
    Block,
    Sentence,
    comments_of_cpp,
    cpp_comments,
    cpp_messages,
    page_blocks,
    page_prose,
    python_prose,
    split_into_blocks,
    without_code,
)
from tree import Fault, Tree

# A sentence with one of these at its head holds its subject back, or has none.
HEADLESS = re.compile(
    r"(?:of|what|whether|where|who|whoever|those|that)\b(?![-'])|the same of\b", re.IGNORECASE
)
ALLOWED_HEAD = re.compile(r"that is why\b", re.IGNORECASE)
# "There is no rank" and "is no longer" are English; a thing that "is no" other thing "is not" one.
DIALECT = re.compile(
    r"\bwhoever\b|\bhad better\b|\bthere is none\b|\bthat there is not\b"
    r"|(?<!\bthere )\bis no (?!longer\b|more\b|less\b|fewer\b)\w+",
    re.IGNORECASE,
)
COLUMNS = 128
# Pages whose tables and outputs are as narrow as their prose.
WHOLLY_NARROW = re.compile(r"README\.md|docs/")
LIBRARY = ("src/", "include/", "plugins/")


@dataclass(frozen=True)
class Kind:
    """Texts that are counted together, and what they may still have of the old style."""

    name: str
    paths: Callable[[Tree], list[str]]
    sentences: Callable[[Tree, str], Iterator[Sentence]]
    headless: float  # at most this share of the sentences, in percent
    dialect: int = 0  # at most so many words of the dialect
    repeated: int = 0  # at most so many .cpp that repeat their header's first sentence

    def all_sentences(self, tree: Tree) -> list[Sentence]:
        return [sentence for path in self.paths(tree) for sentence in self.sentences(tree, path)]


def pages(tree: Tree) -> list[str]:
    named = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    by_use = re.compile(r"docs/(?!decisions/).+\.md")
    return [path for path in tree.files if path in named or by_use.fullmatch(path)]


def library(tree: Tree) -> list[str]:
    return [path for path in tree.cpp if path.startswith(LIBRARY)]


def other_cpp(tree: Tree) -> list[str]:
    return [path for path in tree.cpp if not path.startswith(LIBRARY)]


def sources(tree: Tree) -> list[str]:
    return [path for path in tree.cpp if path.startswith("src/")]


# The aim is 1 % and nothing else. A number beyond that is what the tree has today: it may only fall.
KINDS = [
    Kind("library", library, cpp_comments, headless=1.0),
    Kind("other C++", other_cpp, cpp_comments, headless=1.0),
    Kind("python", lambda tree: tree.python, python_prose, headless=1.0),
    Kind("pages", pages, page_prose, headless=1.0),
    Kind("messages", sources, cpp_messages, headless=1.0),
]


def faults(tree: Tree, kinds: Iterable[Kind] = KINDS) -> Iterator[Fault]:
    for kind in kinds:
        yield from faults_of_kind(tree, kind)
    for path in pages(tree):
        yield from badly_cut_lines(tree, path)


def faults_of_kind(tree: Tree, kind: Kind) -> Iterator[Fault]:
    sentences = kind.all_sentences(tree)
    headless = [sentence for sentence in sentences if is_headless(sentence.text)]
    if headless and 100 * len(headless) > kind.headless * len(sentences):
        share = f"{len(headless)} of {len(sentences)} sentences in {kind.name}, and {kind.headless} % may"
        for each in headless:
            yield Fault(
                each.path, each.line, f"'{head(each.text)}' begins without its subject, as do {share} (prose)"
            )
    dialect = [(each, found[0]) for each in sentences for found in DIALECT.finditer(without_code(each.text))]
    if len(dialect) > kind.dialect:
        for each, words in dialect:
            yield Fault(
                each.path, each.line, f"'{words}' is the house's dialect: say it in plain English (prose)"
            )
    repeated = repeated_heads(tree, kind) if kind.sentences is cpp_comments else []
    if len(repeated) > kind.repeated:
        for path in repeated:
            yield Fault(path, 1, "repeats the first sentence of its header: say what this file adds (prose)")


def is_headless(text: str) -> bool:
    bare = text.lstrip("\"'(*_[").lstrip()
    return bool(HEADLESS.match(bare)) and not ALLOWED_HEAD.match(bare)


def head(text: str) -> str:
    return " ".join(text.split()[:6])


def repeated_heads(tree: Tree, kind: Kind) -> list[str]:
    return [
        path
        for path in kind.paths(tree)
        if path.endswith(".cpp")
        and (header := path.removesuffix(".cpp") + ".h") in tree.known
        and first_sentence(tree, path) == first_sentence(tree, header) != ""
    ]


def first_sentence(tree: Tree, path: str) -> str:
    for lines in comments_of_cpp(tree.text(path)):
        for block in split_into_blocks(lines):
            for sentence in block.sentences(path):
                return sentence.text.rstrip(".:;").casefold()
    return ""


def badly_cut_lines(tree: Tree, path: str) -> Iterator[Fault]:
    prose = {number for block in page_blocks(tree.text(path)) for number, _ in block.lines}
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if len(line) > COLUMNS and (number in prose or WHOLLY_NARROW.match(path)):
            yield Fault(path, number, f"has more than {COLUMNS} columns (prose)")
    for block in page_blocks(tree.text(path)):
        parts = lines_of_prose(block)
        for i, (number, words) in enumerate(parts):
            if FULL_STOP.search(words):
                yield Fault(path, number, "has two sentences; each has a line of its own (prose)")
            if i + 1 < len(parts) and not re.search(r"[.!?:;][\"')\]*_]*$", words):
                yield Fault(path, number, "goes on in the next line; make it two sentences (prose)")


def lines_of_prose(block: Block) -> list[tuple[int, str]]:
    """The lines of a block, with their `code` blanked; a quotation that is wrapped counts as one line."""
    text = "\n".join(words for _, words in block.lines)
    parts, begin = [], 0
    for words in without_code(text).split("\n"):
        parts.append((block.lines[text.count("\n", 0, begin)][0], words))
        begin += len(words) + 1
    return parts


def main() -> int:
    """Prints where the tree stands."""
    tree = Tree(Path(__file__).parent.parent)
    print("kind       sentences headless   share  limit dialect repeated")
    for kind in KINDS:
        sentences = kind.all_sentences(tree)
        headless = sum(is_headless(each.text) for each in sentences)
        dialect = sum(len(DIALECT.findall(without_code(each.text))) for each in sentences)
        repeated = len(repeated_heads(tree, kind)) if kind.sentences is cpp_comments else 0
        share = f"{100 * headless / max(len(sentences), 1):.1f} %"
        print(
            f"{kind.name:<10} {len(sentences):>9} {headless:>8} {share:>7} {kind.headless:>6} "
            f"{dialect:>7} {repeated:>8}"
        )
    wrapped = [path for path in pages(tree) if any(badly_cut_lines(tree, path))]
    print(f"{len(wrapped)} of {len(pages(tree))} pages do not hold one sentence a line: {' '.join(wrapped)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
