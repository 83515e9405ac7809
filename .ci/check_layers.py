"""Layers: a folder of src includes only those that src/CMakeLists.txt lists; the rest uses include/fccl."""

import re
from collections.abc import Iterator
from functools import cache

from tree import Fault, Tree, line_of

# Lists the rooms, lowest first, each with the rooms that it uses. Other lists are compared with it.
LIST = "src/CMakeLists.txt"
ROOM = re.compile(r"^fccl_room\(\s*\w+\s+SOURCES\s+([^)]*)\)", re.MULTILINE)
# The room on top, which is compiled into libfccl.so.
TOP = "c_api"
USES_OF_TOP = re.compile(r"^set\(c_api_uses\s+([^)]*)\)", re.MULTILINE)
# The rooms as people see them: an arrow of the drawing, a row of a table, a sentence.
MAP = "src/README.md"
ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)/` \|", re.MULTILINE)
RULES = "CONTRIBUTING.md"
SENTENCE = re.compile(r"The folders of `src/`, lowest first: ([^.]*)\.")
# A room should be read in an afternoon.
MOST_LINES = 2500
# Rooms that use the library as anybody else would.
CUSTOMERS = ("torch_backend", "perf_tests", "trainer")
# These know no threads, clock, environment, input or output.
PURE = ("base", "topology", "plan")
IMPURE = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|future|chrono|iostream|fstream|filesystem|pthread\.h|unistd\.h|fcntl\.h"
    r"|sys/.*|poll\.h|netinet/.*|arpa/.*|spdlog/.*)$"
)
# libfccl links none of these. CUDA belongs to src/device, its kernels, its fake, and the probes of what
# it rests on.
FOREIGN = re.compile(r"(mpi\.h|torch/.*|ATen/.*|c10/.*|rdma/.*|infiniband/.*)$")
CUDA = re.compile(r"(cuda.*\.h|cuda/.*)$")
WITH_CUDA = ("src/device/", "src/kernels/", "tests/devices/", "tests/gpu/", "torch_backend/tests/stand_in/")


def faults(tree: Tree) -> Iterator[Fault]:
    for path in tree.cpp:
        parts = path.split("/")
        for line, quote, name in tree.includes(path):
            if what := wrong(tree, path, parts, quote, name):
                yield Fault(path, line, f"{what} (layers)")
    yield from unused(tree)
    yield from too_large(tree)
    if MAP in tree.files:
        yield from wrong_in_drawing(tree)
        yield from wrong_in_table(tree)
    if RULES in tree.files:
        yield from wrong_in_rules(tree)


@cache
def rooms_of(tree: Tree) -> dict[str, frozenset[str]]:
    """The rooms, lowest first, each with the rooms that it uses."""
    uses: dict[str, frozenset[str]] = {}
    text = tree.text(LIST) if LIST in tree.files else ""
    for found in ROOM.finditer(text):
        sources, _, used = found[1].partition("USES")
        # A part of a room may be a library of its own.
        room = sources.split("/")[0].strip()
        uses[room] = uses.get(room, frozenset()) | frozenset(used.split()) - {room}
    if top := USES_OF_TOP.search(text):
        uses[TOP] = frozenset(top[1].split())
    return uses


def wrong(tree: Tree, path: str, parts: list[str], quote: str, name: str) -> str | None:
    if ".." in name.split("/"):
        return f'"{name}" climbs out of its folder; includes are relative to src/ or include/'
    if quote == "<" and CUDA.match(name) and not path.startswith(WITH_CUDA):
        return f"<{name}> belongs into src/device"
    if parts[0] == "src":
        return wrong_in_library(tree, parts[1], quote, name)
    if parts[0] == "include":
        ours = name.startswith("fccl/") or quote == "<"
        return None if ours and not FOREIGN.match(name) else f'a public header may not include "{name}"'
    reaches_in = name.split("/")[0] in rooms_of(tree) and name not in neighbours(tree, path)
    if parts[0] in CUSTOMERS and reaches_in:
        return f'{parts[0]} uses the library through include/fccl, not through "{name}"'
    return None


def wrong_in_library(tree: Tree, room: str, quote: str, name: str) -> str | None:
    if quote == "<":
        if FOREIGN.match(name):
            return f"libfccl may not depend on <{name}>"
        if room in PURE and IMPURE.match(name):
            return f"{room} is pure: it may not include <{name}>"
        return None
    folder, rooms = name.split("/")[0], rooms_of(tree)
    if folder == "fccl":
        return None
    if folder not in rooms:
        return f'"{name}" does not begin with a folder of src; includes are relative to src/'
    if room not in rooms:
        return f"src/{room} is none of the rooms {', '.join(rooms)}"
    lowest_first = list(rooms)
    if lowest_first.index(folder) > lowest_first.index(room):
        return f'{room} is below {folder} and may not include "{name}"'
    if folder != room and folder not in rooms[room]:
        return f"{room} includes {folder}, which {LIST} does not list for it"
    return None


def unused(tree: Tree) -> Iterator[Fault]:
    """A room that is listed for another one is included there."""
    included = {
        (path.split("/")[1], name.split("/")[0])
        for path in tree.cpp
        if path.startswith("src/")
        for _, quote, name in tree.includes(path)
        if quote == '"'
    }
    for room, uses in rooms_of(tree).items():
        for below in sorted(uses):
            if (room, below) not in included:
                what = f"is listed for {room}, but no file of src/{room} includes one of src/{below}"
                yield Fault(LIST, 1, f"{below} {what} (layers)")


def too_large(tree: Tree) -> Iterator[Fault]:
    for room in rooms_of(tree):
        lines = sum(tree.text(path).count("\n") for path in tree.cpp if path.startswith(f"src/{room}/"))
        if lines > MOST_LINES:
            yield Fault(
                LIST, 1, f"src/{room} has {lines} lines, the limit of a room is {MOST_LINES} (layers)"
            )


def wrong_in_drawing(tree: Tree) -> Iterator[Fault]:
    """Drawn is what a room uses, except where other arrows lead there anyway."""
    rooms, text = rooms_of(tree), tree.text(MAP)
    drawn = {(found[1], found[2]): line_of(text, found.start()) for found in ARROW.finditer(text)}
    needed = {
        (room, below)
        for room, uses in rooms.items()
        for below in uses
        if not any(is_reached(rooms, other, below) for other in uses - {below})
    }
    for (room, below), line in drawn.items():
        if (room, below) not in needed:
            yield Fault(MAP, line, f"{room} --> {below} is drawn, but by {LIST} it is not needed (layers)")
    for room, below in sorted(needed - set(drawn)):
        yield Fault(MAP, 1, f"{room} --> {below} is missing in the drawing (layers)")


@cache
def reached_from(uses: tuple[tuple[str, frozenset[str]], ...], room: str) -> frozenset[str]:
    below = dict(uses).get(room, frozenset())
    return below.union(*(reached_from(uses, each) for each in below))


def is_reached(rooms: dict[str, frozenset[str]], room: str, target: str) -> bool:
    return target in reached_from(tuple(rooms.items()), room)


def wrong_in_table(tree: Tree) -> Iterator[Fault]:
    text = tree.text(MAP)
    rows = [found[1] for found in ROW.finditer(text)]
    lines = [line_of(text, found.start()) for found in ROW.finditer(text)]
    expected = list(reversed(rooms_of(tree)))
    if rows != expected:
        what = f"the rows are {', '.join(rows)}, but the rooms, highest first, are {', '.join(expected)}"
        yield Fault(MAP, lines[0] if lines else 1, f"{what} (layers)")


def wrong_in_rules(tree: Tree) -> Iterator[Fault]:
    text = tree.text(RULES)
    found = SENTENCE.search(text)
    named = re.findall(r"\w+", found[1].replace("then", "")) if found else []
    if named != list(rooms_of(tree)):
        line = line_of(text, found.start()) if found else 1
        yield Fault(RULES, line, f"the rooms, lowest first, are {', '.join(rooms_of(tree))} (layers)")


def neighbours(tree: Tree, path: str) -> set[str]:
    """The names by which a file outside src may include files of its own folder or its top folder."""
    top, near = path.split("/")[0] + "/", path.rsplit("/", 1)[0] + "/"
    return {
        file.removeprefix(start)
        for start in (top, top + "csrc/", near)
        for file in tree.files
        if file.startswith(start)
    }
