#!/usr/bin/env python3
"""Fails if a program or library below the folders takes the current directory for a place of libraries."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def elements_of(file: Path) -> list[str]:
    """The folders that the file itself tells the loader to search."""
    said = subprocess.run(["readelf", "-d", "-W", file], check=True, capture_output=True, text=True).stdout
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", said)
    return [element for path in paths for element in path.split(":")]


def is_safe(element: str) -> bool:
    return element.startswith("/") or re.match(r"\$(ORIGIN|\{ORIGIN\})(/|$)", element) is not None


def is_linked(file: Path) -> bool:
    with file.open("rb") as content:
        header = content.read(18)
    # An object file, of type 1, is no longer there when something runs.
    return header[:4] == b"\x7fELF" and int.from_bytes(header[16:18], sys.byteorder) != 1


def linked_files(folder: Path) -> Iterator[Path]:
    """Linked files below a folder, without those of other, perhaps older, builds that lie in it."""
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if not Path(place, each, "CMakeCache.txt").exists()]
        for file in (Path(place, name) for name in sorted(names)):
            if file.is_file() and not file.is_symlink() and is_linked(file):
                yield file


def main(folders: list[str]) -> int:
    files = [file for folder in folders for file in linked_files(Path(folder))]
    faults = 0
    for file in files:
        for element in elements_of(file):
            if not is_safe(element):
                faults += 1
                print(f"{file}: searches '{element}', which depends on the current directory")
    print(f"{len(files)} programs and libraries, {faults} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
