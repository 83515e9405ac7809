"""Training in replicas, where the others go on when one dies, behind `python -m trainer.replicas`."""
