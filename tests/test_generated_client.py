"""The OpenAPI document is enough for a program to write a client that decides."""

import importlib
import json
import re
import subprocess
import sys

import pytest

from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.api.openapi import document
from nilregret.serve.wire.messages import NAME_PATTERN, name_in, segment
from nilregret.storage import MemoryStorage
from nilregret.testing.serving import Serving

from .service import AT, Client, asked

DOCUMENT = document(OPERATIONS)
SAID = json.loads(DOCUMENT)


def parts(value):
    """Every object in the document."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(each)


def schema_of(path, name):
    (operation, *_) = SAID["paths"][path].values()
    return next(each["schema"] for each in operation["parameters"] if each["name"] == name)


def test_every_list_says_what_is_in_it_and_every_reference_leads_somewhere():
    assert all("items" in each for each in parts(SAID) if each.get("type") == "array")
    for each in parts(SAID):
        reference = each.get("$ref")
        assert reference is None or reference.rpartition("/")[2] in SAID["components"]["schemas"]


@pytest.mark.parametrize(("name", "fits"), [
    ("shop", True), ("a b", True), ("ü%?#&", True), ("x" * 200, True), ("~~2e2e", True), ("x" * 201, False),
    ("a/b", False), ("a\\b", False), ("a\nb", False), ("a\x1b", False), ("", False),
])  # fmt: skip
def test_names_in_addresses_have_a_pattern_and_a_length(name, fits):
    schema = schema_of("/v1/studies/{name}", "name")
    assert schema["pattern"] == NAME_PATTERN
    assert bool(re.fullmatch(schema["pattern"], name) and len(name) <= schema["maxLength"]) == fits
    written = segment(name)
    if name and (fits or "~~" in written):
        assert re.fullmatch(NAME_PATTERN, written if "~~" in written else name)
        assert name_in(written) == name or "~~" not in written
    new = SAID["components"]["schemas"]["StudyChangeRequest"]["properties"]["name"]["anyOf"][0]
    assert (new["minLength"], new["maxLength"]) == (1, 200)
    assert not re.fullmatch(new["pattern"], "a\nb")


def test_ids_have_a_pattern():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"arms": [[0.0], [1.0]]})
        decision = asked(client)
    assert re.fullmatch(NAME_PATTERN, decision["id"])
    assert schema_of("/v1/studies/{name}/decisions/{id}", "id")["pattern"] == NAME_PATTERN


@pytest.mark.nightly
def test_a_generated_client_decides(tmp_path, monkeypatch):
    pytest.importorskip("openapi_python_client")
    (tmp_path / "openapi.json").write_bytes(DOCUMENT)
    (tmp_path / "config.yml").write_text(
        "post_hooks: []\ncontent_type_overrides:\n  application/x-ndjson: application/octet-stream\n"
    )
    command = [
        sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--config", "config.yml",
        "--output-path", "generated_client", "--meta", "none", "--fail-on-warning",
    ]  # fmt: skip
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.syspath_prepend(tmp_path)
    models, made = (importlib.import_module(f"generated_client{room}") for room in (".models", ""))

    def call(name, *path, **more):
        operation = importlib.import_module(f"generated_client.api.default.{name}")
        answer = operation.sync_detailed(*path, client=client, **more)
        assert answer.status_code < 300, answer.content
        return answer.parsed

    with Serving() as service, made.Client(base_url=service.url) as client:
        price, hour = {"type": "float", "low": 1, "high": 9}, {"type": "float", "low": 0, "high": 24}
        space = {"price": price, "way": {"type": "choice", "options": ["a", "b"]}}
        recipe = models.StudyRequest.from_dict({"space": space, "grid": 3, "context": {"hour": hour}})
        for name in ("shop & co", "~~2e2e"):
            assert call("put_study", name, body=recipe).goal == "maximize"
            for key, limits in (
                ("k1", {"among": [0, 1]}), ("k2", {"among": [{"price": 1, "way": "a"}, {"price": 1, "way": "b"}]}),
                ("k3", {"exclude": [2, 3, 4, 5], "count": 2, "client": "me"}),
            ):  # fmt: skip
                body = models.DecisionRequest.from_dict({"context": {"hour": 9}} | limits)
                asked = call("ask", name, body=body, idempotency_key=key)
                assert call("ask", name, body=body, idempotency_key=key).decisions[0].id == asked.decisions[0].id
                assert {each.arm for each in asked.decisions} <= {0, 1}
            for reward in (1.5, 2.5):
                body = models.RewardRequest(reward=reward, revise=True)
                assert call("reward", name, asked.decisions[0].id, body=body).reward == reward
            item = models.RewardItem.from_dict({"id": asked.decisions[1].id, "reward": 3.5})
            assert call("rewards", name, body=models.RewardsRequest([item])).items[0].status == 200
            assert call("best", name, context='{"hour": 9}').reward in (2.5, 3.5)
            assert call("study", name).trials.to_dict()["observed"] == 2
            assert len(call("events", name).events) == 7
        assert {each.name for each in call("studies").studies} == {"shop & co", ".."}
