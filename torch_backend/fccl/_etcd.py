"""A client of etcd's v3 API over its JSON gateway, which tries again while etcd is away."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

import urllib3
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

PAUSE_SECONDS = 0.2


class EtcdError(RendezvousConnectionError):
    """etcd could not be reached for as long as was allowed, or refused; its text says so.

    torch knows an error of the connection by this type, of the state and of the store alike.
    """


@dataclass(frozen=True)
class Access:
    """The addresses of etcd, the ways to reach it, and how long to wait for it."""

    endpoints: tuple[str, ...]
    protocol: str = "http"
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    read_timeout: int = 10
    retry_timeout: int = 30
    ttl: int = 7200

    def __str__(self) -> str:
        return ", ".join(f"{self.protocol}://{each}" for each in self.endpoints)


@dataclass(frozen=True)
class Entry:
    """A key's value, and the revision that wrote it."""

    key: str
    value: bytes
    revision: int


Operation = dict[str, Any]


class Etcd:
    """One per agent; any thread may call it."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=min(3, access.read_timeout), read=access.read_timeout),
            retries=False,
            ca_certs=access.cacert,
            cert_file=access.cert,
            key_file=access.key,
        )
        self._preferred = 0
        self._given_up = False
        self._lease = ""
        self._lease_made = 0.0

    def entry(self, key: str) -> Entry | None:
        """The value of the key, or None if it does not exist."""
        return _entry(self._call("kv/range", {"key": _text(key)}))

    def last_entry(self, prefix: str) -> Entry | None:
        """The last of the keys that begin with `prefix`, in the order of their names."""
        bounds = {"key": _text(prefix), "range_end": _text(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
        return _entry(
            self._call("kv/range", {**bounds, "sort_order": "DESCEND", "sort_target": "KEY", "limit": 1})
        )

    def has(self, keys: list[str]) -> bool:
        """Tells if all of these keys exist."""
        answer = self._transact(
            [], [{"requestRange": {"key": _text(key), "count_only": True}} for key in keys]
        )
        return all(each["response_range"].get("count", "0") != "0" for each in answer["responses"])

    def put(self, key: str, value: bytes) -> None:
        """Writes the key, whatever it holds."""
        self._transact([], [self.writing(key, value)])

    def replace(
        self, key: str, revision: int, value: bytes, marker: str | None = None
    ) -> tuple[Entry | None, bool]:
        """Writes the key if this revision (0: none) wrote it last; returns what it holds, and if it wrote.

        A call that is tried again may find that it was heard the first time: `marker`, a key of this
        call's own that is written with the other, tells so.
        """
        compare = {"key": _text(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}
        writes = [self.writing(key, value)]
        reads = [{"requestRange": {"key": _text(key)}}]
        if marker is not None:
            writes.append(self.writing(marker, b"1"))
            reads.append({"requestRange": {"key": _text(marker)}})
        answer = self._transact([compare], writes, reads)
        if answer.get("succeeded"):
            return Entry(key, value, int(answer["header"]["revision"])), True
        found = [each["response_range"] for each in answer["responses"]]
        return _entry(found[0]), marker is not None and _entry(found[1]) is not None

    def writing(self, key: str, value: bytes) -> Operation:
        """A put under a lease: nothing stays in etcd for longer than ttl after its last writer has gone."""
        return {"requestPut": {"key": _text(key), "value": _text(value), "lease": self._current_lease()}}

    def _current_lease(self) -> str:
        # A new lease now and then is simpler than one that is kept alive, and what is old is not read again.
        if not self._lease or time.monotonic() - self._lease_made > self.access.ttl / 4:
            made = time.monotonic()
            self._lease = self._call("lease/grant", {"TTL": str(self.access.ttl)})["ID"]
            self._lease_made = made
        return self._lease

    def _transact(
        self, compare: list[Operation], success: list[Operation], failure: list[Operation] | None = None
    ) -> dict[str, Any]:
        return self._call("kv/txn", {"compare": compare, "success": success, "failure": failure or []})

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Tries every endpoint in turn, again and again, until one answers or retry_timeout has passed."""
        deadline = time.monotonic() + (0 if self._given_up else self.access.retry_timeout)
        while True:
            try:
                answer = self._ask(path, body)
                self._given_up = False
                return answer
            except (urllib3.exceptions.HTTPError, _AwayError) as error:
                self._preferred += 1
                if time.monotonic() >= deadline and self._preferred >= len(self.access.endpoints):
                    # Calls that follow, such as closing the rendezvous, shall not wait as long again.
                    self._given_up = True
                    raise EtcdError(
                        f"etcd at {self.access} did not answer /v3/{path} for "
                        f"{self.access.retry_timeout} s: {_reason(error)}. See whether etcd runs there and "
                        "whether --rdzv-endpoint is right; "
                        "--rdzv-conf retry_timeout=SECONDS waits longer for it"
                    ) from error
                time.sleep(PAUSE_SECONDS)

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        endpoint = self.access.endpoints[self._preferred % len(self.access.endpoints)]
        url = f"{self.access.protocol}://{endpoint}/v3/{path}"
        response = self._pool.request("POST", url, body=json.dumps(body).encode())
        text = response.data.decode(errors="replace")
        if response.status == 200:
            return json.loads(text)
        # Without a leader, or while it stops, etcd answers so; another try may find it well again.
        if response.status in (500, 502, 503, 504):
            raise _AwayError(f"status {response.status}, {text.strip()}")
        raise EtcdError(
            f"etcd at {self.access.protocol}://{endpoint} refused /v3/{path} with status {response.status}: "
            f"{text.strip()}. etcd-v3 needs etcd 3.4 or later with its JSON gateway, and no authentication"
        )


class _AwayError(Exception):
    """An answer that means that etcd cannot serve now."""


def _reason(error: BaseException) -> str:
    return str(getattr(error, "reason", None) or error)


def _text(raw: str | bytes) -> str:
    return b64encode(raw.encode() if isinstance(raw, str) else raw).decode()


def _entry(answer: dict[str, Any]) -> Entry | None:
    for found in answer.get("kvs", []):
        value = b64decode(found.get("value", ""))
        return Entry(b64decode(found["key"]).decode(), value, int(found["mod_revision"]))
    return None
