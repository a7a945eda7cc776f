"""Nobody waits for what others decide: decisions are made before the transaction that records them, and in turns."""

import asyncio
import contextlib
import itertools
import math
import sqlite3
import threading

import pytest

import nilregret as nr
from nilregret.policy.plain_rounds import PlainRounds
from nilregret.policy.state import State
from nilregret.serve.wire.settings import Settings
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.storage import sqlite as files
from nilregret.study import replica as kept
from nilregret.study.transaction import Going

from .marks import nightly
from .service import AT, POLICY, Client, Clock, asked, plain, told
from .test_service_worker import held, wait_for

DATABASES = pytest.mark.parametrize("kind", ["sqlite", *nightly("postgresql")])


def opened(url):
    return nr.Study(POLICY, storage=url)


def taking(monkeypatch, *, slow, instant=False):
    """Decisions are taken to be slow ones, during which a copy of the state is kept, or quick or instant ones."""
    monkeypatch.setattr(kept, "QUICK", 0.0 if slow else math.inf)
    monkeypatch.setattr(kept, "INSTANT", math.inf if instant else 0.0)


def alone(count):
    return [trial.arm for trial in nr.Study(POLICY).ask(count=count)]


class Deciding:
    """Does something at every decision of one study, before it."""

    def __init__(self, monkeypatch, study, do):
        decide, play, self._within = State.decide, PlainRounds.play, False
        self.count = 0

        def first(state):
            if state is study.replica.state and not self._within:
                self._within, self.count = True, self.count + 1
                try:
                    do(self.count)
                finally:
                    self._within = False

        def decided(state, *given, **more):
            first(state)
            return decide(state, *given, **more)

        def played(rounds, context):
            first(rounds.state)
            return play(rounds, context)

        monkeypatch.setattr(State, "decide", decided)
        monkeypatch.setattr(PlainRounds, "play", played)


class Watched:
    """Whether a storage is in a transaction that writes."""

    def __init__(self, storage):
        self._writing, self.inside, self.count = storage.writing, 0, 0
        storage.writing = self

    @contextlib.contextmanager
    def __call__(self, study):
        with self._writing(study) as writer:
            self.inside, self.count = self.inside + 1, self.count + 1
            try:
                yield writer
            finally:
                self.inside -= 1


# -- before the transaction --------------------------------------------------------------------------------------------


def test_a_call_that_fails_takes_its_notes_back_and_no_other_s(tmp_path):
    study = opened(f"sqlite:///{tmp_path}/a.db")

    def noting(key, error=None):
        def act(transaction):
            transaction.write_note(key, "said")
            if error is not None:
                raise error
            return key

        return act

    acts = [noting("one"), noting("two", ValueError("no")), noting("three")]
    one, two, three = study.group_commit(acts, seconds=60.0)
    assert (one, str(two.error), three) == ("one", "no", "three")

    def known(transaction):
        return [transaction.read_note(key) for key in ("one", "two", "three")]

    assert study.group_commit([known], keys=("one", "two", "three"), seconds=60.0) == [["said", None, "said"]]


@DATABASES
def test_no_decision_that_takes_a_while_is_made_within_a_transaction(places, kind, monkeypatch):
    taking(monkeypatch, slow=False)
    storage = SqlStorage(places(kind)())
    watched, study = Watched(storage), opened(storage)
    seen = []
    Deciding(monkeypatch, study, lambda _: seen.append(watched.inside))
    study.tell(study.ask(), 0.5)
    study.ask(count=3)
    study.group_commit([lambda turn: turn.ask(None, None, None)] * 3, seconds=60.0)
    assert seen == [0] * 7
    assert watched.count == 4
    storage.close()


@DATABASES
@pytest.mark.parametrize("slow", [False, True])
def test_who_is_overtaken_decides_again(places, kind, slow, monkeypatch):
    url = places(kind)()
    taking(monkeypatch, slow=slow)
    left, right = opened(url), opened(url)
    right.tell(right.ask(), 0.3)
    Deciding(monkeypatch, left, lambda turn: turn == 1 and right.tell(right.ask(), 0.1))
    trial = left.ask()
    assert (trial.number, [t.state for t in left.trials]) == (2, ["observed", "observed", "pending"])
    lone = nr.Study(POLICY)
    for reward in (0.3, 0.1):
        lone.tell(lone.ask(), reward)
    assert trial.arm == lone.ask().arm
    again = nr.Study.open(storage=url)
    assert left.predict()[0].tobytes() == again.predict()[0].tobytes()
    assert [t.arm for t in again.trials] == [t.arm for t in lone.trials]


def test_who_is_overtaken_every_time_decides_within_the_transaction_at_last(places, monkeypatch):
    storage = SqlStorage(places("sqlite")())
    taking(monkeypatch, slow=True)
    watched, left, right = Watched(storage), opened(storage), opened(storage)
    within = []

    def overtake(_):
        within.append(watched.inside)
        if not watched.inside:
            right.ask()

    Deciding(monkeypatch, left, overtake)
    trial = left.ask()
    assert within == [0] * (kept.ATTEMPTS - 1) + [1]
    assert trial.number == kept.ATTEMPTS - 1
    assert [t.arm for t in left.trials] == alone(kept.ATTEMPTS)


def test_where_others_write_quick_decisions_are_made_within_at_once(places, monkeypatch):
    storage = SqlStorage(places("sqlite")())
    taking(monkeypatch, slow=False)
    watched, left, right = Watched(storage), opened(storage), opened(storage)
    within = []
    Deciding(monkeypatch, left, lambda turn: within.append(watched.inside) or (turn == 1 and right.ask()))
    left.ask()
    assert within == [0, 1]
    monkeypatch.setattr(left.replica, "_contention", 1)
    assert [left.ask().number for _ in range(2)] == [2, 3]
    assert within == [0, 1, 1, 0]  # nobody has written for a while
    assert [t.arm for t in left.trials] == alone(4)


def test_instant_calls_that_surely_write_run_within_at_once(places, monkeypatch):
    storage = SqlStorage(places("sqlite")())
    taking(monkeypatch, slow=False, instant=True)
    watched, left, right = Watched(storage), opened(storage), opened(storage)
    within = []
    Deciding(monkeypatch, left, lambda _: within.append(watched.inside))
    trial = left.ask()
    right.ask()
    assert [left.tell(trial, 0.5).reward, left.ask().number, right.tell(trial, 0.5).reward] == [0.5, 2, 0.5]
    assert within == [1, 1]
    assert list(left.trials) == list(right.trials) == list(nr.Study.open(storage=storage).trials)
    with pytest.raises(nr.errors.TrialError, match="told already"):
        left.tell(trial, 0.6)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_note_that_came_meanwhile_is_seen(places, kind, monkeypatch):
    taking(monkeypatch, slow=True)  # quick ones would be made within the transaction, where nobody else writes
    made = places(kind)()
    storage = made if isinstance(made, MemoryStorage) else SqlStorage(made)
    left, right = opened(storage), opened(storage)

    def once(turn, meanwhile=None):
        known = turn.read_note("k")
        if known is None:
            if meanwhile is not None:
                meanwhile()
            turn.write_note("k", str(turn.ask(None, None, None).number))
        return known

    overtaken = iter([lambda: right.group_commit([once], keys=["k"], seconds=60.0)])
    assert left.group_commit([lambda turn: once(turn, next(overtaken, None))], keys=["k"], seconds=60.0) == ["0"]
    only = iter([lambda: right.group_commit([lambda turn: turn.write_note("n", "right")], seconds=60.0)])

    def noting(turn):
        if turn.read_note("n") is None:
            next(only)()
            turn.write_note("n", "left")

    left.group_commit([noting], keys=["n"], seconds=60.0)  # no trial has changed, and still it is noticed
    assert storage.read_notes(storage.find("study"), ["k", "n"]) == {"k": "0", "n": "right"}
    assert len(left.trials) == 1


def test_a_call_that_says_nothing_new_writes_nothing(places, monkeypatch):
    taking(monkeypatch, slow=False, instant=True)
    storage = SqlStorage(places("sqlite")())
    study = opened(storage)
    trial = study.tell(study.ask(), 0.5)
    watched = Watched(storage)
    assert study.tell(trial, 0.5) == trial
    assert watched.count == 0
    assert study.replica._valid


# -- who reads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [False, True])
def test_who_reads_waits_for_no_other_program(tmp_path, monkeypatch, slow):
    path = tmp_path / "a.db"
    storage = SqlStorage(f"sqlite:///{path}")
    study = opened(storage)
    study.tell(study.ask(), 0.5)
    taking(monkeypatch, slow=slow)
    monkeypatch.setattr(kept, "PATIENCE", 0.0)
    before = study.predict()[0].tolist()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asks = threading.Thread(target=study.ask, daemon=True)
        asks.start()
        while not study.replica._uncommitted:
            asks.join(0.001)
        assert len(study.trials) == 1  # what waits is not there yet
        assert study.predict()[0].tolist() == before
        assert storage.names() == ["study"]
        assert asks.is_alive()
        other.execute("ROLLBACK")
    asks.join(60.0)
    assert [t.arm for t in study.trials] == [*alone(1), study.trials[1].arm]
    assert len(study.trials) == 2
    again = nr.Study.open(storage=f"sqlite:///{path}")
    assert list(again.trials) == list(study.trials)
    assert again.replica.state.envelope().mean.tobytes() == study.replica.state.envelope().mean.tobytes()


def test_a_server_whose_file_is_held_answers_who_looks(tmp_path):
    path = tmp_path / "a.db"
    with Client(SqlStorage(f"sqlite:///{path}")) as client:
        client.put(AT, {"policy": plain(POLICY)})
        client.put("/v1/studies/closed", {"policy": plain(POLICY)})
        told(client, asked(client), 0.5)

    with Client(SqlStorage(f"sqlite:///{path}")) as client, contextlib.closing(sqlite3.connect(path)) as other:
        client.service.prepare()
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        for address in ("/readyz", "/v1/studies", AT, f"{AT}/predict", "/v1/studies/closed"):
            assert client.get(address)[0] == 200, address

        async def later():
            asks = asyncio.ensure_future(client.send("POST", f"{AT}/decisions", {}))
            worker = await client.service.workers.get("default", "shop")
            while not worker.study.replica._uncommitted:
                await asyncio.sleep(0.001)
            looked = await client.send("GET", f"{AT}/predict")
            other.execute("ROLLBACK")
            return looked[0], (await asks)[0]

        assert client.run(later()) == (200, 201)


def test_connections_of_readers_are_kept_and_closed(tmp_path):
    storage = SqlStorage(f"sqlite:///{tmp_path}/a.db")
    readers = storage._database._readers
    opened(storage)
    with storage._database.transaction(write=False), storage._database.transaction(write=False):
        pass
    assert len(readers._idle) == 2
    with storage._database.transaction(write=False):
        storage.close()  # another thread may be reading
    assert readers._idle == []
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize(("write", "name"), [(False, "_begin"), (True, "_begin"), (True, "begin_again")])
def test_an_interrupt_at_the_return_of_begin_leaves_no_transaction_open(tmp_path, monkeypatch, write, name):
    storage = SqlStorage(f"sqlite:///{tmp_path}/a.db")
    study = opened(storage)
    if name == "_begin":
        storage.close()
    begin = getattr(files.SqliteConnection, name)

    def interrupted(self, **more):
        begin(self, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(files.SqliteConnection, name, interrupted)
        with pytest.raises(KeyboardInterrupt), storage._database.transaction(write=write):
            pass
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=0.0)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert study.ask().number == 0


def test_an_interrupt_before_a_transaction_gives_the_connection_to_a_server_back(postgres):
    storage = SqlStorage(postgres.url())
    database = storage._database
    connect = database.engine.connect

    class Interrupting:
        """A connection whose first statement is interrupted when it is done."""

        def __init__(self):
            self._made = connect()
            self.connection = self

        def __getattr__(self, name):
            return getattr(self._made, name)

        def cursor(self):
            return self

        def execute(self, statement, parameters=None):
            self._made.connection.cursor().execute(statement, parameters)
            raise KeyboardInterrupt

    database.engine = type("Engine", (), {"connect": staticmethod(Interrupting), "dialect": database.engine.dialect})
    with pytest.raises(KeyboardInterrupt):
        storage.names()
    database.engine = connect.__self__
    assert database.engine.pool.checkedout() == 0
    assert storage.names() == []
    storage.close()


# -- in turns ----------------------------------------------------------------------------------------------------------


def settings(**more):
    return Settings(turn_seconds=1e-9, **more)


def test_many_decisions_are_made_in_as_many_turns_as_they_take():
    storage = MemoryStorage()
    watched = Watched(storage)
    with Client(storage, settings=settings(writers=1)) as client:
        client.put(AT, {"policy": plain(POLICY)})
        watched.count = 0  # the audit log has who made it
        nr.Study(POLICY, storage=storage, name="other/calm")
        go, order = held(client), itertools.count()

        async def one(call):
            status, said = await call
            return status, next(order), said

        async def limit():
            tasks = [asyncio.ensure_future(one(client.send("POST", f"{AT}/decisions", {"count": 9})))]
            await wait_for(client, shop=1)
            tasks.append(asyncio.ensure_future(one(client.send("POST", f"{AT}/decisions", {"count": 2}))))
            await wait_for(client, shop=2)
            worker = await client.service.workers.get("other", "calm")
            from nilregret.serve.wire.decision_ids import IdempotentRequest
            from nilregret.serve.wire.messages import DecisionRequest
            from nilregret.serve.work.commands import Decide

            async def calm():
                done = await worker.run(Decide(DecisionRequest(), IdempotentRequest(None, ""), 100))
                return 201, {"decisions": [{"number": t.number} for t in done.trials]}

            tasks.append(asyncio.ensure_future(one(calm())))
            while not worker._queue:
                await asyncio.sleep(0.001)
            go.set()
            return await asyncio.gather(*tasks)

        (many, last, said), (few, second, _), (calm, first, _) = client.run(limit())
        assert (many, few, calm) == (201, 201, 201)
        assert first < second < last
        assert len(said["decisions"]) == 9
        assert watched.count == 9 + 2 + 1
        assert [t.arm for t in client.run(client.service.workers.get("default", "shop")).study.trials] == alone(11)


def test_a_request_that_was_broken_off_goes_on_where_it_stopped(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    body = {"count": 5, "client": "w"}
    with Client(SqlStorage(url), settings=settings()) as client:
        client.put(AT, {"policy": plain(POLICY)})

        async def broken_off():
            worker = await client.service.workers.get("default", "shop")
            asks = asyncio.ensure_future(client.send("POST", f"{AT}/decisions", body, key="k"))
            while len(worker.study.trials) < 2:
                await asyncio.sleep(0.001)
            asks.cancel()
            await asyncio.gather(asks, return_exceptions=True)
            while worker._running:
                await asyncio.sleep(0.001)
            return len(worker.study.trials)

        some = client.run(broken_off())
    with Client(SqlStorage(url), settings=settings()) as client:
        status, said = client.post(f"{AT}/decisions", body, key="k")
        assert (status, [each["number"] for each in said["decisions"]]) == (201, list(range(5)))
        assert some <= 5
        assert client.post(f"{AT}/decisions", body, key="k")[1] == said
        assert client.post(f"{AT}/decisions", {"client": "w"})[1]["decisions"] == said["decisions"]
        assert client.post(f"{AT}/decisions", {"count": 4}, key="k")[0] == 422


def test_two_servers_may_go_on_with_one_request(tmp_path):
    """Each does a part in each turn; in the end both have the same answer."""
    storage = SqlStorage(f"sqlite:///{tmp_path}/a.db")
    left, right = (nr.Study(POLICY, storage=storage) for _ in range(2))
    from nilregret.serve.wire.decision_ids import IdempotentRequest
    from nilregret.serve.wire.messages import DecisionRequest
    from nilregret.serve.work.commands import Decide
    from nilregret.serve.work.workers import StudyWorker

    body = DecisionRequest(count=6, propensity=True)
    call = Decide(body, IdempotentRequest.of("decisions", "k", body), 100)
    workers = [
        StudyWorker("default", "s", each, storage.find("study"), Settings(), None, None) for each in (left, right)
    ]
    acts = [call.prepare(worker) for worker in workers]
    done, turn = [None, None], itertools.cycle([0, 1])
    while None in done:
        at = next(turn)
        (found,) = workers[at].study.group_commit([acts[at]], keys=call.note_keys(workers[at]), seconds=0.0)
        if isinstance(found, Going):
            acts[at] = found.then
        else:
            done[at] = found
    assert [[t.number for t in each.trials] for each in done] == [list(range(6))] * 2
    assert len(left.trials) == 6
    assert done[0].propensities is None  # some were decided elsewhere: a replay says how probable they were
    assert all(each.alike for each in done)


def test_propensities_of_a_request_in_turns():
    with Client(MemoryStorage(), settings=settings()) as client:
        client.put(AT, {"policy": plain(POLICY)})
        _, said = client.post(f"{AT}/decisions", {"count": 3, "propensity": True})
        with Client(MemoryStorage()) as other:
            other.put(AT, {"policy": plain(POLICY)})
            _, whole = other.post(f"{AT}/decisions", {"count": 3, "propensity": True})
        assert [d["propensity"] for d in said["decisions"]] == [d["propensity"] for d in whole["decisions"]]


def test_what_ends_at_its_deadline_ends_in_turns_too(monkeypatch):
    monkeypatch.setattr(kept, "BATCH", 2)
    clock, storage = Clock(), MemoryStorage()
    with Client(storage, settings=settings(), clock=clock) as client:
        client.put(AT, {"policy": plain(POLICY), "deadline": 5, "on_deadline": "fail"})
        decisions = client.post(f"{AT}/decisions", {"count": 5})[1]["decisions"]
        clock.now += 10
        watched = Watched(storage)
        status, said = told(client, decisions[4], 1.0)
        assert (status, said["late"], said["counted"]) == (200, True, False)  # the rule came first, to all of them
        assert watched.count == 2 + 5  # they are given up by two, then told one by one; the answer comes with the last
        trials = client.run(client.service.workers.get("default", "shop")).study.trials
        assert [t.state for t in trials] == ["failed"] * 5
