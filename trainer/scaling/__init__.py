"""Charts of how training scales over emulated hosts, behind `python -m trainer.scaling`."""
