"""Tests of the FSDP trainer: `pytest trainer/fsdp`."""
