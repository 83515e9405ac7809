"""Messages between the processes of a cluster: JSON and descriptors, one per packet of a unix socket."""

import json
import os
import socket
import struct
from dataclasses import dataclass

_LARGEST = 1 << 20
_MOST_DESCRIPTORS = 3


@dataclass(frozen=True)
class Message:
    """The body of a packet and the descriptors that came with it, which the receiver owns."""

    body: dict
    descriptors: tuple[int, ...] = ()

    def close(self) -> None:
        """Closes the descriptors."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return tuple(_roomy(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))


def listen(name: str) -> socket.socket:
    """A socket that listens under an abstract name, which exists in the caller's network namespace only."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"\0{name}")
    listening.listen(64)
    return listening


def connect(name: str) -> socket.socket:
    """Connects to the process that listens under this name."""
    connection = _roomy(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    connection.connect(f"\0{name}")
    return connection


def accept(listening: socket.socket) -> socket.socket | None:
    """The next connection; None if it comes from another user, since an abstract name has no permissions."""
    connection, _ = listening.accept()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", credentials)[1] == os.geteuid():
        return _roomy(connection)
    connection.close()
    return None


def send(connection: socket.socket, body: dict, descriptors: tuple[int, ...] = ()) -> None:
    """Sends one message."""
    socket.send_fds(connection, [json.dumps(body).encode()], list(descriptors))


def receive(connection: socket.socket) -> Message | None:
    """The next message; None when the other end is gone."""
    try:
        said, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, _MOST_DESCRIPTORS)
    except ConnectionError:
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return Message(json.loads(said), tuple(descriptors)) if said else None


def _roomy(connection: socket.socket) -> socket.socket:
    # An environment and a command line must fit into one packet, whatever the system's usual limit is.
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, option, _LARGEST)
    return connection
