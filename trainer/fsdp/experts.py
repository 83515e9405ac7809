"""Splits the experts of a mixture over the ranks, by the plan that Transformers has for the model."""

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import PreTrainedModel
from transformers.distributed.expert_parallel import apply_expert_parallelism

from trainer.fsdp.arguments import Settings, SettingsError

DISPATCHED = "ep_dispatch_experts"
"""What Transformers calls experts that other ranks send tokens to."""


def split_experts(
    model: PreTrainedModel, settings: Settings, device_type: str, precision: MixedPrecisionPolicy
) -> None:
    """Gives each of --expert-parallel neighbours its experts, sharded over the ranks with the same ones."""
    plan = model._expand_parallel_plan(model.ep_plan)
    if DISPATCHED not in plan.values():
        raise SettingsError(
            f"--expert-parallel {settings.expert_parallel}: Transformers has no plan for experts of a "
            f"{type(model).__name__}; leave it out"
        )
    copies = settings.ranks // settings.expert_parallel
    mesh = init_device_mesh(
        device_type, (copies, settings.expert_parallel), mesh_dim_names=("copy", "expert")
    )
    alone = init_device_mesh(device_type, (settings.ranks, 1), mesh_dim_names=("data", "tensor"))["tensor"]
    apply_expert_parallelism(model, mesh["expert"], alone, plan, ep_implementation="all_to_all")
    for name, style in plan.items():
        if style == DISPATCHED:
            experts = model.get_submodule(name)
            fully_shard(experts, mesh=mesh["copy"], mp_policy=precision)
            # An expert has seen the tokens of all ranks, not only of those that hold a copy of it.
            experts.set_gradient_divide_factor(float(settings.ranks))
            if copies > 1:
                experts.set_force_sum_reduction_for_comms(True)
