"""The ranks of test_smp.py: many cases in one process group; each rank writes what it found as JSON."""

import torch.sagemaker as tsm  # noqa: I001  the lines of a script for SMP v2, which import nothing before

import json
import os
import sys
from pathlib import Path
from typing import Any

import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401
import torch.distributed as dist
import fccl
import fccl_sagemaker
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import OffloadWrapper
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP  # noqa: N817  every script names it so
from small_llama import one_process
import checkpoint_cases
import delayed_cases
import smp_cases
from smp_cases import EIGHT, FOUR, STEPS

OF_TORCH = (FSDP.__init__, OffloadWrapper.forward)


def run(case: Any, *inputs: Any) -> Any:
    found = case(*inputs)
    fccl_sagemaker.restore()
    return found


def is_restored() -> bool:
    """Tells if torch is as it was before init()."""
    return (
        (FSDP.__init__, OffloadWrapper.forward) == OF_TORCH
        and "state_dict" not in vars(FSDP)
        and not tsm.is_initialized()
    )


def four_ranks(out: Path) -> dict[str, Any]:
    folder, wanted = os.fspath(out / "folder"), one_process(STEPS)[0]
    return {
        "wrong": run(smp_cases.wrong),
        "torch's offloading": run(smp_cases.offloading, {"sm_activation_offloading": False}),
        "plain": run(smp_cases.offloading, {}, False),
        **{
            f"horizon {horizon}": run(smp_cases.offloading, {"activation_loading_horizon": horizon})
            for horizon in (1, 2, 4)
        },
        "own mesh": run(smp_cases.own_mesh),
        "hosts": run(smp_cases.hosts, wanted),
        "rank 0's weights": [run(smp_cases.weights_of_rank_0, degree) for degree in (1, 2, 4)],
        "drawn": run(delayed_cases.drawn),
        "tied": run(delayed_cases.tied),
        "custom": run(delayed_cases.custom),
        "folder": run(delayed_cases.from_folder, folder, wanted),
        "AWS's checkpoint": run(checkpoint_cases.as_aws_documents, os.fspath(out / "documented")),
        "asynchronous": run(checkpoint_cases.asynchronous, os.fspath(out / "asynchronous")),
        "model checkpoint": run(checkpoint_cases.of_model, os.fspath(out / "model")),
        "keys": run(checkpoint_cases.other_keys, os.fspath(out / "keys")),
        "empty shards": [
            run(checkpoint_cases.empty_shards, os.fspath(out / f"empty-{allowed}"), allowed)
            for allowed in (True, False)
        ],
    }


def main(out: Path) -> None:
    dist.init_process_group("smddp")
    found: dict[str, Any] = {"backend": dist.get_backend(), "active": fccl.is_active()}
    cases = EIGHT if dist.get_world_size() == 8 else FOUR
    for kind in dict.fromkeys(of_kind for of_kind, _ in cases.values()):
        norms: list[float] = []
        losses, states = one_process(STEPS, kind, norms)
        for name, (of_kind, keys) in cases.items():
            if of_kind == kind:
                found[name] = run(smp_cases.degrees, kind, keys, losses, norms, states)
    if dist.get_world_size() == 4:
        found |= four_ranks(out)
    found["restored"] = is_restored()
    (out / f"{os.environ['RANK']}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
