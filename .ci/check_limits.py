"""Limits: on files, functions and classes; a place may be listed with a reason to have some more.

A file has at most 400 lines; a function 50 lines and 5 parameters; a class 30 methods and 15 fields. The file
that declares a class and one .cpp file define its methods. A struct may have many fields: it is a record.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

from classes import Class, classes_in, owners_in
from functions import Function, functions_in
from tree import Fault, Tree

EXCEPTIONS = ".ci/exceptions.txt"
PROSE = (".md", ".txt", ".json", ".xml", ".svg", ".csv", ".png")


@dataclass(frozen=True)
class Limit:
    """One kind of size: beyond `soft` a place must be listed with a reason, beyond `hard` nothing helps."""

    kind: str
    soft: int
    hard: int
    unit: str


FILE = Limit("file", 400, 600, "lines")
FUNCTION = Limit("function", 50, 100, "lines")
PARAMETERS = Limit("parameters", 5, 12, "parameters")
METHODS = Limit("methods", 30, 60, "methods")
FIELDS = Limit("fields", 15, 25, "fields")
SOURCES = Limit("sources", 1, 8, "files that define its methods")


def faults(tree: Tree) -> Iterator[Fault]:
    excused, used, sources = dict(read_exceptions(tree)), set(), sources_of_classes(tree)
    for path in tree.files:
        for limit, place, line, size in (*sizes(tree, path), *class_sizes(tree, path, sources)):
            if size <= limit.soft:
                continue
            key = (limit.kind, place)
            used.add(key)
            if size > limit.hard:
                yield Fault(
                    path,
                    line,
                    f"{place} has {size} {limit.unit}, and nothing may have more than {limit.hard} (limits)",
                )
            elif key not in excused:
                yield Fault(
                    path,
                    line,
                    f"{place} has {size} {limit.unit}; the limit is {limit.soft}: split it, or list "
                    f"'{limit.kind} {place} REASON' in {EXCEPTIONS} (limits)",
                )
    for key, line in excused.items():
        if key not in used:
            yield Fault(
                EXCEPTIONS, line, f"'{' '.join(key)}' needs no exception any more: delete the line (limits)"
            )


def read_exceptions(tree: Tree) -> Iterator[tuple[tuple[str, str], int]]:
    if EXCEPTIONS not in tree.known:
        return
    for number, line in enumerate(tree.text(EXCEPTIONS).splitlines(), 1):
        words = line.split(maxsplit=2)
        if len(words) == 3 and not line.startswith("#"):
            yield (words[0], words[1]), number


def sizes(tree: Tree, path: str) -> Iterator[tuple[Limit, str, int, int]]:
    """Every size in a file that has a limit: which, of what, in which line, how much."""
    if path == "LICENSE" or path.endswith(PROSE):
        return
    text = tree.text(path)
    yield FILE, path, 1, len(text.splitlines())
    if path in tree.cpp:
        functions = functions_in(text)
    elif path in tree.python:
        functions = python_functions(text)
    else:
        return
    for function in functions:
        place = f"{path}:{function.name}"
        yield FUNCTION, place, function.line, function.lines
        # The functions of the C interface have the parameters that NCCL gives them.
        if not function.name.startswith("fccl"):
            yield PARAMETERS, place, function.line, function.parameters


def class_sizes(tree: Tree, path: str, sources: dict[str, set[str]]) -> Iterator[tuple[Limit, str, int, int]]:
    if path not in tree.cpp:
        return
    for each in classes_of(tree, path):
        place = f"{path}:{each.name}"
        yield METHODS, place, each.line, len(each.methods)
        if each.kind == "class":
            yield FIELDS, place, each.line, len(each.fields)
        yield SOURCES, place, each.line, len(sources.get(place, ()))


@cache
def classes_of(tree: Tree, path: str) -> tuple[Class, ...]:
    return tuple(classes_in(tree.text(path)))


def sources_of_classes(tree: Tree) -> dict[str, set[str]]:
    """The .cpp files that define methods of each class of a header."""
    headers: dict[str, list[str]] = {}
    for path in tree.headers:
        for each in classes_of(tree, path):
            headers.setdefault(each.name, []).append(path)
    sources: dict[str, set[str]] = {}
    for path in set(tree.cpp) - set(tree.headers):
        own = {each.name for each in classes_of(tree, path)}
        for owner in owners_in(tree.text(path)):
            name = next((name for name in endings(owner) if name in headers or name in own), "")
            for header in declaring(tree, path, [] if name in own else headers.get(name, [])):
                sources.setdefault(f"{header}:{name}", set()).add(path)
    return sources


def endings(qualified: str) -> list[str]:
    """a::B::C, B::C and C, since the first names may be those of namespaces."""
    names = qualified.split("::")
    return ["::".join(names[first:]) for first in range(len(names))]


def declaring(tree: Tree, path: str, headers: list[str]) -> list[str]:
    """Those of the headers that a file sees; among classes of one name, that of its own folder."""
    seen = [header for header in headers if header in tree.closure(path)]
    near = [header for header in seen if PurePath(header).parent == PurePath(path).parent]
    return near if len(seen) > 1 and near else seen


def python_functions(text: str) -> Iterator[Function]:
    try:
        module = ast.parse(text)
    except SyntaxError:
        return  # the check of Python reports it
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            names = [each.arg for each in given.posonlyargs + given.args + given.kwonlyargs]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            yield Function(node.name, node.lineno, node.end_lineno - node.lineno + 1, count)
