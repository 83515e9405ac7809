"""Describes the host that this runs on: instance type, driver, libfabric, EFA devices, interfaces, limits."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import socket
import subprocess
from pathlib import Path

import device_limits

DRIVER = "efa"
LOOK_SECONDS = 30
NIC = re.compile(r"^\s*nic (\S+)", re.MULTILINE)
NEITHER = re.compile(r"^(lo|docker|veth|br-|cni|virbr)")


def describe(info: str, libraries: str, root: Path = Path("/")) -> dict:
    """All that the steps about one host read, as JSON takes it; `info` is the program fccl-info, which finds
    its libraries at `libraries`.
    """
    return {
        "host": socket.gethostname(),
        "instance": instance_type(root),
        "driver": driver_version(root),
        "libfabric": libfabric(),
        "devices": devices(root),
        "limits": limits(),
        "memory_locked": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
        "memory": available_memory(root),
        "interfaces": interfaces(info, libraries),
        "route": interface_of_route(root),
    }


def text_of(path: Path) -> str:
    """The one line of a file of /sys; "" where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def instance_type(root: Path) -> dict:
    """Returns what the firmware says: EC2 puts the instance type where others put the name of the machine."""
    dmi = root / "sys/class/dmi/id"
    return {"vendor": text_of(dmi / "sys_vendor"), "type": text_of(dmi / "product_name")}


def driver_version(root: Path) -> str:
    """The version of the driver efa; "" if it is not loaded, "unknown" if it does not say."""
    module = root / "sys/module" / DRIVER
    return (text_of(module / "version") or "unknown") if module.is_dir() else ""


def devices(root: Path) -> list[dict]:
    """The RDMA devices of the driver efa, by name."""
    found = []
    for device in sorted((root / "sys/class/infiniband").glob("*")):
        driver = device / "device/driver"
        if driver.exists() and driver.resolve().name == DRIVER:
            state = text_of(device / "ports/1/state").rpartition(": ")[2]
            found.append(
                {
                    "name": device.name,
                    "id": text_of(device / "device/device"),
                    "firmware": text_of(device / "fw_ver"),
                    "state": state,
                }
            )
    return found


def libfabric() -> dict:
    """Version and file of the library that the programs will load; the error where it is missing."""
    try:
        library = device_limits.load("libfabric.so.1")
    except OSError as error:
        return {"version": "", "file": "", "error": str(error)}
    library.fi_version.restype = ctypes.c_uint32
    version = library.fi_version()
    maps = Path("/proc/self/maps").read_text()
    files = re.findall(r"(/\S*libfabric\.so\S*)", maps)
    return {"version": f"{version >> 16}.{version & 0xFFFF}", "file": files[0] if files else "", "error": ""}


def limits() -> dict:
    """The limits of the EFA devices, or why they are not known."""
    try:
        return {"devices": device_limits.limits_of_devices(), "error": ""}
    except (OSError, AttributeError) as error:
        return {"devices": {}, "error": str(error)}


def available_memory(root: Path) -> int:
    """Bytes that programs may still take; 0 if the kernel does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(root / "proc/meminfo"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def interfaces(info: str, libraries: str) -> list[str]:
    """The network interfaces that fccl-info shows, without bridges of containers."""
    try:
        asked = subprocess.run(
            [info, "topology"],
            capture_output=True,
            text=True,
            timeout=LOOK_SECONDS,
            env=dict(os.environ) | {"FCCL_TRANSPORT": "tcp", "LD_LIBRARY_PATH": libraries},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    shown = NIC.findall(asked.stdout)
    return [name for name in shown if Path("/sys/class/net", name).exists() and not NEITHER.match(name)]


def interface_of_route(root: Path) -> str:
    """The interface of the default route; "" without such a route."""
    for line in text_of(root / "proc/net/route").splitlines()[1:]:
        name, destination = line.split()[:2]
        if destination == "00000000":
            return name
    return ""
