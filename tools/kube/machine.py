"""Makes the node out of this machine: files, mounts and a network that nobody else sees."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import configuration
from configuration import Places

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "cluster"))

import namespaces  # noqa: E402

# kubelet writes these, which are the whole machine's. Here it writes into files that have what it wants.
_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# Daemons write here without asking; they read what was here before.
_COVERED = ("/var", "/opt")


def run(*words: str) -> None:
    """Runs a program of the system; OSError if it fails."""
    ended = subprocess.run(words, capture_output=True, text=True)
    if ended.returncode != 0:
        raise OSError(f"{' '.join(words)} ended with status {ended.returncode}: {ended.stderr.strip()}")


def make(places: Places) -> None:
    """All of it; this process has a mount and a network namespace of its own."""
    places.logs.mkdir()
    for folder in _COVERED:
        _cover(folder, places.root)
    # Sockets of containers, and locks.
    namespaces.mount("tmpfs", "/run")
    _replace(
        "/etc/hosts",
        Path("/etc/hosts").read_text() + f"{configuration.ADDRESS} {configuration.NODE}\n",
        places,
    )
    (places.root / "resolv.conf").write_text("")
    for name, value in _SETTINGS.items():
        _replace(f"/proc/sys/{name}", f"{value}\n", places)
    _connect()
    _place_environment(places)


def _cover(folder: str, root: Path) -> None:
    above, work = root / f"above{folder}", root / f"work{folder}"
    above.mkdir(parents=True)
    work.mkdir(parents=True)
    run(
        "mount",
        "-t",
        "overlay",
        "-o",
        f"lowerdir={folder},upperdir={above},workdir={work}",
        "overlay",
        folder,
    )


def _replace(path: str, text: str, places: Places) -> None:
    if not Path(path).exists():
        return
    own = places.root / "replaced" / path.replace("/", "_")
    own.parent.mkdir(exist_ok=True)
    own.write_text(text)
    namespaces.bind(str(own), path)


def _connect() -> None:
    """A bridge carries the node's address, since not every kernel has devices of the kind dummy."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "node", "type", "bridge")
    run("ip", "addr", "add", f"{configuration.ADDRESS}/24", "dev", "node")
    run("ip", "link", "set", "node", "up")
    run("ip", "route", "add", "default", "dev", "node")


def _place_environment(places: Places) -> None:
    """The Python that runs this and its packages, at the place where the image fccl-train has them."""
    top = Path(configuration.ENVIRONMENT)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name, shown in {
        "python": sys.base_prefix,
        "packages": sysconfig.get_path("purelib"),
        "source/trainer": str(ROOT / "trainer"),
    }.items():
        (top / name).mkdir(parents=True)
        namespaces.bind(shown, str(top / name))
    (top / "bin").mkdir()
    _script(
        top / "bin" / "python",
        f"export PYTHONHOME={top}/python PYTHONPATH={top}/packages:{top}/source PYTHONDONTWRITEBYTECODE=1\n"
        f"export LD_LIBRARY_PATH={top}/python/lib:$LD_LIBRARY_PATH\n"
        f'exec {top}/python/bin/{python} "$@"',
    )
    _script(top / "bin" / "torchrun", f'exec {top}/bin/python -m torch.distributed.run "$@"')
    Path(configuration.RUNS).mkdir()


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
