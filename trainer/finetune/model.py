"""Makes the model: read from its folder shard by shard, with an adapter or frozen layers."""

from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from peft import LoraConfig
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from trainer.finetune import lora
from trainer.finetune.flags import FlagError, Settings
from trainer.fsdp.blocks import blocks_of
from trainer.fsdp.folder import FolderError, fill_from_folder, model_on_meta, read_config
from trainer.fsdp.sharding import checkpoint_activations

KEPT = {"pure_bf16": torch.bfloat16, "fp64": torch.float64}
USED = {"bf16": torch.bfloat16, "fp16": torch.float16}


def device_of(settings: Settings, rank_of_host: int) -> torch.device:
    """This rank's device, current from here on. Ranks of a host share GPUs where there are fewer."""
    kind = settings.train.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise FlagError("--device cuda: torch finds no GPU, or no driver; leave --device out")
    device = torch.device("cuda", rank_of_host % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def precision_of(settings: Settings, device: torch.device) -> str:
    """The precision that the flags ask for; mixed precision by itself means bf16 on a GPU that has it."""
    train, fsdp = settings.train, settings.fsdp
    if train.precision:
        return train.precision
    if fsdp.pure_bf16:
        return "pure_bf16"
    if train.use_fp16 or fsdp.use_fp16:
        return "fp16"
    mixed = fsdp.mixed_precision and device.type == "cuda" and torch.cuda.is_bf16_supported()
    return "bf16" if mixed else "fp32"


def find_folder(name: str) -> Path:
    """The folder that holds a model or a tokenizer: the one of this name, or its copy in the hub's cache."""
    if (Path(name) / "config.json").is_file() or (Path(name) / "tokenizer_config.json").is_file():
        return Path(name)
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError, HfHubHTTPError) as error:
        raise FlagError(
            f"--model_name {name}: neither a folder with a config.json nor in the hub's cache; "
            f"`hf download {name}` fetches it, after `hf auth login` where it is gated"
        ) from error


def read_tokenizer(settings: Settings) -> PreTrainedTokenizerBase:
    """The tokenizer of the model, or the one that is named; it pads with the end of the text by default."""
    name = settings.train.tokenizer_name or settings.train.model_name
    tokenizer = AutoTokenizer.from_pretrained(find_folder(name), local_files_only=True)
    if not tokenizer.pad_token_id:
        tokenizer.pad_token_id = tokenizer.eos_token_id
    return tokenizer


def build_model(
    settings: Settings, precision: str, device: torch.device, tokens: int
) -> tuple[PreTrainedModel, LoraConfig | None]:
    """The model with its first weights, sharded where there are ranks; and its adapter's description."""
    train, folder = settings.train, find_folder(settings.train.model_name)
    config = read_config(folder)
    if config.model_type == "mllama":
        raise FlagError(f"--model_name {train.model_name} is a vision model, which is not served")
    if tokens > config.vocab_size:
        raise FlagError(
            f"--tokenizer_name {train.tokenizer_name or train.model_name} has {tokens} tokens, "
            f"but the model's embedding has {config.vocab_size} rows: choose the tokenizer of the model"
        )
    attention = {"attn_implementation": "sdpa"} if train.use_fast_kernels else {}
    model = model_on_meta(config, KEPT.get(precision, torch.float32), **attention)
    adapter = lora.adapter_config(settings) if train.use_peft else None
    if adapter:
        lora.inject(model, adapter)
    elif train.freeze_layers:
        for block in list(blocks_of(model))[: train.num_freeze_layers]:
            block.requires_grad_(False)
    if train.enable_fsdp:
        _shard(model, settings, precision, device)
    try:
        if adapter:
            fill_from_folder(model, folder, device, lora.renamed_weights(model), lora.is_adapter)
            lora.fill_adapter(model, train.seed, train.from_peft_checkpoint)
        else:
            fill_from_folder(model, folder, device)
    except FolderError as error:
        raise FlagError(f"--model_name {error}") from error
    model.config.use_cache = False
    return model, adapter


def _shard(model: nn.Module, settings: Settings, precision: str, device: torch.device) -> None:
    fsdp, ranks, shards = settings.fsdp, settings.ranks, settings.shards
    shape, names = (ranks,), ("shard",)
    if fsdp.sharding_strategy in ("HYBRID_SHARD", "NO_SHARD"):
        shape, names = (ranks // shards, shards), ("replica", "shard")
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=names)
    if fsdp.fsdp_activation_checkpointing:
        checkpoint_activations(model)
    policy = MixedPrecisionPolicy()
    if precision in USED:
        policy = MixedPrecisionPolicy(param_dtype=USED[precision], reduce_dtype=torch.float32)
    offloads = fsdp.fsdp_cpu_offload and device.type == "cuda"
    offload = CPUOffloadPolicy() if offloads else OffloadPolicy()
    reshards = fsdp.sharding_strategy != "SHARD_GRAD_OP"
    for block in blocks_of(model):
        fully_shard(
            block, mesh=mesh, mp_policy=policy, reshard_after_forward=reshards, offload_policy=offload
        )
    # The backward pass begins with what the root holds, so giving it back in between would be for nothing.
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False, offload_policy=offload)
