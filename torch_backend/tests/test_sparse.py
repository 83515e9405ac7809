"""All-reduce of sparse tensors gives each rank the elements of all, with the values of dense tensors."""

import itertools

import pytest
import torch
import torch.distributed as dist
from ranks import assert_same, numbers, run_ranks

SIZES = (7, 5, 3)


def sparse_of(rank, dtype, sparse_dims=2, iteration=0, sizes=SIZES):
    """A rank's elements, some at places of another's; the first twice, and none on rank 1 in iteration 2."""
    count = 0 if (rank, iteration) == (1, 2) else 4 + 2 * rank
    places = torch.arange(count) * 3 + rank * 2 + iteration
    places = torch.cat([places, places[:1]])
    indices = torch.stack([places % size for size in sizes[:sparse_dims]])
    values = numbers(rank, len(places), torch.float32, iteration)
    values = values.reshape(-1, *(1 for _ in sizes[sparse_dims:])).expand(-1, *sizes[sparse_dims:]).to(dtype)
    return torch.sparse_coo_tensor(indices, values, sizes)


def add_sparse(asynchronous):
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, (iteration, sparse_dims) in itertools.product(
        (torch.float32, torch.float64, torch.bfloat16, torch.int64),
        enumerate((1, 2, 3, 3)),
    ):
        tensor = sparse_of(rank, dtype, sparse_dims, iteration)
        dense = tensor.to_dense()
        work = dist.all_reduce(tensor, async_op=asynchronous)
        if asynchronous:
            work.wait()
        dist.all_reduce(dense)
        parts = [sparse_of(peer, dtype, sparse_dims, iteration).coalesce() for peer in range(size)]
        places = {place for part in parts for place in map(tuple, part.indices().t().tolist())}
        what = (dtype, sparse_dims, iteration)
        assert tensor.is_coalesced() and tensor._nnz() == len(places), what
        assert_same(tensor.to_dense(), dense, what)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_sum_of_sparse_tensors_has_the_bits_of_a_dense_one(asynchronous):
    run_ranks(3, add_sparse, asynchronous)


def add_what_nobody_has():
    for sizes in ((4, 2), (0, 2)):
        tensor = torch.sparse_coo_tensor(size=sizes)
        dist.all_reduce(tensor)
        assert tensor._nnz() == 0 and tensor.shape == sizes


def average_and_scale():
    rank, size = dist.get_rank(), dist.get_world_size()
    total = sum(sparse_of(peer, torch.float64).to_dense() for peer in range(size))
    for op, factor in ((dist.ReduceOp.AVG, 1 / size), (dist._make_nccl_premul_sum(0.5), 0.5)):
        tensor = sparse_of(rank, torch.float64)
        dist.all_reduce(tensor, op=op)
        torch.testing.assert_close(tensor.to_dense(), total * factor)
    add_what_nobody_has()


def test_sparse_tensors_are_averaged_and_scaled_and_may_be_empty():
    run_ranks(2, average_and_scale)


def differ():
    rank = dist.get_rank()
    before = sparse_of(rank, torch.float32)
    wrong = [
        ("brought Float.7, 5, 3. with 2 .* rank 1 Float.7, 5, 4.", lambda: sized(4 if rank == 1 else 3)),
        ("brought Float.* rank 1 Double", lambda: sparse_of(rank, (torch.float32, torch.float64)[rank])),
        ("with 2 sparse .* with 3 sparse", lambda: sparse_of(rank, torch.float32, 2 + rank)),
    ]
    for words, make in wrong:
        tensor = make()
        with pytest.raises(ValueError, match=f"^fccl:sparse_all_reduce.*alike.*{words}"):
            dist.all_reduce(tensor)
        assert_same(tensor.to_dense(), make().to_dense(), "what was refused")
    with pytest.raises(ValueError, match="SUM, AVG and PREMUL_SUM alone"):
        dist.all_reduce(before, op=dist.ReduceOp.MAX)
    dist.all_reduce(before)
    assert_same(before.to_dense(), sum(sparse_of(peer, torch.float32).to_dense() for peer in range(2)))


def sized(last):
    return sparse_of(dist.get_rank(), torch.float32, sizes=(7, 5, last))


def test_sparse_tensors_that_differ_are_refused_on_every_rank():
    run_ranks(2, differ)


def train_an_embedding():
    torch.manual_seed(0)
    model = torch.nn.Embedding(20, 3, sparse=True)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    words = [torch.tensor([1, 5, 5, 9]), torch.tensor([9, 3, 0, 19])]
    parallel(words[dist.get_rank()]).square().sum().backward()
    whole = torch.nn.Embedding(20, 3)
    whole.load_state_dict(model.state_dict())
    (sum(whole(each).square().sum() for each in words) / 2).backward()
    assert model.weight.grad.is_sparse
    torch.testing.assert_close(model.weight.grad.to_dense(), whole.weight.grad)


def test_ddp_reduces_the_sparse_gradient_of_an_embedding():
    run_ranks(2, train_an_embedding)
