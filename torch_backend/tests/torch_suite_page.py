"""Writes docs/reference/torch_suites.md: how torch's DistributedTest ends under fccl with each torch.

`.venv-2.15.0/bin/python torch_backend/tests/torch_suite_page.py` runs the suite with the torch of that
Python and notes in torch_suites.json how it ended; the page is made of that. --only-page runs nothing.
"""

import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "torch_suites.json"
PAGE = HERE.parents[1] / "docs" / "reference" / "torch_suites.md"

# The name that the tests ask for, their ranks, and whether fccl takes the name's place.
RUNS = {
    "fccl": {"BACKEND": "fccl", "WORLD_SIZE": "3"},
    "gloo, replaced": {"BACKEND": "gloo", "WORLD_SIZE": "4", "FCCL_TORCH_REPLACES": "gloo"},
    "Gloo itself": {"BACKEND": "gloo", "WORLD_SIZE": "4"},
}

# What torch's reasons to skip a test have in common; the first that fits counts.
KINDS_OF_SKIPS = {
    "more GPUs, or one at all": r"accelerator|CUDA|high priority",
    "another backend, by its name": r"[Bb]ackend|NCCL|Nccl|GLOO|MPI|only supported on",
    "another number of ranks": r"world size",
    "a test that torch has closed by an issue": r"github\.com",
}

# Why tests fail that cannot pass, and the line of torch that decides it.
REASONS = {
    "test_ddp_logging_data_cpu": (
        "compares the backend's name with that in DDP's log, which is 'custom' for every plug-in",
        "`ProcessGroup::getBackendName` in `c10d/ProcessGroup.hpp`",
    ),
}

NO_NAME = """
A group could say its own name in C++ if torch took its backend for a whole process group.
But torch makes no other backend for such a group.
The check is `issubclass(type(backend_class), ProcessGroup)` in `distributed_c10d.py`.
So `cpu:gloo,cuda:fccl` and the checks of `TORCH_DISTRIBUTED_DEBUG=DETAIL` would be lost.
"""

HEAD = """\
# torch's own tests of process groups

For people who judge how far fccl keeps torch's contracts.

torch's wheel holds `DistributedTest`, the tests by which torch tries its own backends.
Their ranks are processes of one host.
`./dev test all` runs them under the name `fccl`, and under `gloo` by `FCCL_TORCH_REPLACES=gloo`.
A test fails if the outcome differs from the numbers below.
`.venv/bin/python torch_backend/tests/torch_suite_page.py` runs them with that torch and makes this page.

These runs do not check the profiler for a backend's own events, which begin with the backend's name.
As torch's suite stands, 46 of 94 tests pass on torch 2.13 under the name `gloo` with fccl in its place.
The others look for events that begin with `gloo:`, and fccl's begin with `fccl:`.

| torch | name | ranks | passed | failed | skipped |
|---|---|---|---|---|---|
"""


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def run_suite(run: str) -> dict:
    """How the tests ended: names, and texts of those that failed or were skipped."""
    command = [sys.executable, str(HERE / "torch_suite.py")]
    environment = {name: value for name, value in os.environ.items() if name != "FCCL_TORCH_REPLACES"}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=1400, env={**environment, **RUNS[run]}
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def summary_of(report: dict) -> dict:
    """The part of a report that is compared and printed."""
    return {
        "passed": len(report["passed"]),
        "failed": {name: line_of(text) for name, text in sorted(report["failed"].items())},
        "skipped": dict(sorted(collections.Counter(map(plain, report["skipped"].values())).items())),
    }


def plain(reason: str) -> str:
    return " ".join(reason.split())


def line_of(failure: str) -> str:
    """The line of torch's test that failed, on the rank that said so first."""
    found = re.findall(r'distributed_test\.py", line (\d+), in (test_\w+|_test_\w+)', failure)
    return f"distributed_test.py:{found[-1][0]}" if found else "no line of torch"


def recorded() -> dict:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def page_of(results: dict) -> str:
    rows, failures, skipped = [], collections.defaultdict(list), collections.defaultdict(list)
    for version, runs in sorted(results.items(), key=lambda entry: int(entry[0].split(".")[1])):
        for run in (each for each in RUNS if each in runs):
            ended = runs[run]
            skips = sum(ended["skipped"].values())
            size = RUNS[run]["WORLD_SIZE"]
            rows.append(
                f"| {version} | {run} | {size} | {ended['passed']} | {len(ended['failed'])} | {skips} |\n"
            )
            for name, line in ended["failed"].items():
                failures[name].append(f"{version} {run} (`{line}`)")
            for reason, count in ended["skipped"].items():
                skipped[reason].append((version, run, count))
    return HEAD + "".join(rows) + failures_of(failures) + NO_NAME + skips_of(skipped)


def failures_of(failures: dict[str, list[str]]) -> str:
    """Each test that fails: why, and with which versions, under which names and in which line."""
    text = "\n## What fails\n\n"
    for name, places in failures.items():
        why, where = REASONS.get(name, ("is Gloo's own test, with fccl not loaded; it was run once", ""))
        text += f"- `{name}` {why}.\n" + (f"  It asks {where}.\n" if where else "")
        text += "".join(f"  - {place}\n" for place in places)
    return text


def skips_of(skipped: dict[str, list]) -> str:
    """Kinds of reasons under the name fccl and the newest version; the other runs have the same or fewer."""
    newest = max((version for each in skipped.values() for version, _, _ in each), key=lambda v: int(v[2:]))
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for reason, entries in skipped.items():
        for version, run, count in entries:
            if version == newest:
                counts[kind_of(reason)][run] += count
    text = "\n## What torch skips\n\n"
    text += f"With torch {newest} so many tests are kept away; `torch_suites.json` has each reason:\n\n"
    text += "| the test needs, or is | under `fccl` | under `gloo`, replaced |\n|---|---|---|\n"
    for kind, runs in counts.items():
        if runs["fccl"] or runs["gloo, replaced"]:
            text += f"| {kind} | {runs['fccl']} | {runs['gloo, replaced']} |\n"
    return text


def kind_of(reason: str) -> str:
    fitting = (kind for kind, like in KINDS_OF_SKIPS.items() if re.search(like, reason))
    return next(fitting, "closed otherwise")


def main() -> None:
    results = recorded()
    if "--only-page" not in sys.argv:
        import torch

        ended = results.setdefault(minor(torch.__version__), {})
        for run in RUNS:
            ended[run] = summary_of(run_suite(run))
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page_of(results))


if __name__ == "__main__":
    main()
