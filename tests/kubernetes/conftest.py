"""The folders and packages that the tests of Kubernetes read."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "kubernetes-schemas"
KUBECTL = PACKAGES / "bin" / "kubectl"
sys.path.insert(0, str(ROOT / "tools" / "kube"))
# Behind the packages that the environment has.
sys.path.append(str(PACKAGES))
