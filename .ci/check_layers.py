"""Layers: a folder of src includes only itself and those below it, as drawn; the rest uses include/fccl."""

import re
from collections.abc import Iterator

from tree import Fault, Tree

LAYERS = [
    *("base", "topology", "plan", "system", "sockets", "metrics", "kernels", "arena", "host", "wire"),
    *("device", "hierarchical", "bootstrap", "host_link", "operations", "creation"),
    *("communicator", "c_api"),
]
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
# The rooms as people see them, and an arrow of the drawing.
MAP = "src/README.md"
ARROW = re.compile(r"^ *(\w+) --> (\w+)$")
CUDA = re.compile(r"(cuda.*\.h|cuda/.*)$")
WITH_CUDA = ("src/device/", "src/kernels/", "tests/devices/", "tests/gpu/", "torch_backend/tests/stand_in/")


def faults(tree: Tree) -> Iterator[Fault]:
    for path in tree.cpp:
        parts = path.split("/")
        for line, quote, name in tree.includes(path):
            if what := wrong(tree, path, parts, quote, name):
                yield Fault(path, line, f"{what} (layers)")
    if MAP in tree.files:
        yield from wrong_in_drawing(tree)


def wrong(tree: Tree, path: str, parts: list[str], quote: str, name: str) -> str | None:
    if ".." in name.split("/"):
        return f'"{name}" climbs out of its folder; includes are relative to src/ or include/'
    if quote == "<" and CUDA.match(name) and not path.startswith(WITH_CUDA):
        return f"<{name}> belongs into src/device"
    if parts[0] == "src":
        return wrong_in_library(path, parts[1], quote, name)
    if parts[0] == "include":
        ours = name.startswith("fccl/") or quote == "<"
        return None if ours and not FOREIGN.match(name) else f'a public header may not include "{name}"'
    reaches_in = name.split("/")[0] in LAYERS and name not in neighbours(tree, path)
    if parts[0] in CUSTOMERS and reaches_in:
        return f'{parts[0]} uses the library through include/fccl, not through "{name}"'
    return None


def wrong_in_drawing(tree: Tree) -> Iterator[Fault]:
    """Each arrow is an include, and each include between rooms goes along arrows."""
    drawn = {}
    for line, text in enumerate(tree.text(MAP).splitlines(), 1):
        if arrow := ARROW.match(text):
            drawn[arrow[1], arrow[2]] = line
    used: dict[tuple[str, str], tuple[str, int]] = {}
    for path in tree.cpp:
        parts = path.split("/")
        for line, quote, name in tree.includes(path):
            pair = parts[1], name.split("/")[0]
            if parts[0] == "src" and quote == '"' and pair[0] != pair[1] and pair[1] in LAYERS:
                used.setdefault(pair, (path, line))
    for (room, below), line in drawn.items():
        if (room, below) not in used:
            what = f"is drawn, but no file of src/{room} includes one of src/{below}"
            yield Fault(MAP, line, f"{room} --> {below} {what} (layers)")
    for (room, below), (path, line) in used.items():
        if not is_reached(room, below, set(drawn)):
            yield Fault(path, line, f"{room} uses {below}, but no arrows of {MAP} lead there (layers)")


def is_reached(room: str, target: str, arrows: set[tuple[str, str]]) -> bool:
    return any(
        below == target or is_reached(below, target, arrows - {(above, below)})
        for above, below in arrows
        if above == room
    )


def neighbours(tree: Tree, path: str) -> set[str]:
    """The names by which a file outside src may include files of its own folder or its top folder."""
    top, near = path.split("/")[0] + "/", path.rsplit("/", 1)[0] + "/"
    return {
        file.removeprefix(start)
        for start in (top, top + "csrc/", near)
        for file in tree.files
        if file.startswith(start)
    }


def wrong_in_library(path: str, layer: str, quote: str, name: str) -> str | None:
    if quote == "<":
        if FOREIGN.match(name):
            return f"libfccl may not depend on <{name}>"
        if layer in PURE and IMPURE.match(name):
            return f"{layer} is pure: it may not include <{name}>"
        return None
    folder = name.split("/")[0]
    if folder == "fccl":
        return None
    if folder not in LAYERS:
        return f'"{name}" does not begin with a folder of src; includes are relative to src/'
    if layer not in LAYERS:
        return f"src/{layer} is none of the layers {', '.join(LAYERS)}"
    if LAYERS.index(folder) > LAYERS.index(layer):
        return f'{layer} is below {folder} and may not include "{name}"'
    return None
