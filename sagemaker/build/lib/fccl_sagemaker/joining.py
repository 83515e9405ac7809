"""Lets Python find torch.sagemaker and smdistributed, unless AWS's own packages are installed."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

INSIDE_TORCH = os.fspath(Path(__file__).with_name("inside_torch"))
BESIDE_TORCH = os.fspath(Path(__file__).with_name("beside_torch"))
SMDDP = Path("smdistributed", "dataparallel", "torch", "torch_smddp")


def join_torch() -> None:
    """Appends a folder to torch.__path__ and one to sys.path; what is found before keeps its name."""
    # torch calls this at the end of its own import, and there its name is not bound yet.
    torch: Any = sys.modules.get("torch") or __import__("torch")
    _warn_of_others(
        "torch.sagemaker", [each for each in torch.__path__ if each != INSIDE_TORCH], Path("sagemaker")
    )
    _warn_of_others("smdistributed.dataparallel", [each for each in sys.path if each != BESIDE_TORCH], SMDDP)
    if INSIDE_TORCH not in torch.__path__:
        torch.__path__.append(INSIDE_TORCH)
    if BESIDE_TORCH not in sys.path:
        sys.path.append(BESIDE_TORCH)


def join_torch_quietly() -> None:
    """Like join_torch, but warns of a failure: an exception would make `import torch` fail."""
    try:
        join_torch()
    except Exception as error:
        warnings.warn(
            f"fccl-sagemaker is installed but torch.sagemaker could not be added: {error}", stacklevel=2
        )


_warned: set[str] = set()


def _warn_of_others(name: str, folders: list[str], inside: Path) -> None:
    for folder in folders:
        found = Path(folder, inside)
        if name not in _warned and found.is_dir():
            _warned.add(name)
            warnings.warn(
                f"fccl-sagemaker leaves {name} to the package that is installed in {found}; uninstall "
                f"that package to "
                "run it over fccl",
                stacklevel=2,
            )
