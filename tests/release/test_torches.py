"""For which versions of torch a wheel is made, and what is kept of torch's own wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torches

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_list_there_is_an_adapter_for_each_version_that_the_package_allows():
    assert torches.versions("") == ["2.11.0", "2.12.0", "2.13.0", "2.14.0", "2.15.0"]


def test_a_list_may_leave_out_the_patch_version():
    assert torches.versions("2.13,2.14.1") == ["2.13.0", "2.14.1"]


@pytest.mark.parametrize(
    ("named", "wrong"), [("2.13,", "got ''"), ("new", "got 'new'"), ("2.13,2.13.1", "2.13 more than once")]
)
def test_a_list_that_makes_no_sense_is_refused(named, wrong):
    with pytest.raises(ValueError, match=wrong):
        torches.versions(named)


def test_dev_release_refuses_it_before_it_installs_anything():
    ran = subprocess.run(
        [ROOT / "dev", "release", "--torch", "new"], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    assert (
        ran.stderr
        == "release: --torch wants versions such as 2.13 or 2.13.0, with commas between, but got 'new'\n"
    )


@pytest.fixture
def wheel_of_torch(tmp_path, monkeypatch):
    """A torch 2.13.0 of a few bytes, which pip finds in a folder."""
    wheel = tmp_path / "torch-2.13.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (
            "version.py",
            "__init__.py",
            "include/ATen/ATen.h",
            "lib/libc10.so",
            "lib/libtorch_cpu.so",
            "lib/libtorch_cuda.so",
        ):
            archive.writestr(f"torch/{name}", name)
        archive.writestr(
            "torch-2.13.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
        )
        archive.writestr(
            "torch-2.13.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("torch-2.13.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return wheel


def test_only_what_an_adapter_needs_is_kept_of_a_wheel(wheel_of_torch, tmp_path):
    folder = tmp_path / "torch" / "2.13.0"
    torches.unpack("2.13.0", folder)
    kept = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert kept == ["include/ATen/ATen.h", "lib/libc10.so", "lib/libtorch_cpu.so", "version.py"]
    assert [path.name for path in folder.parent.iterdir()] == ["2.13.0"]


def test_what_is_unpacked_is_not_fetched_again(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_: pytest.fail("pip was asked"))
    torches.unpack("2.13.0", tmp_path)


def test_a_version_that_is_not_to_be_had_leaves_no_folder(wheel_of_torch, tmp_path):
    command = [sys.executable, torches.__file__, "unpack", "2.12.0", tmp_path / "torch" / "2.12.0"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode != 0 and "torch==2.12.0" in ran.stderr
    assert not list((tmp_path / "torch").iterdir())
