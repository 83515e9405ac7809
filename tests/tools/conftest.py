"""Tells the tests where the tools that are written in Python lie."""

import sys
from pathlib import Path

for folder in ("gpu", "efa"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / folder))
