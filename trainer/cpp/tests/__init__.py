"""Tests of the C++ trainer: `./dev test all` builds it and runs them."""
