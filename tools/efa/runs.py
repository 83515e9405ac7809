"""Runs of the perf binaries between hosts, and what all steps that make such runs share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from fleet import Fleet, Job, Plan
from judged import type_of

WRONG_DATA = 7
# Seconds: of a call of a perf binary; and what it needs before its calls begin.
DEADLINE, LEAST_DEADLINE, UNTIL_CALLS = 60, 3, 6
NETWORK = re.compile(r"between hosts: (.+)$", re.MULTILINE)


@dataclass
class Setting:
    """The values that all steps share: hosts, their descriptions, provider, ranks of each, and the log."""

    fleet: Fleet
    hosts: list[dict]
    provider: str
    ranks: int
    note: Callable[[str, str], None]
    # GB/s that one NIC and all NICs carried between two ranks; the steps before the large ones find it.
    one_nic: float = 0.0
    all_nics: float = 0.0
    costs: str = ""
    logs: dict[str, str] = field(default_factory=dict)

    @property
    def everywhere(self) -> list[int]:
        """The numbers of all hosts."""
        return list(range(len(self.hosts)))

    def nics(self, host: int) -> list[str]:
        """The NICs of a host that belong to the provider."""
        about = self.hosts[host]
        return [each["name"] for each in about["devices"]] if self.provider == "efa" else about["interfaces"]

    @property
    def common_nics(self) -> int:
        """How many NICs every host has."""
        return min(len(self.nics(host)) for host in self.everywhere)

    def first_nics(self, count: int) -> dict[int, list[str]]:
        """So many NICs of each host."""
        return {host: self.nics(host)[:count] for host in self.everywhere}

    def nic(self, number: int) -> dict[int, list[str]]:
        """The one with this number, on each host."""
        return {host: self.nics(host)[number : number + 1] for host in self.everywhere}

    @property
    def memory(self) -> int:
        """Bytes of the host that has the least left; 0 if one does not say."""
        return min(host["memory"] for host in self.hosts)


def default_ranks(hosts: list[dict]) -> int:
    """One for each GPU of an instance type that is known, else one; two of one host alone."""
    known = type_of(hosts[0])
    return known.gpus if known else 2 if len(hosts) == 1 else 1


@dataclass
class Measured:
    """The result of a run: rows of its CSV file, and what went wrong, "" if nothing did."""

    rows: list[dict]
    fault: str
    verdict: str
    network: str = ""

    def side(self, size: int) -> dict | None:
        """The row of a size, out of place."""
        found = (each for each in self.rows if int(each["size_bytes"]) >= size)
        return next((each for each in found if each["place"] == "out_of_place"), None)

    @property
    def bandwidths(self) -> list[float]:
        """Bus bandwidths of all rows."""
        return [float(each["busbw_gb_per_s"]) for each in self.rows]


def words_of(collective: str, flags: str, seconds: float) -> list[str]:
    """The command line; the deadline of a call comes before the end of the run."""
    deadline = max(LEAST_DEADLINE, min(DEADLINE, int(seconds) - UNTIL_CALLS))
    words = [f"TREE/perf_tests/{collective}_perf", "-T", str(deadline), *flags.split()]
    return [*words, "--csv", "FOLDER/rows.csv"]


def measure(setting: Setting, plan: Plan, seconds: float, name: str) -> Measured:
    """Runs a plan within its time; what its ranks said goes into the log."""
    plan.variables = {"FCCL_TRANSPORT": setting.provider, "FCCL_LOG": "info"} | plan.variables
    with setting.fleet.job(plan) as job:
        job.wait(seconds)
    note_all(setting, job, plan, name)
    return measured_of(job, seconds)


def note_all(setting: Setting, job: Job, plan: Plan, name: str) -> None:
    """The command and the ranks' words, into the log."""
    parts = [" ".join(plan.words)]
    for number, rank in enumerate(job.ranks):
        where = f"rank {number} on {setting.fleet.names[rank.host]}, status {rank.status}"
        parts += [f"-- {where}", rank.said.rstrip(), rank.complained.rstrip()]
    setting.note(name, "\n".join(part for part in parts if part))


def measured_of(job: Job, seconds: float) -> Measured:
    """Returns what became of a job that was waited for."""
    rows = list(csv.DictReader(io.StringIO(job.rows)))
    found = NETWORK.search("\n".join(rank.complained for rank in job.ranks))
    network = found[1] if found else ""
    wrong = sum(float(each["wrong"] or 0) for each in rows)
    bad = next((rank for rank in job.ranks if rank.status not in (0, WRONG_DATA)), None)
    if wrong or any(rank.status == WRONG_DATA for rank in job.ranks):
        return Measured(rows, f"{wrong:.0f} wrong elements", "wrong", network)
    if bad and bad.status is None:
        return Measured(rows, f"not done after {seconds:.0f} s; {bad.last_words}", "failed", network)
    if bad:
        return Measured(rows, f"status {bad.status}: {bad.last_words}", "failed", network)
    if not rows:
        return Measured(rows, "it wrote no row", "failed", network)
    return Measured(rows, "", "works", network)


def where_of(setting: Setting, plan: Plan) -> str:
    """The hosts and ranks that took part, for the table."""
    names = [setting.hosts[host]["host"] for host in plan.hosts]
    who = names[0] if len(names) == 1 else f"{len(names)} hosts"
    return f"{who}, {plan.ranks} rank{'s' * (plan.ranks > 1)} each"
