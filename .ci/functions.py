"""Finds the functions of a C++ file by its braces, without a compiler; it is right on formatted code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree import bare_cpp, line_of


@dataclass(frozen=True)
class Function:
    """A function that has a body: its lines run from its opening to its closing brace."""

    name: str
    line: int
    lines: int
    parameters: int


# Matches the code that may stand between the parameters and the body.
TAIL = re.compile(
    r"^\s*(?:(?:const|noexcept(?:\s*\([^{}]*\))?|override|final|mutable|volatile|try|&&?|->[^{};]+|requires\b[^{};]+)\s*)*"
    r"(?::(?!:)[^;]*)?$",
    re.DOTALL,
)
NOT_FUNCTIONS = {
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "return",
    "sizeof",
    "alignas",
    "decltype",
    "static_assert",
    "co_return",
}
# Matches attributes of C++, of compilers, and of CUDA's kernels.
ATTRIBUTE = r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|__launch_bounds__\s*\(.*?\)"
CALLABLE = re.compile(r"(?:^|[^\w.])(operator\s*\(\)|operator\s*[^\s\w(]+|~?\w+)\s*\(")


def functions_in(text: str) -> Iterator[Function]:
    """The outermost functions; a lambda or a local class counts as part of the function around it."""
    code = bare_cpp(text)
    kinds: list[tuple[str, Function | None]] = []
    head_start = 0
    for found in re.finditer(r"[{};]", code):
        mark, here = found[0], found.start()
        inside_function = any(kind == "function" for kind, _ in kinds)
        if mark == "{":
            head = code[head_start:here]
            opened = None if inside_function else signature(head)
            if opened:
                name, parameters = opened
                kinds.append(("function", Function(name, line_of(code, here), 0, parameters)))
            elif not inside_function and is_initializer(head):
                kinds.append(("initializer", None))
                continue
            else:
                kinds.append(("scope", None))
            head_start = here + 1
        elif mark == "}":
            kind, function = kinds.pop() if kinds else ("scope", None)
            if kind == "initializer":
                continue
            if function:
                lines = line_of(code, here) - function.line + 1
                yield Function(function.name, function.line, lines, function.parameters)
            head_start = here + 1
        elif not any(kind == "initializer" for kind, _ in kinds):
            head_start = here + 1


def is_initializer(head: str) -> bool:
    """Tells if the brace after `head` opens a value, not a scope, as in `: a_(a), b_{` or `int x = {`."""
    declared = re.search(r"\b(namespace|class|struct|union|enum|extern)\b", without_template(head))
    return not declared and re.search(r"[\w>,(=]\s*$", head) is not None


def without_template(head: str) -> str:
    head = re.sub(r"^\s*(?:public|private|protected)\s*:", "", head)
    while found := re.match(r"\s*template\s*<", head):
        depth, end = 1, found.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[end:]
    return head


def signature(head: str) -> tuple[str, int] | None:
    """The name and the number of parameters, if the brace after `head` opens the body of a function."""
    head = re.sub(ATTRIBUTE, " ", without_template(head), flags=re.DOTALL)
    found = CALLABLE.search(head)
    if (
        not found
        or found[1] in NOT_FUNCTIONS
        or "=" in re.sub(r"operator\s*[^\s\w(]+", "", head[: found.start()])
    ):
        return None
    depth, end = 1, found.end()
    while depth and end < len(head):
        depth += {"(": 1, ")": -1}.get(head[end], 0)
        end += 1
    if depth or not TAIL.match(head[end:]):
        return None
    # `: a_(a), b_` is a list of members, the last of which this brace initializes.
    if re.search(r":(?!:)", head[end:]) and not head.rstrip().endswith((")", "}")):
        return None
    name = re.sub(r"\s+", "", found[1])
    return qualified(head[: found.start(1)], name), count_parameters(head[found.end() : end - 1])


def qualified(before: str, name: str) -> str:
    scope = re.search(r"((?:\w+(?:<[^<>]*>)?::)+)$", before)
    return (scope[1] if scope else "") + name


def count_parameters(inside: str) -> int:
    if inside.strip() in ("", "void"):
        return 0
    depth = 0
    count = 1
    for character in inside:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(character, 0)
        count += character == "," and depth == 0
    return count
