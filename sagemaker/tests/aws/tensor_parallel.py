"""AWS's lines for tensor parallelism; SM_HP_MP_PARAMETERS has the degree and the seed."""

import torch.sagemaker as tsm

tsm.init()

from transformers import AutoModelForCausalLM
import small_llama
import torch

torch.manual_seed(1)
model = AutoModelForCausalLM.from_config(small_llama.config())
model = tsm.transform(model)
small_llama.report(small_llama.shard(model.double()))
