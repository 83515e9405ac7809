"""Tensors in memory that the ranks of a host map."""

import gc
import io
import multiprocessing
import os

import fccl
import pytest
import torch
import torch.distributed as dist
from models import STEPS, assert_matches, batches, loss_of, make_model, make_optimizer
from ranks import assert_same, numbers, poisoned, run_ranks
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

LARGE = 100_003  # elements: an odd number of several pages


def lies_in_arena(tensor: torch.Tensor) -> bool:
    address = tensor.untyped_storage().data_ptr()
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, _, end = line.split()[0].partition("-")
            if int(begin, 16) <= address < int(end, 16):
                return "memfd:fccl-arena" in line
    return False


def allocated(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.supports_tensor_alloc(torch.device("cpu"))
    return backend.allocate_tensor(count, dtype=dtype, device=torch.device("cpu"))


def gather_and_reduce():
    rank, size = dist.get_rank(), dist.get_world_size()
    for iteration in range(3):
        mine, whole = allocated(LARGE), allocated(LARGE * size)
        assert lies_in_arena(mine) and lies_in_arena(whole)
        mine.copy_(numbers(rank, LARGE, torch.float32, iteration))
        whole.copy_(poisoned(LARGE * size, torch.float32))
        dist.all_gather_into_tensor(whole, mine)
        everybody = [numbers(each, LARGE, torch.float32, iteration) for each in range(size)]
        assert_same(whole, torch.cat(everybody), f"gathered {iteration}")
        shard = allocated(LARGE)
        shard.copy_(poisoned(LARGE, torch.float32))
        dist.reduce_scatter_tensor(shard, whole)
        assert_same(shard, size * everybody[rank], f"reduced {iteration}")


def test_allocated_tensors_gather_and_reduce():
    run_ranks(2, gather_and_reduce)


def outlive_the_group():
    kept = allocated(LARGE, torch.int32)
    kept.fill_(dist.get_rank() + 7)
    dist.destroy_process_group()
    gc.collect()
    assert_same(kept, torch.full((LARGE,), kept[0].item(), dtype=torch.int32))
    assert lies_in_arena(kept)


def test_an_allocated_tensor_outlives_its_group():
    run_ranks(2, outlive_the_group)


def train(wrap):
    model = wrap(make_model())
    optimizer = make_optimizer(model)
    tokens = batches(dist.get_world_size())[dist.get_rank()]
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    return model


def shard_into_arena(model):
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    assert fccl.use_arena(model) == len(model.blocks) + 1
    return model


def train_with_fsdp2():
    model = train(shard_into_arena)
    for parameter in model.parameters():
        assert lies_in_arena(parameter.grad.to_local())
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    assert_matches(state, dist.get_world_size())


def test_fsdp2_trains_with_its_buffers_in_the_arena():
    run_ranks(2, train_with_fsdp2)


def replicate(model):
    fccl.use_arena()
    wrapped = DistributedDataParallel(model)
    assert lies_in_arena(torch.empty(LARGE))
    assert not lies_in_arena(torch.empty(8))
    return wrapped


def train_with_ddp():
    model = train(replicate)
    assert_matches(model.module.state_dict(), dist.get_world_size())


def test_ddp_trains_where_all_tensors_come_from_the_arena():
    run_ranks(2, train_with_ddp)


def use_as_users_do():
    fccl.use_arena()
    rank = dist.get_rank()
    tensor = numbers(rank, LARGE, torch.float32).clone()
    assert lies_in_arena(tensor)
    saved = io.BytesIO()
    torch.save(tensor, saved)
    saved.seek(0)
    assert_same(torch.load(saved), tensor, "saved and loaded")
    tensor.resize_(2 * LARGE)
    tensor.resize_(LARGE)
    assert_same(tensor, numbers(rank, LARGE, torch.float32), "resized")
    tensor.share_memory_()
    assert not lies_in_arena(tensor)
    assert_same(tensor, numbers(rank, LARGE, torch.float32), "shared")


def test_tensors_of_the_arena_are_saved_resized_and_shared_as_others_are():
    run_ranks(2, use_as_users_do)


def write_in_a_fork():
    mine = allocated(LARGE)
    mine.copy_(numbers(dist.get_rank(), LARGE, torch.float32))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert_same(mine, numbers(dist.get_rank(), LARGE, torch.float32), "what the child sees")
            mine.fill_(-1)
            status = 0 if mine.sum() == -LARGE else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert_same(mine, numbers(dist.get_rank(), LARGE, torch.float32), "behind the child's writing")


def test_a_forked_child_reads_and_writes_its_own_copy():
    run_ranks(2, write_in_a_fork)


class Squares(torch.utils.data.Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return 8

    def __getitem__(self, index):
        row = self.table[index]
        row.mul_(row)
        return row.clone()


def load_by_workers():
    # A rank of these tests is a daemon, which multiprocessing lets have no children.
    multiprocessing.current_process()._config["daemon"] = False
    fccl.use_arena()
    table = torch.arange(8 * LARGE, dtype=torch.float64).view(8, LARGE)
    before = table.clone()
    assert lies_in_arena(table)
    loader = torch.utils.data.DataLoader(
        Squares(table), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    loaded = torch.cat(list(loader))
    assert_same(loaded, before * before, "what the workers made")
    assert_same(table, before, "what the parent has")


def test_workers_of_a_data_loader_that_write_leave_the_parents_tensors_alone():
    run_ranks(1, load_by_workers)


def test_a_model_that_is_not_sharded_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="call it behind that; for FSDP1 and DDP call use_arena"):
        fccl.use_arena(torch.nn.Linear(2, 2))
