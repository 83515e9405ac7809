"""Interface: fccl.h keeps what programs were compiled against, as abi/fccl-0.txt lists it; it may grow."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tree import Fault, Tree, line_of

HEADER = "include/fccl/fccl.h"
KEPT = "abi/fccl-0.txt"
# The version, and counts that grow with their lists.
MAY_CHANGE = re.compile(r"FCCL_(?:FCCL_H|API|MAJOR|MINOR|PATCH|VERSION_CODE|\w+_INITIALIZER)|fcclNum\w+")
FUNCTION = re.compile(r"FCCL_API ([^;(]*?)(\w+)\(([^;]*)\);")
ENUM = re.compile(r"typedef enum \{(.*?)\} (\w+);", re.S)
STRUCT = re.compile(r"typedef struct (?:\w+ )?\{(.*?)\} (\w+);", re.S)
OTHER_TYPE = re.compile(r"typedef ([^;{}]*?)(?:\(\*(\w+)\)(\([^;{}]*\))|(\w+));")
MACRO = re.compile(r"^#define (\w+) (.+)$", re.M)


def faults(tree: Tree) -> Iterator[Fault]:
    if HEADER not in tree.known or KEPT not in tree.known:
        return
    now = items_of(tree.text(HEADER))
    kept = kept_items(tree)
    for name, before in kept.items():
        if name not in now:
            yield Fault(HEADER, 1, f"has no {name} any more, which programs may use (interface)")
        elif not goes_on_as(before, now[name]):
            line = line_of(tree.text(HEADER), tree.text(HEADER).index(name))
            yield Fault(HEADER, line, f"changes {name}, which was: {before} (interface)")
    for name in now.keys() - kept.keys():
        what = "is not kept yet: python3 .ci/check_interface.py > abi/fccl-0.txt"
        yield Fault(HEADER, 1, f"{name} {what} (interface)")


def goes_on_as(before: str, now: str) -> bool:
    """True if programs that know an item as it was may go on; a structure may have more at its end."""
    return now == before or (before.startswith("struct ") and now.startswith(before + " "))


def kept_items(tree: Tree) -> dict[str, str]:
    lines = tree.text(KEPT).splitlines() if KEPT in tree.known else []
    return dict(line.split(": ", 1) for line in lines)


def kept_functions(tree: Tree) -> list[str]:
    return [name for name, item in kept_items(tree).items() if item.startswith("function ")]


def items_of(header: str) -> dict[str, str]:
    """Functions, constants, structures, types and macros, in one line each, without names of parameters."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S).replace("\\\n", " ")
    found: dict[str, str] = {}
    for result, name, parameters in FUNCTION.findall(text):
        types = ", ".join(type_of(each) for each in parameters.split(","))
        found[name] = f"function {flat(result)} ({types})"
    for constants, _ in ENUM.findall(text):
        for name, value in re.findall(r"(\w+) = (\w+)", constants):
            found[name] = f"constant {value}"
    for fields, name in STRUCT.findall(text):
        found[name] = f"struct {flat(fields)}"
    for type_, pointer, parameters, name in OTHER_TYPE.findall(STRUCT.sub("", ENUM.sub("", text))):
        found[pointer or name] = flat(f"type {type_} {parameters}")
    for name, value in MACRO.findall(text):
        found[name] = f"macro {flat(value)}"
    return {name: item for name, item in found.items() if not MAY_CHANGE.fullmatch(name)}


def type_of(parameter: str) -> str:
    return (
        re.sub(r"(?<=[\s*])\w+$", "", flat(parameter)).strip() if " " in flat(parameter) else flat(parameter)
    )


def flat(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    items = items_of((Path(__file__).parent.parent / HEADER).read_text())
    sys.stdout.writelines(f"{name}: {item}\n" for name, item in sorted(items.items()))
