"""The backend refuses in words what it cannot do, and the group stays good."""

import pytest
import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from ranks import assert_same, numbers, run_ranks


def refuse(error, words, call):
    with pytest.raises(error, match=words) as refusal:
        call()
    assert str(refusal.value).count("fccl:") == 1, f"the backend is not named once: {refusal.value}"
    tensor = numbers(dist.get_rank(), 4, torch.float32)
    dist.all_reduce(tensor)
    assert_same(tensor, numbers(0, 4, torch.float32) + numbers(1, 4, torch.float32), "after the refusal")


def send_where_nobody_is():
    tensor = torch.ones(4)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    refuse(ValueError, "peer is 2: give 0 <= peer < 2", lambda: backend.send([tensor], 2, 0))
    refuse(ValueError, "the source must be a rank of the group", lambda: backend.recv([tensor], -1, 0))
    refuse(ValueError, "tag is -1: give a tag >= 0", lambda: dist.send(tensor, 1 - dist.get_rank(), tag=-1))
    refuse(ValueError, "expected one tensor", lambda: backend.send([tensor, tensor], 0, 0))


def test_a_send_to_no_rank_or_by_no_tag_is_refused():
    run_ranks(2, send_where_nobody_is)


def exchange_what_does_not_fit():
    # Straight to the backend, since torch checks some of it on the way.
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    tensor, options = torch.ones(4), c10d.AllToAllOptions()

    def exchange(output, splits, source=tensor):
        return lambda: backend.alltoall_base(output, source, splits, [], options)

    refuse(ValueError, "add up to the first dimension", exchange(torch.empty(4), [1, 1]))
    refuse(ValueError, "one split size per rank", exchange(torch.empty(4), [4]))
    refuse(ValueError, "one of which is negative", exchange(torch.empty(4), [5, -1]))
    refuse(ValueError, "a multiple of the number of ranks", exchange(torch.empty(4), [], torch.ones(3)))
    refuse(ValueError, "one type", exchange(torch.empty(4, dtype=torch.float64), []))
    refuse(ValueError, "one tensor per rank", lambda: backend.alltoall([tensor], [tensor], options))


def test_an_all_to_all_whose_tensors_do_not_fit_says_why():
    run_ranks(2, exchange_what_does_not_fit)


def gather_sparse():
    sparse = torch.eye(3).to_sparse()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend.allgather([[sparse, sparse]], [sparse], c10d.AllgatherOptions())


def reduce_what_cannot_be_reduced():
    ones = torch.ones(4, dtype=torch.int32)
    for op in ("BAND", "BOR", "BXOR"):
        for dtype in (torch.float32, torch.bfloat16):
            refuse(
                RuntimeError,
                f"{op} of {'Float' if dtype == torch.float32 else 'BFloat16'} has no meaning",
                lambda op=op, dtype=dtype: dist.all_reduce(ones.to(dtype), op=getattr(dist.ReduceOp, op)),
            )
    refuse(NotImplementedError, "all_reduce", lambda: dist.all_reduce(ones.to(torch.float8_e4m3fnuz)))
    refuse(NotImplementedError, "all_gather of a tensor of layout Sparse", gather_sparse)
    refuse(
        NotImplementedError,
        "reduce with a reduction other than a sum of ComplexFloat",
        lambda: dist.reduce(ones.to(torch.complex64), dst=0, op=dist.ReduceOp.PRODUCT),
    )


def test_reductions_that_come_later_are_named_and_the_backend_once():
    run_ranks(2, reduce_what_cannot_be_reduced)


def reduce_without_meaning():
    truths = torch.ones(4, dtype=torch.bool)
    half = dist._make_nccl_premul_sum(0.5)
    many = dist._make_nccl_premul_sum(300.0)
    refuse(RuntimeError, "avg of bool has no meaning", lambda: dist.all_reduce(truths, op=dist.ReduceOp.AVG))
    refuse(RuntimeError, "premul_sum of bool has no meaning", lambda: dist.all_reduce(truths, op=half))
    refuse(ValueError, "factor 300", lambda: dist.all_reduce(torch.ones(4, dtype=torch.uint8), op=many))


def test_reductions_without_meaning_say_why():
    run_ranks(2, reduce_without_meaning)


def reduce_strided_by_a_factor_out_of_range():
    many = dist._make_nccl_premul_sum(300.0)
    for _ in range(5):
        tensor = torch.ones(2000, 3000, dtype=torch.uint8).t()
        refuse(ValueError, "factor 300", lambda t=tensor: dist.all_reduce(t, op=many, async_op=True))


def test_a_factor_out_of_range_is_refused_before_a_strided_tensor_is_copied():
    run_ranks(2, reduce_strided_by_a_factor_out_of_range)


def coalesce_what_only_one_type_allows(asynchronous):
    def coalesce(first, second, op):
        options = dist.AllreduceCoalescedOptions()
        options.reduceOp, options.asyncOp = op, asynchronous
        before = first.clone()
        refuse(
            (ValueError, RuntimeError),
            "factor 300|of bool has no meaning",
            lambda: dist.group.WORLD.allreduce_coalesced([first, second], options),
        )
        assert_same(first, before, "what was refused")

    ones = torch.ones(1000)
    many = dist._make_nccl_premul_sum(300.0)
    coalesce(numbers(dist.get_rank(), 1000, torch.float32), ones.to(torch.uint8), many)
    coalesce(numbers(dist.get_rank(), 1000, torch.float32), ones.bool(), many)
    coalesce(numbers(dist.get_rank(), 1000, torch.float32), ones.bool(), dist.ReduceOp(dist.ReduceOp.AVG))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_coalesced_call_is_refused_before_its_first_part_is_sent(asynchronous):
    run_ranks(2, coalesce_what_only_one_type_allows, asynchronous)


def lazy_views():
    """Each as the text of its refusal and a tensor whose numbers are not those in its memory."""
    conjugate = torch.view_as_complex(torch.ones(4, 2)).conj()
    negative = conjugate.imag
    assert conjugate.is_conj() and negative.is_neg()
    return (r"\.resolve_conj\(\)", conjugate), (r"\.resolve_neg\(\)", negative)


def pass_lazy_inputs():
    # Straight to the backend, since torch resolves single tensors, but no lists of a list, on the way.
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    is_root = dist.get_rank() == 0
    for words, lazy in lazy_views():
        pair = [torch.empty(4, dtype=lazy.dtype) for _ in range(2)]
        whole, part, outputs = torch.cat(pair), pair[0][:2], [pair] if is_root else []
        for call in (
            lambda t=lazy: backend.reduce([t], dist.ReduceOptions()),
            lambda t=lazy, to=outputs: backend.gather(to, [t], dist.GatherOptions()),
            lambda t=lazy, to=pair: backend.allgather([to], [t], c10d.AllgatherOptions()),
            lambda t=lazy, to=whole: backend._allgather_base(to, t, c10d.AllgatherOptions()),
            lambda t=lazy, to=part: backend._reduce_scatter_base(to, t, c10d.ReduceScatterOptions()),
        ):
            refuse(ValueError, words, call)
    # Here lazy is the last of them, the negative.
    refuse(ValueError, words, lambda: dist.reduce_scatter(torch.empty(4), [torch.ones(4), lazy]))


def test_an_input_whose_memory_holds_other_numbers_is_refused():
    run_ranks(2, pass_lazy_inputs)


def pass_lazy_outputs():
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.GatherOptions()
    # On both ranks, since what the root alone refuses leaves the others to send.
    options.rootRank = dist.get_rank()
    for words, lazy in lazy_views():
        ours = torch.ones(4, dtype=lazy.dtype)
        for call in (
            lambda to=lazy: backend.reduce([to], dist.ReduceOptions()),
            lambda t=ours, to=lazy: backend.gather([[t.clone(), to]], [t], options),
            lambda t=ours, to=lazy: backend.allgather([[t.clone(), to]], [t], c10d.AllgatherOptions()),
            lambda t=ours[:2], to=lazy: backend._allgather_base(to, t, c10d.AllgatherOptions()),
            lambda t=ours, to=lazy: backend.reduce_scatter([to], [[t, t]], c10d.ReduceScatterOptions()),
            lambda t=ours, to=lazy[:2]: backend._reduce_scatter_base(to, t, c10d.ReduceScatterOptions()),
        ):
            refuse(ValueError, words, call)
    # Here lazy is the last of them, the negative.
    refuse(ValueError, words, lambda: dist.all_gather([torch.empty(4), lazy], torch.ones(4)))


def test_an_output_whose_memory_holds_other_numbers_is_refused():
    run_ranks(2, pass_lazy_outputs)


def pass_wrong_tensors():
    def unequal():
        dist.all_gather([torch.empty(5), torch.empty(5)], torch.ones(4))

    def unequal_parts():
        sizes = [3 + dist.get_rank(), 4 - dist.get_rank()]
        dist.reduce_scatter(torch.empty(4), [torch.ones(size) for size in sizes])

    def too_small():
        dist.all_gather_into_tensor(torch.empty(7), torch.ones(4))

    def of_two_types():
        dist.reduce_scatter_tensor(torch.empty(4, dtype=torch.float64), torch.ones(8))

    refuse(ValueError, "stands for this rank must be like this rank's", unequal)
    refuse(ValueError, "stands for this rank must be like this rank's", unequal_parts)
    refuse(ValueError, "must have 2 times", too_small)
    refuse((ValueError, RuntimeError), "type", of_two_types)


def test_tensors_of_wrong_size_or_type_are_refused():
    run_ranks(2, pass_wrong_tensors)


def pass_memory_of_another_device():
    # Straight to the backend, which torch asks for memory of the CPU only.
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    with pytest.raises(NotImplementedError, match=r"^fccl:all_reduce of a tensor on meta is not implemented"):
        backend.allreduce([torch.ones(4, device="meta")], dist.AllreduceOptions())


def test_memory_of_another_device_is_refused():
    run_ranks(1, pass_memory_of_another_device)


def call_different_collectives():
    with pytest.raises(dist.DistBackendError) as failure:
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(4))
        else:
            dist.all_reduce(torch.ones(5))
    assert "rank 0" in str(failure.value) and "rank 1" in str(failure.value)


def test_ranks_that_disagree_both_get_an_error_that_names_them():
    run_ranks(2, call_different_collectives)
