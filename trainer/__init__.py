"""Trainers that show FCCL at work, one folder each."""
