"""Notes beside a study and its name: changed together or not at all, whoever else changes them meanwhile."""

import asyncio

import pytest

import nilregret as nr
from nilregret.serve.wire.settings import Settings
from nilregret.serve.work.study_notes import StudyNotes, change_study, notes_of
from nilregret.storage import MemoryStorage, SqlStorage

from .marks import nightly
from .service import AT, POLICY, Client, asked, plain


@pytest.fixture(params=["memory", "sqlite", *nightly("postgresql")])
def storage(request, places):
    found = MemoryStorage() if request.param == "memory" else SqlStorage(places(request.param)())
    yield found
    found.close()


def patched(client, study, **changes):
    return client.run(client.send("PATCH", f"/v1/studies/{study}", changes))


def test_concurrent_changes_of_notes_are_all_kept(storage):
    changes = [{"paused": True}, {"note": "of summer"}, {"tags": ["a"]}]
    with Client(storage) as client:
        client.put(AT, {"policy": plain(POLICY)})
        client.get(AT)

        async def together():
            return await asyncio.gather(*(client.send("PATCH", AT, each) for each in changes))

        assert [status for status, _ in client.run(together())] == [200, 200, 200]
        kept = patched(client, "shop")[1]
        assert (kept["paused"], kept["note"], kept["tags"]) == (True, "of summer", ["a"])
        assert client.post(f"{AT}/decisions", {})[0] == 409


def test_a_refused_name_changes_nothing_and_names_no_storage(storage):
    with Client(storage) as client:
        for name in ("shop", "other"):
            client.put(f"/v1/studies/{name}", {"policy": plain(POLICY)})
        status, said = patched(client, "shop", name="other", paused=True, note="changed")
        assert (status, said["error"]["kind"], said["error"]["field"]) == (409, "conflict", "name")
        assert "sqlite" not in said["error"]["sentence"]
        assert notes_of(storage, [storage.find("shop")]) == [StudyNotes()]
        assert patched(client, "shop", name="a" * 300, paused=True)[0] == 422
        asked(client)
        assert "sqlite" not in str(client.get(f"{AT}/audit")[1])
        assert patched(client, "shop", name="kiosk", note="kept")[1]["note"] == "kept"
        assert client.get(AT)[0] == 404
        assert client.get("/v1/studies/kiosk")[1]["trials"]["all"] == 1


def test_making_a_study_and_changing_its_arms_is_in_the_audit_log(storage):
    with Client(storage) as client:
        for _ in range(2):
            client.put(AT, {"policy": plain(POLICY), "seed": 3})
        client.post(f"{AT}/arms", {"arms": [{"point": [1.5]}]})
        client.put(f"{AT}/arms/2", {"name": "<b>"})
        client.run(client.send("DELETE", f"{AT}/arms/3"))
        assert client.run(client.send("DELETE", f"{AT}/arms/77"))[0] >= 400
        entries = client.get(f"{AT}/audit")[1]["entries"][::-1]
    assert [each["action"] for each in entries] == ["make", "add arms", "change an arm", "retire-arm", "retire-arm"]
    assert entries[0]["arguments"] == {"seed": 3, "goal": "maximize"}
    assert [each["outcome"] for each in entries[:4]] == ["done"] * 4
    assert entries[4]["outcome"].startswith("There is no arm 77")


def test_a_stale_process_changes_the_study_that_has_the_name(storage):
    with Client(storage) as first, Client(storage, settings=Settings(recheck_seconds=1e9)) as second:
        first.put(AT, {"policy": plain(POLICY)})
        second.get(AT)
        patched(first, "shop", name="kiosk")
        first.put(AT, {"policy": plain(POLICY), "seed": 5})
        assert patched(second, "shop", name="stall", note="mine")[0] == 200
        assert (storage.find("stall").seed, storage.find("kiosk").seed) == (5, 0)
        assert notes_of(storage, [storage.find("kiosk")]) == [StudyNotes()]


def test_a_study_that_has_another_name_by_now_is_left_alone(storage):
    nr.Study(POLICY, storage=storage, name="shop")
    stored = storage.find("shop")
    storage.rename("shop", "kiosk")
    with pytest.raises(nr.errors.InvalidInput, match="another name by now"):
        change_study(storage, stored, {"note": "lost"}, name="shop", new="stall")
    assert notes_of(storage, [storage.find("kiosk")]) == [StudyNotes()]
    assert storage.names() == ["kiosk"]
