"""A device of torch that stands in for CUDA's in the tests: its memory is that of the fake driver's GPUs."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import types
from pathlib import Path

import torch
import torch.distributed as dist
from fccl import _register

NAME = "simulated"
HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build"
FAKE_DRIVER = BUILD / "tests" / "devices" / "fake_driver" / "libcuda.so.1"
# The device is written for this one: torch promises nobody that the next one has the same.
SERVED_TORCH = "2.13"


def why_not() -> str:
    """Why the device cannot be had here, "" if it can."""
    if not torch.__version__.startswith(SERVED_TORCH):
        return f"the device that stands in for CUDA's is written for torch {SERVED_TORCH}"
    if not FAKE_DRIVER.exists():
        return "no fake driver: with CUDA's headers, cmake --build build --target gpus_for_python makes one"
    return ""


def library() -> Path:
    """The device's library, built if its sources or torch are not those of the last time."""
    sources = sorted(HERE.glob("*.cpp"))
    content = [path.read_bytes() for path in sorted(HERE.glob("*.[ch]*"))]
    digest = hashlib.sha256(b"".join([torch.__version__.encode(), *content])).hexdigest()[:16]
    built = BUILD / "stand_in" / f"libstand_in-{digest}.so"
    if built.exists():
        return built
    shutil.rmtree(built.parent, ignore_errors=True)
    built.parent.mkdir(parents=True)
    compiler = [*filter(None, [shutil.which("ccache")]), os.environ.get("CXX", "c++")]
    flags = [
        "-std=c++20",
        "-O1",
        "-fPIC",
        "-fvisibility=hidden",
        *(f"-isystem{path}" for path in include_folders()),
    ]
    objects = [built.with_name(f"{source.stem}.o") for source in sources]
    compilers = [
        subprocess.Popen([*compiler, *flags, "-c", source, "-o", to])
        for source, to in zip(sources, objects, strict=True)
    ]
    assert [each.wait() for each in compilers] == [0] * len(compilers), (
        "the stand-in for CUDA's device could not be compiled"
    )
    unfinished = built.with_suffix(f".{os.getpid()}")
    libraries = [f"-L{torch.__path__[0]}/lib", "-ltorch_cpu", "-lc10"]
    subprocess.run([compiler[-1], "-shared", *objects, *libraries, "-o", unfinished], check=True)
    unfinished.rename(built)
    return built


def include_folders() -> list[str]:
    root = torch.__path__[0]
    # The headers of CUDA that come with torch.
    cuda = [str(path) for path in Path(root).parent.glob("nvidia/*/include") if (path / "cuda.h").exists()]
    return [f"{root}/include", f"{root}/include/torch/csrc/api/include", *cuda]


def start(gpus: int = 1, **settings) -> None:
    """Brings the device into this process, in the place of CUDA's."""
    os.environ["FAKE_CUDA_GPUS"] = str(gpus)
    os.environ.update({f"FAKE_CUDA_{name.upper()}": str(value) for name, value in settings.items()})
    # The device and the library look for the driver by its name, and get the one that is loaded here.
    ctypes.CDLL(str(FAKE_DRIVER))
    # Named, it is what torch calls the accelerator.
    torch.utils.rename_privateuse1_backend(NAME)
    torch.ops.load_library(library())
    torch.ops.stand_in.start()
    torch._register_device_module(NAME, device_module(gpus))
    dist.Backend.backend_capability["fccl"] = ["cpu", NAME]
    dist.Backend.default_device_backend_map[NAME] = "fccl"
    _register.load().stand_in_for_cuda(NAME)


def device_module(gpus: int) -> types.ModuleType:
    """The module that programs expect to find as torch.NAME."""
    module = types.ModuleType(f"torch.{NAME}")
    accelerator = torch.accelerator
    module.is_available = module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = lambda: gpus
    module.current_device = accelerator.current_device_index
    module.set_device = accelerator.set_device_index
    module.current_stream = accelerator.current_stream
    module.synchronize = accelerator.synchronize
    module.Stream, module.Event = torch.Stream, torch.Event
    module.stream = lambda stream: stream
    module.get_amp_supported_dtype = lambda: [torch.bfloat16]
    return module


def device(index: int = 0) -> torch.device:
    return torch.device(NAME, index)
