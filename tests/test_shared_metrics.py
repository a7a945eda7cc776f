"""`/metrics` of several processes: whichever answers, it tells of all of them."""

import os
import re

import pytest
from prometheus_client import values
from prometheus_client.parser import text_string_to_metric_families

from nilregret.serve.watch.metrics import FOLDER, READ, SharedMetrics, forget, shared_in
from nilregret.storage import SqlStorage

from .service import AT, POLICY, Client, asked, plain, told

LINE = re.compile(r"(\w+)(\{.*\})? (\S+)")


class Processes:
    """Two services that write as two processes do, in the process of the test."""

    def __init__(self, folder, monkeypatch):
        self._monkeypatch = monkeypatch
        self._kinds = {name: values.MultiProcessValue(lambda name=name: name) for name in "ab"}
        self.clients = {}
        for name in "ab":
            self._turn(name)
            self.clients[name] = Client(SqlStorage(f"sqlite:///{folder}/a.db"))

    def _turn(self, name):
        self._monkeypatch.setattr(values, "ValueClass", self._kinds[name])

    def __getitem__(self, name):
        """The client of a process, which works until the other one is taken."""
        self._turn(name)
        return self.clients[name]

    def read(self, name):
        status, text = self[name].get("/metrics")
        assert status == 200
        families = {each.name: each.type for each in text_string_to_metric_families(text.decode())}
        lines = [LINE.fullmatch(each) for each in text.decode().splitlines() if each[0] != "#"]
        found = {each[1] + (each[2] or ""): float(each[3]) for each in lines}
        return found, families


@pytest.fixture
def two(tmp_path, monkeypatch):
    with shared_in(tmp_path / "metrics"):
        made = Processes(tmp_path, monkeypatch)
        yield made
        for client in made.clients.values():
            client.__exit__()
        getattr(values, "close_all_multiprocess_files", list)()  # since 0.26
    assert FOLDER not in os.environ


def of(study, name, **more):
    labels = sorted({"study": study, "tenant": "default", **more}.items())
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}"


def test_whichever_process_answers_it_tells_of_all(two, tmp_path):
    for name, study, count in (("a", AT, 3), ("b", "/v1/studies/other", 2)):
        two[name].put(study, {"policy": plain(POLICY)})
        for _ in range(count):
            two[name].post(f"{study}/decisions", {})
    for name in "ab":  # Each process publishes what it has: here as it is read, else by itself.
        two.read(name)
    for name in "abab":
        found, families = two.read(name)
        for study, count in (("shop", 3.0), ("other", 2.0)):
            assert found[of(study, "nilregret_process_decisions_total")] == count
            assert found[of(study, "nilregret_decisions_total")] == count
            assert found[of(study, "nilregret_trials", state="pending")] == count
            assert found[of(study, "nilregret_signal", kind="failing")] == 0.0
        assert found['nilregret_request_seconds_count{operation="ask"}'] == 5.0
        assert found["nilregret_open_studies"] == 2.0
        assert (families["nilregret_decisions"], families["nilregret_trials"]) == ("counter", "gauge")
    assert not [name for name in two.read("a")[0] if "pid=" in name]


def test_no_number_goes_down_and_the_latest_counts(two):
    two["a"].put(AT, {"policy": plain(POLICY)})
    before = {}
    for i in range(6):
        client = two["ab"[i % 2]]  # both decide for the study
        told(client, asked(client), 1.0)
        found, families = two.read("ba"[i % 2] if i else "a")
        assert found[of("shop", "nilregret_answers_total")] == i + 1.0
        counts = {name: value for name, value in found.items() if re.search("_(total|count|bucket)", name)}
        assert not [name for name, value in counts.items() if value < before.get(name, 0.0)]
        before = counts
    assert before[of("shop", "nilregret_process_answers_total")] == 6.0
    assert families["nilregret_process_answers"] == "counter"


def test_what_a_process_drops_or_leaves_behind(two, tmp_path):
    two["a"].put(AT, {"policy": plain(POLICY)})
    asked(two["a"])
    assert of("shop", "nilregret_decisions_total") in two.read("a")[0]
    worker = two.clients["a"].service.workers.open[0]
    two.clients["a"].service.workers.forget(worker)
    assert of("shop", "nilregret_decisions_total") not in two.read("a")[0]
    two["b"].get(AT)  # is open here now
    assert two.read("b")[0][of("shop", "nilregret_decisions_total")] == 1.0
    forget(tmp_path / "metrics", "b")
    found, _ = two.read("a")
    assert found["nilregret_open_studies"] == 0.0
    assert found[of("shop", "nilregret_process_decisions_total")] == 1.0


def test_tenants_are_told_of_their_own_studies_alone(two, tmp_path):
    two["a"].put(AT, {"policy": plain(POLICY)})
    asked(two["a"])
    two.read("a")
    metrics = two["a"].service.metrics
    assert b"shop" not in metrics.text("other")
    own = metrics.text("default")
    assert b'nilregret_trials{state="pending",study="shop",tenant="default"}' in own
    assert b"nilregret_process" not in own


def test_processes_publish_while_metrics_are_read(tmp_path):
    shared = SharedMetrics(str(tmp_path))
    assert not shared.watched
    shared.text(None)
    assert shared.watched
    os.utime(tmp_path / READ, (0, 0))
    assert not shared.watched
