"""Trains a Llama with fully sharded data parallelism: `torchrun ... -m trainer.fsdp`."""
