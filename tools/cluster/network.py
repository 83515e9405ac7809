"""The rails of a cluster: one bridge each, a shaped link to every host, and the links' counters."""

import os
import re
import subprocess
from pathlib import Path

import settings
from shape import Shape, address, host_name, interface, port

# How late a timer may be before the link loses time: half a millisecond at 1 Gbit/s, on cores that ranks keep
# busy.
_HOST_BURST = "64k"
# The sending host paces its traffic already; a second pacer as strict would lose time, too.
_SWITCH_BURST = "128k"
_LATENCY = "20ms"
# A bucket cuts what is larger than its burst into single frames, as a network card does for nothing, and
# that would take the cores that the ranks need. A smaller packet passes whole and is charged for the
# headers of all its frames.
_PACKET_BYTES = 32768
_LINKS_WANT = "Links want a kernel with bridge and veth, and root with the capability NET_ADMIN"


def _batch(program: str, lines: list[str], advice: str) -> None:
    said = subprocess.run([program, "-batch", "-"], input="\n".join(lines), capture_output=True, text=True)
    if said.returncode == 0:
        return
    observed = " ".join(said.stderr.split())
    refused = re.search(r"Command failed -:(\d+)", observed)
    attempted = f"{program} {lines[int(refused[1]) - 1]}" if refused else program
    raise OSError(f"could not set up the cluster's network: '{attempted}' said: {observed}. {advice}")


def _silence() -> None:
    # Nothing but what the ranks send is to cross the links.
    for which in ("all", "default"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6")
        if setting.exists():
            settings.give(setting, "1", "keep IPv6 off the links")


def _shape(devices: list[str], rate: str | None, burst: str) -> None:
    if rate is not None:
        limit = f"tbf rate {rate} burst {burst} latency {_LATENCY}"
        lines = [f"qdisc add dev {device} root {limit}" for device in devices]
        _batch(
            "tc", lines, "--rate decides this: try another, such as 1gbit, or none, if the kernel has no tbf"
        )


def _keep_order(devices: list[str], is_steered: bool) -> None:
    if not is_steered:
        return
    # A packet is received by whichever processor sends it, so those of one stream may overtake one another,
    # and TCP takes that for loss. Steering gives each stream one processor, at an interrupt per message.
    everyone = f"{(1 << min(os.cpu_count() or 1, 32)) - 1:x}"
    for device in devices:
        steering = Path(f"/sys/class/net/{device}/queues/rx-0/rps_cpus")
        if steering.exists():
            settings.give(steering, everyone, f"steer the packets of {device} (--unsteered does not)")


def make_rails(shape: Shape) -> None:
    """Makes the bridges, in the network namespace of the caller."""
    _silence()
    lines = []
    for rail in range(shape.rails):
        lines += [
            f"link add rail{rail} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set rail{rail} up",
        ]
    _batch("ip", lines, _LINKS_WANT)


def connect_hosts(shape: Shape, inits: list[int]) -> None:
    """Makes the links; `inits` has a process of each host. Shapes the traffic to each host."""
    lines = []
    for host, rail in shape.links:
        name = port(host, rail)
        lines += [
            f"link add {name} type veth peer name {interface(rail)} netns {inits[host]}",
            f"link set {name} master rail{rail} up",
        ]
    _batch("ip", lines, _LINKS_WANT)
    ports = [port(*link) for link in shape.links]
    _keep_order(ports, shape.is_steered)
    _shape(ports, shape.rate, _SWITCH_BURST)


def configure_host(shape: Shape, host: int) -> str:
    """Gives the links their addresses, in the host's network namespace, and shapes the traffic from it.

    Returns the congestion control of its TCP.
    """
    _silence()
    congestion_control = settings.settle_congestion_control()
    lines = ["link set lo up"]
    for rail in range(shape.rails):
        lines += [
            f"addr add {address(host, rail)}/24 dev {interface(rail)}",
            f"link set {interface(rail)} gso_max_size {_PACKET_BYTES} up",
        ]
    _batch("ip", lines, _LINKS_WANT)
    interfaces = [interface(rail) for rail in range(shape.rails)]
    _keep_order(interfaces, shape.is_steered)
    _shape(interfaces, shape.rate, _HOST_BURST)
    return congestion_control


def set_link(host: int, rail: int, state: str) -> None:
    """Takes the link of a host to a rail down or up, as if its cable were pulled or put in."""
    _batch("ip", [f"link set {port(host, rail)} {state}"], _LINKS_WANT)


def read_counters(shape: Shape) -> list[dict]:
    """Bytes that each host has sent and received on each rail."""
    rows = []
    for host, rail in shape.links:
        statistics = Path(f"/sys/class/net/{port(host, rail)}/statistics")
        rows.append(
            {
                "host": host_name(host),
                "rail": rail,
                "sent": int((statistics / "rx_bytes").read_text()),
                "received": int((statistics / "tx_bytes").read_text()),
            }
        )
    return rows


def difference(before: list[dict], after: list[dict]) -> list[dict]:
    """Bytes sent and received between two readings."""
    return [
        later | {key: later[key] - earlier[key] for key in ("sent", "received")}
        for earlier, later in zip(before, after, strict=True)
    ]


def table(rows: list[dict]) -> str:
    """Readings as lines of text."""
    lines = [f"{'host':<8} {'rail':>4} {'sent':>14} {'received':>14}"]
    lines += [f"{row['host']:<8} {row['rail']:>4} {row['sent']:>14} {row['received']:>14}" for row in rows]
    return "\n".join(lines)
