"""Headers: each one that a change can have touched compiles alone, and fccl.h also as C."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tree import Fault, Tree, Verdicts

LIBRARIES = ["libsodium", "libhwy", "spdlog", "fmt"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def faults(tree: Tree, every_file: bool = False) -> Iterator[Fault]:
    changed = tree.changed
    headers = [
        path
        for path in tree.headers
        if path.startswith(("include/", "src/")) and (every_file or changed & tree.closure(path))
    ]
    version = subprocess.run(["g++", "-dumpfullversion"], check=True, capture_output=True, text=True).stdout
    verdicts = Verdicts(tree, "headers", version + " ".join(WARNINGS))
    pending = [path for path in headers if not verdicts.is_clean(path)]
    if not pending:
        return
    with ThreadPoolExecutor(2) as pool:
        for path, found in zip(pending, pool.map(lambda path: faults_of(tree, path), pending), strict=True):
            if not found:
                verdicts.remember_clean(path)
            yield from found


def faults_of(tree: Tree, path: str) -> list[Fault]:
    known = subprocess.run(
        ["pkg-config", "--cflags", *LIBRARIES], capture_output=True, text=True
    ).stdout.split()
    flags = [*WARNINGS, "-Iinclude", "-Isrc", *known, "-include", path, "/dev/null"]
    compilers = [["g++", "-std=c++20", "-x", "c++"]]
    if path.endswith("fccl/fccl.h"):
        compilers.append(["gcc", "-std=c11", "-x", "c"])
    found = []
    for compiler in compilers:
        said = subprocess.run([*compiler, *flags], cwd=tree.root, capture_output=True, text=True)
        if said.returncode != 0:
            errors = [
                line for line in said.stderr.splitlines() if ": error: " in line or "fatal error" in line
            ]
            what = errors[0].strip() if errors else said.stderr.strip()[-200:]
            found.append(
                Fault(path, 1, f"does not compile alone with {' '.join(compiler[:2])}: {what} (headers)")
            )
    return found
