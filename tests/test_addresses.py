"""Names of studies in addresses: each has one that browsers and proxies leave as it is, and that leads back to it."""

import re
import urllib.request

import pytest

import noregret as nr
from noregret.client import Client
from noregret.errors import ServiceError
from noregret.serve.addresses import name_in, segment
from noregret.serve.testing import Serving, in_a_process
from noregret.storage import MemoryStorage

NAMES = [
    "prices", ".", "..", "...", "~~", "~~2e", "~~2e2e", "~~zz", "~~7e7e", "~.", ".~", "a\\b", "\\", "a b", "a/b", "%2e",
    "%2e%2e", "?", "#", "\u00fc", "\U0001f680", "~~\U0001f680", "x" * 128,
]  # fmt: skip


def test_each_name_has_an_address_of_its_own_that_leads_back_to_it():
    from urllib.parse import unquote

    segments = [segment(name) for name in NAMES]
    assert len(set(segments)) == len(NAMES)
    assert [name_in(unquote(each)) for each in segments] == NAMES
    for each in segments:
        assert re.fullmatch(r"[A-Za-z0-9._~%-]+", each)
        decoded = unquote(each)
        assert decoded not in (".", "..")  # steps, also percent-encoded
        assert "\\" not in decoded


@pytest.mark.parametrize("odd", ["~~", "~~2", "~~zz", "~~ff", "~~2E", "~~2e 2e"])
def test_what_is_no_such_address_stands_for_itself(odd):
    assert name_in(odd) == odd


def test_the_service_in_a_process_of_its_own_has_both_and_ends_with_the_block(tmp_path):
    with in_a_process("--storage", f"sqlite:///{tmp_path}/studies.db") as (process, said):
        with Client(said["url"].removesuffix("/v1")) as client:
            assert client.studies() == []
        with urllib.request.urlopen(said["dashboard"] + "studies") as answer:
            assert b"There is no study yet" in answer.read()
    assert process.poll() is not None


def test_a_service_that_does_not_begin_is_said_to(capfd):
    with pytest.raises(ServiceError, match="did not begin"), in_a_process("--nothing"):
        raise AssertionError("it began")
    assert "--nothing" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["..", ".", "a\\b", "~~2e"])
def test_a_study_of_any_name_is_made_asked_and_told_over_the_service(name):
    storage = MemoryStorage()
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.3), noise=0.1)
    with Serving(storage) as service:
        with Client(service.url) as client:
            study = client.create(name, policy)
            decision = study.ask()
            study.tell(decision, 0.5)
            assert [each.name for each in client.studies()] == [name]
            assert study.best().reward == 0.5
        assert storage.names() == [name]
        assert nr.Study.open(storage=storage, name=name).trials[0].reward == 0.5
