"""The jobs of overlay local on a live Kubernetes, bad ones too, and what ./dev kube leaves: nothing."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import groups
import kube
import pytest
from conftest import KUBECTL, ROOT

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, str(ROOT / "tools/kube/kube.py")]
OVERLAYS = "deploy/kubernetes/overlays"
# The bounds that count are those of kubectl wait; a Kubernetes begins in 34 s, or in 73 s beside other work.
TIME_LIMIT = 500
DAEMONS = ("kube", "containerd", "etcd", "dnsmasq")
SETTINGS = (
    *("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"),
    "net/ipv4/ip_forward",
)
# Prints all that helps to see why a job did not end well.
OR_SAY_ALL = (
    "|| { kubectl get pods -o wide; kubectl describe pods | tail -n 60; tail -n 5 $KUBE_LOGS/*; exit 1; }"
)


@pytest.fixture(scope="session", autouse=True)
def there_is_a_kubernetes():
    if os.geteuid() != 0:
        pytest.skip("a Kubernetes wants root, since it mounts")
    if not KUBECTL.exists() or not (kube.BUILT / "bin" / "kubelet").exists():
        pytest.skip(f"there is no {kube.BUILT}: ./dev kube -- true makes it")
    try:
        kube.images()
    except OSError as error:
        pytest.skip(str(error))


def processes():
    found = []
    for each in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = each.read_text().strip()
        except OSError:
            continue
        if name.startswith(DAEMONS):
            found.append(name)
    return sorted(found)


def folders():
    return sorted(str(each) for each in Path(tempfile.gettempdir()).glob("fccl-kube-*"))


def state():
    """Reads the state of the machine that a run may not change."""
    places = groups.hierarchies()
    return {
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "groups": sorted(str(each) for place in places for each in place.glob("fccl-kube-*")),
        "pods": sorted(str(each) for place in places for each in place.glob("kubepods*")),
        "settings": [(Path("/proc/sys") / name).read_text() for name in SETTINGS],
        "folders": folders(),
        "opt": sorted(os.listdir("/opt")),
        "processes": processes(),
    }


@pytest.fixture(autouse=True)
def nothing_is_left_behind(there_is_a_kubernetes):
    before = state()
    yield
    assert state() == before


def run(script, *options):
    """Runs lines of bash on a Kubernetes."""
    return subprocess.run(
        [*PROGRAM, *options, "--", "bash", "-c", textwrap.dedent(script)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )


def succeeded(script, *options):
    said = run(script, *options)
    assert said.returncode == 0, said.stdout[-8000:] + said.stderr
    return said.stdout


def only(kind, name):
    """Applies the overlay, then takes the other jobs away, for which two processors are few."""
    others = ",".join(sorted({"mpijob", "pytorchjob", "trainjob"} - {kind}))
    return f"""
    kubectl apply -k {OVERLAYS}/local >/dev/null || exit
    kubectl delete {others} --all --wait=false >/dev/null
    kubectl delete {kind} --field-selector metadata.name!={name} --wait=false >/dev/null
    """


RESTARTS = "restarts {.items[*].status.containerStatuses[*].restartCount}"


def test_the_manifests_apply_as_they_stand_and_a_perf_binary_measures_with_nothing_wrong():
    text = succeeded(f"""
    kubectl apply -k {OVERLAYS}/local &&
    kubectl wait --for=condition=Succeeded mpijob/fccl-tests --timeout=120s &&
    kubectl logs job/fccl-tests-launcher &&
    kubectl get pods -l training.kubeflow.org/job-role=launcher -o jsonpath='{RESTARTS}' {OR_SAY_ALL}
    """)
    assert "# Out of bounds values : 0 OK" in text
    ranks = re.findall(r"#  Rank +(\d+) Group +0 Pid +\d+ on +(\S+) ", text)
    assert [int(rank) for rank, _ in ranks] == [0, 1, 2, 3]
    assert {host for _, host in ranks} == {"fccl-tests-worker-0", "fccl-tests-worker-1"}
    assert text.endswith("restarts 0")


def test_a_train_job_measures_with_nothing_wrong():
    text = succeeded(f"""
    {only("trainjob", "fccl-tests")}
    kubectl wait --for=condition=Succeeded trainjob/fccl-tests --timeout=120s &&
    kubectl logs job/fccl-tests-launcher-0-0 {OR_SAY_ALL}
    """)
    assert "# Out of bounds values : 0 OK" in text


@pytest.fixture
def there_is_an_environment():
    if importlib.util.find_spec("fccl") is None:
        pytest.skip("the package fccl is not installed beside this pytest")


def losses(text):
    rows = map(json.loads, re.findall(r"^\{.*\}$", text, re.M))
    return [row["loss"] for row in rows if "loss" in row]


# The same job once more: another name, another rendezvous, another folder.
AGAIN = "s/^  name: fsdp$/  name: again/; s/rdzvId: fsdp/rdzvId: again/; s/- fsdp$/- again/; /^status:/,$d"


def test_a_pytorch_job_trains_by_etcd_and_so_does_a_second_one_after_it(there_is_an_environment):
    text = succeeded(f"""
    {only("pytorchjob", "fsdp")}
    kubectl wait --for=condition=Succeeded pytorchjob/fsdp --timeout=120s &&
    cat /opt/fccl-runs/fsdp/metrics.jsonl &&
    kubectl get pytorchjob/fsdp -o yaml | sed '{AGAIN}; /resourceVersion:/d' | kubectl create -f - &&
    kubectl wait --for=condition=Succeeded pytorchjob/again --timeout=120s &&
    ls /opt/fccl-runs/again/metrics.jsonl {OR_SAY_ALL}
    """)
    found = losses(text)
    assert found[-1] < found[0]


def test_a_train_job_trains(there_is_an_environment):
    text = succeeded(f"""
    {only("trainjob", "fsdp")}
    kubectl wait --for=condition=Complete trainjob/fsdp --timeout=200s &&
    cat /opt/fccl-runs/trainjob/metrics.jsonl {OR_SAY_ALL}
    """)
    found = losses(text)
    assert found[-1] < found[0]


def test_a_pod_that_wants_more_efas_than_there_are_waits_and_says_so():
    text = succeeded(f"""
    kubectl apply -k {OVERLAYS}/p4d >/dev/null
    for each in $(seq 60); do
      kubectl describe pod/fccl-tests-worker-0 | grep Insufficient && exit 0
      sleep 0.5
    done
    exit 1
    """)
    assert "Insufficient vpc.amazonaws.com/efa" in text


POD = """
apiVersion: v1
kind: Pod
metadata: {name: efa}
spec:
  restartPolicy: Never
  containers:
    - name: a
      image: localhost/fccl-tests:latest
      imagePullPolicy: Never
      env: [{name: A, value: "1"}, {name: B, value: "$(A)-$PATH"}]
      command: [printenv, B]
      resources: {limits: {vpc.amazonaws.com/efa: 4}}
"""


def test_a_pod_gets_efas_that_the_node_offers_and_only_names_in_brackets_expand():
    text = succeeded(
        f"""
    kubectl get node node0 -o jsonpath='{{.status.allocatable}}'
    echo '{POD}' | kubectl apply -f - &&
    for each in $(seq 60); do
      [[ $(kubectl get pod efa -o jsonpath='{{.status.phase}}') != Succeeded ]] || break
      sleep 0.5
    done
    kubectl logs efa {OR_SAY_ALL}
    """,
        "--efa",
        "8",
    )
    assert '"vpc.amazonaws.com/efa":"8"' in text
    assert text.endswith("1-$PATH\n")


def test_a_field_that_there_is_not_is_refused_by_its_name():
    altered = "sed s/slotsPerWorker/slotsPerWorkers/"
    said = run(f"kubectl kustomize {OVERLAYS}/local | {altered} | kubectl apply -f -")
    assert said.returncode != 0
    assert 'unknown field "slotsPerWorkers"' in said.stderr


# A job as AWS has one for nccl-tests, by its paths and variables, but for image, binary, resources, provider.
OF_AWS = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: nccl-tests}
spec:
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 20}
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: launcher
              image: localhost/fccl-tests:latest
              imagePullPolicy: IfNotPresent
              env:
                - {name: PATH, value: "$PATH:/opt/amazon/efa/bin:/usr/bin"}
                - {name: LD_LIBRARY_PATH, value: "/opt/amazon/openmpi/lib:$LD_LIBRARY_PATH"}
              command: [/opt/amazon/openmpi/bin/mpirun, --allow-run-as-root, --tag-output, -np, "4", -N, "2"]
              args:
                [--bind-to, none, -x, PATH, -x, LD_LIBRARY_PATH,
                 /opt/fccl-tests/build/all_reduce_perf, -b, "8", -e, 1M, -f, "8"]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: worker
              image: localhost/fccl-tests:latest
              imagePullPolicy: IfNotPresent
              volumeMounts: [{name: shmem, mountPath: /dev/shm}]
          volumes: [{name: shmem, hostPath: {path: /dev/shm}}]
"""


# Its launcher comes before the workers, so the Job may need more than one pod.
def test_a_job_by_the_paths_and_variables_of_aws_measures_with_nothing_wrong():
    text = succeeded(f"""
    echo '{OF_AWS}' | kubectl apply -f - &&
    kubectl wait --for=condition=Succeeded mpijob/nccl-tests --timeout=120s &&
    kubectl logs -l training.kubeflow.org/job-role=launcher --tail=-1 {OR_SAY_ALL}
    """)
    assert "# Out of bounds values : 0 OK" in text


# Makes of the overlay its MPIJob alone, with other words for the perf binary.
LONG_JOB = """
import json, sys
for job in json.load(sys.stdin)["items"]:
    if job["kind"] == "MPIJob":
        launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]
        launcher["template"]["spec"]["containers"][0]["args"] = sys.argv[1:]
        print(json.dumps(job))
"""
WORDS = "all_gather_perf -b 64K -e 64K -n 20 -N 100000"


def test_a_deleted_worker_fails_the_job_and_the_log_names_the_dead_rank():
    text = succeeded(f"""
    kubectl apply -k {OVERLAYS}/local --dry-run=client -o json |
      python3 -c '{LONG_JOB}' {WORDS} | kubectl apply -f - || exit
    for each in $(seq 200); do
      (($(kubectl logs job/fccl-tests-launcher 2>/dev/null | grep -c ' 65536 .* float ') < 2)) || break
      sleep 0.5
    done
    SECONDS=0
    kubectl delete pod fccl-tests-worker-1 --force --grace-period=0
    kubectl wait --for=condition=Failed mpijob/fccl-tests --timeout=60s &&
    echo failed after $SECONDS s && kubectl logs job/fccl-tests-launcher {OR_SAY_ALL}
    """)
    assert int(re.search(r"failed after (\d+) s", text)[1]) < 30
    assert re.search(r"rank [23] \(pid \d+ on fccl-tests-worker-1\) died", text)


def test_the_status_is_that_of_the_command():
    assert run("exit 7").returncode == 7


def test_a_command_that_does_not_exist_is_named():
    words = [*PROGRAM, "--", "no-such-command"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT)
    assert said.returncode == 1
    assert "kube: cannot start no-such-command: No such file or directory" in said.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_of_it(number):
    script = f"kubectl apply -k {OVERLAYS}/local >/dev/null; sleep 5; echo started; sleep 600"
    words = [*PROGRAM, "--", "bash", "-c", script]
    before = processes(), folders()
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    process.send_signal(number)
    assert process.wait(70) == (-9 if number == signal.SIGKILL else 128 + number)
    # After SIGKILL nobody waits for what cleans up.
    deadline = time.monotonic() + 70
    while (processes(), folders()) != before:
        assert time.monotonic() < deadline, (processes(), folders())
        time.sleep(0.2)
