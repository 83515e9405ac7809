"""torchrun's `--rdzv-backend etcd-v3`: agents meet in etcd by its v3 API, so that any host of a job may die.

The state of the rendezvous and the agents' Store are both in etcd. torchrun finds this module by its
entry point.
"""

from __future__ import annotations

import datetime
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from torch.distributed import DistStoreError, Store
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousBackend,
    Token,
    create_handler,
)

if TYPE_CHECKING:
    from fccl._etcd import Etcd

NAME = "etcd-v3"
PREFIX = "/fccl/rendezvous"
DEFAULT_PORT = 2379
LONGEST_PAUSE_SECONDS = 0.2


def handler_creator() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """The entry point that torchrun calls."""
    return create


def create(parameters: RendezvousParameters) -> RendezvousHandler:
    """The handler of one agent. A job whose id has been used by a job that has ended begins anew."""
    # A host that joins must learn where rank 0 is now; with torch's shared store it waits for an address
    # that nobody publishes again.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    # The state has the number of the job: if the job's store outlived it, the next job with this id would
    # find the addresses of the last one there.
    backend = EtcdV3Backend(_etcd_of(parameters, part=1), parameters.run_id)
    handler = create_handler(backend.store(_etcd_of(parameters, part=0.5)), backend, parameters)
    # DynamicRendezvousHandler has no other door for a class of its own.
    handler.__class__ = EtcdV3Handler
    return handler


class EtcdV3Handler(DynamicRendezvousHandler):
    """torch's handler, which says what to do about a closed rendezvous, and survives a false death."""

    def next_rendezvous(self) -> RendezvousInfo:
        try:
            return super().next_rendezvous()
        except RendezvousClosedError as error:
            raise RendezvousClosedError(closed(self.settings.run_id)) from error

    def num_nodes_waiting(self) -> int:
        """The agents that wait; this one counts as such where the others took it for dead and went on.

        Without this its ranks would train beside theirs for ever, since torch's handler does not look.
        """
        waiting = super().num_nodes_waiting()
        state = self._state_holder.state
        others = state.participants if state.complete else {}
        forgotten = bool(others) and self._this_node not in others
        return max(waiting, 1) if forgotten else waiting


def closed(run_id: str) -> str:
    """The message for a user whose job met a closed rendezvous."""
    return (
        f"the rendezvous of the job with the id '{run_id}' is closed, because that job has ended on another "
        "host: start the job anew on every host with an id of its own, --rdzv-id (rdzvId)"
    )


class EtcdV3Backend(RendezvousBackend):
    """The state of one job, under its id and a number that grows with each job of this id.

    Used under the handler's lock.
    """

    def __init__(self, etcd: Etcd, run_id: str) -> None:
        self._etcd = etcd
        self._job = f"{PREFIX}/{run_id}"
        last = etcd.last_entry(f"{self._job}/state/")
        number = int(last.key.rsplit("/", 1)[1]) if last else 1
        if last and _is_closed(last.value):
            number += 1
        self._number = f"{number:010}"
        self._key = f"{self._job}/state/{self._number}"

    @property
    def name(self) -> str:
        return NAME

    def store(self, etcd: Etcd) -> EtcdV3Store:
        """The store of this job's agents."""
        return EtcdV3Store(etcd, f"{self._job}/store/{self._number}/")

    def get_state(self) -> tuple[bytes, Token] | None:
        entry = self._etcd.entry(self._key)
        return (entry.value, entry.revision) if entry else None

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        entry, written = self._etcd.replace(self._key, int(token or 0), state)
        return (entry.value, entry.revision, written) if entry else None


class EtcdV3Store(Store):
    """torch's Store in etcd, for the agents' own exchanges; any thread may call it."""

    def __init__(self, etcd: Etcd, prefix: str) -> None:
        super().__init__()
        self._etcd = etcd
        self._prefix = prefix

    def set(self, key: str, value: str | bytes) -> None:
        self._etcd.put(self._prefix + key, _bytes(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        entry = self._etcd.entry(self._prefix + key)
        if entry is None:
            raise DistStoreError(f"the key {key} was removed from etcd while it was read")
        return entry.value

    def add(self, key: str, amount: int) -> int:
        marker = f"{self._prefix}{key}/{uuid.uuid4().hex}"
        entry = self._etcd.entry(self._prefix + key)
        while True:
            total = amount + (int(entry.value) if entry else 0)
            revision = entry.revision if entry else 0
            entry, written = self._etcd.replace(self._prefix + key, revision, b"%d" % total, marker)
            if written:
                return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        entry = self._etcd.entry(self._prefix + key)
        if (entry.value if entry else b"") != _bytes(expected):
            return entry.value if entry else _bytes(expected)
        entry, _ = self._etcd.replace(self._prefix + key, entry.revision if entry else 0, _bytes(desired))
        return entry.value if entry else _bytes(expected)

    def check(self, keys: list[str]) -> bool:
        return self._etcd.has([self._prefix + key for key in keys])

    def wait(self, keys: list[str], timeout: datetime.timedelta | None = None) -> None:
        limit = (timeout or self.timeout).total_seconds()
        deadline = time.monotonic() + limit
        pause = 0.01
        while not self.check(keys):
            if time.monotonic() > deadline:
                raise DistStoreError(
                    f"no other host's agent wrote {', '.join(keys)} to etcd at {self._etcd.access} within "
                    f"{limit:.0f} s"
                )
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _etcd_of(parameters: RendezvousParameters, part: float) -> Etcd:
    """A client whose keys stay for this part of the ttl that the user gave."""
    try:
        from fccl._etcd import Access, Etcd
    except ImportError as error:
        raise RendezvousConnectionError(
            f"--rdzv-backend {NAME} speaks to etcd by urllib3, which is not installed ({error}): "
            "pip install urllib3"
        ) from error
    protocol = parameters.get("protocol", "http")
    if protocol not in ("http", "https"):
        raise ValueError(f"--rdzv-conf protocol={protocol}: choose http or https")
    if bool(parameters.get("cert")) != bool(parameters.get("key")):
        raise ValueError("--rdzv-conf cert and key go together: give both, or neither")
    if not parameters.endpoint:
        raise ValueError(
            f"--rdzv-backend {NAME} needs the address of etcd: --rdzv-endpoint HOST:{DEFAULT_PORT}"
        )
    numbers = {
        name: parameters.get_as_int(name)
        for name in ("read_timeout", "retry_timeout", "ttl")
        if parameters.get(name) is not None
    }
    files = {name: parameters.get(name) for name in ("cacert", "cert", "key")}
    endpoints = tuple(_with_port(each) for each in parameters.endpoint.split(","))
    access = Access(endpoints, protocol, **files, **numbers)
    return Etcd(replace(access, ttl=max(1, int(part * access.ttl))))


def _with_port(endpoint: str) -> str:
    return endpoint if endpoint.rpartition(":")[2].isdigit() else f"{endpoint}:{DEFAULT_PORT}"


def _is_closed(state: bytes) -> bool:
    import pickle

    return bool(pickle.loads(state).closed)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
