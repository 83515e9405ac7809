"""Scripts that do not know fccl run through it where the environment asks; by fccl's own counters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from fccl import _names

# Each script of a test says on rank 0, in one line, what its calls came to.
HEAD = """
import json, sys, torch, torch.distributed as dist
from torch.distributed import init_process_group, new_group

def total(group=None):
    tensor = torch.full((3,), 1.0 + dist.get_rank())
    dist.all_reduce(tensor, group=group)
    return tensor.tolist()

def report(**said):
    fccl = sys.modules["fccl"]
    said["counters"] = {name: each["calls"] for name, each in fccl.counters().items() if each["calls"]}
    if dist.get_rank() == 0:
        print(json.dumps(said))
"""


def run_script(folder, text, ranks=2, **environment):
    """Runs it on ranks that have torch's variables of torchrun; what rank 0 reported and the log."""
    program = folder / "script.py"
    program.write_text(HEAD + text)
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("forked_ranks.py"), str(ranks), program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr


UNDER_GLOO = """
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
import fccl

init_process_group("gloo")
sums = [total()]
pair = new_group(backend="gloo")
like_the_default = dist.new_group([0, 1])
sums += [total(pair), total(like_the_default)]
mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
sums.append(total(mesh.get_group("b")))
if torch.__version__ >= "2.15":
    sums.append(total(dist.split_group(split_ranks=[[0, 1]])))

torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1, bias=False))
model(torch.full((1, 4), 1.0 + dist.get_rank())).sum().backward()
objects = [None, None]
dist.all_gather_object(objects, {"rank": dist.get_rank()})
dist.monitored_barrier()
groups = [None, pair, like_the_default, mesh.get_group("a")]
report(
    sums=sums,
    gradient=model.module.weight.grad.tolist(),
    objects=objects,
    names=[dist.get_backend(group) for group in groups],
    config=dist.get_backend_config(),
    active=[fccl.is_active(group) for group in groups],
)
dist.destroy_process_group()
"""


def test_a_script_that_names_gloo_runs_through_fccl(tmp_path):
    said, log = run_script(tmp_path, UNDER_GLOO, FCCL_TORCH_REPLACES="gloo")
    assert all(each == [3.0] * 3 for each in said["sums"]) and len(said["sums"]) >= 4
    assert said["gradient"] == [[1.5] * 4]
    assert said["objects"] == [{"rank": 0}, {"rank": 1}]
    # The script sees the name that it gave.
    assert said["names"] == ["gloo"] * 4
    assert said["config"] == "cpu:gloo,cuda:gloo"
    assert said["active"] == [True] * 4
    # Each sum, and the one bucket of gradients.
    assert said["counters"]["AllReduce"] == len(said["sums"]) + 1
    assert said["counters"]["Broadcast"] >= 1 and said["counters"]["AllGather"] >= 2
    assert log.count("fccl is in the place of gloo, as FCCL_TORCH_REPLACES asks") == 1
    assert "no hooks" not in log and "Warning" not in log, log


WITHOUT_A_NAME = """
import fccl
init_process_group()
sums = [total(), total(new_group([0, 1])), total(new_group(backend="gloo"))]
report(sums=sums, name=dist.get_backend(), active=fccl.is_active())
dist.destroy_process_group()
"""


def test_a_script_that_names_no_backend_runs_through_fccl(tmp_path):
    # This machine has no CUDA memory.
    variables = {"FCCL_TORCH_DEFAULT": "cpu,cuda", "FCCL_TORCH_REPLACES": "nccl"}
    said, log = run_script(tmp_path, WITHOUT_A_NAME, **variables)
    assert said["sums"] == [[3.0] * 3] * 3
    assert said["name"] == "undefined" and said["active"]
    # The third sum went through the Gloo that the script names.
    assert said["counters"]["AllReduce"] == 2
    told = "fccl is the backend of a group for which the program names none, as FCCL_TORCH_DEFAULT asks"
    assert log.count(told) == 1 and "in the place of" not in log
    assert "no hooks" not in log and "Warning" not in log, log


ALONE = (
    HEAD
    + """
import fccl
helper = dist.distributed_c10d._new_process_group_helper
dist.init_process_group(BACKEND, store=dist.HashStore(), rank=0, world_size=1)
total()
device = dist.Backend.default_device_backend_map["cpu"]
second = new_group(backend=SECOND)
total(second)
report(
    name=dist.get_backend(),
    active=fccl.is_active(),
    second=dist.get_backend(second),
    second_active=fccl.is_active(second),
    default=device,
    watched=hasattr(helper, "__wrapped__"),
)
dist.destroy_process_group()
"""
)


def run_alone(backend, second, **environment):
    program = ALONE.replace("BACKEND", repr(backend)).replace("SECOND", repr(second))
    command = [sys.executable, "-W", "always", "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def test_without_the_variables_torch_stays_as_it_is():
    ran = run_alone("gloo", None, FCCL_TORCH_DEFAULT="", FCCL_TORCH_REPLACES="")
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["name"] == said["second"] == said["default"] == "gloo" and said["counters"] == {}
    assert not (said["active"] or said["second_active"] or said["watched"])
    assert "fccl" not in ran.stderr


def test_both_names_are_replaced_in_one_group_and_alone():
    ran = run_alone("cpu:gloo,cuda:nccl", "nccl", FCCL_TORCH_REPLACES="gloo, NCCL")
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["name"] == "cpu:gloo,cuda:nccl" and said["active"]
    assert said["second"] == "nccl" and said["second_active"] and said["counters"] == {"AllReduce": 2}
    assert "fccl is in the place of gloo and nccl" in ran.stderr and "no hooks" not in ran.stderr


def test_a_value_that_is_not_allowed_is_told_when_a_group_is_made(monkeypatch):
    helper = "_new_process_group_helper"
    monkeypatch.setattr(c10d, helper, getattr(c10d, helper))
    wishes = _names.wishes_of({"FCCL_TORCH_REPLACES": "gloo,mpi"})
    _names.fulfil(wishes, lambda *_: pytest.fail("a backend was made"), ["cpu"])
    told = "^fccl: FCCL_TORCH_REPLACES=gloo,mpi is not allowed: give gloo or nccl, or both with a comma"
    with pytest.raises(ValueError, match=told):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("FCCL_TORCH_DEFAULT", "gpu", "FCCL_TORCH_DEFAULT=gpu is not allowed: give cpu or cuda"),
        ("FCCL_TORCH_DEFAULT", "cpu;cuda", "FCCL_TORCH_DEFAULT=cpu;cuda is not allowed"),
        ("FCCL_TORCH_REPLACES", ",", "FCCL_TORCH_REPLACES=, is not allowed: give gloo or nccl"),
    ],
)
def test_values_that_are_not_allowed_are_named(variable, value, words):
    wishes = _names.wishes_of({"PATH": "/bin", "FCCL_TORCH": "2.13.0", variable: value})
    assert wishes.fault.startswith(words) and not wishes.defaults and not wishes.replaced


def test_a_variable_that_is_no_setting_is_warned_of_once_and_has_no_effect(monkeypatch, caplog):
    monkeypatch.setattr(_names, "_said", set())
    wishes = _names.wishes_of({"FCCL_TORCH_REPLACE": "gloo"})
    assert wishes and not (wishes.replaced or wishes.defaults or wishes.fault)
    for rank in (1, 0, 0):
        _names._say(wishes, "gloo", {"cpu": "gloo"}, rank)
        assert rank == 0 or not caplog.messages
    told = "FCCL_TORCH_REPLACE is not a setting of fccl and has no effect: there are FCCL_TORCH_DEFAULT and"
    assert len(caplog.messages) == 1 and caplog.messages[0].startswith(told)


def test_the_variables_are_lists_in_any_case():
    wishes = _names.wishes_of({"FCCL_TORCH_DEFAULT": " CPU,cpu", "FCCL_TORCH_REPLACES": "nccl ,gloo"})
    assert (wishes.defaults, wishes.replaced, wishes.fault) == (("cpu",), ("nccl", "gloo"), "")
    assert not _names.wishes_of({"FCCL_TORCH_DEFAULT": " "})


GLOO_BESIDE = """
init_process_group("fccl")
child = new_group([0, 1], backend="gloo")
report(sums=[total(child), total()], names=[dist.get_backend(child), dist.get_backend()])
dist.destroy_process_group(child)
assert total() == [3.0] * 3
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_gloo_may_serve_a_group_inside_one_of_fccl(tmp_path):
    said, _ = run_script(tmp_path, GLOO_BESIDE)
    assert said["sums"] == [[3.0] * 3] * 2
    assert said["names"] == ["gloo", "fccl"]
    # Gloo's calls are not counted here.
    assert said["counters"] == {"AllReduce": 1}


WITHOUT_DESTROY = """
init_process_group("fccl")
pair = new_group([0, 1])
dist.all_reduce(torch.ones(100_000), group=pair, async_op=True)
report(sums=total())
"""


@pytest.mark.slow
def test_a_script_may_end_without_destroying_its_groups(tmp_path):
    said, log = run_script(tmp_path, WITHOUT_DESTROY)
    assert said["sums"] == [3.0] * 3
    assert not log.strip(), log
