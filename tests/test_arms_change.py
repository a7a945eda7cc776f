"""Arms that are added to a running study, retired, brought back and described."""

import contextlib
import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import nilregret as nr
from nilregret.client import Client as Remote
from nilregret.evaluation.studies import log_of_study
from nilregret.gp.context_bank import ContextPosterior, numbers_held
from nilregret.gp.linear_model import Candidate
from nilregret.kernels import Empirical
from nilregret.slots.envelope import FiniteBayes
from nilregret.slots.scores import RandomisedBound
from nilregret.storage import MemoryStorage
from nilregret.study.direction import state_after
from nilregret.study.replica import Replica
from nilregret.study.transaction import Failed
from nilregret.testing.serving import Serving

from .marks import nightly, thinned
from .service import Client, plain
from .test_operate import data, run

X = np.random.default_rng(3).uniform(size=(8, 2))
ARMS, K = nr.Arms(X), nr.SquaredExponential(0.4)
NEW = np.array([[0.5, 1.3], [0.9, 0.1]])  # the first outside of the range of the others
CONTEXTS = nr.Arms([[0.0], [1.0]])
UCB = nr.gp_ucb(ARMS, K, noise=0.1)
SPACE = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))


def told(policy, trial):
    """A reward of the trial, and its constraint values."""
    y = math.sin(4.0 * trial.point[0]) + trial.point[-1] + 0.02 * math.cos(3.0 * trial.number)
    if policy.algorithm == "auto" and "Bernoulli" in repr(policy.objective):
        y = float(y > 0.9)
    return {"reward": y, "constraints": [trial.point[0] - 0.8] * policy.constraint_count or None}


def play(study, rounds, rng=None):
    for number in range(rounds):
        context = None if study.policy.context is None else [float(number % 2)]
        trial = study.ask(context)
        if number % 5 == 4:
            continue  # it stays pending
        study.tell(trial, **told(study.policy, trial))


def changed(study):
    """A study after all kinds of changes."""
    play(study, 9)
    study.add_arms(NEW, names=["new", None], about=[{"colour": "red"}, None])
    play(study, 7)
    study.retire_arm(8)
    study.retire_arm(2)
    play(study, 4)
    study.restore_arm(8)
    study.describe_arm(0, name="old")
    study.add_arms(X[:1] + 0.05)
    play(study, 5)
    return study


POLICIES = {
    "gp_ucb": UCB,
    "irgp_ucb": nr.irgp_ucb(ARMS, K, noise=0.1),
    "auto": nr.auto(ARMS),
    "clicks": nr.auto(ARMS, reward="bernoulli"),
    "bank": nr.gp_ucb(ARMS, K, noise=0.1, refit=nr.slots.LengthscaleBank()),
    "contexts": nr.gp_ucb(ARMS, nr.SquaredExponential(0.5), noise=0.1, context=CONTEXTS),
    "models of arms": nr.auto(ARMS, context=nr.Box([0.0], [1.0])),
    "box of contexts": nr.gp_ucb(ARMS, nr.SquaredExponential(0.5), noise=0.1, context=nr.Box([0.0], [1.0])),
    "linear": nr.gp_ucb(ARMS, nr.Linear(), noise=0.1),
    "thompson": nr.gp_ts(ARMS, K, noise=0.1, norm_bound=1.0),
    "batches": nr.gp_bucb(ARMS, K, noise=0.1),
    "adaptive": nr.gp_ucb(ARMS, K, noise=0.1, memory="adaptive"),
    "changes": nr.gp_ucb_cpd(ARMS, K, noise=0.1, horizon=50),
    "window": nr.gp_ucb_sdf(ARMS, K, noise=0.1, window=20),
    "every round": nr.gp_ucb(ARMS, K, noise=0.1, constraints=nr.EveryRound(count=1)),
    "on average": nr.gp_ucb(ARMS, K, noise=0.1, constraints=nr.OnAverage(count=1)),
    "safe": nr.gp_ucb(ARMS, K, noise=0.1, constraints=nr.Safe(start=X[:1], count=1, scale=0.5, noise=0.1)),
    "balance": nr.algorithms.lb_gp_ucb(ARMS, K, noise=0.1, norm_bound=1.0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_goes_on_with_other_arms_and_is_replayed_as_it_was(name, tmp_path):
    policy, url = POLICIES[name], f"sqlite:///{tmp_path}/a.db"
    study = changed(nr.Study(policy, seed=1, storage=url))
    arms = [trial.arm for trial in study.trials]
    twin = changed(nr.Study(policy, seed=1))
    assert [trial.arm for trial in twin.trials] == arms
    again = nr.Study.open(storage=url)
    assert list(again.trials) == list(study.trials)
    assert again.arm_changes == study.arm_changes
    context = None if policy.context is None else [1.0]
    for each in (again, twin):
        for found, expected in zip(each.predict(context=context), study.predict(context=context), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert each.restarts == study.restarts
    assert again.ask(context).arm == twin.ask(context).arm
    assert all(study.explain(trial).repeated for trial in (3, 12, 24))
    assert 2 not in arms[16:]
    assert 8 not in arms[16:20]


def test_what_is_known_is_that_of_a_study_made_with_all_arms():
    study = changed(nr.Study(UCB))
    whole = nr.Study(nr.gp_ucb(nr.Arms(study.policy.domain.points), K, noise=0.1))
    for trial in study.trials:
        if trial.reward is not None:
            whole.add(trial.point, trial.reward)
    for found, expected in zip(study.predict(), whole.predict(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert study.width == pytest.approx(whole.policy.confidence.width(len(study.trials) + 1))


def test_the_list_of_arms_says_what_they_are_and_since_when():
    times = iter(np.arange(100.0, 1000.0))
    study = nr.Study(UCB, clock=lambda: float(next(times)))
    assert [arm.since for arm in study.arms] == [None] * 8
    one, two = study.add_arms(NEW, names=["new", None], about=[{"colour": "red"}, None])
    assert (one.number, one.name, one.about, one.retired, one.since, one.added_at) == (
        8, "new", {"colour": "red"}, False, 100.0, 100.0,
    )  # fmt: skip
    assert (two.number, two.name, two.about) == (9, None, {})
    assert study.retire_arm(9)._asdict() | {"point": None} == two._asdict() | {
        "point": None, "retired": True, "since": 101.0,
    }  # fmt: skip
    study.retire_arm(9)  # again: nothing is recorded
    assert study.describe_arm(8, name="newer").about == {"colour": "red"}
    assert study.describe_arm(8, about={"colour": 3}).name == "newer"
    study.describe_arm(8, about={"colour": 3})
    assert study.restore_arm(9).since == 104.0
    study.restore_arm(0)
    kinds = ["added", "retired", "described", "described", "restored"]
    assert [(change.order, change.kind) for change in study.arm_changes] == list(enumerate(kinds, start=1))
    assert study.policy.domain.points.shape == (10, 2)
    assert study.ask().asked_order == 6


def test_arms_of_named_parameters():
    study = nr.Study(nr.gp_ucb(SPACE.grid(2), nr.kernel_for(SPACE), noise=0.1))
    (arm,) = study.add_arms({"x": 0.4, "kind": "b"})
    assert arm.parameters == {"x": pytest.approx(0.4), "kind": "b"}
    play(study, 6)
    assert study.add({"x": 0.4, "kind": "b"}, 3.0).arm == 4
    with pytest.raises(nr.errors.InvalidInput, match="unknown"):
        study.add_arms([{"x": 0.4, "kind": "b", "y": 1}])


def test_units_and_kernel_stay_as_they_are():
    study = nr.Study(nr.auto(ARMS))
    sides, kernel = study.policy.sides, study.policy.kernel
    study.add_arms([[40.0, -7.0]])
    np.testing.assert_array_equal(study.policy.sides, sides)
    assert study.policy.kernel == kernel
    again = nr.Policy.from_json(study.policy.to_json())
    assert again == study.policy
    np.testing.assert_array_equal(again.sides, sides)


def test_theorems_that_count_the_arms_count_the_new_ones():
    more = ARMS.with_more(NEW)
    assert UCB.with_arms(more).confidence == FiniteBayes(size=10, delta=0.1)
    assert UCB.with_arms(more).valid_for == "f"
    both = nr.gp_ucb(ARMS, K, noise=0.1, context=CONTEXTS)
    assert both.with_arms(more).confidence.size == 20
    for shift, times in (("theorem", 2.0), ("half", 1.0)):
        policy = nr.irgp_ucb(ARMS, K, noise=0.1, shift=shift)
        assert policy.with_arms(more).score.shift == pytest.approx(times * math.log(5.0))
    assert RandomisedBound(shift=0.0).for_arms(2, 6).shift == pytest.approx(2.0 * math.log(3.0))


@pytest.mark.parametrize("kind", ["memory", "sqlite", *nightly("postgresql")])
def test_two_copies_of_a_study_see_each_other(places, kind):
    place = places(kind)()
    one, other = (nr.Study(UCB, storage=place) for _ in range(2))
    play(one, 3)
    play(other, 3)
    one.add_arms(NEW)
    assert other.ask(among=[8]).arm == 8  # a number that this copy has not read yet
    one.retire_arm(8)
    assert {other.ask().arm for _ in range(3)}.isdisjoint({8})
    other.add(NEW[0], 3.0)
    other.restore_arm(8)
    play(one, 3)
    assert list(one.trials) == list(other.trials)
    assert [arm.retired for arm in one.arms] == [False] * 10
    np.testing.assert_array_equal(one.predict()[0], other.predict()[0])


def test_threads_may_change_arms_while_others_decide(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.Study(UCB, storage=url)

    def work(number):
        study = nr.Study.open(storage=url)
        for step in range(4):
            if number == 0:
                study.add_arms([[0.1 * step, 0.2]])
            else:
                study.tell(study.ask(), 0.5)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    study = nr.Study.open(storage=url)
    assert (len(study.trials), len(study.arms), len(study.arm_changes)) == (8, 12, 4)
    assert all(study.explain(trial).repeated for trial in study.trials)


def test_a_retired_arm_is_told_and_teaches_but_is_no_best():
    study = nr.Study(UCB)
    trial = study.ask()
    study.retire_arm(trial.arm)
    study.tell(trial, 5.0)
    assert study.predict()[0][trial.arm] > 3.0
    other = study.ask(count=3)
    assert trial.arm not in [each.arm for each in other]
    with pytest.raises(nr.errors.TrialError):
        study.best()
    study.tell(other[0], 1.0)
    assert study.best().arm == other[0].arm
    assert study.add(trial.point, 4.0).arm == trial.arm
    study.restore_arm(trial.arm)
    assert study.best().arm == trial.arm


def test_nothing_left_to_play_is_an_error_that_says_so():
    study = nr.Study(UCB)
    for arm in range(8):
        study.retire_arm(arm)
    with pytest.raises(nr.errors.InvalidInput, match=r"All arms are retired.*nothing was recorded.*add_arms"):
        study.ask()
    study.restore_arm(3)
    with pytest.raises(nr.errors.InvalidInput, match="All arms that are offered this time are retired"):
        study.ask(among=[1, 2])
    assert len(study.trials) == 0
    assert study.ask().arm == 3


LIVE = partial(nr.auto, ARMS, context=nr.Box([0.0, 0.0], [1.0, 1.0]))
UNDER_CONTEXTS = {
    "numbers": LIVE(),
    "clicks": LIVE(reward="bernoulli"),
    "silent no": LIVE(reward="bernoulli", answers="silent no"),
    "exposed": LIVE(reward="bernoulli").using(pending=nr.slots.Exposed(wait=20)),
    "drifting": LIVE(world="drifting"),
    "budget": LIVE(constraints=nr.OnAverage(count=1)),
}


def live(study, rounds):
    """Decisions under contexts, of which every fourth waits, or is not answered if silence means no."""
    for number in range(len(study.trials), len(study.trials) + rounds):
        trial = study.ask([0.5 + 0.5 * math.sin(number), (0.37 * number) % 1.0])
        limits = {"constraints": [0.2 * trial.arm - 0.5]} if study.policy.constraint_count else {}
        if number % 4:
            study.tell(trial, float(math.sin(5.0 * trial.point[0] + number) > 0.2), **limits)


def sees(state):
    """What a state says of all arms, to the bit."""
    found = state.envelope(context=np.array([0.3, 0.8]))
    return found.mean, found.std


@pytest.mark.parametrize("goal", thinned(["maximize", "minimize"], "minimize"))
@pytest.mark.parametrize("kind", thinned(UNDER_CONTEXTS, "clicks"))
def test_under_contexts_a_new_arm_replays_nothing_and_all_is_as_after_a_replay(kind, goal, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(UNDER_CONTEXTS[kind], seed=2, goal=goal, storage=url)
    other = nr.Study.open(storage=url)
    with monkeypatch.context() as patch:
        patch.setattr(study.replica, "_replay", None)
        patch.setattr(other.replica, "_replay", None)
        for rounds in (0, 5, 45, 3, 20):  # before any, in each size of the models, and while these are made
            live(study, rounds)
            study.add_arms(NEW[:1] + 0.1 * rounds)
            other.predict(context=[0.3, 0.8])
        study.retire_arm(9)
        live(other, 6)
        study.restore_arm(9)
        live(study, 6)
        assert {trial.arm for trial in study.trials} - set(range(8))  # new arms are played
    for replica in (study.replica, other.replica):
        replica.current()
        for found, expected in zip(
            sees(replica.state), sees(state_after(replica.policy, study.goal, replica.record, seed=2)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    assert all(study.explain(trial).repeated for trial in study.trials[-6:])
    copy = study.replica.state.copy()
    before = sees(copy)
    study.add_arms([[0.2, 0.2]])
    live(study, 2)
    np.testing.assert_array_equal(sees(copy), before)  # it has arms of its own


def test_models_have_fewer_waves_once_arms_are_more_than_twice_as_many():
    arms = nr.Arms(np.arange(30.0)[:, None])
    posterior = ContextPosterior(K, arms, 2, (Candidate(),), regularization=1.0)
    assert posterior.copy().add_arms(arms.with_more(np.arange(30.0, 60.0)[:, None]))
    more = arms.with_more(np.arange(30.0, 61.0)[:, None])
    assert not posterior.add_arms(more)
    assert numbers_held((Candidate(),), more, 2) < 2.1 * numbers_held((Candidate(),), arms, 2)


def test_a_log_says_which_arms_there_were():
    study = nr.Study(nr.irgp_ucb(ARMS, K, noise=0.1), propensities=True)
    play(study, 3)
    study.add_arms(NEW)
    study.retire_arm(2)
    play(study, 2)
    study.restore_arm(2)
    play(study, 1)
    log = log_of_study(study)
    assert log.offered.tolist() == [8.0] * 3 + [9.0] * 2 + [10.0]
    assert log.available[:, [2, 9]].tolist() == [[True, False]] * 3 + [[False, True]] * 2 + [[True, True]]


def test_a_new_arm_is_no_change_and_is_not_certified():
    study = nr.Study(POLICIES["adaptive"])
    play(study, 12)
    study.add_arms([[3.0, 3.0]])
    for _ in range(12):
        study.tell(study.ask(among=[8]), -2.0)
    assert study.restarts == []
    safe = nr.Study(POLICIES["safe"])
    play(safe, 5)
    safe.add_arms([[9.0, 9.0]])
    assert safe.feasible([[9.0, 9.0]]) == [0.0]
    play(safe, 5)
    assert 8 not in [trial.arm for trial in safe.trials]


def test_arms_that_do_not_fit_are_refused():
    study = nr.Study(UCB)
    for points, why in (([[1.0]], "dimension|columns"), ([[math.nan, 0.0]], "finite"), ([], "empty|shape|dimension")):
        with pytest.raises(nr.errors.InvalidInput, match=why):
            study.add_arms(points)
    with pytest.raises(nr.errors.InvalidInput, match="no named parameters"):
        study.add_arms([{"x": 1.0}])
    with pytest.raises(nr.errors.InvalidInput, match=r"`names`.*each of 2 arms"):
        study.add_arms(NEW, names=["one"])
    for several in (3, np.array("a"), object()):
        with pytest.raises(nr.errors.InvalidInput, match=r"`about`.*each of 2 arms"):
            study.add_arms(NEW, about=several)
    for name in ("", " ", 3, "x" * 201):
        with pytest.raises(nr.errors.InvalidInput, match="name of an arm"):
            study.add_arms(NEW[:1], names=[name])
    with pytest.raises(nr.errors.InvalidInput, match="JSON"):
        study.add_arms(NEW[:1], about=[{"a": object()}])
    for act in (study.retire_arm, study.restore_arm, study.describe_arm):
        with pytest.raises(nr.errors.InvalidInput, match=r"no arm 8: this study has 8 arms"):
            act(8)
    box = nr.Study(nr.gp_ucb(nr.Box([0.0], [1.0]), K, noise=0.1))
    for act in (lambda: box.arms, lambda: box.add_arms([[0.5]]), lambda: box.retire_arm(0)):
        with pytest.raises(nr.errors.InvalidInput, match="whose policy plays `Arms`"):
            act()
    table = nr.Study(nr.gp_ucb(nr.Arms([[0.0], [1.0]]), Empirical(np.eye(2)), noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match=r"cannot be added to this study: .*row"):
        table.add_arms([[2.0]])
    assert study.arm_changes == box.arm_changes == table.arm_changes == ()


def test_a_call_that_fails_takes_its_arms_back(tmp_path):
    for study in (nr.Study(UCB), nr.Study(UCB, storage=f"sqlite:///{tmp_path}/a.db")):
        play(study, 3)
        before = study.predict()[0]

        def act(transaction):
            transaction.add_arms(NEW, None, None)
            raise KeyError("a bug")

        (found,) = study.group_commit([act], seconds=1.0)
        assert isinstance(found, Failed)
        assert (len(study.arms), study.arm_changes) == (8, ())
        np.testing.assert_array_equal(study.predict()[0], before)
        study.add_arms(NEW)
        assert (len(study.arms), study.arm_changes[0].order) == (10, 7)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE arms SET arms = '[]' WHERE event = 4", "names no arms"),
        ("UPDATE arms SET kind = 'x' WHERE event = 4", "its kind is 'x'"),
        ("UPDATE arms SET arms = replace(arms, '8', '9') WHERE event = 4", "where arm 8 is next"),
        ("UPDATE arms SET arms = replace(arms, '[0.5, 1.3]', '[0.5]') WHERE event = 4", "damaged"),
        ("UPDATE arms SET arms = replace(arms, '[0.5, 1.3]', '[0.5, null]') WHERE event = 4", "point of an arm"),
        ("UPDATE arms SET event = 40 WHERE event = 4", "Arms .8. were retired"),
        ("DELETE FROM arms", "event|domain"),
        ("UPDATE trials SET arm = 8, point = '[0.5, 1.3]' WHERE number = 0", "not in the domain"),
        ("UPDATE trials SET arm = 8, point = '[0.5, 1.3]' WHERE asked_order = 6", "not in the domain"),
    ],
)
def test_a_damaged_record_of_arms_is_refused(tmp_path, statement, why):
    path = tmp_path / "a.db"
    study = nr.Study(UCB, storage=f"sqlite:///{path}")
    study.tell(study.ask(), 0.5)
    study.ask()
    study.add_arms(NEW[:1])
    study.retire_arm(8)
    study.ask()
    study.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(nr.errors.StorageError, match=why):
        nr.Study.open(storage=f"sqlite:///{path}")


def test_a_deleted_study_leaves_no_arms_behind(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(UCB, storage=url)
    study.add_arms(NEW)
    study.storage.delete("study")
    again = nr.Study(UCB, storage=url)
    again.add_arms(NEW[:1])
    assert len(nr.Study.open(storage=url).arms) == 9


# -- over HTTP, and on the command line --------------------------------------------------------------------------------

AT = "/v1/studies/shop"


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        made.put(AT, {"policy": plain(UCB), "seed": 3})
        yield made


def test_arms_over_http(client):
    body = {"arms": [{"point": [0.5, 1.3], "name": "new", "about": {"colour": "red"}}]}
    status, said = client.post(f"{AT}/arms", body)
    assert (status, said["arms"][0]["arm"], said["arms"][0]["name"]) == (201, 8, "new")
    assert client.post(f"{AT}/decisions", {"among": [8]})[1]["decisions"][0]["arm"] == 8
    status, said = client.run(client.send("DELETE", f"{AT}/arms/8", None))
    assert (status, said["retired"]) == (200, True)
    status, said = client.post(f"{AT}/decisions", {"among": [8]})
    assert (status, "PUT .../arms/ARM" in said["error"]["sentence"]) == (422, True)
    assert client.put(f"{AT}/arms/8", {"retired": False, "name": "newer"})[1]["name"] == "newer"
    listed = client.get(f"{AT}/arms")[1]["arms"]
    assert [(each["arm"], each["retired"]) for each in listed] == [(arm, False) for arm in range(9)]
    events = client.get(f"{AT}/events")[1]["events"]
    assert [(each["kind"], each["number"], each["arms"]) for each in events] == [
        ("arms_added", None, [8]), ("asked", 0, None), ("arms_retired", None, [8]), ("arms_described", None, [8]),
        ("arms_restored", None, [8]),
    ]  # fmt: skip
    assert client.put(AT, {"policy": plain(UCB), "seed": 3})[0] == 200  # the study is as it was put


def test_a_new_arm_under_contexts_joins_over_http_without_a_replay(client, monkeypatch):
    replay = Replica._replay
    monkeypatch.setattr(Replica, "_replay", lambda replica: replica.record.trials or replay(replica))  # no later one
    at, policy = "/v1/studies/live", nr.auto(ARMS, context=nr.Box([0.0], [1.0]), reward="bernoulli")
    assert client.put(at, {"policy": plain(policy), "seed": 3})[0] == 201
    for number in range(6):
        (decision,) = client.post(f"{at}/decisions", {"context": [0.1 * number]})[1]["decisions"]
        assert client.put(f"{at}/decisions/{decision['id']}/reward", {"reward": number % 2})[0] == 200
    assert client.post(f"{at}/arms", {"arms": [{"point": [0.5, 1.3]}]})[0] == 201
    assert client.post(f"{at}/decisions", {"context": [0.5], "among": [8]})[1]["decisions"][0]["arm"] == 8


def test_arms_that_do_not_fit_over_http(client):
    for arms in (
        [],
        [{}],
        [{"point": [1.0]}],
        [{"point": [1.0, 2.0], "parameters": {}}],
        [{"point": [0, 0], "nme": 1}],
    ):
        assert client.post(f"{AT}/arms", {"arms": arms})[0] == 422
    mixed = [{"point": [0.0, 0.0]}, {"parameters": {"x": 1}}]
    assert client.post(f"{AT}/arms", {"arms": mixed})[0] == 422
    status, said = client.put(f"{AT}/arms/99", {"retired": True})
    assert (status, said["error"]["kind"], said["error"]["field"]) == (404, "no_arm", "arm")
    many = [{"point": [0.0, 0.001 * i]} for i in range(1000)]
    for _ in range(9):
        assert client.post(f"{AT}/arms", {"arms": many})[0] == 201
    status, said = client.post(f"{AT}/arms", {"arms": many})
    assert (status, "10,000" in said["error"]["sentence"]) == (422, True)
    client.put("/v1/studies/box", {"space": {"x": {"type": "float", "low": 0, "high": 1}}})
    status, said = client.post("/v1/studies/box/arms", {"arms": [{"parameters": {"x": 0.5}}]})
    assert (status, "plays `Arms`" in said["error"]["sentence"]) == (422, True)


def test_arms_are_added_once_for_each_key():
    with Serving() as service:
        study = Remote(service.url).create("shop", UCB)
        (arm,) = study.add_arms([NEW[0]], names=["new"], key="k")
        assert study.add_arms([NEW[0]], names=["new"], key="k") == [arm]
        with pytest.raises(nr.errors.InvalidInput, match="Idempotency-Key"):
            study.add_arms([NEW[1]], key="k")
        assert study.retire_arm(8).retired
        assert not study.restore_arm(8).retired
        assert study.describe_arm(8, about={"a": 1}).about == {"a": 1}
        assert [each.arm for each in study.arms()] == list(range(9))


def test_arms_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = nr.Study(UCB, storage="sqlite:///shop.db", name="a")
    play(study, 2)
    assert "arm_name" not in study.to_pandas()
    place = ("shop.db", "a")
    (added,) = data("add-arm", *place, "[0.5, 1.3]", "--name", "new", "--about", '{"colour": "red"}')
    assert (added["number"], added["name"], added["about"]) == (8, "new", {"colour": "red"})
    assert "arm 8 (new): retired" in run("retire-arm", *place, 8)
    assert data("arms", *place)[8]["retired"]
    assert "retired" in run("arms", *place)
    assert not data("restore-arm", *place, 8)[0]["retired"]
    assert data("describe-arm", *place, 0, "--name", "old")[0]["name"] == "old"
    named = data("describe-arm", *place, study.trials[0].arm, "--name", "first")
    assert named[0]["name"] == "first"
    assert data("trials", *place)[0]["arm_name"] == "first"
    assert "first" in run("trials", *place)
    assert study.to_pandas()["arm_name"][0] == "first"
    assert "nilregret arms" in run("retire-arm", *place, 99, code=1)
