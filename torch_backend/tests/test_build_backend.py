"""The build backend tells CMake where torch is, or says in one sentence that it is missing."""

import importlib.util
import sysconfig
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "packaging" / "build_backend.py"
DEFINE = "cmake.define.FCCL_TORCH_FOLDERS"


@pytest.fixture
def built(monkeypatch, tmp_path):
    """A function that builds a wheel in an environment at tmp_path, and returns the settings for CMake."""
    pytest.importorskip("scikit_build_core")
    spec = importlib.util.spec_from_file_location("build_backend", FILE)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    given = []

    def build_wheel(folder, settings, metadata):
        given.append((folder, settings, metadata))
        return "fccl.whl"

    monkeypatch.setattr(backend.scikit, "build_wheel", build_wheel)
    monkeypatch.setattr(sysconfig, "get_path", lambda kind: str(tmp_path / kind))

    def build(settings=None, torch=False):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if torch else None)
        assert backend.build_wheel("dist", settings, "metadata") == "fccl.whl"
        folder, passed, metadata = given.pop()
        assert (folder, metadata) == ("dist", "metadata")
        return passed

    return build


def put_torch(folder):
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "version.py").touch()


@pytest.mark.parametrize("kind", ["platlib", "purelib"])
def test_torch_that_pip_hides_from_the_build_is_found(built, tmp_path, kind):
    put_torch(tmp_path / kind)
    assert built({"a": "b"}) == {"a": "b", DEFINE: str(tmp_path / kind / "torch")}


def test_torch_that_can_be_imported_is_left_to_cmake(built, tmp_path):
    put_torch(tmp_path / "platlib")
    assert built(torch=True) == {}


def test_folders_that_are_given_stay(built):
    assert built({DEFINE: "here"}) == {DEFINE: "here"}


def test_without_torch_the_build_ends_with_one_sentence(built, tmp_path):
    said = f"there is none in {tmp_path}/platlib: run `pip install torch` first"
    with pytest.raises(SystemExit, match=said):
        built()
