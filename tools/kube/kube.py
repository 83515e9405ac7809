#!/usr/bin/env python3
"""Runs a command on a Kubernetes of one node that it makes on this machine."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import groups
from configuration import Places

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "cluster"))

import namespaces  # noqa: E402
import node  # noqa: E402

BUILT = ROOT / "build" / "kubernetes"
USAGE = "./dev kube [--efa N] -- COMMAND..."
IMAGES = ("pause", "fccl-tests", "etcd")
PROGRAMS = (
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"),
    *("etcd", "containerd", "ctr", "containerd-shim-runc-v2", "runc", "dnsmasq", "iptables", "conntrack"),
    *("openssl", "ssh-keygen", "ip"),
)


def parse(words: list[str]) -> argparse.Namespace:
    """The options and the command; ends the program if they mean nothing."""
    parser = argparse.ArgumentParser(prog="./dev kube", usage=USAGE, description=__doc__)
    parser.add_argument("--efa", type=int, default=0, metavar="N", help="EFAs that the node says it has (0)")
    split = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:split])
    given.command = words[split + 1 :]
    if not given.command:
        parser.error("say -- and a COMMAND")
    if given.efa < 0:
        parser.error(f"--efa wants a number of EFAs, 0 or more, but got {given.efa}")
    return given


def images() -> list[Path]:
    """The archives of images, which ./dev kube makes before."""
    found = [BUILT / "images" / f"{name}.tar" for name in IMAGES]
    if missing := [str(file) for file in found if not file.exists()]:
        raise OSError(
            f"there is no {' and no '.join(missing)}: ./dev kube makes them, so run it in place of kube.py"
        )
    return found


def check() -> None:
    """OSError if this cannot work here."""
    if os.geteuid() != 0:
        raise OSError("a Kubernetes wants root, since it mounts: run sudo ./dev kube")
    path = [BUILT / "bin", BUILT / "packages" / "usr" / "bin", os.environ["PATH"], "/usr/sbin", "/sbin"]
    os.environ["PATH"] = ":".join(map(str, path))
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        raise OSError(
            f"there is no {', '.join(missing)} in PATH: ./dev kube builds or installs each, so run that"
        )


def run(given: argparse.Namespace) -> int:
    """Makes a Kubernetes that lasts as long as this process at most; gives the status of the command."""
    check()
    found = images()
    places = Places(Path(tempfile.mkdtemp(prefix="fccl-kube-")))
    # It holds the pipe's other end, and sees this process end in whatever way.
    sweeper = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("sweep.py")), str(places.root)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        groups.make(places.root.name)
        return _own(places, node.Order(given.command, given.efa, found, places.root.name))
    finally:
        sweeper.stdin.close()
        sweeper.wait()


def _own(places: Places, order: node.Order) -> int:
    owner = os.pidfd_open(os.getpid())
    handled = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    namespaces.unshare(namespaces.NEW_PID)
    first = namespaces.fork(lambda: _begin(places, order, owner))
    return namespaces.await_child(first, handled)


def _begin(places: Places, order: node.Order, owner: int) -> int:
    namespaces.die_with_parent(owner)
    try:
        namespaces.unshare(namespaces.NEW_NET | namespaces.NEW_MOUNT)
        namespaces.own_mounts()
        namespaces.mount("proc", "/proc")
    except OSError as error:
        print(f"kube: making namespaces failed: {error}", file=sys.stderr, flush=True)
        return 1
    return node.be(places, order)


def main(words: list[str]) -> int:
    """The exit status of the program."""
    given = parse(words)
    try:
        return run(given)
    except OSError as error:
        print(f"kube: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
