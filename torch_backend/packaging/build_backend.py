"""Builds the package by scikit-build-core, and tells it where torch is, which isolated builds do not see."""

import importlib.util
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scikit_build_core import build as scikit
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

TORCH_FOLDERS = "cmake.define.FCCL_TORCH_FOLDERS"
Settings = Mapping[str, Any] | None


def build_wheel(folder: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    """As PEP 517 says."""
    return scikit.build_wheel(folder, _with_torch(config_settings), metadata_directory)


def build_editable(
    folder: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """As PEP 660 says."""
    return scikit.build_editable(folder, _with_torch(config_settings), metadata_directory)


def _with_torch(config_settings: Settings) -> dict[str, Any]:
    """The settings, with the folder of torch where CMake would not find it."""
    settings = dict(config_settings or {})
    if TORCH_FOLDERS in settings or importlib.util.find_spec("torch"):
        return settings
    # pip hides the environment's packages from the build, but not where they are.
    folders = [Path(sysconfig.get_path(kind)) / "torch" for kind in ("platlib", "purelib")]
    found = next((folder for folder in folders if (folder / "version.py").is_file()), None)
    if found is None:
        raise SystemExit(
            f"fccl is built for the torch that is installed, and there is none in {folders[0].parent}: "
            "run `pip install torch` first, and build with pip"
        )
    return settings | {TORCH_FOLDERS: str(found)}
