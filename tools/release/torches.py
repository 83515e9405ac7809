#!/usr/bin/env python3
"""The versions of torch for which a wheel has an adapter, and of each what an adapter is built against.

torches.py versions [V,...]
    prints the versions, a line each: those of the list, or all that pyproject.toml allows
torches.py unpack V FOLDER
    unpacks headers and libraries of torch V from its wheel; does nothing if FOLDER is there
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# An adapter links these two, and torch's headers are all below include.
NEEDED = re.compile(r"torch/(version\.py|include/.*|lib/(libtorch_cpu|libc10)\.so)")


def allowed() -> list[str]:
    """The first version of each minor one, since an adapter built for it serves those that follow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = (each for each in project["dependencies"] if each.startswith("torch"))
    bounds = re.fullmatch(r"torch>=2\.(\d+),<2\.(\d+)", wanted)
    if not bounds:
        raise ValueError(f"pyproject.toml wants '{wanted}', and torches.py reads only torch>=2.X,<2.Y")
    return [f"2.{minor}.0" for minor in range(int(bounds[1]), int(bounds[2]))]


def versions(named: str) -> list[str]:
    """Splits a list with commas; 2.13 stands for 2.13.0."""
    if not named:
        return allowed()
    found = []
    for each in named.split(","):
        if not re.fullmatch(r"\d+\.\d+(\.\d+)?", each):
            raise ValueError(
                f"--torch wants versions such as 2.13 or 2.13.0, with commas between, but got '{each}'"
            )
        found.append(each if each.count(".") == 2 else f"{each}.0")
    if repeated := {minor for minor in map(minor_of, found) if list(map(minor_of, found)).count(minor) > 1}:
        raise ValueError(
            f"--torch names {', '.join(sorted(repeated))} more than once: a wheel has one adapter for it"
        )
    return found


def minor_of(version: str) -> str:
    return version.rpartition(".")[0]


def unpack(version: str, folder: Path) -> None:
    """Through pip, which checks the wheel's hash; the wheel itself, half a gigabyte, is not kept."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--no-cache-dir", "--dest", scratch, f"torch=={version}"]
        subprocess.run(command, check=True)
        (wheel,) = Path(scratch).glob("torch-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(scratch, [name for name in archive.namelist() if NEEDED.fullmatch(name)])
        (Path(scratch) / "torch").rename(folder)


def main(words: list[str]) -> int:
    try:
        match words:
            case ["versions", *named]:
                print("\n".join(versions(",".join(named))))
            case ["unpack", version, folder]:
                unpack(version, Path(folder))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except ValueError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
