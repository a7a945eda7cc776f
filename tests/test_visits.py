"""Who visits: events, units, sticky arms and facts of decisions, on record and back."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

import nilregret as nr
from nilregret.errors import NoRegretError, StorageError, TrialError

ARMS = nr.Arms(range(4))


class Clock:
    def __init__(self):
        self.now = 1e9

    def __call__(self):
        return self.now


def study_of(storage=None, *, context=None, clock=None, **more):
    policy = nr.auto(ARMS, reward="bernoulli", context=context)
    return nr.Study(policy, seed=3, storage=storage, propensities=True, clock=clock or Clock(), **more)


@pytest.fixture(params=["memory", "kept", "sqlite"])
def storage(request, tmp_path):
    kept = nr.storage.MemoryStorage() if request.param == "kept" else None
    return f"sqlite:///{tmp_path}/visits.db" if request.param == "sqlite" else kept


def test_a_unit_keeps_its_arm_and_its_propensity(storage):
    study = study_of(storage, sticky=True)
    first = [study.ask(unit=f"user-{i}") for i in range(8)]
    study.tell_many([(trial, trial.number % 2) for trial in first])
    again = [study.ask(unit=f"user-{i}") for i in reversed(range(8))]
    assert [trial.arm for trial in again] == [trial.arm for trial in reversed(first)]
    assert [trial.unit for trial in first] == list(range(8))
    assert [(trial.unit, trial.kept) for trial in again] == [(i, i) for i in reversed(range(8))]
    assert [trial.propensity for trial in again] == [trial.propensity for trial in reversed(first)]
    assert "Kept for the unit: the choice of trial 7." in study.explain(8).why
    assert study.ask().visit is None


def test_a_unit_keeps_its_arm_for_a_time_and_while_it_may_be_played(storage):
    clock = Clock()
    study = study_of(storage, sticky=timedelta(minutes=1), clock=clock)
    first = study.ask(unit="a")
    clock.now += 60.0
    assert study.ask(unit="a").kept == 0
    clock.now += 1.0
    later = study.ask(unit="a")
    assert (later.kept, later.unit) == (None, 0)
    assert study.ask(unit="a").kept == later.number
    free = study.ask(unit="a", exclude=[later.arm])
    assert free.kept is None
    assert free.arm != later.arm
    study.retire_arm(free.arm)
    assert study.ask(unit="a").kept is None
    assert first.unit == 0


def test_without_sticky_a_unit_only_belongs_together(storage):
    study = study_of(storage)
    trials = [study.ask(unit="a") for _ in range(3)]
    assert [(trial.unit, trial.kept) for trial in trials] == [(0, None)] * 3


def test_a_forgotten_unit_is_a_new_one(storage):
    study = study_of(storage, sticky=True)
    study.ask(unit="a")
    assert study.forget("a")
    assert not study.forget("a")
    assert not study.forget("b")
    fresh = study.ask(unit="a")
    assert (fresh.unit, fresh.kept) == (1, None)


def test_no_name_of_a_unit_is_in_the_file(tmp_path):
    study = study_of(f"sqlite:///{tmp_path}/visits.db", sticky=True)
    study.ask(unit="ada@example.org")
    study.close()
    with closing(sqlite3.connect(tmp_path / "visits.db")) as file, file:
        dump = "\n".join(file.iterdump())
    assert "ada@" not in dump
    assert "unit-key" in dump
    other = nr.Study.open(storage=f"sqlite:///{tmp_path}/visits.db", clock=Clock())
    assert other.about["sticky"] is True
    assert other.ask(unit="ada@example.org").kept == 0
    assert other.forget("ada@example.org")
    with closing(sqlite3.connect(tmp_path / "visits.db")) as file, file:
        assert file.execute("SELECT count(*) FROM notes WHERE key LIKE 'unit:%'").fetchone() == (0,)


def test_two_handles_share_units_and_events(tmp_path):
    url = f"sqlite:///{tmp_path}/visits.db"
    one, two = study_of(url, sticky=True), study_of(url, sticky=True)
    first = one.ask(unit="a", event="e-1")
    assert two.ask(unit="a").kept == 0
    assert two.ask(event="e-1").number == first.number == 0
    assert two.tell("e-1", 1.0).number == 0
    assert one.trials[0].reward == 1.0
    assert one.ask(unit="b").unit == 2
    assert two.ask(unit="b").kept == 2


def test_an_event_names_one_decision(storage):
    study = study_of(storage, context=nr.Space(hour=nr.Float(0, 24)))
    trial = study.ask({"hour": 3}, event="order-1", facts={"page": "cart", "items": 3, "vip": True})
    assert study.ask({"hour": 3}, event="order-1").number == trial.number
    assert len(study.trials) == 1
    assert (trial.event, trial.facts) == ("order-1", {"page": "cart", "items": 3, "vip": True})
    with pytest.raises(TrialError, match="is trial 0 already, under another context"):
        study.ask({"hour": 4}, event="order-1")
    assert study.tell("order-1", 1.0).reward == 1.0
    with pytest.raises(TrialError, match="There is no trial 'order-2'"):
        study.tell("order-2", 1.0)


def test_a_study_with_visits_replays_and_reads_back(tmp_path):
    url, clock = f"sqlite:///{tmp_path}/visits.db", Clock()
    plain, kept = study_of(clock=clock, sticky=20.0), study_of(url, clock=clock, sticky=20.0)
    for study in (plain, kept):
        clock.now = 1e9
        for i in range(60):
            clock.now += 1.0
            trial = study.ask(unit=f"u{i % 7}", event=f"e{i}", facts={"i": i})
            study.tell(trial, float(trial.arm == i % 3))
    again = nr.Study.open(storage=url, clock=clock)
    assert list(again.trials) == list(kept.trials) == list(plain.trials)
    assert sum(trial.kept is not None for trial in again.trials) > 10
    assert again.ask() == plain.ask()
    rows = [*again.to_pandas().to_dict("records")]
    assert {"event", "unit", "kept", "facts.i"} <= rows[0].keys()


def test_a_kept_trial_costs_no_fit_and_no_decision():
    arms, kernel = nr.Arms.grid(0, 1, 20), nr.SquaredExponential(0.2)
    policy = nr.gp_ucb(arms, kernel, noise=0.1).using(refit=nr.slots.Refit())
    studies = [nr.Study(policy, sticky=True, clock=Clock()) for _ in range(2)]
    for study in studies:
        for i in range(30):
            trial = study.ask(unit=f"u{i % 3}" if i > 15 else None)
            study.tell(trial, float(trial.point[0]))
    assert list(studies[0].trials) == list(studies[1].trials)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unit": 17}, "`unit` is 17: it must be a text of 1 to 200 characters, such as 'user-17'"),
        ({"event": ""}, "`event` is ''"),
        ({"event": "a" * 201}, "`event` is 'a"),
        ({"facts": [1]}, "`facts` is \\[1\\]: it must be a dict of at most 20 facts"),
        ({"facts": {"a": [1]}}, "`facts` has 'a': \\[1\\]. A fact is a finite number"),
        ({"facts": {"a": float("nan")}}, "`facts` has 'a': nan"),
        ({"event": "a", "count": 2}, "`event` names one decision, and `count` asks for 2"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(given, said):
    with pytest.raises(nr.errors.InvalidInput, match=said):
        study_of().ask(**given)


def test_sticky_is_a_time():
    with pytest.raises(nr.errors.InvalidInput, match="`sticky` is -1"):
        study_of(sticky=-1)
    assert study_of(sticky=3600).about["sticky"] == 3600.0


def test_a_damaged_visit_is_refused(tmp_path):
    study = study_of(f"sqlite:///{tmp_path}/visits.db", sticky=True)
    for i in range(3):
        study.ask(unit="a", event=f"e{i}")
    study.close()
    for text in ('{"kept": 9}', '{"unit": "a"}', '{"event": "e0"}', "[]", '{"slate": 1}'):
        with closing(sqlite3.connect(tmp_path / "visits.db")) as file, file:
            file.execute("UPDATE trials SET visit = ? WHERE number = 2", (text,))
        with pytest.raises(StorageError, match=r"Trial 2 .*has been damaged"):
            nr.Study.open(storage=f"sqlite:///{tmp_path}/visits.db")


def test_a_database_without_visits_gets_them_once_it_is_opened(tmp_path):
    url = f"sqlite:///{tmp_path}/visits.db"
    study = study_of(url)
    study.tell(study.ask(), 1.0)
    known = list(study.trials)
    study.close()
    with closing(sqlite3.connect(tmp_path / "visits.db")) as file, file:
        file.execute("ALTER TABLE trials DROP COLUMN visit")
    again = nr.Study.open(storage=url, clock=Clock())
    assert list(again.trials) == known
    assert again.ask(unit="a", event="e").unit == 1


def test_a_unit_keeps_its_point_of_a_space_while_the_space_has_it():
    study = nr.Study(nr.auto(nr.Space(price=nr.Float(1, 9))), seed=0, sticky=True, clock=Clock())
    first = study.ask(unit="a")
    assert study.ask(unit="a").parameters == first.parameters
    assert study.ask(unit="a", among=[{"price": 2.0}]).kept is None
    assert study.ask(unit="a", among=[{"price": 2.0}, {"price": 3.0}]).kept == 2
    study.widen(price=nr.Float(3, 9))
    assert study.ask(unit="a").kept is None


def test_a_unit_keeps_no_arm_that_nothing_certifies():
    """Another context may be another constraint, and values told later may refute what was certified (`Safe`)."""
    arms, days = nr.Space(x=nr.Float(0, 10)).grid(11), nr.Space(day=nr.Choice("mon", "sun"))
    part = nr.Safe(start=[{"x": 0}], slope={"x": 1.0}, noise=0.0, caution=1.0)
    kernel = nr.kernel_for(arms, context=days)
    study = nr.Study(nr.gp_ucb(arms, kernel, noise=0.1, context=days, constraints=part), seed=0, sticky=True)
    study.add({"x": 0}, 0.0, constraints=[-5.0], context={"day": "mon"})
    first = study.ask({"day": "mon"}, unit="a")
    study.tell(first, first.parameters["x"], constraints=[first.parameters["x"] - 5.0])
    assert first.parameters["x"] > 0.0
    assert study.ask({"day": "mon"}, unit="a").kept == first.number
    other = study.ask({"day": "sun"}, unit="a")
    assert (other.kept, other.parameters["x"]) == (None, 0.0)
    study.add({"x": 5}, 0.0, constraints=[3.0], context={"day": "mon"})
    with pytest.raises(NoRegretError, match="refute the certificate"):
        study.ask({"day": "mon"}, unit="a")
