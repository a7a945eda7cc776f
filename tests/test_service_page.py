"""What the API says of itself, to programs and to people."""

import json
from pathlib import Path

import msgspec
import pytest

from nilregret.algorithms import parameter_tables
from nilregret.serve import messages, parameters
from nilregret.serve.app import OPERATIONS
from nilregret.serve.openapi import document
from nilregret.serve.operations import REFUSED
from nilregret.serve.reference import page

READ = {"FloatParameter": "_Float", "IntParameter": "_Int", "ChoiceParameter": "_Choice"}
PAGE = Path(__file__).parents[1] / "docs" / "service-api.md"


def test_the_page_is_that_of_this_code():
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m nilregret.serve.reference > docs/service-api.md"


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


@pytest.mark.parametrize("kind", messages.REQUESTS, ids=lambda kind: kind.__name__)
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
