"""Limits: 400 lines a file, 50 lines and 5 parameters a function, and some more where a reason is listed."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

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


def faults(tree: Tree) -> Iterator[Fault]:
    excused, used = dict(read_exceptions(tree)), set()
    for path in tree.files:
        for limit, place, line, size in sizes(tree, path):
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
