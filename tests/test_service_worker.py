"""Many calls at once: they share commits, and none takes another with it."""

import asyncio
import itertools
import threading
from functools import partial

import pytest

import nilregret as nr
from nilregret.serve.wire.settings import Settings
from nilregret.serve.work.threads import TenantThreads
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.study.transaction import Failed, NotYet

from .service import AT, POLICY, Client, asked, plain, told
from .waiting import LONG


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        made.put(AT, {"policy": plain(POLICY), "seed": 3})
        yield made


# -- many at once ------------------------------------------------------------------------------------------------------


class Counting:
    """How many transactions write."""

    def __init__(self, storage):
        self.count, self._writing = 0, storage.writing
        storage.writing = self

    def __call__(self, study):
        self.count += 1
        return self._writing(study)


async def wait_for(client, **calls):
    """Until so many calls wait for each study."""
    for name, count in calls.items():
        worker = await client.service.workers.get("default", name)
        while len(worker._queue) < count:
            await asyncio.sleep(0.001)


def held(client):
    """Keeps the writers busy until it is set."""
    go = threading.Event()
    for _ in range(client.service.settings.writers):
        client.service.workers._writers.submit("default", go.wait)
    return go


def test_calls_that_wait_share_a_commit(client):
    counting = Counting(client.service.storage)
    decision = asked(client)
    told(client, decision, 1.0)
    before, go = counting.count, held(client)

    async def limit():
        calls = [client.send("POST", f"{AT}/decisions", {}, key=f"{i}") for i in range(20)]
        calls += [client.send("PUT", f"{AT}/decisions/{decision['id']}/reward", {"reward": r}) for r in (1.0, 2.0)]
        calls.append(client.send("POST", f"{AT}/decisions", {"context": [1.0]}))
        tasks = [asyncio.ensure_future(call) for call in calls]
        await wait_for(client, shop=len(calls))
        go.set()
        return await asyncio.gather(*tasks)

    answers = client.run(limit())
    assert [status for status, _ in answers] == [201] * 20 + [200, 409, 422]
    assert counting.count - before == 1
    numbers = sorted(said["decisions"][0]["number"] for _, said in answers[:20])
    assert numbers == list(range(1, 21))


def test_one_that_fails_halfway_does_not_take_the_others_with_it(tmp_path):
    storage = SqlStorage(f"sqlite:///{tmp_path}/studies.db")
    study = nr.Study(POLICY, storage=storage)

    def halfway(turn):
        turn.ask(None, None, None)
        turn.write_note("k", "never")
        raise ZeroDivisionError

    def ask(turn):
        return turn.ask(None, None, None).number

    found = study.group_commit([ask, halfway, ask], seconds=1.0)
    assert (found[0], found[2]) == (0, 1)
    assert isinstance(found[1], Failed)
    assert isinstance(found[1].error, ZeroDivisionError)
    assert len(study.trials) == 2
    stored = storage.find("study")
    assert storage.notes(stored, "") == {}
    assert [t.arm for t in study.trials] == [t.arm for t in nr.Study(POLICY).ask(count=2)]


def test_a_turn_ends_in_time():
    storage = MemoryStorage()
    study = nr.Study(POLICY, storage=storage)
    found = study.group_commit([lambda turn: turn.ask(None, None, None)] * 4, seconds=0.0)
    assert [isinstance(each, NotYet) for each in found] == [False, False, True, True]
    assert len(study.trials) == 2


def test_a_busy_study_does_not_starve_another():
    with Client(MemoryStorage(), settings=Settings(writers=1, turn_calls=5)) as client:
        for name in ("busy", "calm"):
            client.put(f"/v1/studies/{name}", {"policy": plain(POLICY)})
        go, order = held(client), itertools.count()

        async def one(name):
            await client.send("POST", f"/v1/studies/{name}/decisions", {})
            return name, next(order)

        async def limit():
            tasks = [asyncio.ensure_future(one("busy")) for _ in range(60)]
            await wait_for(client, busy=60)
            tasks.append(asyncio.ensure_future(one("calm")))
            await wait_for(client, calm=1)
            go.set()
            return await asyncio.gather(*tasks)

        places = [place for name, place in client.run(limit()) if name == "calm"]
        assert places[0] <= 15  # after two turns of the other, of five calls each, and whoever is quicker to be heard


def test_a_study_is_opened_once_for_all_who_ask_for_it():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICY)})
        workers, opened = client.service.workers, []
        find = workers.storage.find
        workers.storage.find = lambda name: opened.append(name) or find(name)

        async def limit():
            return await asyncio.gather(*(workers.get("default", "shop") for _ in range(20)))

        assert len(set(map(id, client.run(limit())))) == 1
        once = len(opened)
        client.run(workers.get("default", "shop"))
        assert len(opened) == once <= 4
        assert workers._opening == {}


def test_who_comes_when_too_many_wait_is_told_so():
    with Client(MemoryStorage(), settings=Settings(writers=1, waiting=3)) as client:
        client.put(AT, {"policy": plain(POLICY)})
        asked(client)
        go = held(client)

        async def limit():
            tasks = [asyncio.ensure_future(client.send("POST", f"{AT}/decisions", {})) for _ in range(9)]
            while sum(task.done() for task in tasks) < 6:
                await asyncio.sleep(0.001)
            go.set()
            return await asyncio.gather(*tasks)

        statuses = sorted(status for status, _ in client.run(limit()))
        assert statuses == [201] * 3 + [503] * 6


def test_too_many_decisions_that_wait_for_an_answer():
    from nilregret.serve.wire.settings import Limits

    with Client(MemoryStorage(), settings=Settings(limits=Limits(pending=4))) as client:
        client.put(AT, {"policy": plain(POLICY)})
        decisions = client.post(f"{AT}/decisions", {"count": 4})[1]["decisions"]
        status, said = client.post(f"{AT}/decisions", {})
        assert (status, said["error"]["kind"]) == (429, "pending")
        told(client, decisions[0], 1.0)
        assert client.post(f"{AT}/decisions", {})[0] == 201


# -- notes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_notes_are_written_with_the_trials_or_not_at_all(kind, places):
    made = places(kind)()
    storage = made if isinstance(made, MemoryStorage) else SqlStorage(made)
    assert [storage.note_once("secret", text) for text in ("a", "b")] == ["a", "a"]
    study = nr.Study(POLICY, storage=storage, name="a")
    other = nr.Study(POLICY, storage=storage, name="b")

    def noting(turn):
        turn.write_note("k:1", "one")
        turn.write_note("k:2", "two")
        return turn.ask(None, None, None).number

    study.group_commit([noting], seconds=1.0)
    stored = storage.find("a")
    assert storage.notes(stored, "k:") == {"k:1": "one", "k:2": "two"}
    assert storage.notes(storage.find("b"), "k:") == {}
    found = study.group_commit(
        [lambda turn: (turn.read_note("k:1"), turn.read_note("k:9"))], keys=["k:1", "k:9"], seconds=1.0
    )
    assert found == [("one", None)]
    study.group_commit([lambda turn: turn.write_note("k:1", "another")], seconds=1.0)
    assert storage.notes(stored, "k:1") == {"k:1": "another"}
    assert other.group_commit([lambda turn: turn.read_note("k:1")], keys=["k:1"], seconds=1.0) == [None]
    storage.close()


def test_a_database_that_is_away_for_a_while(postgres):
    with Client(SqlStorage(postgres.url())) as client:
        client.put(AT, {"policy": plain(POLICY)})
        first = asked(client)
        postgres.stop()
        try:
            status, said = client.post(f"{AT}/decisions", {}, key="k")
            assert (status, said["error"]["kind"]) == (503, "storage")
            assert client.get("/readyz")[0] == 503
            assert client.get("/healthz")[0] == 200
        finally:
            postgres.start()
        assert client.get("/readyz")[0] == 200
        status, said = client.post(f"{AT}/decisions", {}, key="k")
        assert (status, said["decisions"][0]["number"]) == (201, 1)
        assert told(client, first, 1.0)[0] == 200


# -- threads -----------------------------------------------------------------------------------------------------------


def test_looks_that_take_long_leave_a_thread_for_other_tenants():
    storage = MemoryStorage()
    for name in ("shop", "other/shop"):
        nr.Study(POLICY, storage=storage, name=name)
    with Client(storage) as client:
        workers, go, begun = client.service.workers, threading.Event(), []

        def slow(study):
            begun.append(study)
            return go.wait(LONG)

        async def looks():
            worker = await workers.get("default", "shop")
            tasks = [asyncio.ensure_future(worker.read(slow)) for _ in range(20)]
            while len(begun) < client.service.settings.readers - 1:
                await asyncio.sleep(0.001)
            try:
                other = await asyncio.wait_for(
                    workers.get("other", "shop"), LONG
                )  # which is opened in such a thread, too
                seen = await asyncio.wait_for(other.read(lambda study: len(study.trials)), LONG)
            finally:
                go.set()
            return seen, len(begun), await asyncio.gather(*tasks)

        seen, held_meanwhile, done = client.run(looks())
    assert (seen, done) == (0, [True] * 20)
    assert held_meanwhile == 3


def test_tenants_take_turns():
    threads, go, order = TenantThreads(1, "test"), threading.Event(), []
    threads.submit("a", go.wait)
    for i in range(4):
        threads.submit("a", partial(order.append, f"a{i}"))
    for i in range(2):
        threads.submit("b", partial(order.append, f"b{i}"))
    futures = [threads.future("c", partial(int, text)) for text in ("7", "no")]
    gone = threads.future("c", partial(order.append, "nobody waits for this"))
    assert gone.cancel()
    go.set()
    threads.close(drop=False)
    assert order == ["a0", "b0", "a1", "b1", "a2", "a3"]
    assert futures[0].result() == 7
    with pytest.raises(ValueError, match="invalid literal"):
        futures[1].result()
    with pytest.raises(RuntimeError, match="closed"):
        threads.submit("a", go.wait)


def test_what_waits_is_dropped_where_that_is_wanted():
    threads, go, done = TenantThreads(2, "test", most=1), threading.Event(), []
    threads.submit("a", lambda: go.wait() and done.append("begun"))
    threads.submit("a", partial(done.append, "waits"))
    closing = threading.Thread(target=threads.close, kwargs={"drop": True})
    closing.start()
    while threads._waiting:
        closing.join(0.001)
    go.set()
    closing.join()
    assert done == ["begun"]


def test_an_explanation_that_several_ask_for_is_worked_out_once(client, monkeypatch):
    for _ in range(3):
        told(client, asked(client), 0.5)
    explain, begun, go = nr.Study.explain, [], threading.Event()

    def slow(study, number, **more):
        begun.append(number)
        assert go.wait(LONG)
        return explain(study, number, **more)

    monkeypatch.setattr(nr.Study, "explain", slow)

    async def all_at_once():
        asks = [asyncio.ensure_future(client.send("GET", f"{AT}/explain/{number}")) for number in (1, 1, 2, 1, 1)]
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        asks[0].cancel()  # who asked first goes away
        go.set()
        return await asyncio.gather(*asks[1:])

    found = client.run(all_at_once())
    assert [(status, said["number"]) for status, said in found] == [(200, 1), (200, 2), (200, 1), (200, 1)]
    assert sorted(begun) == [1, 2]
    assert client.get(f"{AT}/explain/1")[1] == found[0][1]
    assert client.get(f"{AT}/explain/9")[0] == 404
    assert sorted(begun) == [1, 1, 2, 9]
