#!/usr/bin/env python3
"""Reads what a release consists of as a stranger would: no needless file, no path of the builder.

check.py [--not TEXT]... FILE...
    no file of the wheels FILE may hold TEXT, such as the folder of the build; sdists hold sources alone
"""

import argparse
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

METADATA = (
    r"-[\w.]+\.dist-info/(METADATA|WHEEL|RECORD|entry_points\.txt|top_level\.txt"
    r"|licenses/[\w.+-]+|sboms/[\w.-]+\.cdx\.json)"
)
# The files that the wheel of each project may hold.
EXPECTED = {
    "fccl": re.compile(
        r"fccl/\w+\.py|fccl/fccl-info|fccl/libfccl\.so\.\d+|fccl/libfccl_ofi\.so|fccl/libfccl_torch-\d+\.\d+\.so"
        r"|fccl\.libs/lib[\w.-]+|fccl-[\w.]+\.data/scripts/fccl-info|fccl" + METADATA
    ),
    "fccl_sagemaker": re.compile(r"fccl_sagemaker/[\w/]+\.py|fccl_sagemaker\.pth|fccl_sagemaker" + METADATA),
}
LITTER = re.compile(r"(^|/)(\.git|build|dist|\.venv[^/]*|__pycache__|[^/]*\.egg-info)/|\.pyc$")


def files_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if not name.endswith("/"))
    else:
        with tarfile.open(archive) as sdist:
            for member in sdist:
                if content := sdist.extractfile(member) if member.isfile() else None:
                    yield member.name, content.read()


def faults_of(archive: Path, forbidden: list[str]) -> Iterator[str]:
    """Names each thing that a stranger would wonder at."""
    is_wheel = archive.suffix == ".whl"
    expected = EXPECTED[archive.name.partition("-")[0]] if is_wheel else re.compile(r"[^/]+/.*")
    for name, content in files_of(archive):
        if not expected.fullmatch(name) or LITTER.search(name):
            yield f"{archive.name}: {name} is not expected in it"
        for text in forbidden if is_wheel else []:
            if text.encode() in content:
                yield f"{archive.name}: {name} tells '{text}', which is the builder's"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--not", dest="forbidden", metavar="TEXT", action="append", default=[])
    parser.add_argument("archives", metavar="FILE", type=Path, nargs="+")
    asked = parser.parse_args(words)
    faults = [fault for archive in asked.archives for fault in faults_of(archive, asked.forbidden)]
    print("\n".join(faults) or f"{len(asked.archives)} archives are as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
