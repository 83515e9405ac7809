"""fccl.rendezvous against an etcd of its own: the agents' state and store, and jobs that share an id."""

import datetime
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    rendezvous_handler_registry,
)

pytest.importorskip("urllib3")
rendezvous = pytest.importorskip("fccl.rendezvous")
sys.path.insert(0, str(Path(__file__).parents[2]))
from trainer.ddp.tests.etcd_server import EtcdServer  # noqa: E402

OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
QUICK = {"last_call_timeout": "1", "join_timeout": "200"}


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    server = EtcdServer(tmp_path_factory.mktemp("etcd"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def environment_is_kept(monkeypatch):
    # The handler sets it for its process.
    monkeypatch.setenv(OWN_STORE, "0")
    monkeypatch.delenv(OWN_STORE)


@pytest.fixture
def run_id():
    return uuid.uuid4().hex


def handler(etcd, run_id, least=1, most=1, **options):
    parameters = RendezvousParameters(
        "etcd-v3", etcd.endpoint, run_id, least, most, "127.0.0.1", **QUICK, **options
    )
    return rendezvous.create(parameters)


def store(etcd, run_id):
    return handler(etcd, run_id)._store


def together(*calls):
    outcomes = [None] * len(calls)

    def note(index):
        outcomes[index] = calls[index]()

    threads = [threading.Thread(target=note, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    return outcomes


def test_torchrun_knows_the_backend_by_its_entry_point():
    assert "etcd-v3" in rendezvous_handler_registry._registry


def test_agents_meet_and_share_a_store(etcd, run_id):
    agents = [handler(etcd, run_id, 2, 2) for _ in range(2)]
    met = together(*(agent.next_rendezvous for agent in agents))
    assert sorted(each.rank for each in met) == [0, 1] and {each.world_size for each in met} == {2}
    met[0].store.set("key", "value of 0")
    assert met[1].store.get("key") == b"value of 0"
    assert len({each.bootstrap_store_info.master_port for each in met}) == 1
    for agent in agents:
        assert agent.shutdown()


def until_both_are_in(agent):
    """As torchrun's agent does: whenever another agent waits, all meet again."""
    met = agent.next_rendezvous()
    while met.world_size < 2:
        if agent.num_nodes_waiting():
            met = agent.next_rendezvous()
        time.sleep(0.05)
    return met


def test_an_agent_that_joins_learns_where_rank_0_is_now(etcd, run_id):
    first, second = handler(etcd, run_id, 1, 2), handler(etcd, run_id, 1, 2)
    assert os.environ[OWN_STORE] == "1"
    assert first.next_rendezvous().world_size == 1
    met = together(lambda: until_both_are_in(first), lambda: until_both_are_in(second))
    assert sorted(each.rank for each in met) == [0, 1]
    assert len({each.bootstrap_store_info.master_port for each in met}) == 1
    first.shutdown()
    second.shutdown()


def test_an_agent_that_was_taken_for_dead_joins_again(etcd, run_id):
    forgotten, other = handler(etcd, run_id, 1, 2), handler(etcd, run_id, 1, 2)
    met = together(lambda: until_both_are_in(forgotten), lambda: until_both_are_in(other))
    assert {each.world_size for each in met} == {2}
    forgotten._stop_heartbeats()
    backend = forgotten._state_holder._backend
    written = False
    while not written:
        state, token = backend.get_state()
        state = pickle.loads(state)
        del state.participants[forgotten._this_node]
        _, _, written = backend.set_state(pickle.dumps(state), token)
    # The handler believes for a second what it was told.
    time.sleep(1.1)
    assert forgotten.num_nodes_waiting() == 1 and other.num_nodes_waiting() == 0
    forgotten.shutdown()
    other.shutdown()


def test_a_job_starts_whose_id_was_used_by_a_job_that_has_ended(etcd, run_id):
    for _ in range(2):
        agent = handler(etcd, run_id)
        assert agent.next_rendezvous().world_size == 1
        agent.shutdown()


def test_the_number_of_a_job_is_kept_for_longer_than_the_store_that_it_names(etcd, run_id):
    agent = handler(etcd, run_id, ttl="60")
    agent.next_rendezvous()
    agent._store.set("key", "value")
    store, state = (
        int(each._call("lease/timetolive", {"ID": each._lease})["grantedTTL"])
        for each in (agent._store._etcd, agent._state_holder._backend._etcd)
    )
    assert (store, state) == (30, 60)
    agent.shutdown()


def test_an_agent_of_a_job_that_has_ended_does_not_close_the_next_one(etcd, run_id):
    late = handler(etcd, run_id, 1, 2)
    ended = handler(etcd, run_id, 1, 2)
    ended.next_rendezvous()
    ended.shutdown()
    following = handler(etcd, run_id, 1, 2)
    following.next_rendezvous()
    late.shutdown()
    assert not following.is_closed()
    following.shutdown()


def test_a_closed_rendezvous_names_the_id_and_the_flag(etcd, run_id):
    agent = handler(etcd, run_id, 1, 2)
    agent.next_rendezvous()
    handler(etcd, run_id, 1, 2).set_closed()
    with pytest.raises(RendezvousClosedError, match=f"{run_id}.*--rdzv-id"):
        agent.next_rendezvous()


def test_an_etcd_that_does_not_answer_is_named(run_id):
    class Nobody:
        endpoint = "127.0.0.1:1"

    with pytest.raises(RendezvousConnectionError, match=r"127\.0\.0\.1:1 did not answer.*retry_timeout"):
        handler(Nobody, run_id, retry_timeout="0")


def test_the_store_of_agents_names_an_etcd_that_does_not_answer_as_the_state_does():
    from fccl._etcd import Access, Etcd

    agents = rendezvous.EtcdV3Store(Etcd(Access(("127.0.0.1:1",), retry_timeout=0)), "/job/")
    with pytest.raises(RendezvousConnectionError, match=r"127\.0\.0\.1:1 did not answer"):
        agents.set("key", "value")


def signed(folder, *names):
    """A key and a certificate for each name, signed by the authority of `folder`/ca.crt."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority")
    (folder / "address").write_text("subjectAltName=IP:127.0.0.1")
    for name in names:
        openssl("req", *new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "address"]
        openssl("x509", "-req", "-in", f"{name}.csr", *authority, "-out", f"{name}.crt")
    return [{"cert": str(folder / f"{name}.crt"), "key": str(folder / f"{name}.key")} for name in names]


def test_agents_reach_an_etcd_by_tls_that_asks_for_their_certificates(tmp_path, run_id):
    server, agent = signed(tmp_path, "server", "agent")
    authority = str(tmp_path / "ca.crt")
    options = ["--cert-file", server["cert"], "--key-file", server["key"]]
    options += ["--trusted-ca-file", authority, "--client-cert-auth"]
    served = EtcdServer(tmp_path, *options, protocol="https")
    try:
        secure = {"protocol": "https", "cacert": authority}
        agents = [handler(served, run_id, 2, 2, **secure, **agent) for _ in range(2)]
        met = together(*(each.next_rendezvous for each in agents))
        assert sorted(each.rank for each in met) == [0, 1]
        for each in agents:
            assert each.shutdown()
        # Of etcd's refusal the agent sees an alert, or that the connection ends.
        with pytest.raises(RendezvousConnectionError, match=r"did not answer /v3/kv/range"):
            handler(served, run_id, retry_timeout="0", **secure)
        with pytest.raises(RendezvousConnectionError, match=r"(?i)certificate"):
            handler(served, run_id, retry_timeout="0", protocol="https", **agent)
    finally:
        served.stop()


def test_an_etcd_that_was_away_is_asked_again(etcd, run_id):
    agent = handler(etcd, run_id)
    agent.next_rendezvous()
    etcd.stop()
    # The handler believes for a second what it was told.
    time.sleep(1.1)
    asked = []
    asking = threading.Thread(target=lambda: asked.append(agent.is_closed()))
    asking.start()
    time.sleep(1.5)
    assert asked == []
    etcd.start()
    asking.join(200)
    assert asked == [False]
    agent.shutdown()


def test_sums_of_several_agents_lose_nothing(etcd, run_id):
    stores = [store(etcd, run_id) for _ in range(4)]
    together(*(lambda each=each: [each.add("sum", 1) for _ in range(10)] for each in stores))
    assert stores[0].get("sum") == b"40"
    assert stores[1].add("sum", -15) == 25


def test_a_key_that_nobody_writes_is_named(etcd, run_id):
    with pytest.raises(dist.DistStoreError, match="missing"):
        store(etcd, run_id).wait(["missing"], datetime.timedelta(milliseconds=50))


def test_compare_set_writes_only_over_what_was_expected(etcd, run_id):
    agents = store(etcd, run_id)
    assert agents.compare_set("key", "", "one") == b"one"
    assert agents.compare_set("key", "two", "three") == b"one"
    assert agents.compare_set("key", "one", "four") == b"four"
    assert agents.get("key") == b"four"


def test_a_key_and_a_value_of_any_bytes_are_kept(etcd, run_id):
    agents = store(etcd, run_id)
    value = bytes(range(256))
    agents.set("a/b c:ü", value)
    assert agents.get("a/b c:ü") == value
    assert agents.check(["a/b c:ü"]) and not agents.check(["a/b c:ü", "other"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"protocol": "ftp"}, "choose http or https"),
        ({"cert": "/certificate"}, "cert and key go together"),
    ],
)
def test_a_wrong_option_is_refused(etcd, run_id, options, says):
    with pytest.raises(ValueError, match=says):
        handler(etcd, run_id, **options)
