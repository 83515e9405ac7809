"""The hosts of a run, an agent on each that srun or ssh has started, and jobs of ranks on them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import secrets
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HELLO_SECONDS = 60
MOMENT = 10.0  # seconds in which an agent ends
# ssh passes no variables on, so the agents' ranks are given these.
PASSED_ON = re.compile(r"^(FCCL_|FI_|NCCL_SOCKET_IFNAME$)")


class FleetError(Exception):
    """The hosts cannot be reached; says which, and what to try."""


def names_of_hosts(given: str | None, environment: Mapping[str, str]) -> tuple[list[str], str]:
    """The hosts and how they are reached: those of --hosts by ssh, else those of the allocation by srun."""
    if given:
        names = [name for name in given.split(",") if name]
        if len(set(names)) < len(names):
            raise FleetError(f"--hosts names a host twice: {given}")
        return names, "ssh"
    listed = environment.get("SLURM_JOB_NODELIST", "")
    if not listed:
        raise FleetError(
            "no hosts are named: run this in an allocation of Slurm (salloc -N 2 --exclusive ./run), "
            "or name the hosts (./run --hosts A,B), which ssh must reach without a password"
        )
    try:
        asked = subprocess.run(["scontrol", "show", "hostnames", listed], capture_output=True, text=True)
    except OSError as error:
        raise FleetError(f"scontrol, which knows the hosts of {listed}, cannot be run: {error}") from None
    if asked.returncode != 0:
        raise FleetError(f"scontrol does not know the hosts of {listed}: {asked.stderr.strip()}")
    return asked.stdout.split(), "srun"


def words_to_reach(host: str, how: str, environment: Mapping[str, str]) -> list[str]:
    """Returns what starts a command on the host; the caller appends its words, for ssh as one word."""
    if how == "here" or (how == "ssh" and host in ("localhost", socket.gethostname())):
        return []
    if how == "ssh":
        return [
            "ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=20",
            "-o",
            "StrictHostKeyChecking=accept-new",
            host,
        ]
    found = re.match(r"\d+", environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    processors = [f"--cpus-per-task={found[0]}"] if found else []
    words = ["srun", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={host}", "--mem=0", *processors]
    return [*words, "--cpu-bind=none", "--mpi=none", "--unbuffered"]


@dataclass
class Rank:
    """One rank of a job: where it runs, and what became of it."""

    host: int
    place: int  # among those of its host
    status: int | None = None  # none: it runs, or had to be killed
    seconds: float = 0.0  # from the moment that the wait for it began
    has_ended: bool = False
    said: str = ""
    complained: str = ""

    @property
    def last_words(self) -> str:
        """The end of what it complained, else of what it said."""
        return " ".join((self.complained or self.said).split())[-400:]


@dataclass
class Plan:
    """A program and its ranks: as many on each of the hosts."""

    words: list[str]  # TREE and FOLDER stand for the folder of programs, and for the job's own on each host
    hosts: list[int]
    ranks: int = 1
    variables: dict[str, str] = field(default_factory=dict)
    nics: dict[int, list[str]] = field(
        default_factory=dict
    )  # by the number of a host; the library chooses for others
    apart: bool = False  # each rank counts as a host of its own


class Job:
    """Ranks that run, or ran, and the first one's rows. Its fleet makes it."""

    def __init__(self, fleet: Fleet, number: int, plan: Plan) -> None:
        self._fleet = fleet
        self.number = number
        self.ranks = [Rank(host, place) for host in plan.hosts for place in range(plan.ranks)]
        self.rows = ""

    def wait(self, seconds: float) -> bool:
        """Until all have ended, or to the limit; true if all have."""
        begin = time.monotonic()
        while not all(rank.has_ended for rank in self.ranks):
            left = begin + seconds - time.monotonic()
            if left <= 0:
                return False
            self.take(self._fleet.event(left), begin)
        return True

    def take(self, event: dict | None, begin: float) -> None:
        """Notes the end of a rank."""
        if not event or event.get("event") != "ended" or event["job"] != self.number:
            return
        ended = next(r for r in self.ranks if (r.host, r.place) == (event["at"], event["rank"]))
        ended.has_ended, ended.status = True, event["status"]
        ended.seconds = event["when"] - begin
        ended.said, ended.complained = event["said"], event["complained"]
        if ended is self.ranks[0]:
            self.rows = event["rows"]

    def said(self, seconds: float) -> str:
        """Returns what the first rank has said so far."""
        first = self.ranks[0]
        if first.has_ended:
            return first.said
        begin = time.monotonic()
        self._fleet.order(first.host, {"do": "said", "job": self.number})
        while (left := begin + seconds - time.monotonic()) > 0:
            event = self._fleet.event(left)
            if event and event.get("event") == "said" and event["job"] == self.number:
                return event["said"]
            self.take(event, begin)
        return ""

    def kill(self, rank: Rank) -> None:
        """Kills one rank by SIGKILL."""
        self._fleet.order(rank.host, {"do": "kill", "job": self.number, "rank": rank.place})


class Fleet:
    """Agents on all hosts, from start to end; a host is known by its number. One thread uses it."""

    def __init__(self, names: list[str], how: str, command: list[str], log: Path) -> None:
        self.names = names
        self._events: queue.Queue[dict] = queue.Queue()
        self._jobs = 0
        self._log = log.open("wb")
        self._log_name = log
        self._agents = [self._start(name, how, command) for name in names]
        for number, agent in enumerate(self._agents):
            threading.Thread(target=self._read, args=(number, agent), daemon=True).start()

    def _start(self, name: str, how: str, command: list[str]) -> subprocess.Popen:
        reach = words_to_reach(name, how, os.environ)
        words = [*reach, shlex.join(command)] if reach[:1] == ["ssh"] else [*reach, *command]
        try:
            return subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        except OSError as error:
            raise FleetError(f"{words[0]} cannot be run here, to reach {name}: {error.strerror}") from None

    def _read(self, number: int, agent: subprocess.Popen) -> None:
        for line in agent.stdout:
            with contextlib.suppress(ValueError):
                self._events.put(json.loads(line) | {"at": number, "when": time.monotonic()})
        self._events.put({"event": "lost", "at": number, "when": time.monotonic()})

    def order(self, host: int, order: dict) -> None:
        """Sends an order to the agent of a host."""
        agent = self._agents[host]
        try:
            agent.stdin.write(json.dumps(order).encode() + b"\n")
            agent.stdin.flush()
        except OSError:
            raise FleetError(self._lost(host)) from None

    def _lost(self, host: int) -> str:
        last = self._log_name.read_text(errors="replace").strip().splitlines()[-3:]
        return (
            f"the agent on {self.names[host]} cannot be reached, or has ended; see that the host is up, that "
            "no password is asked for, and that this folder lies there under the same path. Last it said: "
            + (" ".join(last) or "nothing")
        )

    def event(self, seconds: float) -> dict | None:
        """The next event of any host, or none in that time. FleetError if an agent has ended."""
        try:
            event = self._events.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            return None
        if event.get("event") == "lost":
            raise FleetError(self._lost(event["at"]))
        return event

    def ask(self, host: int, do: str, answer: str) -> dict:
        """The answer of one host. No job may run meanwhile."""
        self.order(host, {"do": do})
        end = time.monotonic() + HELLO_SECONDS
        while (left := end - time.monotonic()) > 0:
            event = self.event(left)
            if event and event.get("event") == answer and event["at"] == host:
                return event
        raise FleetError(f"{self.names[host]} has not answered for {HELLO_SECONDS} s; {self._lost(host)}")

    def describe(self) -> list[dict]:
        """The hosts as they describe themselves."""
        return [self.ask(host, "describe", "host") for host in range(len(self.names))]

    @contextlib.contextmanager
    def job(self, plan: Plan) -> Iterator[Job]:
        """Starts the ranks, which meet at the first one; what still runs is killed at the end."""
        self._jobs += 1
        job = Job(self, self._jobs, plan)
        first = plan.hosts[0]
        port = self.ask(first, "port", "port")["port"]
        # The name by which ssh reaches a host may begin with that of a user.
        meeting = f"{self.names[first].rpartition('@')[2]}:{port}"
        secret = secrets.token_hex(16)
        for host in plan.hosts:
            variables = [
                variables_of(plan, number, rank, len(job.ranks), meeting)
                | {"FCCL_TESTS_NETWORK_SECRET": secret}
                for number, rank in enumerate(job.ranks)
                if rank.host == host
            ]
            self.order(host, {"do": "start", "job": job.number, "words": plan.words, "variables": variables})
        try:
            yield job
        finally:
            for host in plan.hosts:
                self.order(host, {"do": "end", "job": job.number})
            job.wait(MOMENT)

    def end(self) -> None:
        """Ends the agents, and with them all that they have started."""
        for agent in self._agents:
            with contextlib.suppress(OSError):
                agent.stdin.close()
        for agent in self._agents:
            try:
                agent.wait(MOMENT)
            except subprocess.TimeoutExpired:
                agent.kill()
        self._log.close()


def variables_of(plan: Plan, number: int, rank: Rank, count: int, meeting: str) -> dict[str, str]:
    """The environment of one rank, beyond that of its agent."""
    mine = {name: value for name, value in os.environ.items() if PASSED_ON.match(name)}
    mine |= plan.variables | {"FCCL_TESTS_NETWORK": f"{number}/{count}:{meeting}"}
    if rank.host in plan.nics:
        mine["FCCL_NICS"] = ",".join(plan.nics[rank.host])
    if plan.apart:
        mine["FCCL_HOST_ID"] = f"host{number}"
    return mine
