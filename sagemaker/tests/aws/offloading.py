"""AWS's lines for activation offloading; SM_HP_MP_PARAMETERS asks for it."""

import torch.sagemaker as tsm

tsm.init()

from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
    offload_wrapper,
)
import small_llama

model = small_llama.shard(small_llama.make())
apply_activation_checkpointing(
    model, check_fn=lambda module: isinstance(module, small_llama.LlamaDecoderLayer)
)
model = offload_wrapper(model)
small_llama.report(model)
assert 1 <= tsm.state.offloading.most_layers_near <= 2
assert tsm.state.offloading.layers == small_llama.LAYERS
