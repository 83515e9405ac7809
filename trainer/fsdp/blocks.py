"""Finds the blocks of a causal model, and which modules of it belong to which group of parameters."""

from collections.abc import Iterator

from torch import nn

WRAPPERS = ("_checkpoint_wrapped_module.", "_orig_mod.", "_fsdp_wrapped_module.")


def blocks_of(model: nn.Module) -> nn.ModuleList:
    """The list of the model's blocks: the list of modules that holds the most parameters."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        raise ValueError(f"{type(model).__name__} has no list of blocks that could be sharded one by one")
    # The first of equals, because a list may hold another one with all of its parameters.
    return max(lists, key=lambda blocks: sum(parameter.numel() for parameter in blocks.parameters()))


def modules_by_group(model: nn.Module) -> list[dict[str, nn.Module]]:
    """Modules by name: those of the root, which are outside of all blocks, then those of each block."""
    blocks = list(blocks_of(model))
    inside = {module for block in blocks for module in block.modules()}
    named = {module: plain_name(name) for name, module in model.named_modules()}
    root = {name: module for module, name in named.items() if module not in inside}
    return [root, *({named[module]: module for module in block.modules()} for block in blocks)]


def names_by_group(model: nn.Module, names: list[str]) -> Iterator[list[str]]:
    """These names of parameters and buffers, group by group, in the order of modules_by_group."""
    blocks = blocks_of(model)
    path = next(plain_name(name) for name, module in model.named_modules() if module is blocks)
    prefixes = [f"{path}.{index}." for index in range(len(blocks))]
    yield [name for name in names if not name.startswith(tuple(prefixes))]
    for prefix in prefixes:
        yield [name for name in names if name.startswith(prefix)]


def plain_name(name: str) -> str:
    """The name that a module or parameter has where nothing is wrapped."""
    for wrapper in WRAPPERS:
        name = f"{name}.".replace(wrapper, "").removesuffix(".")
    return name
