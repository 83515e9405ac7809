"""The files of deploy/kubernetes and deploy/eks: strict schemas find no fault but those put in."""

import copy
import importlib

import pytest
import schemas
import yaml
from conftest import ROOT
from overlays import DEPLOYED, rendered

EKS = sorted((ROOT / "deploy" / "eks").glob("*.yaml"))
OVERLAYS = sorted(folder.name for folder in (DEPLOYED / "overlays").iterdir())
BASE = sorted(file for file in (DEPLOYED / "base").glob("*.yaml") if file.name != "kustomization.yaml")
EFAS = {"p4d": 4, "p5": 32, "p5en": 16}
WORKER = ["spec", "mpiReplicaSpecs", "Worker"]
CONTAINER = [*WORKER, "template", "spec", "containers", 0]
JOBS = ["spec", "template", "spec", "replicatedJobs"]


def at(document, path):
    for key in path:
        document = document[key]
    return document


def containers(document):
    """All containers of a document, wherever they are."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from value if key == "containers" else containers(value)
    elif isinstance(document, list):
        for each in document:
            yield from containers(each)


@pytest.mark.parametrize("file", [*BASE, *EKS], ids=lambda file: file.name)
def test_strict_schemas_find_no_fault_in_a_file(file):
    for document in yaml.safe_load_all(file.read_text()):
        assert schemas.faults(document) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_strict_schemas_find_no_fault_in_an_overlay(overlay):
    for name, document in rendered(overlay).items():
        assert schemas.faults(document) == [], name


def test_an_overlay_has_every_file_of_the_base():
    wanted = {
        (each["kind"], each["metadata"]["name"])
        for file in BASE
        for each in yaml.safe_load_all(file.read_text())
    }
    for overlay in OVERLAYS:
        assert set(rendered(overlay)) == wanted


# An object of overlay p4d, where a field of it is put or taken away, and what is said then.
ALTERED = [
    ("MPIJob/fccl-tests", ["spec", "slotsPerWorkers"], 2, "slotsPerWorkers"),
    ("MPIJob/fccl-tests", ["spec", "slotsPerWorker"], "8", "'8' is not of type 'integer'"),
    ("MPIJob/fccl-tests", ["spec", "runPolicy", "cleanPodPolicy"], "Never", "'Never' is not one of"),
    ("MPIJob/fccl-tests", [*WORKER, "template", "spec", "nodeSelectors"], {}, "nodeSelectors"),
    ("MPIJob/fccl-tests", [*CONTAINER, "resource"], {}, "resource"),
    ("MPIJob/fccl-tests", ["apiVersion"], "kubeflow.org/v1alpha2", "there is no MPIJob"),
    ("PyTorchJob/fsdp", ["spec", "elasticPolicy", "rdzvID"], "x", "rdzvID"),
    ("PyTorchJob/fsdp", ["spec", "pytorchReplicaSpecs", "Workers"], {}, "Workers"),
    ("TrainJob/fsdp", ["spec", "trainer", "numNode"], 2, "numNode"),
    ("TrainJob/fsdp", ["spec", "trainer", "numProcPerNode"], "auto", "'auto' is not of type 'integer'"),
    ("ClusterTrainingRuntime/fccl-torch", [*JOBS, 0, "templates"], {}, "templates"),
    ("Deployment/etcd", ["spec", "template", "spec", "containers", 0, "port"], [], "port"),
    ("Service/etcd", ["spec", "ports", 0, "port"], "client", "'client' is not of type 'integer'"),
    ("DaemonSet/fccl-tools", ["spec", "template", "spec", "hostPid"], True, "hostPid"),
    ("PodMonitor/fccl", ["spec", "podMetricsEndpoints", 0, "portName"], "metrics", "portName"),
]


@pytest.mark.parametrize(
    ("name", "path", "value", "complaint"), ALTERED, ids=lambda each: each if isinstance(each, str) else ""
)
def test_an_altered_manifest_is_refused(name, path, value, complaint):
    document = copy.deepcopy(rendered("p4d")[tuple(name.split("/"))])
    at(document, path[:-1])[path[-1]] = value
    assert complaint in " ".join(schemas.faults(document))


@pytest.mark.parametrize("field", ["efaEnable", "capacityReservations"])
def test_an_altered_file_for_eksctl_is_refused(field):
    document = yaml.safe_load(EKS[-1].read_text())
    document["managedNodeGroups"][1][field] = True
    assert field in " ".join(schemas.faults(document))


@pytest.mark.parametrize("overlay", EFAS)
def test_every_pod_with_gpus_gets_all_efas_of_its_instance(overlay):
    asking = [
        container["resources"]
        for document in rendered(overlay).values()
        for container in containers(document)
        if "resources" in container
    ]
    assert len(asking) == 4
    for each in asking:
        assert each["limits"] == each["requests"]
        assert each["limits"]["vpc.amazonaws.com/efa"] == EFAS[overlay]
        assert each["limits"]["nvidia.com/gpu"] == 8
        assert each["limits"]["hugepages-2Mi"] == "5120Mi"


def test_no_pod_of_the_local_overlay_pulls_an_image():
    found = [each for document in rendered("local").values() for each in containers(document)]
    assert len(found) == 9 - 1
    assert {(each["image"].split("/")[0], each["imagePullPolicy"]) for each in found} == {
        ("localhost", "Never")
    }


def lost(before, after):
    """The paths of fields that are in one document and not in the other, or not the same there."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [f".{key}{path}" for key, value in before.items() for path in lost(value, after.get(key))]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [f".{number}{path}" for number, pair in pairs for path in lost(*pair)]
    return [] if before == after else [""]


@pytest.mark.parametrize("kind", ["TrainJob", "ClusterTrainingRuntime"])
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_published_model_of_trainer_keeps_every_field(overlay, kind):
    model = getattr(importlib.import_module("kubeflow_trainer_api.models"), f"TrainerV1alpha1{kind}")
    for (found, name), document in rendered(overlay).items():
        if found == kind:
            assert lost(document, model.from_dict(document).to_dict()) == [], name
