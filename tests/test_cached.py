"""The cached state of a study: it saves the replay, to the bit, and is never believed where anything differs."""

import json
import sqlite3
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from click.testing import CliRunner

import noregret as nr
from noregret import image
from noregret.cli import main
from noregret.serve import keeping
from noregret.storage import MemoryStorage, SqlStorage
from noregret.study import cached, program
from noregret.study.goal import begun
from noregret.study.standing import standing
from noregret.testing.base import same
from noregret.testing.driver import Driver
from tests.composition import fillings
from tests.conformance.test_policies import TRACED
from tests.extending import mine

from .service import AT, Client, asked, plain, told

ROUNDS, MORE = 9, 3
PLACES = ("arms", "box", "arms under contexts of a box", "space")


def policies():
    """Every named algorithm, and every filling on one of the domains, in turn, that it goes with."""
    yield from ((name, make(domain=nr.Arms.grid(0, 1, 20))) for name, make in TRACED.items())
    yield from ((where, fillings.base(where)) for where in PLACES)
    for i, filling in enumerate(filling for filling in fillings.FILLINGS if filling.slot != "domain"):
        for where in (*PLACES[i % 4 :], *PLACES[: i % 4]):
            try:
                yield f"{filling.slot}, {filling.name}, {where}", filling.put(fillings.base(where), "")
            except nr.InvalidInput:  # tests/composition has which are refused, and why
                continue
            break


POLICIES = dict(policies())


def imaged(study):
    kept = study._kept
    return image.write(kept.state, anchors=image.Anchors(study.policy).way, trials=kept.record, most=cached.MOST)


def restored(study, content):
    return image.read(content, anchors=image.Anchors(study.policy).at, trials=study._kept.record, most=cached.MOST)


@pytest.mark.parametrize("name", POLICIES)
def test_goes_on_as_if_it_had_never_been_written(name):
    """Late answers, none, failures, contexts and constraints: see `Driver`; the restored one is imaged again."""
    driver = Driver(POLICIES[name], seed=0, reward=None)
    live = driver.play(driver.study(), 0, ROUNDS)
    content = imaged(live)
    again = driver.play(driver.study(), 0, ROUNDS)
    again._kept.state = restored(again, content)
    assert imaged(again) == content
    replayed = driver.play(driver.study(storage=MemoryStorage()), 0, ROUNDS)
    replayed._kept.rebuild()
    for study in (live, again, replayed):
        study.quiet = True
        driver.play(study, ROUNDS, ROUNDS + MORE)
    seen = driver.seen(live, ROUNDS + MORE)
    assert same(seen, driver.seen(again, ROUNDS + MORE))
    assert same(seen, driver.seen(replayed, ROUNDS + MORE))
    assert list(live.trials) == list(again.trials) == list(replayed.trials)


def test_every_filling_has_its_turn():
    names = " ".join(POLICIES)
    assert all(filling.name in names for filling in fillings.FILLINGS if filling.slot != "domain")


# -- in a storage ------------------------------------------------------------------------------------------------------

SPACE = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
SEARCH = nr.PointSearch(candidates=8, around=4, starts=1, evaluations=2)
ARMS = nr.gp_ucb(nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.2), noise=0.3, refit=nr.Refit(every=8, restarts=0))
POINTS = nr.gp_ucb(SPACE, nr.Matern(2.5, (0.3, 0.3, 0.3)), noise=0.3, search=SEARCH, pending="hallucinate")


def played(study, rounds):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, float(np.sin(7.0 * trial.point[0]) + 0.1 * np.cos(50.0 * trial.number)))
    return study


def opened(storage):
    """The study, and how many events it had from the cached state and how many it took in."""
    study = nr.Study.open(storage=storage)
    return study, study._kept.cache.found_at, study._kept.replayed


def check_equal(one, storage):
    """An open study goes on as one that replays the record of a storage, to the bit; takes away its state."""
    SqlStorage(storage).drop_state(one._kept.place.study)
    other, found, replayed = opened(storage)
    assert found == 0 < replayed
    points = other._kept.record[0].point[None], other._kept.record[3].point[None]
    for _ in range(2):
        for point in points:
            assert same(one._look().envelope(point).mean, other._look().envelope(point).mean)
            assert same(one._look().envelope(point).upper, other._look().envelope(point).upper)
        here, there = (study._kept.state.decide() for study in (one, other))
        assert same(here.point, there.point)
        played(one, 1)
        other._kept.sync()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, places):
    return places(request.param)()


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.parametrize("policy", [ARMS, POINTS], ids=["arms", "points"])
def test_what_is_asked_and_told_later_comes_after(policy, goal, url):
    """The state in the storage is of some events: the later ones, and they alone, are taken in."""
    study = played(nr.Study(policy, goal=goal, seed=3, storage=url), 12)
    late = study.ask()
    assert study._kept.keep_state().kept
    played(study, 3)
    study.tell(late, 0.25)
    study.abandon(study.ask(), "its worker is gone")
    again, found, replayed = opened(url)
    assert (found, replayed) == (25, 9)
    check_equal(again, url)


def test_a_study_is_kept_where_its_replay_took_long(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/s.db"
    played(nr.Study(ARMS, storage=url), 12)
    assert opened(url)[1:] == (0, 24)
    assert opened(url)[1:] == (0, 24)  # quick: it is not worth a row
    monkeypatch.setattr(cached, "WORTH", 0.0)
    assert opened(url)[1:] == (0, 24)
    assert opened(url)[1:] == (24, 0)
    monkeypatch.setattr(cached, "FEWEST", 25)
    assert opened(url)[1:] == (0, 24)


def test_what_was_corrected_before_is_in_it_and_what_is_corrected_after_is_a_replay(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = played(nr.Study(ARMS, seed=1, storage=url), 12)
    study.tell(4, 2.0, revise=True)
    assert study._kept.keep_state().kept
    played(study, 2)
    again, found, replayed = opened(url)
    assert (found, replayed) == (25, 4)
    again.tell(5, -2.0, revise=True)
    assert opened(url)[1] == 0
    assert (
        study._kept.place.storage.state(study._kept.place.study, key=study._kept.cache._key, most=cached.MOST) is None
    )
    check_equal(study, url)


def test_the_state_of_more_events_stays(url):
    study = played(nr.Study(ARMS, storage=url), 12)
    early = study._kept.cache.made(study._kept.state, study._kept.record)
    assert played(study, 1)._kept.keep_state().kept
    outcome = study._kept.cache.keep(early)
    assert not outcome.kept
    assert "a later one" in outcome.why
    assert opened(url)[1:] == (26, 0)


def test_it_goes_with_the_study(url):
    study = played(nr.Study(ARMS, storage=url), 12)
    study._kept.keep_state()
    storage = SqlStorage(url)
    storage.rename("study", "other")
    assert nr.Study.open(storage=url, name="other")._kept.replayed == 0
    stored = storage.find("other")
    storage.delete("other")
    assert not storage.drop_state(stored)


@pytest.mark.parametrize("change", [{"program": "another version"}, {"seed": 8}, {"policy": ARMS.using(noise=0.2)}])
def test_another_program_seed_or_policy_has_another_key(change):
    storage = MemoryStorage()
    study = played(nr.Study(ARMS, seed=7, storage=storage), 12)
    given = {"policy": ARMS, "seed": 7, "program": "this one"} | change
    caches = [
        cached.Cache(
            it["policy"], "maximize", it["seed"], storage, study._kept.place.study, lambda it=it: it["program"]
        )
        for it in ({"policy": ARMS, "seed": 7, "program": "this one"}, given)
    ]
    assert caches[0].keep(caches[0].made(study._kept.state, study._kept.record)).kept
    fresh = begun(ARMS, "maximize", seed=7)
    assert caches[0].found(study._kept.record, fresh)[1] == 24
    assert caches[1].found(study._kept.record, fresh) is None
    assert caches[0].found(study._kept.record, fresh)[1] == 24  # which others may want


def test_a_program_whose_code_changed_while_it_ran_keeps_nothing(tmp_path):
    module = tmp_path / "part.py"
    module.write_text("a = 1\n")
    later = module.stat().st_ctime + 1.0
    one = program.code(tmp_path, before=later)
    assert one == program.code(tmp_path, before=later)
    assert program.code(tmp_path, before=later - 2.0) is None
    module.write_text("a = 2\n")
    assert program.code(tmp_path, before=module.stat().st_ctime + 1.0) != one
    storage = MemoryStorage()
    study = played(nr.Study(ARMS, storage=storage), 12)
    cache = cached.Cache(ARMS, "maximize", 0, storage, study._kept.place.study, lambda: None)
    assert not cache.keep(cache.made(study._kept.state, study._kept.record)).kept


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS"])
def test_whatever_says_how_many_threads_share_a_sum_counts(name, monkeypatch):
    monkeypatch.delenv(name, raising=False)
    before = program._machine()
    monkeypatch.setenv(name, "3")
    assert program._machine() != before


def test_a_part_of_ones_own_has_no_cached_state(tmp_path):
    """Its code is nowhere that could be looked at: a change of it would go unnoticed."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = played(nr.Study(ARMS.using(refit=None, memory=mine.GrowingWindow(least=5)), storage=url), 12)
    outcome = study._kept.keep_state()
    assert (outcome.kept, outcome.hopeless) == (False, True)
    assert "not the library's" in outcome.why
    assert opened(url)[1:] == (0, 24)


def test_a_script_that_runs_has_none(tmp_path):
    """A generator: nobody can see where it is."""
    policy = nr.admmbo(nr.Box([0.0], [1.0]), first=(3, 4), more=(2, 2), candidates=20)
    study = nr.Study(policy, storage=f"sqlite:///{tmp_path}/s.db")
    for _ in range(12):
        study.tell(study.ask(), 0.5, constraints=[-1.0])
    assert "generator" in study._kept.keep_state().why


def test_one_that_is_too_large_is_not_kept(tmp_path, monkeypatch):
    study = played(nr.Study(ARMS, storage=f"sqlite:///{tmp_path}/s.db"), 12)
    monkeypatch.setattr(cached, "MOST", 5000)
    outcome = study._kept.keep_state()
    assert (outcome.kept, outcome.hopeless, outcome.why) == (False, True, "no image can be made: too large")


def test_a_storage_that_cannot_be_written_to_is_no_error(tmp_path):
    path = tmp_path / "s.db"
    study = played(nr.Study(ARMS, storage=f"sqlite:///{path}"), 12)
    study._kept.keep_state()
    study.close()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER no BEFORE UPDATE ON states BEGIN SELECT RAISE(ABORT, 'read-only'); END")
    played(study, 1)
    outcome = study._kept.keep_state()
    assert not outcome.kept
    assert "read-only" in outcome.why
    assert opened(f"sqlite:///{path}")[1:] == (24, 2)


def test_another_process_begins_with_it(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    study = played(nr.Study(POINTS, seed=5, storage=url), 12)
    study._kept.keep_state()
    played(study, 1)
    script = """
        import sys, noregret as nr
        study = nr.Study.open(storage=sys.argv[1])
        print(study._kept.cache.found_at, study._kept.replayed, study._kept.state.decide().point.tobytes().hex())
    """
    command = [sys.executable, "-c", textwrap.dedent(script), url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["24", "2", study._kept.state.decide().point.tobytes().hex()]


# -- in a service ------------------------------------------------------------------------------------------------------


def served(client, rounds):
    for _ in range(rounds):
        told(client, asked(client), 0.5)


def test_a_service_keeps_what_it_has_worked_for(tmp_path):
    """The second server takes in what came after the state that the first one kept; at its end it keeps another."""
    url = f"sqlite:///{tmp_path}/s.db"
    with Client(SqlStorage(url)) as one:
        one.put(AT, {"policy": plain(ARMS), "seed": 3})
        served(one, 15)
        desk = one.run(one.service.desks.of("default", "shop"))
        stored = desk.stored
        assert desk.keeping.worked(0.0) is False
        assert desk.keeping.worked(cached.WORTH)
        assert desk.keeping.worked(cached.WORTH) is False  # it is under way
        desk.keeping.keep()
        said = one.get("/metrics")[1].decode()
        assert 'noregret_process_states_total{kept="yes",study="shop",tenant="default"} 1.0' in said
        served(one, 2)
        assert one.service.storage.find(stored.name) == stored
    with Client(SqlStorage(url)) as two:
        desk = two.run(two.service.desks.of("default", "shop"))
        kept = desk.study._kept
        assert (kept.cache.found_at, kept.replayed) == (30, 4)
        assert desk.keeping.worked(cached.WORTH) is False  # it has not grown by a quarter
    assert nr.Study.open(storage=url, name=stored.name)._kept.replayed == 0  # kept when the service ended


def test_a_turn_that_took_long_keeps_the_state_by_itself(monkeypatch):
    monkeypatch.setattr(keeping, "WORTH", 0.0)
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(ARMS), "seed": 3})
        served(client, 15)
        stored = client.run(client.service.desks.of("default", "shop")).stored
    assert nr.Study.open(storage=client.service.storage, name=stored.name)._kept.cache.found_at >= 20


# -- for people --------------------------------------------------------------------------------------------------------


def command(*args, code=0):
    result = CliRunner().invoke(main, ["state", *args])
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_line_shows_it_checks_it_and_throws_it_away(tmp_path):
    path = str(tmp_path / "s.db")
    study = played(nr.Study(ARMS, storage=f"sqlite:///{path}"), 12)
    assert "No state of study 'study' is kept that could be used here" in command(path, "study")
    study._kept.keep_state()
    played(study, 1)
    assert "24 of 26 events are in the state that is kept. It is what a replay" in command(path, "study", "--check")
    assert json.loads(command(path, "study", "--json")) == {
        "events": 24, "of": 26, "why": "", "equal": None, "dropped": False,
    }  # fmt: skip
    assert command(path, "study", "--drop").endswith("It has been thrown away.\n")
    assert opened(f"sqlite:///{path}")[1:] == (0, 26)


def test_a_made_up_state_is_found_out(tmp_path):
    """With the right hashes: what is believed of an arm is a little more than its answers say."""
    path = str(tmp_path / "s.db")
    study = played(nr.Study(ARMS, storage=f"sqlite:///{path}"), 12)
    other = played(nr.Study(ARMS, storage=MemoryStorage()), 12)
    state = other._kept.state
    state._ledger.belief.revise(state._engine.entry(study.trials[0]), 0.1, 0.2)
    cache = study._kept.cache
    assert cache.keep(cache.made(state, study._kept.record)).kept
    assert opened(f"sqlite:///{path}")[1:] == (24, 0)
    assert "It is NOT what a replay gives" in command(path, "study", "--check", code=1)
    assert opened(f"sqlite:///{path}")[1:] == (0, 24)


def test_others_may_look_and_decide_meanwhile(tmp_path):
    """Whatever moment it is made at, it is of that moment: what it is made of does not change meanwhile."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = played(nr.Study(POINTS, storage=url), 4)
    end = threading.Event()
    point = study.trials[0].settings

    def look():
        while not end.is_set():
            study.predict(dict(point))

    looking = threading.Thread(target=look)
    deciding = threading.Thread(target=played, args=(study, 12))
    looking.start()
    deciding.start()
    while deciding.is_alive():
        study._kept.keep_state()
        replayed, found, _ = opened(url)
        if found:
            assert standing(replayed._kept, check=True).equal
    deciding.join()
    end.set()
    looking.join()
