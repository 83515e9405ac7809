"""Sentences of the repository: finds them in comments, docstrings, messages and pages, with their lines."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tree import TOKEN, Tree, line_of

# Punctuation between two sentences of a line; a dot behind an abbreviation is none.
FULL_STOP = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bcf)(?<!\bvs)(?<!\betc)[.!?][\"')\]*_]*\s+(?=\S)")
# A colon, too, ends a sentence if a capital letter follows.
SENTENCE_END = re.compile(FULL_STOP.pattern + r"|[:;]\s+(?=[A-Z])")
LIST_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
# Comments for a tool, which nobody reads as a sentence.
FOR_TOOLS = re.compile(r"^(?:NOLINT|clang-format|IWYU|!|ruff:|type:|noqa|pragma|mypy)|Copyright")
TOOL_SUFFIX = re.compile(r"\s*#?\s*(?:noqa|type: ignore|NOLINT)\b.*$")
CODE_SPAN = re.compile(r"`[^`]+`")


@dataclass(frozen=True)
class Sentence:
    """One sentence and where it begins."""

    path: str
    line: int
    text: str


@dataclass
class Block:
    """Lines that are read as one text: a comment, a paragraph, an item of a list."""

    lines: list[tuple[int, str]] = field(default_factory=list)

    def sentences(self, path: str) -> Iterator[Sentence]:
        text = " ".join(words for _, words in self.lines)
        ends = [(found.start(), found.end()) for found in SENTENCE_END.finditer(without_code(text))]
        begin = 0
        for stop, following in [*ends, (len(text), len(text))]:
            if len(text[begin:stop].split()) >= 3:
                yield Sentence(path, self.line_at(begin), text[begin : stop + 1].strip())
            begin = following

    def line_at(self, offset: int) -> int:
        for line, words in self.lines:
            if offset <= len(words):
                return line
            offset -= len(words) + 1
        return self.lines[-1][0]


def without_code(text: str) -> str:
    """The text with its `code` blanked: what stands there ends no sentence."""
    return CODE_SPAN.sub(lambda span: "x" * len(span[0]), text)


def split_into_blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """Cuts the lines of one comment at its empty lines and at the items of its lists."""
    block = Block()
    for number, words in lines:
        if (not words.strip() or LIST_ITEM.match(words)) and block.lines:
            yield block
            block = Block()
        if words.strip() and not FOR_TOOLS.search(words.strip()):
            block.lines.append((number, TOOL_SUFFIX.sub("", LIST_ITEM.sub("", words)).strip()))
    if block.lines:
        yield block


def cpp_comments(tree: Tree, path: str) -> Iterator[Sentence]:
    for lines in comments_of_cpp(tree.text(path)):
        for block in split_into_blocks(lines):
            yield from block.sentences(path)


def comments_of_cpp(text: str) -> Iterator[list[tuple[int, str]]]:
    """Each comment as its lines; comments that begin in the same column of successive lines are one."""
    pending: list[tuple[int, str]] = []
    column, end = -1, -1
    for token in TOKEN.finditer(text):
        if not (comment := comment_in(token[0])):
            continue
        begin = token.start() + token[0].index(comment)
        at = begin - text.rfind("\n", 0, begin) - 1
        follows = pending and at == column and re.fullmatch(r"[ \t]*\n[ \t]*", text[end:begin])
        if not follows or comment.startswith("/*"):
            if pending:
                yield pending
            pending = []
        first = line_of(text, begin)
        pending += [(first + i, bare_comment(line)) for i, line in enumerate(comment.splitlines())]
        column, end = at, token.end()
    if pending:
        yield pending


def comment_in(token: str) -> str:
    """The comment that a token of C++ is or, in a line for the preprocessor, ends with."""
    if token.startswith(("//", "/*")):
        return token
    found = re.search(r"//[^\n\"<>]*$", token) if token.lstrip().startswith("#") else None
    return found[0] if found else ""


def bare_comment(line: str) -> str:
    return re.sub(r"\s*\*/$", "", re.sub(r"^\s*(?://+[/!<]*|/\*+|\*+(?!/))[ ]?", "", line))


def cpp_messages(tree: Tree, path: str) -> Iterator[Sentence]:
    """Texts of at least three words between quotes, those that stand side by side as one."""
    text, pending, end = tree.text(path), Block(), -1
    for token in TOKEN.finditer(text):
        if not token[0].startswith('"'):
            continue
        if pending.lines and text[end : token.start()].strip():
            yield from message_sentences(pending, path)
            pending = Block()
        words = token[0][1:-1].replace(r"\"", '"').replace(r"\n", " ")
        pending.lines.append((line_of(text, token.start()), words))
        end = token.end()
    if pending.lines:
        yield from message_sentences(pending, path)


def message_sentences(literals: Block, path: str) -> Iterator[Sentence]:
    """Joins the literals; a field stands before a text that goes on where another one stopped."""
    # Literals meet without a space between them, so they are joined here: the lines of a block get one.
    joined = "".join(words for _, words in literals.lines)
    if joined.startswith((" ", ",", ";", ":", ")")):
        joined = "{}" + joined
    yield from Block([(literals.lines[0][0], joined)]).sentences(path)


def python_prose(tree: Tree, path: str) -> Iterator[Sentence]:
    text = tree.text(path)
    try:
        module = ast.parse(text)
        comments = list(comments_of_python(text))
    except (SyntaxError, tokenize.TokenError):
        return  # the check of Python reports it
    for lines in [*docstrings_of(module), *comments]:
        for block in split_into_blocks(lines):
            yield from block.sentences(path)


def docstrings_of(module: ast.Module) -> Iterator[list[tuple[int, str]]]:
    for node in ast.walk(module):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (said := ast.get_docstring(node, clean=False)) is not None:
            yield list(enumerate(said.split("\n"), node.body[0].lineno))


def comments_of_python(text: str) -> Iterator[list[tuple[int, str]]]:
    pending: list[tuple[int, str]] = []
    column = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        row, at = token.start
        if pending and (row != pending[-1][0] + 1 or at != column):
            yield pending
            pending = []
        pending.append((row, token.string.removeprefix("#").removeprefix(" ")))
        column = at
    if pending:
        yield pending


def page_blocks(text: str) -> Iterator[Block]:
    """Paragraphs and list items of a page, without headings, tables, code and hidden comments."""
    block, fence, hidden = Block(), "", False
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"^[>\s]+", "", line)
        mark = re.match(r"```+|~~~+", bare)
        if mark and (not fence or bare.startswith(fence)):
            fence = "" if fence else mark[0]
        hidden = not fence and (hidden or bare.startswith("<!--"))
        is_prose = bare and not (mark or fence or hidden or bare.startswith(("#", "|", "![", "<")))
        is_prose = is_prose and not re.match(r"\[[^\]]+\]: ", bare)
        is_code = line.startswith("    ") and not block.lines and not LIST_ITEM.match(bare)
        is_prose = is_prose and not is_code
        if hidden and "-->" in bare:
            hidden = False
        if block.lines and (not is_prose or LIST_ITEM.match(bare)):
            yield block
            block = Block()
        if is_prose:
            block.lines.append((number, LIST_ITEM.sub("", bare).rstrip()))
    if block.lines:
        yield block


def page_prose(tree: Tree, path: str) -> Iterator[Sentence]:
    for block in page_blocks(tree.text(path)):
        yield from block.sentences(path)
