"""Imports everything that the samples of AWS for SMP v2 and SMDDP import."""

import torch.sagemaker as tsm
from torch.sagemaker import transform
from torch.sagemaker import state
from torch.sagemaker.checkpoint.utils import SORT_BY_LAST_INT, limit_num_subdirs
from torch.sagemaker.delayed_param import DelayedParamIniter
from torch.sagemaker.distributed.checkpoint.filesystem import DistributedFileSystemReader
from torch.sagemaker.distributed.checkpoint.state_dict_loader import load
from torch.sagemaker.distributed.checkpoint.state_dict_saver import async_save, maybe_finalize_async_calls
import torch.sagemaker.distributed.checkpoint.state_dict_saver as saver
from torch.sagemaker.distributed.fsdp.checkpoint import save_model_checkpoint, load_model_checkpoint
from torch.sagemaker.distributed.fsdp.checkpoint import EXPORT_KEY_MODEL, EXPORT_KEY_OPTIMIZER
from torch.sagemaker.distributed.fsdp.checkpoint import EXPORT_KEY_SCHEDULER, EXPORT_KEY_IDENTITY
from torch.sagemaker.distributed.fsdp.fully_sharded_data_parallel import register_tp_processing_pre_comm_hook
from torch.sagemaker.grad_norm import clip_grad_norm_
from torch.sagemaker.logger import get_logger
from torch.sagemaker.moe.moe_config import MoEConfig
from torch.sagemaker.nn.attn import FlashSelfAttention
from torch.sagemaker.nn.attn import FlashGroupedQueryAttention
from torch.sagemaker.nn.huggingface.llama_flashattn import LlamaFlashAttention
from torch.sagemaker.tensor_parallel.transformer import TETransformerLayer
from torch.sagemaker.tensor_parallel.transformer import TransformerLayer
from torch.sagemaker.utils.module_utils import empty_module_params, move_buffers_to_device
from torch.sagemaker.utils.process_group_utils import get_global_ranks
from torch.sagemaker.utils.utils import timeit
import smdistributed.dataparallel.torch.torch_smddp
