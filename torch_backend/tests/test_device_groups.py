"""Groups with a device: how they are made, split, failed and left, and training over them."""

import gc
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from device_ranks import DEVICE, hold, let_go, on_device, run_device_ranks, served
from models import assert_matches, batches, loss_of, make_model, make_optimizer
from ranks import assert_same, numbers
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

pytestmark = served

CPU = torch.device("cpu")
COUNT = 1000


def mine(count=COUNT):
    return on_device(numbers(dist.get_rank(), count, torch.float32))


def total(ranks=None, count=COUNT):
    ranks = range(dist.get_world_size()) if ranks is None else ranks
    return sum(numbers(rank, count, torch.float32) for rank in ranks)


def reduce_on(device, group=None, ranks=None):
    tensor = mine().to(device)
    dist.all_reduce(tensor, group=group)
    assert_same(tensor.cpu(), total(ranks), device)


def use_both(kinds):
    for device in kinds * 2:
        reduce_on(device)
    backends = {id(dist.group.WORLD._get_backend(torch.device(device))) for device in kinds}
    assert len(backends) == 1
    dist.barrier()


@pytest.mark.parametrize(
    ("backend", "kinds"),
    [
        ("fccl", ["cpu", "simulated"]),
        ("fccl", ["simulated", "cpu"]),
        ("simulated:fccl", ["simulated"]),
        ("cpu:fccl,simulated:fccl", ["simulated", "cpu"]),
        ("simulated:fccl,cpu:fccl", ["cpu", "simulated"]),
    ],
)
def test_one_backend_serves_the_tensors_of_both_kinds_in_any_order(backend, kinds):
    run_device_ranks(2, use_both, kinds, group={"backend": backend})


def use_gloo_beside():
    reduce_on("simulated")
    reduce_on("cpu")
    assert dist.group.WORLD._get_backend(CPU).name() == "gloo"
    assert dist.group.WORLD._get_backend(DEVICE).name() == "fccl"
    gathered = [None] * 2
    dist.all_gather_object(gathered, {"rank": dist.get_rank()})
    assert gathered == [{"rank": 0}, {"rank": 1}]


def test_gloo_may_serve_the_cpu_beside_it():
    run_device_ranks(2, use_gloo_beside, group={"backend": "cpu:gloo,simulated:fccl"})


def exchange_objects():
    objects = [None] * 2
    dist.all_gather_object(objects, dist.get_rank())
    assert objects == [0, 1]
    shared = ["from rank 1"] if dist.get_rank() == 1 else [None]
    dist.broadcast_object_list(shared, src=1)
    assert shared == ["from rank 1"]
    assert torch.ops.stand_in.reused_blocks() == 0 and torch.ops.stand_in.live_events() == 0
    reduce_on(DEVICE)


def test_objects_travel_through_memory_of_the_cpu():
    run_device_ranks(2, exchange_objects)


def use_a_bound_group():
    assert torch.ops.stand_in.live_events() > 0, "the communicator of the device was not made at once"
    reduce_on(DEVICE)
    rank = dist.get_rank()
    for ranks in ([0, 2], [1, 3], [0, 1, 2, 3]):
        group = dist.new_group(ranks)
        if rank in ranks:
            reduce_on(DEVICE, group, ranks)
            reduce_on(CPU, group, ranks)
            dist.barrier(group)
    mesh = init_device_mesh(DEVICE.type, (2, 2), mesh_dim_names=("replicate", "shard"))
    row = [2 * (rank // 2), 2 * (rank // 2) + 1]
    reduce_on(DEVICE, mesh.get_group("shard"), row)
    reduce_on(CPU, mesh.get_group("shard"), row)


def test_a_group_bound_to_a_device_is_made_at_once_and_makes_others():
    run_device_ranks(4, use_a_bound_group, group={"device_id": DEVICE})


def split_the_world(before):
    for device in before:
        reduce_on(device)
    rank, world = dist.get_rank(), dist.group.WORLD
    ranks = next((part for part in ([0, 2], [1]) if rank in part), [0, 2])
    part = world.split_group(ranks, timeout=timedelta(seconds=30), group_name=f"part{ranks}")
    if rank == 3:
        assert part is None
    else:
        assert part._get_backend(CPU) is not None and part.size() == len(ranks)
        for device in (DEVICE, CPU):
            tensor = mine().to(device)
            part.allreduce([tensor]).wait()
            assert_same(tensor.cpu(), total(ranks), device)
    reduce_on(DEVICE)


@pytest.mark.parametrize("before", [[], ["cpu"], ["simulated"], ["cpu", "simulated"]])
def test_a_split_group_serves_both_kinds_whatever_its_parent_has_served(before):
    run_device_ranks(4, split_the_world, before)


def disagree(kind, other):
    tensor = mine(COUNT + dist.get_rank()).to(kind)
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        dist.all_reduce(tensor, async_op=True).wait(timedelta(seconds=40))
    with pytest.raises(dist.DistBackendError, match="rank 1"):
        dist.all_reduce(mine().to(kind))
    reduce_on(other)


@pytest.mark.parametrize(("kind", "other"), [("simulated", "cpu"), ("cpu", "simulated")])
def test_a_failure_on_one_kind_of_memory_leaves_the_other_good(kind, other):
    run_device_ranks(2, disagree, kind, other)


def fail_after_issuing():
    source, gathered = mine(), torch.empty(2 * COUNT, device=DEVICE)
    # The first call of its kind, which waits for the other ranks.
    dist.all_gather_into_tensor(gathered, source)
    address = source.data_ptr()
    if dist.get_rank() == 0:
        work = dist.all_gather_into_tensor(gathered, source, async_op=True)
        del source
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            work.wait(timedelta(seconds=40))
        with torch.Stream(DEVICE), pytest.raises(dist.DistBackendError, match="rank 1"):
            work.wait()
        assert torch.empty(COUNT, device=DEVICE).data_ptr() == address
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            dist.all_reduce(mine())
    else:
        time.sleep(8)


def test_a_wait_throws_the_cause_once_the_stream_waits():
    run_device_ranks(2, fail_after_issuing, group_timeout=3)


def shorten_the_timeout():
    reduce_on(DEVICE)
    reduce_on(CPU)
    dist.group.WORLD.set_timeout(timedelta(milliseconds=700))
    if dist.get_rank() == 0:
        began = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            dist.all_reduce(mine(), async_op=True).wait(timedelta(seconds=40))
        with pytest.raises(dist.DistBackendError, match="rank 1"):
            dist.all_reduce(torch.ones(10))
        assert time.monotonic() - began < 20
    else:
        time.sleep(4)


def test_a_new_timeout_of_the_group_holds_for_both_kinds():
    run_device_ranks(2, shorten_the_timeout, group_timeout=60)


def abort_both():
    reduce_on(DEVICE)
    reduce_on(CPU)
    backend = dist.group.WORLD._get_backend(DEVICE)
    tensor = mine()
    if dist.get_rank() == 0:
        hold()
        work = dist.all_reduce(tensor, async_op=True)
        began = time.monotonic()
        backend.abort()
        assert time.monotonic() - began < 10
        let_go()
        with pytest.raises(dist.DistBackendError, match="abort"):
            work.wait()
    else:
        with pytest.raises(dist.DistBackendError, match="abort"):
            dist.all_reduce(tensor, async_op=True).wait(timedelta(seconds=40))
        backend.abort()
    for each in (torch.ones(4), tensor):
        with pytest.raises(dist.DistBackendError, match="abort"):
            dist.all_reduce(each)


def test_abort_covers_both_kinds_and_waits_for_no_stream():
    run_device_ranks(2, abort_both)


def drop_a_group():
    group = dist.new_group()
    reduce_on(DEVICE, group)
    tensor = mine()
    hold()
    work = dist.all_reduce(tensor, group=group, async_op=True)
    # Collect events that other tests left: they are not the group's.
    gc.collect()
    events = torch.ops.stand_in.live_events()
    # These are the tables in which torch itself keeps a group.
    world = dist.distributed_c10d._world
    for table in (
        world.pg_map,
        world.pg_names,
        world.pg_group_ranks,
        world.pg_backend_config,
        world.pg_to_tag,
    ):
        table.pop(group, None)
    for groups in world.tags_to_pg.values():
        if group in groups:
            groups.remove(group)
    dist.distributed_c10d._unregister_process_group(group.group_name)
    began = time.monotonic()
    del group
    gc.collect()
    assert time.monotonic() - began < 10
    assert torch.ops.stand_in.live_events() == events, "garbage collection has called the device"
    let_go()
    work.wait()
    assert_same(tensor.cpu(), total())
    reduce_on(DEVICE)


def test_a_group_that_is_dropped_waits_for_nobody_and_calls_no_device():
    run_device_ranks(2, drop_a_group)


def wait_after_leaving():
    tensor = mine()
    work = dist.all_reduce(tensor, async_op=True)
    work.wait(timedelta(seconds=40))
    late = dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    backend = dist.group.WORLD._get_backend(DEVICE)
    dist.destroy_process_group()
    late.wait()
    assert late.is_completed() and late.is_success()
    assert_same(tensor.cpu(), 2 * total(ranks=range(2)))
    with pytest.raises(dist.DistBackendError, match="shut down"):
        backend.allreduce([tensor], dist.AllreduceOptions())


def test_a_work_may_be_waited_for_when_its_group_has_ended():
    run_device_ranks(2, wait_after_leaving)


def train_on_the_device(wrap, state_of):
    size = dist.get_world_size()
    model = wrap(make_model().to(DEVICE))
    optimizer = make_optimizer(model)
    tokens = batches(size)[dist.get_rank()].to(DEVICE)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    assert_matches({name: value.cpu() for name, value in state_of(model).items()}, size)


def shard(model):
    mesh = init_device_mesh(DEVICE.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def full_state(model):
    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))


def test_fsdp2_on_the_device_matches_one_process():
    run_device_ranks(2, train_on_the_device, shard, full_state, settings={"delay_us": 0})


def state_of_replica(model):
    return model.module.state_dict()


def test_ddp_on_the_device_matches_one_process():
    run_device_ranks(
        2,
        train_on_the_device,
        nn.parallel.DistributedDataParallel,
        state_of_replica,
        settings={"delay_us": 0},
    )
