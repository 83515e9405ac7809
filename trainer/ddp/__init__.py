"""Trains image classifiers of torchvision by DistributedDataParallel, and survives the loss of hosts."""
