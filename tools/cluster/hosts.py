"""The hosts of a cluster as its first process sees them: made together, then told what to do."""

import os
import socket

import messages
import namespaces
import network
from host import KINDS, Host
from shape import Shape, host_name

_KERNEL_SYMBOLS = "/proc/kallsyms"


class Hosts:
    """Makes the hosts in the network namespace of the caller; they end with it.

    `channels` has the connection to each host's first process, `listening` the cluster's control socket as
    each host sees it, `congestion_controls` what their TCP has.
    """

    def __init__(self, shape: Shape, name: str) -> None:
        self.shape = shape
        self.channels: list[socket.socket] = []
        self.listening: list[socket.socket] = []
        network.make_rails(shape)
        inits = [self._fork_host(host, name) for host in shape.hosts]
        for host in shape.hosts:
            arrived = self._answer(host)
            self.listening.append(socket.socket(fileno=arrived.descriptors[0]))
        network.connect_hosts(shape, inits)
        for host in shape.hosts:
            self.tell(host, {"do": "configure"})
        answers = [self._answer(host).body for host in shape.hosts]
        self.congestion_controls = sorted({answer["congestion_control"] for answer in answers})

    def tell(self, host: int, body: dict, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a message to the first process of a host."""
        messages.send(self.channels[host], body, descriptors)

    def signal(self, host: int, number: int, start: int | None = None) -> None:
        """Signals what was started under this number; without one, every process of the host."""
        self.tell(host, {"do": "signal", "signal": int(number), "start": start})

    def _answer(self, host: int) -> messages.Message:
        message = messages.receive(self.channels[host])
        if message is None or "refused" in message.body:
            why = message.body["refused"] if message else "its first process ended"
            raise OSError(f"{host_name(host)} cannot be made: {why}")
        return message

    def _fork_host(self, host: int, name: str) -> int:
        ours, its = messages.pair()
        self.channels.append(ours)
        namespaces.unshare(namespaces.NEW_PID)
        init = namespaces.fork(lambda: _be_host(self.shape, host, its, name))
        # The next host's namespace is to be beside this one's, not in it.
        namespaces.enter("/proc/self/ns/pid", namespaces.NEW_PID)
        its.close()
        return init


def _be_host(shape: Shape, host: int, channel: socket.socket, name: str) -> int:
    namespaces.unshare(KINDS)
    namespaces.mount("proc", "/proc")
    namespaces.mount("sysfs", "/sys")
    # libfabric 1.17 reads the kernel's symbols twice in each process, which takes 80 ms of a core, and the
    # hosts share theirs.
    if os.path.exists(_KERNEL_SYMBOLS):
        namespaces.bind(os.devnull, _KERNEL_SYMBOLS)
    with messages.listen(name) as listening:
        messages.send(channel, {"arrived": host}, (listening.fileno(),))
    return Host(shape, host, channel).live()
