"""The steps that sweep sizes between hosts: rails, loopback, pair, collectives, AWS's table of NICs."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from dataclasses import replace

from fleet import Plan
from judged import row
from runs import Measured, Setting, measure, where_of, words_of

GIB = 1 << 30
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")
# The sizes of a sweep by eight, which ends at 1 GiB.
LARGEST = [1 << power for power in range(12, 31, 3)]
# A size takes three timed calls, a warm-up and a check, out of place and in place; all smaller sizes take
# a few more, and an all_reduce carries its size twice.
CALLS = 22
CALLS_OF_ONE = 10  # the calls where a sweep has one size alone
SHARE = 0.6  # the part of a run's time that its sizes may take
UNKNOWN_RATE = 0.1  # GB/s, where no step has found one
BUFFERS = 5  # buffers of a size that a rank has
COUNTS = (1, 2, 4)
SECONDS_OF_LARGER = 20  # in which a NIC of 100 Mbit/s carries the table's sizes up to 16 MiB
MEBI = 1 << 20


def rails(setting: Setting, seconds: float) -> Iterator[dict]:
    """Rows about the number of NICs on all hosts, and about the NICs and provider that the library takes."""
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
    yield row(
        "sendrecv of 8 bytes", "measured", done.network, value=float(small["time_us"]), unit="us", **about
    )
    bandwidth = float(large["busbw_gb_per_s"])
    yield row("sendrecv of 1 MiB, busbw", "measured", done.network, value=bandwidth, unit="GB/s", **about)


def loopback(setting: Setting, seconds: float) -> Iterator[dict]:
    """Two ranks of each host, over its first NIC as if they were two hosts."""
    end = time.monotonic() + seconds
    for number in setting.everywhere:
        left = (end - time.monotonic()) / (len(setting.hosts) - number)
        plan = Plan([], [number], 2, nics={number: setting.nics(number)[:1]}, apart=True)
        case = ",".join(setting.nics(number)[:1])
        for told in both_sizes(setting, plan, left, f"loopback {case} of {setting.hosts[number]['host']}"):
            if told["unit"] == "GB/s":
                setting.one_nic = setting.all_nics = told["value"]
            yield told


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
    setting.all_nics = rates.pop("all NICs", setting.all_nics)
    setting.one_nic = max(rates.values(), default=setting.one_nic)
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
        if CALLS * size / ((rate or UNKNOWN_RATE) * 1e9) <= seconds * SHARE
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
    """The end of the note about a sweep that ends before 1 GiB."""
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
        plan.nics = setting.first_nics(setting.common_nics)
        done, size = swept(setting, plan, name, left)
        setting.logs[f"{name}.csv"] = csv_text(done.rows)
        note = f"8 to {size_text(size)}, {len(done.rows)} rows, 0 wrong{why_not_larger(size)}"
        yield row(name, done.verdict, done.fault or note, **about)
        if done.rows and not done.fault:
            last = max(int(each["size_bytes"]) for each in done.rows)
            rate = float(done.side(last)["busbw_gb_per_s"])
            what = f"{name} of {size_text(last)}, busbw"
            yield row(what, "measured", done.network, value=rate, unit="GB/s", **about)


def swept(setting: Setting, plan: Plan, name: str, seconds: float) -> tuple[Measured, int]:
    """Sweeps to less than the rate of earlier steps allows, then on as the last size shows."""
    end = time.monotonic() + seconds
    size, rows = largest_size(setting.all_nics, seconds / 8, setting.memory, setting.ranks), []
    smallest = 8
    while True:
        begun = time.monotonic()
        plan.words = words_of(name, f"-b {smallest} -e {size} -f 8 -n 3", end - begun)
        done = measure(setting, plan, end - begun, f"collectives {name} to {size_text(size)}")
        rows += done.rows
        now = time.monotonic()
        left = end - now - start_of(done.rows, now - begun)
        if done.fault or not next_fits(setting, done.rows, size, left):
            return replace(done, rows=rows), size
        smallest = size = size * 8


def start_of(rows: list[dict], seconds: float) -> float:
    """The part of a run's seconds in which its ranks started and ended."""
    return max(0.0, seconds - CALLS_OF_ONE * sum(float(each["time_us"]) for each in rows) / 1e6)


def next_fits(setting: Setting, rows: list[dict], size: int, seconds: float) -> bool:
    """True if the next size is of the sweep, and fits into the time and the memory by the last rows."""
    last = max(float(each["time_us"]) for each in rows[-2:])
    fits_memory = not setting.memory or setting.ranks * BUFFERS * size * 8 <= setting.memory
    return size * 8 <= LARGEST[-1] and fits_memory and CALLS_OF_ONE * 8 * last / 1e6 <= seconds * SHARE


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
    """0, 1, 2, 4 and all, each once, as far as there are so many."""
    return [0, *sorted({count for count in COUNTS if count <= common} | {common})]


def nics_table(setting: Setting, seconds: float) -> Iterator[dict]:
    """AWS's table: average and largest bus bandwidth of all_gather over 0, 1, 2, 4 and all NICs."""
    if len(setting.hosts) < 2:
        yield row("all_gather by NICs", "not run", "there is one host only")
        return
    end = time.monotonic() + seconds
    counts = counts_of_nics(setting.common_nics)
    share = seconds / len(counts)
    least = 16 * MEBI if share >= SECONDS_OF_LARGER else 4 * MEBI
    size = max(largest_size(setting.one_nic, share / 2, setting.memory, setting.ranks), least)
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
    """The interface of each host's default route, else its first; the library chooses for others."""
    chosen = {}
    for number, host in enumerate(setting.hosts):
        name = host["route"] or next(iter(host["interfaces"]), "")
        if name:
            chosen[number] = [name]
    return chosen
