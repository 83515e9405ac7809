"""The entry: starts a lighthouse and a torchrun for each replica, and says what recoveries took."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.fsdp.arguments import SettingsError
from trainer.replicas.arguments import DDP, PROGRAM, Order, ddp_settings, parse, place_of

HEARTBEAT_MS = 1000
JOIN_MS = 60_000
"""For replicas that give signs, but are in a step still while another one waits to come back. Of three, the
first to end its step would go on with that one alone otherwise."""
POLL_SECONDS = 0.05
SAID = "said.log"
PATIENCE_SECONDS = 60
"""For the others, once a replica has come to the last step."""


def main(words: list[str]) -> int:
    """The exit status: that of the first replica that has given up."""
    order = parse(words)
    # torchft reads this when it is imported; lighthouse and managers say every quorum otherwise.
    os.environ.setdefault("RUST_LOG", "warn")
    # Imported here because torch takes seconds, and a wrong argument should not.
    from trainer.fsdp.attempt import new_folder

    try:
        place = place_of(order)
        if order.module == DDP:
            _look_at_images(order)
        folder = new_folder(place.runs, place.name, place.stem).resolve()
    except SettingsError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _lighthouse(order.lighthouse) as address:
        return _train(order, words, folder, address)


def _look_at_images(order: Order) -> None:
    from trainer.ddp.arguments import SettingsError as DdpSettingsError
    from trainer.ddp.checkpoint import refuse_unwritable
    from trainer.replicas.classifier import refuse_what_cannot_train

    try:
        settings = ddp_settings(order)
        refuse_what_cannot_train(settings)
        # It is written at the end alone, when all the work would be lost.
        refuse_unwritable(settings.checkpoint_file)
    except DdpSettingsError as error:
        raise SettingsError(str(error)) from error


@contextmanager
def _lighthouse(given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    from torchft.coordination import LighthouseServer

    server = LighthouseServer(
        bind="[::]:0", min_replicas=1, join_timeout_ms=JOIN_MS, heartbeat_timeout_ms=HEARTBEAT_MS
    )
    try:
        yield server.address()
    finally:
        server.shutdown()


def _train(order: Order, words: list[str], folder: Path, lighthouse: str) -> int:
    from trainer.replicas.deaths import DeathWatch, recoveries_of

    for index in range(order.replicas):
        (folder / f"replica-{index}").mkdir()
    watch = DeathWatch(folder, order.replicas)
    replicas: list[subprocess.Popen] = []
    try:
        for index in range(order.replicas):
            replicas.append(_start(order, words, folder, index, lighthouse))
        statuses = _wait(replicas, watch, folder)
    finally:
        for each in replicas:
            each.terminate()
        for each in replicas:
            each.wait()
    recoveries = recoveries_of(folder, order.replicas, watch.deaths)
    (folder / "recoveries.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in recoveries))
    summary = _summary(order, folder, recoveries, statuses)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(f"{summary['status']} after step {summary['steps']}, {len(recoveries)} recoveries; see {folder}/")
    for index, status in enumerate(statuses):
        if status:
            said = folder / f"replica-{index}" / SAID
            print(f"replica {index} gave up with status {status}; {said} says why", file=sys.stderr)
    return next(filter(None, statuses), 0)


def _start(order: Order, words: list[str], folder: Path, index: int, lighthouse: str) -> subprocess.Popen:
    options = {
        "--nnodes": 1,
        "--nproc-per-node": order.nproc_per_node,
        "--max-restarts": order.max_restarts,
        "--rdzv-backend": "c10d",
        "--rdzv-endpoint": "localhost:0",
        "--rdzv-id": f"replica-{index}",
    }
    launcher = [sys.executable, "-m", "trainer.launch"]
    launcher += [str(word) for option in options.items() for word in option]
    module = ["-m", "trainer.replicas.rank", str(folder), str(index), *words]
    said = (folder / f"replica-{index}" / SAID).open("w")
    environment = os.environ | {"TORCHFT_LIGHTHOUSE": lighthouse}
    return subprocess.Popen([*launcher, *module], env=environment, stdout=said, stderr=subprocess.STDOUT)


def _wait(replicas: list[subprocess.Popen], watch: Any, folder: Path) -> list[int]:
    from trainer.replicas.replica import FINISHED, METRICS

    deadline = None
    while any(each.poll() is None for each in replicas):
        if any(each.poll() for each in replicas) and not list(folder.glob(f"*/{METRICS}")):
            # The others would wait for its first step.
            break
        if (folder / FINISHED).exists():
            # A replica that ends from here on has done all its steps.
            deadline = deadline or time.monotonic() + PATIENCE_SECONDS
            if time.monotonic() > deadline:
                break
        else:
            watch.look()
        time.sleep(POLL_SECONDS)
    return [each.poll() or 0 for each in replicas]


def _summary(
    order: Order, folder: Path, recoveries: list[dict[str, Any]], statuses: list[int]
) -> dict[str, Any]:
    from trainer.replicas.deaths import lines_of
    from trainer.replicas.replica import FINISHED, METRICS

    done = [
        line["step"]
        for index in range(order.replicas)
        for line in lines_of(folder / f"replica-{index}" / METRICS)
    ]
    last = max(done, default=0)
    status = "finished" if (folder / FINISHED).exists() else "failed"
    facts = {
        "status": status,
        "steps": last,
        "replicas": order.replicas,
        "ranks_per_replica": order.nproc_per_node,
    }
    return {**facts, "statuses": statuses, "recoveries": recoveries}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
