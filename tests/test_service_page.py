"""What the API says of itself, to programs and to people."""

import json
import runpy
from pathlib import Path

import msgspec
import pytest

from nilregret.algorithms import schema as parameter_tables
from nilregret.serve.api import openapi as parameters
from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.api.openapi import document
from nilregret.serve.api.operations import REFUSED
from nilregret.serve.wire import messages
from nilregret.serve.wire.problems import KINDS

READ = {"FloatParameter": "_Float", "IntParameter": "_Int", "ChoiceParameter": "_Choice"}
DOCS = Path(__file__).parents[1] / "docs"


def page():
    """The page for people, as the site has it."""
    filled = runpy.run_path(str(DOCS / "service_api.py"))["filled"]
    return filled((DOCS / "service-api.md").read_text(encoding="utf-8"))


def test_the_page_says_all_that_there_is():
    text, said = page(), json.loads(document(OPERATIONS))
    assert "<!--" not in text
    for path, methods in said["paths"].items():
        for method, each in methods.items():
            section = text.split(f"## {method.upper()} {path}\n")[1].split("\n## ")[0]
            assert each["summary"] in section
            assert all(f"`?{query['name']}=`" in section for query in each["parameters"] if query["in"] == "query")
            assert all(f"- {status}: " in section for status in each["responses"] if int(status) < 300)
            body = each.get("requestBody", {"content": {}})["content"].get("application/json", {"examples": {}})
            assert all(example["summary"] in section for example in body["examples"].values())
    for name, schema in said["components"]["schemas"].items():
        section = text.split(f"### {name}\n")[1].split("\n##")[0]
        assert all(f"`{entry}`" in section for entry in schema["properties"])
    assert all(f"| {status} | " in text for status in REFUSED)
    assert all(f"| `{kind}` | " in text for kind in KINDS)
    assert "| *`reason`* |" in text.split("### FailureRequest")[1].split("###")[0]


def test_every_operation_is_described_with_everything_it_may_answer():
    said = json.loads(document(OPERATIONS))
    assert said["openapi"] == "3.1.0"
    found = {(method, path) for path, methods in said["paths"].items() for method in methods}
    assert len(found) == len(OPERATIONS)
    names = [each["operationId"] for methods in said["paths"].values() for each in methods.values()]
    assert len(set(names)) == len(names)
    for methods in said["paths"].values():
        for each in methods.values():
            assert {str(status) for status in REFUSED} < set(each["responses"])
            assert min(each["responses"]) in ("200", "201")
            for answer in each["responses"].values():
                assert answer["content"]


def test_every_reference_leads_to_a_structure():
    said = json.loads(document(OPERATIONS))
    schemas = said["components"]["schemas"]
    text = json.dumps(said)
    for name in text.split('"#/components/schemas/')[1:]:
        assert name.partition('"')[0] in schemas


REQUESTS = [each for each in messages.Request.__subclasses__() if each.__name__.endswith("Request")]


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_what_is_sent_has_no_entries_but_those_described(kind):
    schema = json.loads(document(OPERATIONS))["components"]["schemas"][kind.__name__]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("kind", parameters.KINDS, ids=lambda kind: kind.__name__)
def test_parameters_are_described_as_they_are_read(kind):
    """The entries of the description are those of files, each with its default."""
    described, read = (
        msgspec.inspect.type_info(kind),
        msgspec.inspect.type_info(getattr(parameter_tables, READ[kind.__name__])),
    )
    assert described.tag == read.tag
    fields = [
        {field.encode_name: (field.required, field.default) for field in each.fields} for each in (described, read)
    ]
    assert fields[0] == fields[1]
    assert {"$ref": f"#/components/schemas/{kind.__name__}"} in json.loads(document(OPERATIONS))["components"][
        "schemas"
    ]["StudyRequest"]["properties"]["space"]["anyOf"][0]["additionalProperties"]["oneOf"]
