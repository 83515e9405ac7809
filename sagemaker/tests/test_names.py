"""Tests of the names that scripts for SMP v2 import, as far as they need no other rank."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.sagemaker as tsm
from fccl_sagemaker import checkpoints, layers, model_checkpoints, notes
from fccl_sagemaker.delayed import empty_module_params, move_buffers_to_device
from torch import nn
from torch.distributed.fsdp import StateDictType

# The call of AWS's sample.
KEPT = {"sort_fn": checkpoints.SORT_BY_LAST_INT, "regex": r"^.*\d+steps$"}


def folders(root: Path) -> list[str]:
    return sorted(each.name for each in root.iterdir())


@pytest.fixture
def checkpointed(tmp_path: Path) -> Path:
    for name in ("llama-9steps", "llama-10steps", "llama-100steps", "model", "logs1"):
        (tmp_path / name / "inside").mkdir(parents=True)
    (tmp_path / "file-1steps").touch()
    return tmp_path


def test_the_newest_checkpoints_stay_and_what_is_no_checkpoint(checkpointed: Path) -> None:
    checkpoints.limit_num_subdirs(str(checkpointed), 2, **KEPT, log=True)
    assert folders(checkpointed) == ["file-1steps", "llama-100steps", "llama-10steps", "logs1", "model"]


@pytest.mark.parametrize(("limit", "log"), [(1, False), (0, True), (-1, True), (3, True)])
def test_no_checkpoint_goes_on_other_ranks_or_within_the_limit(
    checkpointed: Path, limit: int, log: bool
) -> None:
    before = folders(checkpointed)
    checkpoints.limit_num_subdirs(str(checkpointed), limit, **KEPT, log=log)
    assert folders(checkpointed) == before


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: layers.MoEConfig(smp_moe=True), "MoEConfig is not served .* --expert-parallel"),
        (lambda: layers.TransformerLayer(8), "TransformerLayer is not served .* transform"),
        (lambda: layers.TETransformerLayer(8), "TETransformerLayer is not served .* FP8"),
    ],
)
def test_layers_of_smps_own_are_refused_when_they_are_made(use: Callable[[], Any], says: str) -> None:
    with pytest.raises(NotImplementedError, match=says):
        use()


@pytest.mark.parametrize("call", [checkpoints.save, checkpoints.async_save, checkpoints.load])
@pytest.mark.parametrize(
    "place", [{"checkpoint_id": "s3://bucket/a"}, {"s3_region": "us-east-1"}, {"s3client_config": object()}]
)
def test_s3_is_refused(call: Callable[..., Any], place: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"does not serve S3 .* save into a folder that all hosts share"):
        call({}, **place)


@pytest.mark.parametrize(
    "call", [model_checkpoints.save_model_checkpoint, model_checkpoints.load_model_checkpoint]
)
def test_other_kinds_of_model_checkpoints_are_refused(call: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"LOCAL_STATE_DICT; allowed is StateDictType\.SHARDED_STATE_DICT"):
        call(nn.Linear(1, 1), StateDictType.LOCAL_STATE_DICT, tmp_path)


def test_a_name_that_is_not_served_names_those_that_are() -> None:
    import torch.sagemaker.grad_norm

    with pytest.raises(AttributeError, match=r"no attribute 'clip'; .* \['clip_grad_norm_'\]"):
        torch.sagemaker.grad_norm.clip  # noqa: B018
    assert tsm.grad_norm.clip_grad_norm_ is torch.sagemaker.grad_norm.clip_grad_norm_


def test_a_module_gets_empty_parameters_and_keeps_its_buffers() -> None:
    module = nn.BatchNorm1d(3, device="meta")
    module.register_buffer("running_mean", torch.tensor([1.0, 2.0, 3.0]))
    module.weight.requires_grad_(False)
    assert empty_module_params(module, device="cpu") is module
    assert not module.weight.is_meta and not module.weight.requires_grad and module.bias.requires_grad
    assert module.running_mean.tolist() == [1, 2, 3] and module.running_var.is_meta


@pytest.mark.parametrize("recurse", [False, True])
def test_buffers_move_and_parameters_stay(recurse: bool) -> None:
    model = nn.Sequential(nn.BatchNorm1d(2))
    assert move_buffers_to_device(model, "meta", recurse=recurse) is model
    assert model[0].running_var.is_meta == recurse and not model[0].weight.is_meta


@pytest.mark.parametrize(("enabled", "rank", "lines"), [(True, 0, 1), (True, None, 1), (False, 0, 0)])
def test_a_block_is_timed(
    caplog: pytest.LogCaptureFixture, enabled: bool, rank: int | None, lines: int
) -> None:
    assert isinstance(notes.get_logger(), logging.Logger)
    with caplog.at_level(logging.INFO), notes.timeit(enabled, "Model creation", rank):
        pass
    assert [each.message.startswith("Model creation took 0.0") for each in caplog.records] == [True] * lines
