"""What the API shows of itself works: each example is sent and answered, each link leads where it says."""

import json

import msgspec
import pytest

from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.api.openapi import document, examples, links
from nilregret.storage import MemoryStorage

from .service import Client

SAID = json.loads(document(OPERATIONS))
ADDRESSES = {operation.name: operation for operation in OPERATIONS}
ALL = [(name, each) for name, several in examples().items() for each in several]


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        yield made


def put(client, name):
    (body,) = [each.body for each in examples()["putStudy"] if each.name == name]
    assert client.put(f"/v1/studies/{name}", body)[0] in (200, 201)


def asked(client, study):
    context = {"context": {"hour": 3.0}} if study == "contexts" else {}
    status, said = client.post(f"/v1/studies/{study}/decisions", context)
    assert status == 201
    return said["decisions"][0]["id"]


def test_whatever_takes_a_body_has_examples():
    assert set(examples()) == {operation.name for operation in OPERATIONS if operation.body is not None}
    for several in examples().values():
        assert len({each.name for each in several}) == len(several)


@pytest.mark.parametrize(("operation", "example"), ALL, ids=[f"{name}-{each.name}" for name, each in ALL])
def test_every_example_is_answered(client, operation, example):
    put(client, example.study)
    described = ADDRESSES[operation]
    address = described.path.replace("{name}", example.study).replace("{arm:int}", "1").replace("{number:int}", "0")
    address = address.replace("{step}", "1")
    body = example.body
    if "{id}" in address:
        address = address.replace("{id}", asked(client, example.study))
    if operation == "stop":
        client.put(address.replace("/stop", "/steps/1"), {"value": 0.5})
    if operation == "tellSlate":
        page = client.post(f"/v1/studies/{example.study}/decisions", {"count": 3, "slate": True})[1]["decisions"]
        address = described.path.replace("{name}", example.study).replace("{id}", page[0]["id"])
    if operation == "rewards":
        client.post(f"/v1/studies/{example.study}/decisions", {"event": "visit-1234"})
        items = [item if "event" in item else item | {"id": asked(client, example.study)} for item in body["items"]]
        body = {"items": items}
    if operation == "noteTrial":
        asked(client, example.study)
    if operation == "evaluate":
        for _ in range(3):
            decision = asked(client, example.study)
            client.put(f"/v1/studies/{example.study}/decisions/{decision}/reward", {"reward": 1})
    status, said = client.run(client.send(described.method, address, body))
    assert status in described.answers, said
    assert status < 300, said
    if operation == "rewards":
        assert {each["status"] for each in said["items"]} == {200}


@pytest.mark.parametrize(("operation", "example"), ALL, ids=[f"{name}-{each.name}" for name, each in ALL])
def test_every_example_fits_its_schema(operation, example):
    described = ADDRESSES[operation]
    assert msgspec.convert(example.body, described.body, strict=True)
    address = SAID["paths"][described.path.replace(":int", "")][described.method.lower()]["requestBody"]["content"][
        "application/json"
    ]
    assert address["examples"][example.name] == {"summary": example.summary, "value": example.body}


def test_every_link_has_what_its_target_needs():
    for name, each in links().items():
        assert set(each.operations) <= set(ADDRESSES)
        for status in (each for each in ADDRESSES[name].answers if each < 300):
            path, method = ADDRESSES[name].path.replace(":int", ""), ADDRESSES[name].method.lower()
            said = SAID["paths"][path][method]["responses"][str(status)]["links"]
            for then, link in said.items():
                target = ADDRESSES[then].path.replace(":int", "")
                needed = {each["name"] for each in SAID["paths"][target][ADDRESSES[then].method.lower()]["parameters"]
                          if each["in"] == "path"}  # fmt: skip
                assert set(link["parameters"]) == needed
