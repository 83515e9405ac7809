"""./dev release makes the same files in two folders; they are of use at once where there is torch alone."""

import os
import re
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# A list as --torch takes it, to try these tests with less than all.
TORCHES = os.environ.get("FCCL_TEST_RELEASE_TORCHES", "")
BUILD_LIMIT = 5400
SECONDS_TO_FIRST_SUCCESS = 60
SHARED = (".venv-release", "build/release/torch", "build/cuda-headers")
# The folders in which the environments of ./dev keep their packages, by the minor version of torch.
SITES = {
    re.search(r"torch-(\d+\.\d+)", found.name)[1]: found.parent
    for found in ROOT.glob(".venv*/lib/python3*/site-packages/torch-*.dist-info")
}


def copy_tree(folder):
    """A copy of the sources, committed or not, that shares with the tree only what comes from PyPI."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, folder / name)
    for name in SHARED:
        (ROOT / name).mkdir(parents=True, exist_ok=True)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / name)


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """Makes a release in a copy of the tree; gives the folder of what was made."""

    def make(place):
        folder = tmp_path_factory.mktemp("release") / place
        copy_tree(folder)
        command = ["./dev", "release", *(["--torch", TORCHES] if TORCHES else [])]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
        ran = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BUILD_LIMIT
        )
        assert ran.returncode == 0, ran.stderr
        return folder / "dist"

    return make


@pytest.fixture(scope="session")
def dist(release):
    return release("one")


@pytest.fixture(scope="session")
def wheel(dist):
    (found,) = dist.glob("fccl-*-py3-none-manylinux_2_34_x86_64.whl")
    return found


@pytest.fixture
def environment(tmp_path, wheel):
    """Gives how a command runs where there is a torch, the wheel, and no compiler in PATH."""

    def make(minor):
        if minor not in SITES:
            pytest.skip(f"there is no environment with torch {minor}: ./dev test all makes it")
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
        (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
        # Python 3.11 puts a setuptools there that is too old for torch.
        for package in filter(lambda own: not own.name.startswith("pip"), list(site.iterdir())):
            shutil.rmtree(package) if package.is_dir() else package.unlink()
        for package in SITES[minor].iterdir():
            if not re.match(r"fccl|pip|.*\.pth$", package.name):
                (site / package.name).symlink_to(package)

        torchrun = tmp_path / "venv" / "bin" / "torchrun"
        torchrun.write_text(f"#!{torchrun.parent}/python\nfrom torch.distributed.run import main\n\nmain()\n")
        torchrun.chmod(0o755)

        def run(*words, before=()):
            program = tmp_path / "venv" / "bin" / words[0]
            variables = {
                name: value for name, value in os.environ.items() if not name.startswith(("FCCL_", "PYTHON"))
            }
            # What makes namespaces needs the system's programs.
            path = f"{program.parent}:{os.environ['PATH']}" if before else str(program.parent)
            return subprocess.run(
                [*before, program, *words[1:]],
                cwd=tmp_path,
                env=variables | {"PATH": path},
                capture_output=True,
                text=True,
                timeout=600,
            )

        installed = run("python", "-m", "pip", "install", "--no-index", str(wheel))
        assert installed.returncode == 0, installed.stderr
        return run

    return make


def test_two_builds_in_different_folders_give_the_same_bytes(dist, release):
    sums = (dist / "SHA256SUMS").read_text()
    assert (release("another/of/a_longer_name") / "SHA256SUMS").read_text() == sums
    assert len(sums.splitlines()) == 3


def test_auditwheel_finds_what_the_name_says(wheel):
    program = ROOT / ".venv-release" / "bin" / "auditwheel"
    shown = subprocess.run([program, "show", wheel], capture_output=True, text=True)
    said = " ".join(shown.stdout.split())
    # libfabric and what it needs are the system's, so that the wheel as a whole counts as one for this Linux.
    assert 'This constrains the platform tag to "manylinux_2_34_x86_64"' in said, said


def test_the_wheel_of_fccl_sagemaker_has_the_version_of_the_other(dist, wheel):
    version = wheel.name.split("-")[1]
    assert (dist / f"fccl_sagemaker-{version}-py3-none-any.whl").exists()


@pytest.mark.parametrize("minor", ["2.11", "2.13", "2.15"])
def test_the_first_success_takes_less_than_a_minute_of_one_processor(environment, minor):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = environment(minor)
    ran = run("python", "-m", "fccl.demo")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ran.returncode == 0, ran.stderr
    assert re.search(rf"^fccl [\d.]+, torch {minor}\.\S+, 2 ranks$", ran.stdout, re.M)
    assert re.search(r"^step 100  loss 0\.\d+$", ran.stdout, re.M)
    assert re.search(r"^all_reduce of 16 MiB: [\d.]+ GB/s", ran.stdout, re.M)
    assert ran.stderr == ""
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < SECONDS_TO_FIRST_SUCCESS


def test_a_torch_without_an_adapter_is_told_which_have_one(environment, tmp_path):
    run = environment("2.13")
    for adapter in tmp_path.glob("venv/lib/python3*/site-packages/fccl/libfccl_torch-2.13.so"):
        adapter.unlink()
    ran = run("python", "-m", "fccl.demo")
    assert ran.returncode != 0
    assert re.search(
        r"no adapter for torch 2\.13\.\S+, which runs here; it has adapters for: 2\.11", ran.stderr
    )


def test_fccl_info_is_a_command_of_the_environment(environment):
    run = environment("2.13")
    assert "FCCL_TIMEOUT" in run("fccl-info", "settings").stdout
    assert run("python", "-m", "fccl", "info", "settings").stdout == run("fccl-info", "settings").stdout
    assert "its adapter is loaded" in run("python", "-m", "fccl", "info").stdout


def cluster(run):
    """The demo on two hosts of ./dev cluster, as the environment has it."""
    words = [sys.executable, ROOT / "tools" / "cluster" / "cluster.py", "2x1", "--"]
    return run("torchrun", "-m", "fccl.demo", before=words)


def test_two_hosts_train_over_debians_libfabric(environment):
    if os.geteuid() != 0:
        pytest.skip("./dev cluster wants root")
    ran = cluster(environment("2.13"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 ranks" in ran.stdout and "step 100  loss 0." in ran.stdout


def test_without_libfabric_one_sentence_names_its_package(environment, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("to hide libfabric from a process wants root")
    run = environment("2.13")
    libraries = Path("/usr/lib/x86_64-linux-gnu")
    real, less = tmp_path / "real", tmp_path / "less"
    real.mkdir()
    less.mkdir()
    for each in libraries.iterdir():
        if not each.name.startswith("libfabric.so"):
            (less / each.name).symlink_to(real / each.name)
    hide = f'mount --bind {libraries} {real} && mount --bind {less} {libraries} && exec "$0" "$@"'
    ran = run("python", "-m", "fccl", "info", before=["unshare", "--mount", "sh", "-c", hide])
    assert "several hosts: no, libfabric.so.1 is not installed: apt-get install libfabric1" in ran.stdout, (
        ran.stderr
    )
    words = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        hide,
        sys.executable,
        ROOT / "tools/cluster/cluster.py",
        "2x1",
        "--",
    ]
    ran = run("torchrun", "-m", "fccl.demo", before=words)
    assert ran.returncode != 0
    assert "libfabric is not installed" in ran.stderr and "apt-get install libfabric1" in ran.stderr


def test_every_library_of_others_is_in_the_bill_of_materials_with_its_license(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (bill,) = (archive.read(name).decode() for name in names if name.endswith("auditwheel.cdx.json"))
    for package in (
        "libfmt9",
        "libsodium23",
        "libhwy1",
        "libhwloc15",
        "libpugixml-dev",
        "libspdlog-dev",
        "libexpected-dev",
    ):
        assert f'"{package}"' in bill
        assert any(name.endswith(f"licenses/{package}.txt") for name in names)
