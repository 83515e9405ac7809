"""The decisions of torch.sagemaker.init() for this process: configuration, groups and state."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from fccl_sagemaker import sharding
from fccl_sagemaker.config import Config, ConfigError, Degrees, Given, read_config
from fccl_sagemaker.offloading import Measured, measured

TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
REPLICAS, SHARD, TENSOR = "replicas", "shard", "tensor"


class Ranker:
    """The place of each rank: tensor-parallel ranks are neighbours, then come shards, then replicas."""

    def __init__(self, degrees: Degrees) -> None:
        self._degrees = degrees

    def get_tp_rank(self, rank: int) -> int:
        """The place of a rank among those that split its tensors."""
        return rank % self._degrees.tensor

    def get_shard_rank(self, rank: int) -> int:
        """The place of a rank among those that hold its replica's shards."""
        return rank // self._degrees.tensor % self._degrees.shard

    def get_rep_rank(self, rank: int) -> int:
        """The number of the replica that a rank belongs to."""
        return rank // (self._degrees.tensor * self._degrees.shard)

    def get_rep_groups(self) -> list[list[int]]:
        """The ranks that hold the same parameters in every replica, a list for each of these sets."""
        size = self._degrees.tensor * self._degrees.shard
        return [list(range(place, size * self._degrees.replicas, size)) for place in range(size)]


class State:
    """torch.sagemaker.state: the degrees and groups of this rank, known after init()."""

    def __init__(self) -> None:
        self._config: Config | None = None
        self._degrees: Degrees | None = None
        self._mesh: DeviceMesh | None = None
        self._replica: dist.ProcessGroup | None = None

    @property
    def config(self) -> Config:
        """The configuration that init() was given."""
        if self._config is None:
            raise RuntimeError(
                "torch.sagemaker.state is asked before torch.sagemaker.init(); call init() first"
            )
        return self._config

    @property
    def degrees(self) -> Degrees:
        """How the ranks are split."""
        assert self.config is not None
        return self._degrees

    @property
    def mesh(self) -> DeviceMesh:
        """The ranks by replica, shard and tensor."""
        assert self.config is not None
        return self._mesh

    @property
    def ranker(self) -> Ranker:
        """Tells of every rank where it stands."""
        return Ranker(self.degrees)

    @property
    def rank(self) -> int:
        """This rank's number in the world."""
        assert self.config is not None
        return dist.get_rank()

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        assert self.config is not None
        return dist.get_world_size()

    @property
    def world_process_group(self) -> dist.ProcessGroup:
        """The group of all ranks."""
        assert self.config is not None
        return dist.group.WORLD

    @property
    def hybrid_shard_degree(self) -> int:
        """As given; with tensor parallelism 0 has become the largest degree possible."""
        return self.degrees.shard if self.degrees.tensor > 1 else self.config.hybrid_shard_degree

    @property
    def rep_rank_process_group(self) -> dist.ProcessGroup | None:
        """The ranks of this rank's replica; None where FSDP's own strategy decides."""
        assert self.config is not None
        return self._replica

    @property
    def replicas_process_group(self) -> dist.ProcessGroup:
        """The ranks that hold the same shard in other replicas."""
        return self.mesh.get_group(REPLICAS)

    @property
    def shard_process_group(self) -> dist.ProcessGroup:
        """The ranks that hold the other shards of this replica."""
        return self.mesh.get_group(SHARD)

    @property
    def tensor_parallel_degree(self) -> int:
        """Among how many ranks a layer's tensors are split."""
        return self.degrees.tensor

    @property
    def tp_size(self) -> int:
        """The same as tensor_parallel_degree."""
        return self.degrees.tensor

    @property
    def tp_rank(self) -> int:
        """This rank's place among those that split its tensors."""
        return self.ranker.get_tp_rank(self.rank)

    @property
    def tp_process_group(self) -> dist.ProcessGroup | None:
        """The ranks that split this rank's tensors; None without tensor parallelism."""
        return self.mesh.get_group(TENSOR) if self.degrees.tensor > 1 else None

    @property
    def context_parallel_degree(self) -> int:
        """Among how many ranks a sequence is split."""
        return self.config.context_parallel_degree

    @property
    def expert_parallel_degree(self) -> int:
        """Among how many ranks the experts are split."""
        return self.config.expert_parallel_degree

    @property
    def ep_rank(self) -> int:
        """This rank's place among those that split its experts: no degree above 1 is served."""
        assert self.config is not None
        return 0

    @property
    def sm_activation_offloading(self) -> bool:
        """Tells if fccl_sagemaker.offloading serves PyTorch's offload_wrapper."""
        return self.config.sm_activation_offloading

    @property
    def activation_loading_horizon(self) -> int:
        """How many checkpointed layers' inputs may be near at once."""
        return self.config.activation_loading_horizon

    @property
    def offloading(self) -> Measured:
        """Counts of what this process offloaded in its last step."""
        return measured


state = State()


def is_initialized() -> bool:
    """Tells if init() has been called."""
    return state._config is not None


def init(config: Given = None) -> None:
    """Reads the configuration, makes the groups, and lets FullyShardedDataParallel follow the degrees."""
    wanted = read_config(config)
    if is_initialized() and dist.is_initialized():
        if state.config != wanted:
            raise ConfigError(
                f"torch.sagemaker.init() was called with {_differences(state.config, wanted)}; a "
                f"process has one configuration: "
                "call init() once, or with the same one"
            )
        return
    if not dist.is_initialized():
        _make_group()
    degrees = wanted.degrees(dist.get_world_size())
    mesh = init_device_mesh(
        device_type(),
        (degrees.replicas, degrees.shard, degrees.tensor),
        mesh_dim_names=(REPLICAS, SHARD, TENSOR),
    )
    state._config, state._degrees, state._mesh = wanted, degrees, mesh
    state._replica = _group_of_replica(wanted, degrees, mesh)
    sharding.install(state)


def restore() -> None:
    """Gives torch its own classes back, and forgets the configuration."""
    sharding.remove()
    state._config = state._degrees = state._mesh = state._replica = None


def device_type() -> str:
    """The kind of device that models train on here."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _make_group() -> None:
    missing = [name for name in TORCHRUN_VARIABLES if name not in os.environ]
    if missing:
        raise RuntimeError(
            f"torch.sagemaker.init() makes a process group of fccl from torchrun's variables, but "
            f"{', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set; start the script by torchrun, or call "
            "torch.distributed.init_process_group() before"
        )
    dist.init_process_group("fccl")


def _group_of_replica(config: Config, degrees: Degrees, mesh: DeviceMesh) -> dist.ProcessGroup | None:
    if degrees.tensor == 1:
        return mesh.get_group(SHARD) if config.hybrid_shard_degree > 1 else None
    return mesh.get_group(TENSOR) if degrees.shard == 1 else mesh[SHARD, TENSOR]._flatten().get_group()


def _differences(old: Config, new: Config) -> str:
    keys = [key for key in vars(old) if getattr(old, key) != getattr(new, key)]
    return " and ".join(f"{key}={getattr(old, key)} first and {key}={getattr(new, key)} now" for key in keys)
