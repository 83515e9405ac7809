"""Gives the package the version of FCCL, and a line by which Python finds smdistributed before torch."""

import os
import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPath(build_py):
    """Writes fccl_sagemaker.pth, whose folder comes last in sys.path, behind packages of the same name."""

    def run(self) -> None:
        super().run()
        with open(os.path.join(self.build_lib, "fccl_sagemaker.pth"), "w", encoding="utf-8") as file:
            file.write(os.path.join("fccl_sagemaker", "beside_torch") + "\n")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), os.path.join(self.build_lib, "fccl_sagemaker.pth")]


project = (Path(__file__).resolve().parents[1] / "CMakeLists.txt").read_text(encoding="utf-8")
setup(version=re.search(r"project\(fccl VERSION ([\d.]+)", project)[1], cmdclass={"build_py": BuildWithPath})
