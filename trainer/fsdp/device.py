"""The device of a rank's tensors: the processor or a GPU."""

import os

import torch

from trainer.fsdp.arguments import Settings, SettingsError


def device_of(settings: Settings) -> torch.device:
    """This rank's device, current from here on. Ranks of a host share GPUs where there are fewer."""
    if settings.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = (
            "torch finds no GPU, or no driver"
            if built
            else f"torch {torch.__version__} is built without CUDA"
        )
        raise SettingsError(f"--device cuda: {why}; see whether nvidia-smi works, or leave --device out")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def finish(device: torch.device) -> None:
    """Waits until the device has done all that it was given, so that a clock may be read."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
