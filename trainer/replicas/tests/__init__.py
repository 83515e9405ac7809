"""Tests of training in replicas."""
