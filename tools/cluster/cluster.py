#!/usr/bin/env python3
"""Runs a command on hosts that are network namespaces of this machine, with shaped links between them."""

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import control
import launch
import messages
import namespaces
import scheduling
from machine import HOST_SIGNALS, Machine, Order
from shape import MOST_HOSTS, MOST_RAILS, Shape

WRONG_USE = 2
_RATE = re.compile(r"[0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)", re.IGNORECASE)
Planner = Callable[[Shape, list[str]], list[launch.Start]]
USAGE = """\
./dev cluster HxR [--rate RATE] [--rails N] [--ranks N,N...] [--unsteered] [--prefix] [--counters [FILE]]
              -- COMMAND...
./dev cluster link HOST RAIL down|up
./dev cluster host HOST kill|stop|cont
./dev cluster counters
"""


def parse(
    words: list[str], parser: argparse.ArgumentParser | None = None, plan: Planner = launch.plan
) -> Order:
    """Turns the command line into an order; ends the program if it means nothing.

    Another program than this one has a parser of its own, for its name, and plans what starts where.
    """
    parser = parser or argparse.ArgumentParser(prog="./dev cluster", usage=USAGE, description=__doc__)
    split = words.index("--") if "--" in words else len(words)
    parser.add_argument("shape", metavar="HxR", help="hosts, and ranks of each")
    parser.add_argument(
        "--rate", help="of each link in each direction, as tc says it (1gbit); default: not shaped"
    )
    parser.add_argument("--rails", type=int, default=1, metavar="N", help="links of each host (1)")
    parser.add_argument("--ranks", metavar="N,N...", help="ranks of each host, in place of R")
    parser.add_argument(
        "--unsteered",
        action="store_true",
        help="receive a packet on the processor that sends it: quicker, sometimes out of order",
    )
    parser.add_argument("--prefix", action="store_true", help="put [RANK] before every line")
    parser.add_argument(
        "--counters", nargs="?", const="", metavar="FILE", help="show the bytes on each link; as JSON in FILE"
    )
    given = parser.parse_args(words[:split])
    command = words[split + 1 :]
    if not command:
        parser.error("say -- and a COMMAND")
    try:
        shape = Shape(_ranks_of(given.shape, given.ranks), given.rails, given.rate, not given.unsteered)
        if not 1 <= given.rails <= MOST_RAILS:
            raise ValueError(f"--rails wants 1 to {MOST_RAILS}, but got {given.rails}")
        if given.rate is not None and not _RATE.fullmatch(given.rate):
            raise ValueError(f"--rate wants a number and a unit, as in 500mbit, but got {given.rate}")
        starts = plan(shape, command)
    except ValueError as error:
        parser.error(str(error))
    return Order(shape, starts, given.prefix, given.counters is not None, given.counters or None)


def _ranks_of(hosts_by_ranks: str, ranks: str | None) -> tuple[int, ...]:
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", hosts_by_ranks)
    if not found or int(found[1]) > MOST_HOSTS:
        raise ValueError(
            f"HxR wants 1 to {MOST_HOSTS} hosts and 1 or more ranks, as in 2x2, but got {hosts_by_ranks}"
        )
    hosts = int(found[1])
    if ranks is None:
        return (int(found[2]),) * hosts
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", ranks) or ranks.count(",") + 1 != hosts:
        raise ValueError(f"--ranks wants {hosts} numbers, one for each host, as in 3,1, but got {ranks}")
    return tuple(map(int, ranks.split(",")))


def run(order: Order) -> int:
    """Makes a cluster that lasts as long as this process at most; gives the status of the command."""
    with scheduling.group() as group:
        return _run(order, group)


def _run(order: Order, group: Path | None) -> int:
    name = control.name_of(os.getpid())
    owner = os.pidfd_open(os.getpid())
    handled = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    with messages.listen(name) as listening:
        signal.pthread_sigmask(signal.SIG_BLOCK, handled)
        namespaces.unshare(namespaces.NEW_PID)
        machine = namespaces.fork(lambda: _be_machine(order, name, listening, owner, group))
    return namespaces.await_child(machine, handled)


def _be_machine(
    order: Order, name: str, listening: messages.socket.socket, owner: int, group: Path | None
) -> int:
    namespaces.die_with_parent(owner)
    # A signal of the terminal is for the owner alone.
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Until there is something to end in order: all there is ends with this process.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        scheduling.join(group)
        namespaces.unshare(
            namespaces.NEW_NET | namespaces.NEW_MOUNT | namespaces.NEW_UTS | namespaces.NEW_IPC
        )
        namespaces.own_mounts()
        namespaces.mount("proc", "/proc")
        namespaces.mount("sysfs", "/sys")
        return Machine(order, name, listening).run()
    except OSError as error:
        print(f"cluster: {error}", file=sys.stderr, flush=True)
        return 1


def steer(words: list[str]) -> int:
    """Tells a running cluster to change, or asks for its counters."""
    match words:
        case ["link", host, rail, ("down" | "up") as state]:
            control.ask({"do": "link", "host": host, "rail": rail, "state": state})
        case ["host", host, action] if action in HOST_SIGNALS:
            control.ask({"do": "host", "host": host, "action": action})
        case ["counters"]:
            print(json.dumps(control.ask({"do": "counters"}), indent=2))
        case _:
            print(f"usage:\n{USAGE}", file=sys.stderr, end="")
            return WRONG_USE
    return 0


def main(words: list[str]) -> int:
    """The exit status of the program."""
    if words[:1] in (["link"], ["host"], ["counters"]):
        return complaining(lambda: steer(words))
    return complaining(lambda: run(parse(words)))


def complaining(act: Callable[[], int]) -> int:
    """The status of what is done; where that cannot be done, this says why and gives 1."""
    try:
        return act()
    except PermissionError as error:
        print(
            f"cluster: making namespaces is not permitted ({error}): run it as root, in a container with the "
            "capabilities SYS_ADMIN and NET_ADMIN",
            file=sys.stderr,
        )
    except (OSError, ValueError) as error:
        print(f"cluster: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
