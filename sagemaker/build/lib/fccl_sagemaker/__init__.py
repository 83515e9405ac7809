"""Serves the names of SMDDP and SMP v2 over fccl; installing the package is the consent."""

from fccl_sagemaker.joining import join_torch, join_torch_quietly

__all__ = ["join_torch", "join_torch_quietly", "restore"]


def restore() -> None:
    """Undoes what torch.sagemaker.init() has changed in torch; the process group stays."""
    from fccl_sagemaker.session import restore

    restore()


join_torch_quietly()
