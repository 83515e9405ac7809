"""The definitions of custom resources in crds/, whose $refs become the types that a Kubernetes has."""

import copy
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "crds"
# A structural schema may not say the one, and nobody needs the other.
_LEFT_OUT = ("description", "default")
# These types are two at once.
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_EITHER = {"x-kubernetes-int-or-string": True}
_QUANTITIES = {**_EITHER, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def load() -> list[dict]:
    """The definitions as the files say, with their $refs."""
    # The help of ./dev kube is there before an environment with this is.
    import yaml

    return [yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml"))]


def resolve(schema: object, types: dict[str, dict]) -> object:
    """A structural schema with the types, which have names, in the place of $refs."""
    if isinstance(schema, list):
        return [resolve(each, types) for each in schema]
    if not isinstance(schema, dict):
        return schema
    name = (
        schema.get("$ref", "").removeprefix("#/definitions/") if isinstance(schema.get("$ref"), str) else ""
    )
    if name == _QUANTITY:
        return copy.deepcopy(_QUANTITIES)
    if name:
        return resolve(types[name], types)
    if schema.get("format") == "int-or-string":
        return dict(_EITHER)
    found = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {each: resolve(of, types) for each, of in value.items()}
        elif key not in _LEFT_OUT and not key.startswith("x-kubernetes-"):
            found[key] = resolve(value, types)
    return found


def resolved(types: dict[str, dict]) -> list[dict]:
    """The definitions for a Kubernetes with these types."""
    definitions = load()
    for each in definitions:
        for version in each["spec"]["versions"]:
            schema = version["schema"]
            schema["openAPIV3Schema"] = resolve(schema["openAPIV3Schema"], types)
    return definitions
