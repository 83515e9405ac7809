"""AWS's first lines for SMP v2: the import and init() alone; SM_HP_MP_PARAMETERS has the keys."""

import torch.sagemaker as tsm

tsm.init()

import small_llama

model = small_llama.shard(small_llama.make())
small_llama.report(model)
