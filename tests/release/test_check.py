"""The check refuses a wheel or an sdist that holds something a stranger would wonder at."""

import tarfile
import zipfile

import check
import pytest

GOOD = {
    "fccl/__init__.py": b"",
    "fccl/fccl-info": b"\x7fELF",
    "fccl/libfccl.so.0": b"\x7fELF",
    "fccl/libfccl_torch-2.13.so": b"\x7fELF",
    "fccl.libs/libfmt-0a1b2c3d.so.9.1.0": b"\x7fELF",
    "fccl-0.1.0.data/scripts/fccl-info": b"#!python\n",
    "fccl-0.1.0.dist-info/METADATA": b"",
    "fccl-0.1.0.dist-info/licenses/libfmt9.txt": b"",
    "fccl-0.1.0.dist-info/sboms/auditwheel.cdx.json": b"",
}


@pytest.fixture
def wheel(tmp_path):
    def make(**more):
        file = tmp_path / "fccl-0.1.0-py3-none-manylinux_2_34_x86_64.whl"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in {**GOOD, **more.get("files", {})}.items():
                archive.writestr(name, content)
        return file

    return make


def test_a_good_wheel_passes(wheel, capsys):
    assert check.main(["--not", "/home/builder/", str(wheel())]) == 0
    assert capsys.readouterr().out == "1 archives are as they should be\n"


@pytest.mark.parametrize(
    "name",
    [
        "fccl/libfccl_torch.so",
        "fccl/csrc/work.cpp",
        "fccl/__pycache__/demo.pyc",
        "fccl/_build.py.in",
        "tests/test_it.py",
    ],
)
def test_a_needless_file_is_named(wheel, name, capsys):
    assert check.main([str(wheel(files={name: b""}))]) == 1
    assert f"{name} is not expected in it" in capsys.readouterr().out


def test_a_file_that_tells_the_builders_folder_is_named(wheel, capsys):
    file = wheel(files={"fccl/libfccl.so.0": b"\x7fELF\0/home/builder/fccl/src/os/log.cpp\0"})
    assert check.main(["--not", "/home/builder/", str(file)]) == 1
    assert "fccl/libfccl.so.0 tells '/home/builder/'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "status"), [("fccl-0.1.0/src/os/log.cpp", 0), ("fccl-0.1.0/build/log/lock", 1)]
)
def test_an_sdist_holds_no_litter_of_a_build(tmp_path, name, status):
    (tmp_path / "file").write_text("")
    with tarfile.open(tmp_path / "fccl-0.1.0.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", name)
    assert check.main([str(tmp_path / "fccl-0.1.0.tar.gz")]) == status
