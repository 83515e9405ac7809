"""The campaign of strangers: a job between hosts goes on while somebody without its secrets attacks it."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = [sys.executable, str(ROOT / "tools/cluster/cluster.py")]
RANK = str(Path(__file__).parent / "rank.py")
DROPPED = re.compile(
    r"between hosts: (\d+) messages and writes that no rank sent were dropped, (\d+) attempts to connect"
)
SLOWDOWN = 1.15

# A shape of a cluster, and what its ranks are: see rank.py.
PLACES = {"a third host": ("3x1", "vvo"), "another user of a peer's host": ("2x2", "vuvu")}


@dataclass
class Outcome:
    """The reports of the ranks of one run."""

    victims: list[dict]
    outsiders: list[dict]
    dropped: int
    complaints: str
    status: int

    def faults(self) -> list[str]:
        """Everything in the reports that should not have happened."""
        found = [f"rank {each['rank']}: {each['error']}" for each in self.victims if each["error"]]
        found += [f"rank {each['rank']}: {each['wrong']} wrong" for each in self.victims if each["wrong"]]
        if self.status != 0:
            found.append(f"the cluster's command ended with status {self.status}")
        return found

    def posted(self) -> int:
        return sum(self.posted_by_attack().values())

    def posted_by_attack(self) -> dict[str, int]:
        """How often all outsiders together have tried each kind of attack."""
        counts: Counter[str] = Counter()
        for said in self.outsiders:
            counts.update({name: each["posted"] for name, each in said.items() if isinstance(each, dict)})
        return dict(counts)

    def calls(self) -> int:
        return min(each["calls"] for each in self.victims)


@contextmanager
def folder(build: Path) -> Iterator[Path]:
    """Shared by the hosts, and open to a user who may not see the checkout."""
    made = Path(tempfile.mkdtemp(prefix="fccl-attack-", dir="/tmp"))
    try:
        made.chmod(0o755)
        for program in ("victim", "outsider"):
            shutil.copy(build / "tests/attack" / program, made)
        yield made
    finally:
        shutil.rmtree(made)


def run(build: Path, where: tuple[str, str], provider: str, seconds: float, elements: int) -> Outcome:
    """One run of victims and outsiders; a rank that ends badly still says how."""
    shape, roles = where
    with folder(build) as shared:
        own = os.environ | {
            "FCCL_TIMEOUT": "10",
            "FCCL_INIT_TIMEOUT": "20",
            "LD_LIBRARY_PATH": f"{build}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
        }
        words = [shape, "--", sys.executable, RANK, str(shared), str(seconds), str(elements), provider, roles]
        command = [*CLUSTER, *words]
        ended = subprocess.run(command, env=own, capture_output=True, text=True, timeout=seconds + 90)
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    victims = [each for each in said if "rank" in each]
    outsiders = [each for each in said if "places" in each]
    if len(victims) != roles.count("v") or len(outsiders) != roles.count("o") + roles.count("u"):
        raise RuntimeError(f"not every rank spoke: {ended.stdout}\n{ended.stderr}")
    dropped = sum(int(one) + int(other) for one, other in DROPPED.findall(ended.stderr))
    return Outcome(victims, outsiders, dropped, ended.stderr, ended.returncode)


def attack(build: Path, providers: list[str], seconds: float) -> bool:
    """Every place and provider in turn; whether all went well."""
    good = True
    for name, where in PLACES.items():
        for provider in providers:
            outcome = run(build, where, provider, seconds / (len(PLACES) * len(providers)), 50_000)
            faults = outcome.faults()
            if outcome.dropped == 0:
                faults.append("the attack did not reach the job")
            print(
                f"from {name} by {provider}: {outcome.posted()} attempts, {outcome.dropped} dropped and "
                f"counted, {outcome.calls()} calls checked, {len(faults)} faults",
                flush=True,
            )
            for fault in faults:
                print(f"  {fault}\n{outcome.complaints}")
            for said in outcome.outsiders:
                print(f"  {json.dumps(said)}")
            good &= not faults
    return good


def measure(build: Path, provider: str, seconds: float, pairs: int) -> bool:
    """Tells if about as many calls pass beside a host that attacks as beside one that is as busy."""
    ratios = []
    for _ in range(pairs):
        busy = run(build, ("3x1", "vvb"), provider, seconds, 50_000).calls()
        attacked = run(build, ("3x1", "vvo"), provider, seconds, 50_000).calls()
        ratios.append(busy / attacked)
        print(f"calls beside a busy host {busy}, beside an outsider {attacked}: {ratios[-1]:.3f}", flush=True)
    median = statistics.median(ratios)
    print(f"time of a call under attack over that beside a busy host: {median:.3f}, at most {SLOWDOWN}")
    return median <= SLOWDOWN


def main() -> int:
    """Status 0 if nothing that an outsider did had an effect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of attack, in all places and ways (60)")
    parser.add_argument("--pairs", type=int, default=5, help="of runs for the slowdown (5); 0 for none")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument(
        "--providers", nargs="+", default=["net", "tcp;ofi_rxm"], help='the outsider\'s (net "tcp;ofi_rxm")'
    )
    options = parser.parse_args()
    good = attack(options.build, options.providers, options.seconds)
    if options.pairs > 0:
        good &= measure(options.build, options.providers[0], 4, options.pairs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
