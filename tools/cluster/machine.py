"""The first process of a cluster: starts the commands, waits for their ends, serves the control socket."""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import launch
import messages
import network
from hosts import Hosts
from lines import LabelledOutput
from shape import Shape

GRACE_AFTER_FAILURE = 30.0
GRACE_AFTER_TERM = 5.0
HOST_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "cont": signal.SIGCONT}


@dataclass(frozen=True)
class Order:
    """The user's order: a shape, a command, labels before lines, and counters, perhaps in a file."""

    shape: Shape
    starts: list[launch.Start]
    labels: bool = False
    counters: bool = False
    counters_file: str | None = None


class Machine:
    """A cluster while it runs; its process is the first of its namespaces, and all others end with it."""

    def __init__(self, order: Order, name: str, listening: socket.socket) -> None:
        self._order = order
        self._environment = dict(os.environ) | {
            launch.CONTROL: name,
            # Other folders are shared by the hosts, as over NFS.
            "TMPDIR": "/dev/shm",
        }
        self._folder = os.getcwd()
        self._hosts = Hosts(order.shape, name)
        self._selector = selectors.DefaultSelector()
        for each in (listening, *self._hosts.listening):
            self._watch(each, partial(self._accept, each))
        for host, channel in enumerate(self._hosts.channels):
            self._watch(channel, partial(self._hear, host))
        self._running: dict[int, int] = {}  # the host of each start whose status counts
        self._clients: dict[int, socket.socket] = {}  # the client that waits for each of the other starts
        self._starts = 0
        self._outputs = 0
        self._status = 0
        self._term_at: float | None = None
        self._kill_at: float | None = None

    def run(self) -> int:
        """Runs the commands; gives the status of the first that failed, or 0."""
        self._introduce()
        before = network.read_counters(self._order.shape)
        for each in self._order.starts:
            number = self._start_planned(each)
            if each.is_awaited:
                self._running[number] = each.host
        self._serve_signals()
        while self._running or self._outputs:
            for key, _ in self._selector.select(self._patience()):
                key.data()
            self._end_late_ones()
        if self._order.counters:
            self._report(network.difference(before, network.read_counters(self._order.shape)))
        return self._status

    def _introduce(self) -> None:
        shape = self._order.shape
        hosts = f"hosts {len(shape.ranks)}, rails {shape.rails}, rate {shape.rate or 'none'}"
        tcp = " and ".join(self._hosts.congestion_controls)
        print(f"cluster: {hosts}, congestion control of TCP {tcp}", file=sys.stderr, flush=True)

    def _watch(self, what: socket.socket | int, handle: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, handle)

    def _start_planned(self, planned: launch.Start) -> int:
        environment = self._environment | planned.environment
        with open(os.devnull) as nothing:
            if not (self._order.labels and planned.is_awaited):
                return self._start(planned.host, planned.command, environment, (nothing.fileno(), 1, 2))
            outputs = [LabelledOutput(planned.label, target) for target in (1, 2)]
            writing = tuple(output.writing for output in outputs)
            number = self._start(planned.host, planned.command, environment, (nothing.fileno(), *writing))
        for output in outputs:
            os.close(output.writing)
            self._outputs += 1
            self._watch(output.reading, partial(output.pass_on, partial(self._end_output, output.reading)))
        return number

    def _end_output(self, reading: int) -> None:
        self._selector.unregister(reading)
        self._outputs -= 1

    def _start(
        self, host: int, command: list[str], environment: dict[str, str], descriptors: tuple[int, ...]
    ) -> int:
        self._starts += 1
        body = {"do": "start", "start": self._starts, "command": command, "folder": self._folder}
        self._hosts.tell(host, body | {"environment": environment}, descriptors)
        return self._starts

    def _hear(self, host: int) -> None:
        message = messages.receive(self._hosts.channels[host])
        if message is None:
            raise OSError(f"the first process of host {host} ended")
        number, status = message.body["ended"], message.body["status"]
        if client := self._clients.pop(number, None):
            self._selector.unregister(client)
            self._reply(client, {"status": status})
        elif self._running.pop(number, None) is not None and status != 0:
            self._status = self._status or status
            self._term_at = self._term_at or time.monotonic() + GRACE_AFTER_FAILURE

    # Ending what does not end by itself.

    def _serve_signals(self) -> None:
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        # The kernel buries orphans of the cluster and programs that set up its network.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        self._watch(reading, partial(self._be_interrupted, reading))

    def _be_interrupted(self, reading: int) -> None:
        os.read(reading, 4096)
        if self._kill_at is None:
            self._term_at = time.monotonic()
        else:
            self._kill_at = time.monotonic()

    def _patience(self) -> float | None:
        deadlines = [at for at in (self._term_at, self._kill_at) if at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _end_late_ones(self) -> None:
        now = time.monotonic()
        if self._term_at is not None and now >= self._term_at and self._kill_at is None:
            for number, host in self._running.items():
                self._hosts.signal(host, signal.SIGTERM, number)
            self._kill_at = now + GRACE_AFTER_TERM
        if self._kill_at is not None and now >= self._kill_at:
            for host in self._order.shape.hosts:
                self._hosts.signal(host, signal.SIGKILL)
            self._kill_at = now + GRACE_AFTER_TERM
        if self._kill_at is not None:
            self._term_at = None

    # The control socket.

    def _accept(self, listening: socket.socket) -> None:
        client = messages.accept(listening)
        if client is not None:
            self._watch(client, partial(self._serve, client))

    def _reply(self, client: socket.socket, body: dict) -> None:
        # A client that is gone needs no reply.
        with contextlib.suppress(ConnectionError):
            messages.send(client, body)
        client.close()

    def _serve(self, client: socket.socket) -> None:
        self._selector.unregister(client)
        message = messages.receive(client)
        if message is None:
            client.close()
            return
        try:
            answer = self._obey(message, client)
        except (OSError, ValueError, KeyError, IndexError) as error:
            answer = {"refused": str(error)}
        message.close()
        if answer is not None:
            self._reply(client, answer)

    def _obey(self, message: messages.Message, client: socket.socket) -> dict | None:
        body = message.body
        shape = self._order.shape
        match body["do"]:
            case "run":
                number = self._start(
                    shape.host_of(body["host"]), body["command"], self._environment, message.descriptors
                )
                self._clients[number] = client
                self._watch(client, partial(self._hang_up, number, shape.host_of(body["host"])))
                return None
            case "link":
                network.set_link(shape.host_of(body["host"]), shape.rail_of(body["rail"]), body["state"])
            case "host":
                self._hosts.signal(shape.host_of(body["host"]), HOST_SIGNALS[body["action"]])
            case "counters":
                return {"links": network.read_counters(shape)}
        return {}

    def _hang_up(self, number: int, host: int) -> None:
        client = self._clients.pop(number)
        self._selector.unregister(client)
        client.close()
        self._hosts.signal(host, signal.SIGHUP, number)

    def _report(self, rows: list[dict]) -> None:
        print(network.table(rows), file=sys.stderr, flush=True)
        if self._order.counters_file is not None:
            Path(self._order.counters_file).write_text(json.dumps({"links": rows}, indent=2) + "\n")
