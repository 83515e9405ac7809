"""Strict schemas: of Kubernetes 1.37, of the custom resources in tools/kube, and of files for eksctl."""

import copy
import json
from functools import cache
from pathlib import Path

import crds
import pytest
import yaml
from conftest import PACKAGES

WHY = f"there is no {PACKAGES}: ./dev test fetches it"
jsonschema = pytest.importorskip("jsonschema", reason=WHY)
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason=WHY)
referencing = pytest.importorskip("referencing", reason=WHY)

FOLDER = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / "v1.37.0-local-strict"
BASE = "https://kubernetes.io/api/"
EKSCTL = yaml.safe_load(Path(__file__).with_name("eksctl.yaml").read_text())


@cache
def registry():
    definitions = json.loads((FOLDER / "_definitions.json").read_text())
    return referencing.Registry().with_resource(
        BASE + "_definitions.json", referencing.Resource.from_contents(definitions)
    )


def strict(schema):
    """A schema of ours as JSON schema has it, in which each object has the named fields only."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        return {"$ref": f"{BASE}_definitions.json#/$defs/{schema['$ref']}"}
    found = {
        key: {each: strict(of) for each, of in value.items()} if key == "properties" else strict(value)
        for key, value in schema.items()
    }
    if found.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


@cache
def custom():
    found = {}
    for each in crds.load():
        group, kind = each["spec"]["group"], each["spec"]["names"]["kind"]
        for version in each["spec"]["versions"]:
            schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
            found[f"{group}/{version['name']}", kind] = strict(schema)
    return found | {("eksctl.io/v1alpha5", "ClusterConfig"): strict(EKSCTL)}


def schema_of(document):
    version, kind = document["apiVersion"], document["kind"]
    if (version, kind) in custom():
        return custom()[version, kind]
    group, _, number = version.rpartition("/")
    name = "-".join(word for word in (kind.lower(), group.split(".")[0], number) if word)
    file = FOLDER / f"{name}.json"
    return {"$id": f"{BASE}{file.name}"} | json.loads(file.read_text()) if file.exists() else None


def faults(document):
    """Lists what is wrong with a document, a line each with the path of the field."""
    schema = schema_of(document)
    if schema is None:
        return [f"there is no {document['kind']} of {document['apiVersion']}"]
    found = jsonschema.Draft202012Validator(schema, registry=registry()).iter_errors(document)
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in found]
