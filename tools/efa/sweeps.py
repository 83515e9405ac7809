"""The steps that run perf binaries between hosts: rails, loopback, pair, collectives, and AWS's table of NICs."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fleet import Fleet, Job, Plan
from judged import row, type_of

WRONG_DATA = 7
GIB = 1 << 30
# Seconds: of a call of a perf binary; and what it needs before its calls begin.
DEADLINE, LEAST_DEADLINE, UNTIL_CALLS = 60, 3, 6
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")
# The sizes of a sweep by eight, which ends at 1 GiB.
LARGEST = [1 << power for power in range(12, 31, 3)]
# Calls of a size: three timed ones, a warm-up and a check, out of place and in place, and those of all smaller sizes; an
# all_reduce carries its size twice.
CALLS = 22
SHARE = 0.6  # of a run's time, for what a size is thought to take
BUFFERS = 5  # that a rank has of a size
NETWORK = re.compile(r"between hosts: (.+)$", re.MULTILINE)
COUNTS = (1, 2, 4)
MEBI = 1 << 20


@dataclass
class Setting:
    """What all steps share: hosts, what they say of themselves, provider, ranks of each, and the log."""

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
    """One for each GPU of an instance type that is known, else one."""
    known = type_of(hosts[0])
    return known.gpus if known else 1


@dataclass
class Measured:
    """What a run gave: rows of its CSV file, and what went wrong, "" if nothing did."""

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
    """What became of a job that was waited for."""
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


def rails(setting: Setting, seconds: float) -> Iterator[dict]:
    """Whether all hosts have as many NICs, and which of them the library takes, by which provider."""
    counts = {host["host"]: len(setting.nics(number)) for number, host in enumerate(setting.hosts)}
    told = ", ".join(f"{name} has {count}" for name, count in counts.items())
    same = "works" if len(set(counts.values())) == 1 else "wrong"
    yield row("as many NICs on all hosts", same, told)
    for number, host in enumerate(setting.hosts):
        names = setting.nics(number)
        yield row("NICs", "measured", ", ".join(names), case=host["host"], value=len(names), unit="NICs")
    plan = Plan(words_of("all_reduce", "-b 8 -e 8 -n 2", seconds), setting.everywhere, setting.ranks)
    plan.apart = len(setting.hosts) == 1
    done = measure(setting, plan, seconds, "rails")
    what = "the network that the library takes"
    if done.fault:
        yield row(what, done.verdict, done.fault)
    elif not done.network.startswith(setting.provider):
        yield row(what, "wrong", f"{done.network or 'none'}, where {setting.provider} was asked for")
    else:
        yield row(what, "works", done.network)


def both_sizes(setting: Setting, plan: Plan, seconds: float, name: str) -> Iterator[dict]:
    """The time of 8 bytes and the bandwidth of 1 MiB, from each rank to the next."""
    about = {"case": name.partition(" ")[2], "where": where_of(setting, plan)}
    if seconds < 1:
        yield row("sendrecv", "not run", "the time of the step was over", **about)
        return
    flags = f"-b 8 -e {MEBI} -f {MEBI // 8} -n 20"
    plan.words = words_of("sendrecv", flags, seconds)
    done = measure(setting, plan, seconds, name)
    if done.fault:
        yield row("sendrecv", done.verdict, done.fault, **about)
        return
    small, large = done.side(8), done.side(MEBI)
    yield row("sendrecv of 8 bytes", "measured", done.network, value=float(small["time_us"]), unit="us", **about)
    bandwidth = float(large["busbw_gb_per_s"])
    yield row("sendrecv of 1 MiB, busbw", "measured", done.network, value=bandwidth, unit="GB/s", **about)


def where_of(setting: Setting, plan: Plan) -> str:
    """Who took part, for the table."""
    names = [setting.hosts[host]["host"] for host in plan.hosts]
    who = names[0] if len(names) == 1 else f"{len(names)} hosts"
    return f"{who}, {plan.ranks} rank{'s' * (plan.ranks > 1)} each"


def loopback(setting: Setting, seconds: float) -> Iterator[dict]:
    """Two ranks of each host, over its first NIC as if they were two hosts."""
    end = time.monotonic() + seconds
    for number in setting.everywhere:
        left = (end - time.monotonic()) / (len(setting.hosts) - number)
        plan = Plan([], [number], 2, nics={number: setting.nics(number)[:1]}, apart=True)
        case = ",".join(setting.nics(number)[:1])
        yield from both_sizes(setting, plan, left, f"loopback {case} of {setting.hosts[number]['host']}")


def pair(setting: Setting, seconds: float) -> Iterator[dict]:
    """A rank on each of the first two hosts: over all NICs, then over each alone."""
    if len(setting.hosts) < 2:
        yield row("sendrecv between two hosts", "not run", "there is one host only")
        return
    end = time.monotonic() + seconds
    rates: dict[str, float] = {}
    counts = [None, *range(setting.common_nics)]
    for done, number in enumerate(counts):
        left = (end - time.monotonic()) / (len(counts) - done)
        nics = setting.first_nics(setting.common_nics) if number is None else setting.nic(number)
        case = "all NICs" if number is None else f"NIC {number}, {setting.nics(0)[number]}"
        for told in both_sizes(setting, Plan([], [0, 1], 1, nics=nics), left, f"pair {case}"):
            if told["unit"] == "GB/s":
                rates[case] = told["value"]
            yield told
    setting.all_nics = rates.pop("all NICs", 0.0)
    setting.one_nic = max(rates.values(), default=0.0)
    if len(rates) > 1:
        slowest, fastest = min(rates, key=rates.get), max(rates, key=rates.get)
        share = rates[slowest] / rates[fastest]
        note = f"{slowest}, over the fastest, {fastest}"
        yield row("the slowest NIC", "measured", note, value=share, unit="times")


def largest_size(rate: float, seconds: float, memory: int, ranks: int) -> int:
    """The largest size whose calls fit into the time at that rate in GB/s, and into memory."""
    fitting = [
        size
        for size in LARGEST
        if (not rate or CALLS * size / (rate * 1e9) <= seconds * SHARE)
        and (not memory or ranks * BUFFERS * size <= memory)
    ]
    return fitting[-1] if fitting else LARGEST[0]


def size_text(size: int) -> str:
    """16M, as the perf binaries take it."""
    for unit, letter in ((GIB, "G"), (MEBI, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{letter}"
    return str(size)


def why_not_larger(size: int) -> str:
    """What the note says of a sweep that ends before 1 GiB."""
    return "" if size == GIB else "; larger ones would not fit into the time or the memory"


def collectives(setting: Setting, seconds: float) -> Iterator[dict]:
    """Three collectives on all ranks and NICs, checked, from 8 bytes to 1 GiB or as far as the time goes."""
    end = time.monotonic() + seconds
    for number, name in enumerate(COLLECTIVES):
        left = (end - time.monotonic()) / (len(COLLECTIVES) - number)
        plan = Plan([], setting.everywhere, setting.ranks, apart=len(setting.hosts) == 1)
        about = {"case": "all NICs", "where": where_of(setting, plan)}
        if left < 1:
            yield row(name, "not run", "the time of the step was over", **about)
            continue
        size = largest_size(setting.all_nics, left, setting.memory, setting.ranks)
        plan.words = words_of(name, f"-b 8 -e {size} -f 8 -n 3", left)
        plan.nics = setting.first_nics(setting.common_nics)
        done = measure(setting, plan, left, f"collectives {name}")
        setting.logs[f"{name}.csv"] = csv_text(done.rows)
        note = f"8 to {size_text(size)}, {len(done.rows)} rows, 0 wrong{why_not_larger(size)}"
        yield row(name, done.verdict, done.fault or note, **about)
        if done.rows and not done.fault:
            last = max(int(each["size_bytes"]) for each in done.rows)
            rate = float(done.side(last)["busbw_gb_per_s"])
            what = f"{name} of {size_text(last)}, busbw"
            yield row(what, "measured", done.network, value=rate, unit="GB/s", **about)


def csv_text(rows: list[dict]) -> str:
    """Rows as the file that they came from."""
    if not rows:
        return ""
    written = io.StringIO()
    writer = csv.DictWriter(written, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def counts_of_nics(common: int) -> list[int]:
    """0, 1, 2, 4 and all, each once, and none that there is not."""
    return [0, *sorted({count for count in COUNTS if count <= common} | {common})]


def nics_table(setting: Setting, seconds: float) -> Iterator[dict]:
    """AWS's table: average and largest bus bandwidth of all_gather over 0, 1, 2, 4 and all NICs."""
    if len(setting.hosts) < 2:
        yield row("all_gather by NICs", "not run", "there is one host only")
        return
    end = time.monotonic() + seconds
    counts = counts_of_nics(setting.common_nics)
    size = max(largest_size(setting.one_nic, seconds / len(counts) / 2, setting.memory, setting.ranks), 4 * MEBI)
    averages: dict[int, float] = {}
    for number, count in enumerate(counts):
        left = (end - time.monotonic()) / (len(counts) - number)
        for told in one_count(setting, count, size, left):
            if told["what"].startswith("average"):
                averages[count] = told["value"]
            yield told
    for count, average in averages.items():
        if count > 1 and averages.get(1):
            ratio = average / averages[1]
            yield row(f"{count} NICs over 1", "measured", "average busbw", value=ratio, unit="times")


def one_count(setting: Setting, count: int, size: int, seconds: float) -> Iterator[dict]:
    """The rows of one number of NICs; 0 is the interface of the default route, by TCP."""
    plan = Plan([], setting.everywhere, setting.ranks)
    plan.nics = setting.first_nics(count) if count else default_interfaces(setting)
    provider = setting.provider if count else "tcp"
    plan.variables = {"FCCL_TRANSPORT": provider}
    all_of_them = ", which are all" if count == setting.common_nics else ""
    case = f"{count} NIC{'s' * (count != 1)}{all_of_them}, provider {provider}"
    about = {"case": case, "where": where_of(setting, plan)}
    if seconds < 1:
        yield row("all_gather", "not run", "the time of the step was over", **about)
        return
    plan.words = words_of("all_gather", f"-b {size // 4} -e {size} -f 2 -n 3", seconds)
    done = measure(setting, plan, seconds, f"table {case}")
    if done.fault:
        yield row("all_gather", done.verdict, done.fault, **about)
        return
    found = done.bandwidths
    sizes = f"all_gather of {size_text(size // 4)} to {size_text(size)}; {done.network}"
    mean = sum(found) / len(found)
    yield row("average busbw", "measured", sizes, value=mean, unit="GB/s", **about)
    yield row("maximum busbw", "measured", sizes, value=max(found), unit="GB/s", **about)


def default_interfaces(setting: Setting) -> dict[int, list[str]]:
    """Of each host the interface of its default route, else its first; without an entry the library chooses."""
    chosen = {}
    for number, host in enumerate(setting.hosts):
        name = host["route"] or next(iter(host["interfaces"]), "")
        if name:
            chosen[number] = [name]
    return chosen
