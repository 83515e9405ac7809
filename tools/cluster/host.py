"""The first process of a host: makes the host's world, starts commands in it, and says how they ended."""

import contextlib
import os
import select
import signal
import socket
import sys
from pathlib import Path

import launch
import messages
import namespaces
import network
from shape import Shape, address, host_name

KINDS = namespaces.NEW_NET | namespaces.NEW_UTS | namespaces.NEW_IPC | namespaces.NEW_MOUNT
MEMORY = "/dev/shm"


class Host:
    """One host, process 1 of its namespaces: all its processes end when this one does.

    Obeys the messages that come over `channel` until it closes.
    """

    def __init__(self, shape: Shape, number: int, channel: socket.socket) -> None:
        self._shape = shape
        self._number = number
        self._channel = channel
        self._started: dict[int, int] = {}  # the number of the start for each pid

    def live(self) -> int:
        """Runs until the cluster is gone."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            ready, _, _ = select.select([self._channel, wake_read], [], [])
            if wake_read in ready:
                os.read(wake_read, 4096)
                self._reap()
            if self._channel in ready:
                message = messages.receive(self._channel)
                if message is None:
                    return 0
                self._obey(message)
                message.close()

    def _obey(self, message: messages.Message) -> None:
        body = message.body
        match body["do"]:
            case "configure":
                try:
                    congestion_control = make_world(self._shape, self._number)
                except OSError as error:
                    messages.send(self._channel, {"refused": str(error)})
                else:
                    messages.send(self._channel, {"congestion_control": congestion_control})
            case "start":
                self._started[start(body, message.descriptors)] = body["start"]
            case "signal":
                self._signal(body["signal"], body["start"])

    def _signal(self, number: int, start: int | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            if start is None:
                # A process may fork while the others are signalled.
                for _ in range(3):
                    os.kill(-1, number)
            for process, started in self._started.items():
                if started == start:
                    os.killpg(process, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                started = self._started.pop(process, None)
                if started is not None:
                    code = os.waitstatus_to_exitcode(status)
                    ended = {"ended": started, "status": code if code >= 0 else 128 - code}
                    messages.send(self._channel, ended)


def make_world(shape: Shape, number: int) -> str:
    """Gives the calling process's namespaces a name, memory, names of the other hosts, and addresses.

    Returns the congestion control of the host's TCP.
    """
    socket.sethostname(host_name(number))
    namespaces.mount("tmpfs", MEMORY)
    names = Path(MEMORY, "hosts")
    lines = ["127.0.0.1 localhost", *(f"{address(host, 0)} {host_name(host)}" for host in shape.hosts)]
    names.write_text("\n".join(lines) + "\n")
    namespaces.bind(str(names), "/etc/hosts")
    # The names stay where they are bound; the host begins with nothing in memory but lists for mpirun.
    namespaces.unmount(MEMORY)
    namespaces.mount("tmpfs", MEMORY)
    for path, text in launch.host_files(shape).items():
        Path(path).write_text(text)
    return network.configure_host(shape, number)


def start(body: dict, descriptors: tuple[int, ...]) -> int:
    """Starts a command in a session of its own, with these descriptors as its input, output and errors."""
    process = os.fork()
    if process != 0:
        return process
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.chdir(body["folder"])
        os.execvpe(body["command"][0], body["command"], body["environment"])
    except OSError as error:
        name = body["command"][0]
        how = "" if "/" in name else " (by PATH)"
        print(f"cluster: cannot start {name}{how}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)
