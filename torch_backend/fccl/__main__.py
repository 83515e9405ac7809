"""`python -m fccl info` tells what this package serves here; `python -m fccl demo` trains."""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from fccl import _register, demo
from fccl._build import VERSION

USAGE = """\
python -m fccl info               which torch and which networks this package serves here
python -m fccl info ARGUMENT...   fccl-info ARGUMENT...; fccl-info alone lists its arguments
python -m fccl demo               trains a small model on two ranks of this host
"""
FOLDER = Path(__file__).parent


def main(words: list[str]) -> int:
    if words == ["demo"]:
        return demo.main()
    if words[:1] != ["info"]:
        print(USAGE, end="", file=sys.stdout if words in (["-h"], ["--help"]) else sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else 2
    if len(words) > 1:
        program = FOLDER / "fccl-info"
        os.execv(program, [str(program), *words[1:]])
    print("\n".join(facts()))
    return 0


def facts() -> Iterator[str]:
    """A line for each thing on which the package depends."""
    import torch

    yield f"fccl {VERSION} in {FOLDER}"
    yield f"adapters for torch: {', '.join(_register.adapters())}"
    try:
        _register.load()
        yield f"torch {torch.__version__}: its adapter is loaded"
    except RuntimeError as error:
        yield f"torch {torch.__version__}: {error}"
    yield f"several hosts: {wrong_with_network() or 'libfabric is loaded'}"


def wrong_with_network() -> str:
    """Why libfccl could not load its plug-in for libfabric; "" if it could."""
    plugin = FOLDER / "libfccl_ofi.so"
    if not plugin.exists():
        return "no, this package was built without libfabric's headers (libfabric-dev)"
    try:
        ctypes.CDLL(str(plugin))
    except OSError as error:
        if "libfabric.so" in str(error):
            return "no, libfabric.so.1 is not installed: apt-get install libfabric1"
        return f"no, {error}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
