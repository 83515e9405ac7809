"""Rows about single hosts: what each says of itself, against what its instance type should have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MIB = 1 << 20
EC2 = "Amazon EC2"
# libfabric gives EFA's own writes to programs of this interface and later ones.
LEAST_LIBFABRIC = (1, 18)
UNLIMITED = -1


@dataclass(frozen=True)
class InstanceType:
    """The EFA devices of an instance type, the Gbit/s of each, its GPUs, and whether its devices write."""

    devices: int
    gbits: int
    gpus: int
    writes: bool


KNOWN = {
    "p4d.24xlarge": InstanceType(4, 100, 8, writes=False),
    "p4de.24xlarge": InstanceType(4, 100, 8, writes=False),
    "p5.48xlarge": InstanceType(32, 100, 8, writes=True),
    "p5e.48xlarge": InstanceType(32, 100, 8, writes=True),
    "p5en.48xlarge": InstanceType(16, 200, 8, writes=True),
    "p6-b200.48xlarge": InstanceType(8, 400, 8, writes=True),
}


def row(what: str, verdict: str, note: str = "", **more: object) -> dict:
    """One answer; `more`: case, where, value, unit."""
    blank = {"question": None, "case": "", "where": "", "value": None, "unit": ""}
    return blank | more | {"what": what, "verdict": verdict, "note": note}


def type_of(host: dict) -> InstanceType | None:
    """Returns what is known of the host's instance type."""
    return KNOWN.get(host["instance"]["type"])


def version_of(text: str) -> tuple[int, ...]:
    """1.18 as numbers; no numbers where there is no version."""
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def without_efa(hosts: list[dict]) -> str:
    """A sentence about the first host that has no EFA; "" if all have one."""
    for host in hosts:
        if host["devices"]:
            continue
        machine = host["instance"]["type"] or "a machine of an unknown type"
        known = type_of(host)
        has = f", which has {known.devices} of them" if known else ""
        driver = (
            f"the driver efa {host['driver']} is loaded" if host["driver"] else "the driver efa is not loaded"
        )
        return (
            f"{host['host']} has no EFA: it is {machine}{has}, {driver}, and /sys/class/infiniband has no "
            "device of that driver. Launch the instance with network interfaces of type efa and install the "
            "EFA driver there (aws-efa-installer); --provider tcp measures without EFA"
        )
    return ""


def machine_rows(hosts: list[dict], provider: str) -> Iterator[dict]:
    """Instance type, driver and libfabric of each host, and whether all hosts have the same."""
    for host in hosts:
        case = host["host"]
        instance = host["instance"]
        is_ec2 = instance["vendor"] == EC2
        said = " ".join(filter(None, (instance["vendor"], instance["type"]))) or "the firmware says nothing"
        yield row("instance type", "works" if is_ec2 else "unsupported", said, case=case)
        wants_driver = provider == "efa"
        driver = f"efa {host['driver']}" if host["driver"] else "the driver efa is not loaded"
        verdict = "works" if host["driver"] else "failed" if wants_driver else "unsupported"
        yield row("driver", verdict, driver, case=case)
        yield libfabric_row(host, provider)
    for what, of in (("instance type", instance_of), ("libfabric", libfabric_of), ("driver", driver_of)):
        found = {host["host"]: of(host) for host in hosts}
        if len(set(found.values())) > 1:
            note = ", ".join(f"{name} has {value or 'none'}" for name, value in found.items())
            yield row(f"the same {what} on all hosts", "wrong", note)


def instance_of(host: dict) -> str:
    """The type alone."""
    return host["instance"]["type"]


def libfabric_of(host: dict) -> str:
    """The version alone."""
    return host["libfabric"]["version"]


def driver_of(host: dict) -> str:
    """The version alone."""
    return host["driver"]


def libfabric_row(host: dict, provider: str) -> dict:
    """Which libfabric the programs load, and whether it is new enough for EFA's writes."""
    found = host["libfabric"]
    case = host["host"]
    if not found["version"]:
        note = f"{found['error']}: run the EFA installer, apt-get install libfabric1 or dnf install libfabric"
        return row("libfabric", "failed", note, case=case)
    note = f"{found['version']}, {found['file']}"
    if provider == "efa" and version_of(found["version"]) < LEAST_LIBFABRIC:
        return row("libfabric", "wrong", f"{note}: EFA's own writes want 1.18 or later", case=case)
    return row("libfabric", "works", note, case=case)


def device_rows(hosts: list[dict]) -> Iterator[dict]:
    """Rows about the number of EFAs of each host, against that of its type, and about their links."""
    for host in hosts:
        found, known, case = host["devices"], type_of(host), host["host"]
        ids = ", ".join(sorted({device["id"] for device in found}))
        names = ", ".join(device["name"] for device in found)
        about = {"case": case, "value": len(found), "unit": "devices"}
        if known and len(found) != known.devices:
            note = f"{host['instance']['type']} has {known.devices} EFAs, but here are {len(found)}: {names}"
            yield row("EFA devices", "wrong", note, **about)
        else:
            expected = "as its type has" if known else "its type is not known"
            yield row("EFA devices", "works" if known else "measured", f"{expected}; {ids}; {names}", **about)
        if down := [device["name"] for device in found if device["state"] != "ACTIVE"]:
            yield row("ports that are active", "wrong", f"not active: {', '.join(down)}", case=case)


def limit_rows(hosts: list[dict]) -> Iterator[dict]:
    """Rows that say whether the devices read and write by themselves, and what memory may be locked."""
    for host in hosts:
        case, found = host["host"], host["limits"]
        limits = [
            found["devices"][each["name"]] for each in host["devices"] if each["name"] in found["devices"]
        ]
        if not limits:
            why = found["error"] or "libefa knows none of the devices"
            yield row("what the devices can do", "failed", f"cannot be asked: {why}", case=case)
        else:
            yield from ability_rows(host, limits)
        locked = host["memory_locked"]
        if locked == UNLIMITED:
            yield row("memory that may be locked", "works", "unlimited", case=case)
        else:
            note = (
                f"{locked / MIB:.0f} MiB: EFA locks what it registers; set memlock to unlimited (limits.conf)"
            )
            yield row("memory that may be locked", "wrong", note, case=case)


def ability_rows(host: dict, limits: list[dict]) -> Iterator[dict]:
    """Rows about what all devices of a host can do."""
    case, known = host["host"], type_of(host)
    reads, writes = (all(each[what] for each in limits) for what in ("read", "write"))
    of_all = f"{len(limits)} devices"
    yield row("RDMA read", "works" if reads else "unsupported", of_all, case=case)
    if writes:
        yield row("RDMA write", "works", of_all, case=case)
    elif known and known.writes:
        note = (
            f"devices of {host['instance']['type']} write, but these say that they do not: update the driver"
        )
        yield row("RDMA write", "wrong", note, case=case)
    else:
        yield row("RDMA write", "unsupported", "emulated: libfabric sends messages in its place", case=case)
    if any(each["unsolicited"] for each in limits):
        yield row("writes that take no receive", "works", of_all, case=case)
    yield row("largest RDMA", "measured", of_all, case=case, value=limits[0]["largest"] / MIB, unit="MiB")
