"""Names of studies in addresses: each has one that browsers and proxies leave as it is, and that leads back to it."""

import re
import urllib.request

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.client import Client
from nilregret.errors import ServiceError
from nilregret.serve.auth.tokens import own_names, stored_name
from nilregret.serve.wire.messages import name_in, segment
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.testing.serving import Serving, in_a_process

from .service import POLICY
from .service import Client as InProcess

NAMES = [
    "prices", ".", "..", "...", "~~", "~~2e", "~~2e2e", "~~zz", "~~7e7e", "~.", ".~", "a\\b", "\\", "a b", "a/b", "%2e",
    "%2e%2e", "?", "#", "\u00fc", "\U0001f680", "~~\U0001f680", "x" * 200,
    "team/model-a", "/", "a\nb", "\U0001f469\u200d\U0001f52c", "\u2028",
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


def test_a_study_of_any_name_is_made_asked_and_told_over_the_service():
    storage, long = MemoryStorage(), "\U0001f680" * 200
    names = [
        "..",
        ".",
        "a\\b",
        "~~2e",
        "team/model-a",
        "//",
        "50% of it?",
        "x" * 158,
        long,
        "\U0001f469\u200d\U0001f52c",
    ]
    with Serving(storage) as service, Client(service.url) as client:
        for name in names:
            study = client.create(name, POLICY)
            decision = study.ask()
            study.tell(decision, 0.5)
            assert study.best().reward == 0.5
            assert nr.Study.open(storage=storage, name=name).trials[0].reward == 0.5
        assert [each.name for each in client.studies()] == names == storage.names()


def test_the_command_that_lists_studies_cuts_no_name(tmp_path):
    url, name = f"sqlite:///{tmp_path}/a.db", "team/" + "x" * 195
    nr.Study(POLICY, storage=url, name=name).close()
    assert name in CliRunner().invoke(main, ["studies", url]).output


@pytest.mark.parametrize("name", ["two\nlines", "x" * 1000, "a\u202eb", "a\u200bb"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_name_of_several_lines_or_unseen_characters_is_refused(name, stored, tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match=r"`name` (is|has) .*name of a study"):
        nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/a.db" if stored else None, name=name)


def test_a_name_with_a_slash_is_the_operators_until_there_is_a_tenant_of_that_name(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.Study(POLICY, storage=url, name="team/a/b").close()
    with InProcess(SqlStorage(url)) as service:
        at = f"/v1/studies/{segment('team/a/b')}"
        storage, listed = (
            service.service.storage,
            lambda: [each["name"] for each in service.get("/v1/studies")[1]["studies"]],
        )
        id_before = service.post(f"{at}/decisions")[1]["decisions"][0]["id"]
        assert listed() == ["team/a/b"]
        made = CliRunner().invoke(main, ["token", "new", "--storage", url, "--tenant", "team"])
        assert "'team/a/b'. `nilregret rename`" in made.stderr
        assert "rename" not in CliRunner().invoke(main, ["token", "new", "--storage", url, "--tenant", "team"]).stderr
        assert listed() == []
        assert service.post(f"{at}/decisions")[0] == service.get(f"{at}/decisions/{id_before}")[0] == 404
        status, said = service.put(f"/v1/studies/{segment('team/new')}", {"arms": [[0.0], [1.0]]})
        assert (status, "'team' is a tenant" in said["error"]["sentence"]) == (422, True)
        assert own_names(storage, "team") == {"a/b": "team/a/b"}
        worker = service.run(service.service.workers.get("team", "a/b"))
        assert (worker.tenant, worker.name, len(worker.study.trials)) == ("team", "a/b", 1)
        assert stored_name(storage, "team", "team/new") == "team/team/new"
