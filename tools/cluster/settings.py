"""The kernel's settings of a host: each is written here, and who is refused one is told what decides."""

from collections.abc import Callable, Sequence
from pathlib import Path

_IPV4 = Path("/proc/sys/net/ipv4")
# The first that the kernel lets a host have. Reno is built into every kernel, and free for all unless the
# machine's list was written without it. Neither paces by timers, as the machine's own choice may (bbr): that
# would take cores that the ranks need, beside the pacing of the links.
CONGESTION_CONTROLS = ("reno", "cubic")


def give(setting: Path, value: str, purpose: str) -> None:
    """Writes a setting; OSError says what for, and what was seen."""
    try:
        setting.write_text(value)
    except OSError as error:
        raise OSError(
            f"cannot {purpose}: writing {value} to {setting} failed: {error.strerror}. Who may is root with "
            "the capabilities SYS_ADMIN and NET_ADMIN: run ./dev cluster as such, also in a container"
        ) from None


def _take(name: str) -> None:
    (_IPV4 / "tcp_congestion_control").write_text(name)


def _read_allowed() -> str:
    try:
        return (_IPV4 / "tcp_allowed_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


def settle_congestion_control(
    take: Callable[[str], None] = _take, read_allowed: Callable[[], str] = _read_allowed
) -> str:
    """Gives TCP in the caller's network namespace a congestion control that it may have; returns its name."""
    refused = []
    for name in CONGESTION_CONTROLS:
        try:
            take(name)
            return name
        except OSError as error:
            refused.append(f"{name} ({error.strerror})")
    raise OSError(_refusal(refused, read_allowed()))


def _refusal(refused: Sequence[str], allowed: str) -> str:
    return (
        f"cannot set the congestion control of TCP: the kernel refused {' and '.join(refused)} for "
        f"{_IPV4 / 'tcp_congestion_control'} of the host. What a host may have, the machine's setting "
        f"net.ipv4.tcp_allowed_congestion_control decides, which is: {allowed}. Add {CONGESTION_CONTROLS[0]} "
        "to it, as root of the machine"
    )
