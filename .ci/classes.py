"""Finds the classes of a C++ file, their methods and fields, by braces; it is right on formatted code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from functions import ATTRIBUTE, functions_in, is_initializer, signature, without_template
from tree import bare_cpp, line_of

CLASS = re.compile(
    r"\b(class|struct|union)\s+(?:\w+\s+)??(\w+)(?:<.*>)?\s*(?:final\s*)?(?::(?!:).*)?$", re.DOTALL
)
SCOPE = re.compile(r"\bnamespace\b|\bextern\s*$")
LABEL = re.compile(r"^\s*(?:public|private|protected)\s*:")
# Matches what has brackets and is neither a method nor its parameters.
BRACKETED = re.compile(rf"{ATTRIBUTE}|\b(?:alignas|decltype)\s*\([^()]*(?:\([^()]*\))*[^()]*\)", re.DOTALL)
# Matches what a class may hold besides methods and fields; a defaulted or deleted method has no code.
NEITHER = re.compile(
    r"^(?:using|friend|typedef|static_assert|enum|class\s+\w+$|struct\s+\w+$)\b|=\s*(?:default|delete)\s*$"
)
POINTER_TO_FUNCTION = re.compile(r"\(\s*(?:\w+::)*[*&]\s*\w+\s*\)\s*\(")


@dataclass
class Class:
    """A class, a struct or a union, with what it declares itself: what its bases declare is theirs."""

    name: str  # with the classes around it, as in Outer::Inner
    kind: str  # class, struct or union
    line: int
    methods: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)


def classes_in(text: str) -> Iterator[Class]:
    """The classes outside of functions; inner ones come with what they declare, which the outer ones lack."""
    code = bare_cpp(text)
    yield from classes_of(code, 0, len(code), None)


def classes_of(code: str, start: int, end: int, around: Class | None) -> Iterator[Class]:
    head_start = here = start
    while found := re.compile(r"[{;]").search(code, here, end):
        here = found.end()
        if found[0] == ";":
            declare(around, code[head_start : found.start()])
            head_start = here
            continue
        head, close = code[head_start : found.start()], closing(code, found.start(), end)
        inner = opened_class(head)
        if inner:
            kind, name = inner
            made = Class(f"{around.name}::{name}" if around else name, kind, line_of(code, found.start()))
            yield from classes_of(code, here, close, made)
            yield made
            head_start = close + 1
        elif not around and SCOPE.search(head):
            yield from classes_of(code, here, close, None)
            head_start = close + 1
        elif opened := signature(head):
            add_method(around, opened[0], head)
            head_start = close + 1
        elif not is_initializer(head) and not re.search(r"\benum\b", head):
            head_start = close + 1
        here = close + 1


def closing(code: str, opening: int, end: int) -> int:
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, opening, end):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    return end


def opened_class(head: str) -> tuple[str, str] | None:
    """The kind and the name of the class whose body the brace after `head` opens."""
    bare = BRACKETED.sub(" ", without_template(head))
    found = None if re.search(r"\benum\b|[=]", bare) else CLASS.search(bare)
    return (found[1], found[2]) if found and "(" not in bare[: found.start()] else None


def add_method(around: Class | None, name: str, text: str) -> None:
    """Counts no constructor, no destructor, and no override: the base has chosen that one."""
    if (
        around
        and name.lstrip("~") != around.name.rpartition("::")[2]
        and not re.search(r"\boverride\b", text)
    ):
        around.methods.append(name)


def declare(around: Class | None, text: str) -> None:
    """Counts a declaration that ends with a semicolon among what the class around it declares."""
    text = BRACKETED.sub(" kind ", text)
    while label := LABEL.match(text):
        text = text[label.end() :]
    text = without_template(text).strip()
    if not around or not text or NEITHER.search(text):
        return
    flat = outermost(text)
    name = re.search(r"\boperator\b|(~?\w+)\s*\(", flat.split("=")[0])
    if name and not POINTER_TO_FUNCTION.search(text):
        add_method(around, name[1] or "operator", text)
    elif not re.match(r"(?:inline\s+)?static\b|constexpr\b", text):
        around.fields += [
            part.split("=")[0].split()[-1] for part in flat.split(",") if part.split("=")[0].split()
        ]


def outermost(text: str) -> str:
    """The text without what stands in brackets, but with the brackets; a `<` after a space compares."""
    depth, kept = 0, []
    for index, character in enumerate(text):
        before = text[index - 1] if index else " "
        opens = character in "({[" or (character == "<" and before not in " <")
        closes = character in ")}]" or (character == ">" and depth and before not in "- ")
        depth -= closes
        if depth == 0:
            kept.append(character)
        depth += opens
    return "".join(kept)


def owners_in(text: str) -> set[str]:
    """The classes of the methods that a file defines outside of their classes, as they are written there."""
    owners = {function.name.rpartition("::")[0] for function in functions_in(text)} - {""}
    return {re.sub(r"<[^<>]*>", "", owner) for owner in owners}
