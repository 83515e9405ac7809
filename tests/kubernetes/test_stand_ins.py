"""The stand-ins of the operators: what they make of a job, and what they say of its end."""

import copy
import json
import re
from pathlib import Path

import crds
import names
import operators
import pytest
import schemas
import yaml
from mpi_job import MpiJob
from overlays import rendered
from pytorch_job import PytorchJob
from train_job import TrainJob

GOLDEN = Path(__file__).with_name("golden")
JOBS = ["MPIJob/fccl-tests", "PyTorchJob/fsdp", "TrainJob/fccl-tests", "TrainJob/fsdp"]


def job_of(name):
    """A job of overlay local as the server gives it."""
    document = copy.deepcopy(rendered("local")[tuple(name.split("/"))])
    document["metadata"] |= {"namespace": "default", "uid": "5d1c"}
    return document


def read(job):
    if job["kind"] == "MPIJob":
        return MpiJob(job)
    if job["kind"] == "PyTorchJob":
        return PytorchJob(job)
    return TrainJob(job, rendered("local")["ClusterTrainingRuntime", job["spec"]["runtimeRef"]["name"]])


def made_of(job):
    """All objects; keys are new each time."""
    made = read(job)
    found = made.first()
    if isinstance(made, MpiJob) or (isinstance(made, TrainJob) and made.has_launcher):
        found.append(made.launcher())
    for each in found:
        if each["kind"] == "Secret":
            assert set(each["data"]) == {"ssh-privatekey", "ssh-publickey"}
            each["data"] = dict.fromkeys(each["data"], "a2V5")
    return found


@pytest.mark.parametrize("name", JOBS)
def test_a_job_becomes_the_objects_of_the_golden_file(name):
    wanted = yaml.safe_load_all((GOLDEN / f"{name.replace('/', '-').lower()}.yaml").read_text())
    assert made_of(job_of(name)) == list(wanted)


@pytest.mark.parametrize("name", JOBS)
def test_strict_schemas_find_no_fault_in_what_a_job_becomes(name):
    for document in made_of(job_of(name)):
        assert schemas.faults(document) == [], document["metadata"]["name"]


def read_by_prometheus(made):
    """The labels of pods that have the port of the PodMonitor."""
    (endpoint,) = rendered("local")["PodMonitor", "fccl"]["spec"]["podMetricsEndpoints"]
    for each in made:
        ports = each["spec"]["containers"][0].get("ports", []) if each["kind"] == "Pod" else []
        if endpoint["port"] in {port["name"] for port in ports}:
            yield each["metadata"]["labels"]


@pytest.mark.parametrize("name", JOBS)
def test_prometheus_reads_two_pods_of_a_job_under_its_name_and_their_ranks_serve(name):
    spec = rendered("local")["PodMonitor", "fccl"]["spec"]
    made = made_of(job_of(name))
    found = list(read_by_prometheus(made))
    assert len(found) == 2
    for labels in found:
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        known = {re.sub(r"[^a-zA-Z0-9_]", "_", key): value for key, value in labels.items()}
        job = "default/fccl"
        for each in spec["podMetricsEndpoints"][0]["relabelings"]:
            (source,) = each["sourceLabels"]
            value = known.get(source.removeprefix("__meta_kubernetes_pod_label_"), "")
            if re.fullmatch(each["regex"], value):
                assert each["targetLabel"] == "job"
                job = value
        assert job == name.partition("/")[2]
    text = json.dumps(made)
    assert re.search(r'FCCL_METRICS_PORT(=|", "value": ")9410', text)
    assert re.search(r'FCCL_METRICS_ADDRESS(=|", "value": ")0\.0\.0\.0', text)


@pytest.mark.parametrize(
    ("mpi", "line", "variable"),
    [
        ("OpenMPI", "fccl-tests-worker-0.fccl-tests.default.svc slots=2", "OMPI_MCA_orte_default_hostfile"),
        ("Intel", "fccl-tests-worker-0.fccl-tests.default.svc:2", "I_MPI_HYDRA_HOST_FILE"),
        ("MPICH", "fccl-tests-worker-0.fccl-tests.default.svc:2", "HYDRA_HOST_FILE"),
    ],
)
def test_an_mpi_finds_its_hosts_in_its_own_words(mpi, line, variable):
    job = job_of("MPIJob/fccl-tests")
    job["spec"]["mpiImplementation"] = mpi
    made = made_of(job)
    hosts = next(each for each in made if each["kind"] == "ConfigMap")["data"]["hostfile"]
    assert hosts.splitlines()[0] == line
    environment = made[-1]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": variable, "value": "/etc/mpi/hostfile"} in environment


def test_a_launcher_that_is_a_worker_too_comes_first_among_the_hosts():
    job = job_of("MPIJob/fccl-tests")
    job["spec"]["runLauncherAsWorker"] = True
    hosts = next(each for each in made_of(job) if each["kind"] == "ConfigMap")["data"][
        "hostfile"
    ].splitlines()
    assert [host.split(".")[0] for host in hosts] == [
        "fccl-tests-launcher",
        "fccl-tests-worker-0",
        "fccl-tests-worker-1",
    ]


def test_a_train_job_that_sets_what_trainer_sets_is_refused():
    job = job_of("TrainJob/fsdp")
    job["spec"]["trainer"]["env"] = [{"name": "PET_NNODES", "value": "7"}]
    assert read(job).fault() == "spec.trainer.env may not have PET_NNODES, which Trainer sets"


class Server:
    """Keeps objects as the API would, for the operators."""

    def __init__(self, job):
        self.job, self.made, self.deleted, self.left = job, [], [], None

    def items(self, path):
        if path == f"/apis/{self.job['apiVersion']}/{self.job['kind'].lower()}s":
            return [copy.deepcopy(self.job)]
        return [each for each in self.made if each["kind"] == "Pod"] if "/pods?" in path else []

    def find(self, path):
        if "clustertrainingruntimes" in path:
            return rendered("local").get(("ClusterTrainingRuntime", path.rpartition("/")[2]))
        if "/services/" in path:
            return self.left
        return next((each for each in self.made if each["kind"] == "Job"), None)

    def create(self, document):
        if self.left and document["kind"] == "Service":
            return False
        if not any(each["metadata"] == document["metadata"] for each in self.made):
            self.made.append(document | {"status": {"phase": "Running", "conditions": []}})
        return True

    def set_status(self, _, status):
        self.job["status"] = status

    def delete(self, document):
        self.deleted.append(document["metadata"]["name"])

    def has(self, kind):
        return [each["metadata"]["name"] for each in self.made if each["kind"] == kind]


def said_of(server):
    return [each["type"] for each in server.job.get("status", {}).get("conditions", [])]


def make_ready(server):
    for each in server.made:
        each["status"]["conditions"] = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize("name", ["MPIJob/fccl-tests", "TrainJob/fccl-tests"])
@pytest.mark.parametrize(
    ("end", "words"), [("Complete", {"Succeeded"}), ("Failed", {"Failed"})], ids=["well", "badly"]
)
def test_a_launcher_comes_after_ready_workers_and_its_end_is_that_of_the_job(name, end, words):
    server = Server(job_of(name))
    acting = operators.Operators(server)
    acting.step()
    assert len(server.has("Pod")) == 2
    assert server.has("Job") == []
    make_ready(server)
    acting.step()
    assert len(server.has("Job")) == 1
    assert said_of(server) == []
    server.made[-1]["status"]["conditions"] = [{"type": end, "status": "True"}]
    acting.step()
    assert words <= set(said_of(server)) <= words | {"Complete"}
    assert server.deleted == (server.has("Pod") if name.startswith("MPIJob") else [])
    made = len(server.made)
    acting.step()
    assert len(server.made) == made


def left_by(kind, uid):
    return {"metadata": {"ownerReferences": [{"kind": kind, "uid": uid}]}}


@pytest.mark.parametrize(
    ("left", "made"),
    [(left_by("MPIJob", "older"), 0), (left_by("TrainJob", "another"), 1), (left_by("MPIJob", "5d1c"), 1)],
)
def test_a_job_waits_for_what_an_older_one_of_its_name_has_left(left, made):
    server = Server(job_of("MPIJob/fccl-tests"))
    server.left = left
    acting = operators.Operators(server)
    acting.step()
    make_ready(server)
    acting.step()
    assert len(server.has("Job")) == made
    server.left = None
    acting.step()
    make_ready(server)
    acting.step()
    assert len(server.has("Job")) == 1


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        (["Succeeded", "Running"], []),
        (["Succeeded", "Succeeded"], ["Succeeded"]),
        (["Running", "Failed"], ["Failed"]),
    ],
)
def test_a_pytorch_job_ends_with_its_pods(phases, words):
    server = Server(job_of("PyTorchJob/fsdp"))
    acting = operators.Operators(server)
    acting.step()
    of_pods = [each for each in server.made if each["kind"] == "Pod"]
    for pod, phase in zip(of_pods, phases, strict=True):
        pod["status"]["phase"] = phase
    acting.step()
    assert said_of(server) == words


def test_a_suspended_job_waits():
    job = job_of("MPIJob/fccl-tests")
    job["spec"]["runPolicy"]["suspend"] = True
    server = Server(job)
    operators.Operators(server).step()
    assert server.made == []


def test_a_train_job_without_its_runtime_fails_and_names_it():
    job = job_of("TrainJob/fsdp")
    job["spec"]["runtimeRef"]["name"] = "nobody"
    server = Server(job)
    operators.Operators(server).step()
    assert server.job["status"]["conditions"][0]["message"] == "there is no ClusterTrainingRuntime nobody"


def test_services_and_pods_have_the_names_that_kubernetes_promises():
    def living(name, address, **spec):
        metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
        return {"metadata": metadata, "spec": spec, "status": {"podIP": address}}

    def service(name, address, app):
        spec = {"clusterIP": address, "selector": {"app": app}}
        return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}

    going = living("going", "10.244.0.9")
    going["metadata"]["deletionTimestamp"] = "now"
    pods = [living("a", "10.244.0.2", hostname="a", subdomain="job"), living("b", "10.244.0.3"), going]
    services = [service("etcd", "10.96.0.7", "b"), service("job", "None", "a"), service("g", "None", "going")]
    assert names.lines(pods, services) == [
        "10.244.0.2 a.job.default.svc.cluster.local",
        "10.244.0.2 job.default.svc.cluster.local",
        "10.96.0.7 etcd.default.svc.cluster.local",
    ]


def test_a_definition_says_types_as_a_structural_schema_does():
    types = {
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        "Port": {"description": "left out", "type": "string", "format": "int-or-string"},
        "Container": {
            "type": "object",
            "x-kubernetes-group-version-kind": [],
            "properties": {
                "default": {"type": "string"},
                "port": {"$ref": "#/definitions/Port"},
                "size": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            },
        },
    }
    either = {"x-kubernetes-int-or-string": True}
    assert crds.resolve({"items": {"$ref": "Container"}}, types) == {
        "items": {
            "type": "object",
            "properties": {
                "default": {"type": "string"},
                "port": either,
                "size": {**either, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
        }
    }
