"""Trains image classifiers of torchvision by DistributedDataParallel, and goes on after ranks or hosts were lost."""
