"""Renders an overlay of deploy/kubernetes by kubectl."""

import subprocess
from functools import cache

import pytest
import yaml
from conftest import KUBECTL, PACKAGES, ROOT

if not KUBECTL.exists():
    pytest.skip(f"there is no {PACKAGES}: ./dev test fetches it", allow_module_level=True)

DEPLOYED = ROOT / "deploy" / "kubernetes"


@cache
def rendered(overlay):
    """The documents by their kinds and names."""
    said = subprocess.run(
        [str(KUBECTL), "kustomize", str(DEPLOYED / "overlays" / overlay)], capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(said.stdout)}
