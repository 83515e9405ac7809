"""The package: it is found without an import, is light, and says in words what does not fit."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import fccl
import pytest
import torch
import torch.distributed as dist
from fccl import _register
from ranks import run_ranks


def run_python(program, **environment):
    command = [sys.executable, "-W", "always", "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def test_torch_finds_the_package_by_its_entry_points():
    names = {
        group: [point.name for point in entry_points(group=group)]
        for group in ("torch.backends", "torch.distributed.backends")
    }
    assert all("fccl" in found for found in names.values()), names


def test_counters_have_no_seconds_where_no_call_was_timed(monkeypatch):
    class Operators:
        @staticmethod
        def counters():
            return ["AllReduce", "AllGather"], [13, 2], [520, 4_000_000], [0.0, 0.5]

    monkeypatch.setattr(_register, "load", lambda: Operators)
    assert fccl.counters() == {
        "AllReduce": {"calls": 13, "bytes": 520, "seconds": None},
        "AllGather": {"calls": 2, "bytes": 4_000_000, "seconds": 0.5},
    }


def test_importing_torch_registers_the_name_and_loads_no_library():
    ran = run_python(
        "import pathlib, torch, torch.distributed as dist\n"
        "assert 'fccl' in dist.Backend.backend_list\n"
        "assert 'libfccl' not in pathlib.Path('/proc/self/maps').read_text()\n"
    )
    assert ran.returncode == 0 and not ran.stderr, ran.stderr


def libraries_of_nvidia(folder, count):
    """The environment of an NVML that counts so many GPUs, or fails, and of a driver that tells its use."""
    status = 0 if count >= 0 else 9
    nvml = (
        f"int nvmlInit(void) {{ return {status}; }}"
        f"int nvmlDeviceGetCount_v2(int* count) {{ *count = {count}; return 0; }}"
    )
    cuda = 'int write(int, char*, int); int cuInit(int flags) { write(2, "cuInit\\n", 7); return 100; }'
    for name, source in (("libnvidia-ml.so.1", nvml), ("libcuda.so.1", cuda)):
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / name]
        subprocess.run(command, input=source, text=True, check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


IN_A_FORK = """
import os, torch, torch.distributed as dist
print(','.join(dist.Backend.backend_capability['fccl']), flush=True)
child = os.fork()
if child == 0:
    os._exit(torch.cuda.is_initialized() or torch.cuda._is_in_bad_fork())
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    ("count", "visible", "devices"),
    [
        (2, None, "cpu,cuda"),
        (2, "", "cpu"),
        pytest.param(2, "MIG-1", "cpu,cuda", marks=pytest.mark.slow),
        pytest.param(0, None, "cpu", marks=pytest.mark.slow),
        (-1, None, "cpu"),
    ],
)
def test_the_name_stands_for_cuda_where_nvml_counts_gpus_and_cuda_stays_uninitialised(
    tmp_path, count, visible, devices
):
    chosen = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    # Torch's own libraries map the driver where there is one, but nobody initialises it.
    ran = run_python(IN_A_FORK, **libraries_of_nvidia(tmp_path, count), **chosen)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    assert ran.stdout.strip() == devices


@pytest.mark.parametrize(
    ("first", "autoload"),
    [
        ("import fccl, torch", "1"),
        ("import torch, fccl", "0"),
        pytest.param("import fccl, torch", "0", marks=pytest.mark.slow),
        pytest.param("import torch, fccl", "1", marks=pytest.mark.slow),
    ],
)
def test_the_package_may_be_imported_before_or_after_torch(first, autoload):
    program = f"{first}\nassert torch.distributed.Backend._plugins['FCCL']\nprint(fccl.version())"
    ran = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    assert ran.stdout.strip() == fccl.__version__


def test_a_failing_registration_is_a_warning(monkeypatch):
    def fail():
        raise OSError("no such thing")

    monkeypatch.setattr(_register, "register", fail)
    with pytest.warns(UserWarning, match="fccl is installed but could not be registered .*: no such thing"):
        _register.register_quietly()


MAKE_A_GROUP = """
import torch, torch.distributed as dist
print("torch imported")
dist.init_process_group("fccl", store=dist.HashStore(), rank=0, world_size=1)
"""


def test_a_package_that_does_not_fit_breaks_only_the_making_of_a_group(tmp_path):
    for module in Path(fccl.__file__).parent.glob("*.py"):
        (tmp_path / "fccl").mkdir(exist_ok=True)
        shutil.copy(module, tmp_path / "fccl")
    (tmp_path / "fccl" / "_build.py").write_text("VERSION = '9.9.9'\n")
    (tmp_path / "fccl" / "libfccl_torch-1.0.so").touch()
    ran = run_python(MAKE_A_GROUP, PYTHONPATH=str(tmp_path))
    assert ran.stdout.strip() == "torch imported", ran.stderr
    assert ran.returncode != 0
    assert f"fccl 9.9.9 has no adapter for torch {torch.__version__}, which runs here" in ran.stderr
    assert "it has adapters for: 1.0." in ran.stderr


@pytest.fixture
def adapters_of(monkeypatch, tmp_path):
    """Gives the package files in the place of its adapters."""

    def make(*minors):
        monkeypatch.setattr(_register, "__file__", str(tmp_path / "_register.py"))
        for minor in minors:
            (tmp_path / f"libfccl_torch-{minor}.so").write_text("not a library")

    return make


def test_a_torch_without_an_adapter_is_told_which_have_one(adapters_of):
    adapters_of("2.100", "2.99")
    with pytest.raises(RuntimeError) as refusal:
        _register.load.__wrapped__()
    text = str(refusal.value)
    assert f"no adapter for torch {torch.__version__}" in text and "adapters for: 2.99, 2.100." in text
    assert "pip install --no-build-isolation" in text


def test_every_patch_version_of_a_torch_has_its_adapter(adapters_of):
    adapters_of("2.12", "2.1")
    for running in ("2.12.0+cu130", "2.12.77", "2.12.0a0+git1234"):
        assert _register._adapter_for(running).name == "libfccl_torch-2.12.so"


def test_an_adapter_that_cannot_be_loaded_is_named_with_both_versions(adapters_of):
    minor = re.match(r"\d+\.\d+", torch.__version__)[0]
    adapters_of(minor)
    with pytest.raises(
        RuntimeError,
        match=rf"could not load its adapter libfccl_torch-{minor}.so into torch .*--no-build-isolation",
    ):
        _register.load.__wrapped__()


def test_the_package_holds_the_library_and_the_adapter():
    folder = Path(fccl.__file__).parent
    assert _register._adapter_for(torch.__version__).exists()
    assert [path.name for path in folder.glob("libfccl.so.*")] == ["libfccl.so.0"]


def test_no_library_of_the_package_searches_the_current_directory():
    check = Path(__file__).parents[2] / "tests" / "install" / "search_paths.py"
    ran = subprocess.run([sys.executable, check, Path(fccl.__file__).parent], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def find_the_plug_in():
    dist.all_reduce(torch.ones(3))
    loaded = set(re.findall(r"\S*/libfccl_ofi\S*", Path("/proc/self/maps").read_text()))
    assert loaded == {str(Path(fccl.__file__).with_name("libfccl_ofi.so"))}


def test_ranks_on_two_hosts_load_the_plug_in_that_the_package_holds(monkeypatch):
    monkeypatch.setenv("FCCL_TEST_HOSTS", "2")
    run_ranks(2, find_the_plug_in)


def test_the_adapter_needs_neither_python_nor_cuda():
    adapter = _register._adapter_for(torch.__version__)
    listing = subprocess.run(
        ["readelf", "--dynamic", "--dyn-syms", "--wide", adapter], capture_output=True, text=True
    )
    assert listing.returncode == 0, listing.stderr
    needed = re.findall(r"NEEDED.*\[(.*?)\]", listing.stdout)
    assert "libfccl.so.0" in needed and not any("cuda" in name or "python" in name for name in needed), (
        json.dumps(needed)
    )
    assert not re.search(r" _?Py[A-Z_]\w*$", listing.stdout, re.MULTILINE)
