"""A stand-in of a host with EFAs, as an agent of ./dev efa describes it."""

from pathlib import Path

import judged

GIB = 1 << 30


def host_of(type_name: str, count: int, **more: object) -> dict:
    """A host of an instance type with so many EFAs, as an agent describes it."""
    names = [f"rdmap{79 + number}s0" for number in range(count)]
    limit = {"read": True, "write": True, "unsolicited": True, "largest": GIB}
    host = {
        "host": "ip-10-0-0-1",
        "instance": {"vendor": "Amazon EC2", "type": type_name},
        "driver": "2.17.0g",
        "libfabric": {"version": "2.4", "file": "/opt/amazon/efa/lib64/libfabric.so.1", "error": ""},
        "devices": [{"name": name, "id": "0xefa1", "firmware": "0", "state": "ACTIVE"} for name in names],
        "limits": {"devices": {name: dict(limit) for name in names}, "error": ""},
        "memory_locked": judged.UNLIMITED,
        "memory": 0,
        "interfaces": ["eth0"],
        "route": "eth0",
    }
    return host | more


def write(path: Path, text: str) -> None:
    """A file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
