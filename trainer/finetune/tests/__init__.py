"""Tests of trainer.finetune."""
