"""The look at what the tests leave is that of trainer.ddp."""

from trainer.ddp.tests.conftest import nothing_is_left  # noqa: F401  (a fixture of every test here)
