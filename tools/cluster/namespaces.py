"""The system calls on namespaces that Python 3.11 does not offer, as functions that raise OSError."""

import ctypes
import os
import select
import signal
from collections.abc import Callable
from typing import NoReturn

_C = ctypes.CDLL(None, use_errno=True)

NEW_MOUNT = 0x00020000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(kinds: int) -> None:
    """Moves the calling process into new namespaces; of NEW_PID, only children forked from now on."""
    _check(_C.unshare(kinds), "unshare")


def enter(path: str, kind: int) -> None:
    """Moves the calling process into the namespace behind a path as /proc/self/ns/net."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_C.setns(descriptor, kind), f"setns to {path}")
    finally:
        os.close(descriptor)


def die_with_parent(parent: int) -> None:
    """Ends the calling process when its parent ends, in whatever way; `parent` is the parent's pidfd."""
    _check(_C.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)


def own_mounts() -> None:
    """Keeps what is mounted from now on from being seen outside the calling process's mount namespace."""
    what = "making / private (in a chroot, first bind the folder of / onto itself)"
    _check(_C.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), what)


def mount(kind: str, place: str) -> None:
    """Mounts a new file system of a kind."""
    _check(_C.mount(kind.encode(), place.encode(), kind.encode(), 0, None), f"mounting {kind} on {place}")


def bind(source: str, place: str) -> None:
    """Shows a file in the place of another."""
    _check(_C.mount(source.encode(), place.encode(), None, _MS_BIND, None), f"binding {source} to {place}")


def unmount(place: str) -> None:
    """Takes a file system from its place; files that are bound or open stay."""
    _check(_C.umount2(place.encode(), _MNT_DETACH), f"unmounting {place}")


def fork(body: Callable[[], int]) -> int:
    """Runs a function in a child process, whose exit status it returns; gives the child's id."""
    child = os.fork()
    if child == 0:
        _end_with(body)
    return child


def await_child(child: int, handled: set[signal.Signals]) -> int:
    """Waits for a child; the signals, blocked until now, go on to it as SIGTERM. Gives a shell's status."""
    caught: list[int] = []

    def pass_on(number: int, _: object) -> None:
        caught.append(number)
        os.kill(child, signal.SIGTERM)

    for number in handled:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    _, ended = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(ended)
    if caught:
        return 128 + caught[0]
    return status if status >= 0 else 128 - status


def _end_with(body: Callable[[], int]) -> NoReturn:
    status = 1
    try:
        status = body()
    finally:
        os._exit(status)
