"""The client has the verbs of a study: whichever `Study` gains, the client has too, or it stands here why not."""

import inspect
import math
import warnings

import numpy as np
import pytest

import nilregret as nr
from nilregret.client import AsyncClient, Client
from nilregret.client.awaited import AsyncRemoteStudy
from nilregret.client.remote import RemoteStudy
from nilregret.testing.serving import Serving

LEFT_OUT = {
    **dict.fromkeys(["certainty", "importance"], "thousands of joint draws are made where the posterior is"),
    **dict.fromkeys(["close", "storage", "open"], "connections are the `Client`'s, and so are studies of a name"),
    **dict.fromkeys(
        ["to_pandas", "sheet"], "files and tables are made here, of `export` and `trials`"
    ),
    **dict.fromkeys(
        ["width", "information_gain", "restarts", "multipliers"], "entries of `status`, one request for all"
    ),
    **dict.fromkeys(
        ["evidence", "restart_reasons", "lengthscales", "norm_bounds", "minimum", "saturated", "shortfall",
         "multiplier_history", "last_multipliers", "fits", "valid_for"],
        "the dashboard shows them; `explain` says what counted for a decision",
    ),
    "budgets": "`explain` has those of a decision, and the dashboard shows them with it",
    "probabilities": "a decision has its own, and `evaluate` reads the log",
    **dict.fromkeys(["arm_changes", "changes"], "`events` has them, among those of trials"),
    "goal": "`status` has it, and the objectives by name",
    "policy": "`status` has it as it was put, and `arms` what it plays now",
    **dict.fromkeys(["inputs", "offered"], "checks of the program that serves studies"),
    "fit_pending": "the service fits in a thread of its own",
    "sheet": "a table for one person at a bench, which the program with the storage writes",
    "pruned": "counts over the verdicts on record, which the program with the storage makes",
    "remarks": "warnings of the process that decides",
    "band": "the dashboard draws it, and `bounds` has the policy's own",
    "group_commit": "the service itself commits requests in groups",
}  # fmt: skip
OWN = {
    "evaluate": "`nr.evaluate` of a study",
    "decision": "what became of one",
    "status": "where it stands",
    "events": "what happened, as it comes",
}
# Arguments that are called otherwise, or that no request has.
RENAMED = {
    "ask": {"lease": "deadline"}, "add": {"point_or_parameters": "point"}, "explain": {"trial": "number"},
    "export": {"path": "kind"},
    **{verb: {"trial": "decision"} for verb in ("tell", "fail", "abandon", "report", "stop")},
}  # fmt: skip
MISSING = {("explain", "among"): "the record does not hold it", ("explain", "exclude"): "likewise"}


@pytest.fixture(scope="module")
def url():
    with Serving() as service:
        yield service.url


def verbs(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_verb_of_a_study_is_there_or_left_out_with_a_reason():
    assert verbs(nr.Study) == (verbs(RemoteStudy) - set(OWN)) | set(LEFT_OUT)
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())
    assert verbs(AsyncRemoteStudy) == verbs(RemoteStudy)
    assert verbs(AsyncClient) == verbs(Client)


def arguments(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("verb", sorted(verbs(nr.Study) & verbs(RemoteStudy)))
def test_every_verb_takes_what_that_of_a_study_takes(verb):
    there = getattr(nr.Study, verb)
    if isinstance(there, property):
        return
    renamed = RENAMED.get(verb, {})
    wanted = {renamed.get(name, name) for name in arguments(there) if (verb, name) not in MISSING}
    assert wanted <= set(arguments(getattr(RemoteStudy, verb)))
    given = set(arguments(getattr(AsyncRemoteStudy, verb)))
    assert "options" in given or given == set(arguments(getattr(RemoteStudy, verb)))


def test_corrections_and_decisions_that_nobody_works_on(url):
    study = Client(url).create("corrected", nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1))
    first, second = study.ask(count=2)
    study.tell(first, 1.0)
    with pytest.raises(nr.errors.TrialError, match=r"was told already.*With `revise=True`.*`study\.add`"):
        study.tell(first, 2.0)
    assert study.tell(first, 2.0, revise=True).reward == 2.0
    assert [each.status for each in study.tell_many([(first, 3.0)])] == [409]
    assert [each.status for each in study.tell_many([(first, 3.0)], revise=True)] == [200]
    assert study.fail(first, "a wrong one", revise=True).state == "failed"
    assert [each.reward for each in study.decision(first).corrected] == [1.0, 2.0, 3.0]
    assert study.abandon(second).state == "abandoned"
    assert study.abandon(second).reason == "its worker is gone"
    assert [each["state"] for each in study.trials()] == ["failed", "abandoned"]
    assert study.explain(0, draws=0)["number"] == 0


def test_what_another_policy_would_have_earned(url):
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 3), nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1)
    policy = policy.using(explore=nr.slots.Uniform(0.3))
    remote, local = Client(url).create("worth", policy, propensities=True), nr.Study(policy, propensities=True)
    for _ in range(30):
        decision, trial = remote.ask(), local.ask()
        assert decision.arm == trial.arm
        remote.tell(decision, 0.3 * trial.arm)
        local.tell(trial, 0.3 * trial.arm)
    with pytest.warns(nr.errors.NoRegretWarning, match="log more of them"):
        nr.evaluate(local, "uniform")
    for target in ("uniform", 2, {0: 0.5, 1: 0.5}, [0.0, 0.0, 1.0], policy):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nr.errors.NoRegretWarning)  # They are few decisions.
            there, here = remote.evaluate(target), nr.evaluate(local, target)
        assert (there.value, there.lower, there.upper) == (here.value, here.lower, here.upper)
    with pytest.raises(nr.errors.InvalidInput, match="policy"):
        remote.evaluate("nothing")


def test_parameters_that_count_for_some_only_under_contexts_and_limits(url):
    space = nr.Space(way=nr.Choice("post", "bike"), speed=nr.when("way", "bike", nr.Float(0, 1)))
    policy = nr.auto(space, context=nr.Space(day=nr.Int(0, 6)), constraints=1)
    remote, local = Client(url).create("ways", policy, seed=2), nr.Study(policy, seed=2)
    for day in (0, 3, 6, 1):
        decision, trial = remote.ask({"day": day}), local.ask({"day": day})
        assert decision.parameters == trial.parameters
        assert ("speed" in decision.parameters) == (decision.parameters["way"] == "bike")
        remote.tell(decision, 0.1 * day, constraints=[0.2 - 0.1 * day])
        local.tell(trial, 0.1 * day, constraints=[0.2 - 0.1 * day])
    points, context = [{"way": "post"}, {"way": "bike", "speed": 0.5}], {"day": 2}
    for verb in ("predict", "bounds", "feasible"):
        there, here = (getattr(study, verb)(points, context=context) for study in (remote, local))
        np.testing.assert_allclose(there, here, rtol=1e-12)  # a fit in a thread may end at another last digit
    assert remote.infeasible(context=context) is None
    assert local.infeasible(context=context) is None
    with pytest.raises(nr.errors.InvalidInput, match="has no posterior of the constraints"):
        Client(url).create("no limits", nr.auto(nr.Arms.grid(0, 1, 3))).feasible()


def test_the_points_that_earn_most_together(url):
    arms, kernel = nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3)
    policy = nr.gp_ucb(arms, kernel, noise=0.1, context=nr.Arms([0.0, 1.0]), constraints=nr.OnAverage(noise=0.1))
    remote, local = Client(url).create("mixed", policy, goal="minimize"), nr.Study(policy, goal="minimize")
    for study in (remote, local):
        with pytest.raises(nr.errors.TrialError, match="answered"):
            study.mix(context=[1.0])
        for arm in range(5):
            study.add(arm if study is remote else arms.points[arm], -((arm / 4) ** 2), context=[1.0],
                      constraints=[arm / 4 - 0.4])  # fmt: skip
    there, here = remote.mix(context=[1.0]), local.mix(context=[1.0])
    assert len(here.trials) == 2
    assert [each.number for each in there.decisions] == [each.number for each in here.trials]
    assert (there.shares, there.reward, there.use) == (here.shares.tolist(), here.reward, here.use.tolist())
    with pytest.raises(nr.errors.InvalidInput, match="context"):
        remote.mix()
    plain = Client(url).create("no budget", nr.auto(arms))
    with pytest.raises(nr.errors.InvalidInput, match=r"this policy has none\. `study\.best\(\)` is its best decision"):
        plain.mix()


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, np.float64("nan"), np.ma.masked, np.timedelta64(3, "ns")], ids=repr
)
def test_a_number_that_is_none_is_never_sent_as_not_given(url, value):
    client, limit = Client(url), nr.EveryRound(count=1)
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=limit)
    study = client.create("numbers", policy)
    asked = study.ask()
    before = study.trials()
    for name, tell in {
        "std": lambda: study.tell(asked, 1.0, std=value),
        "observed_at": lambda: study.tell(asked, 1.0, observed_at=value),
        "constraints": lambda: study.tell(asked, 1.0, constraints=[value]),
        "reward": lambda: study.tell(asked, value),
        "items[0].std": lambda: study.tell_many([{"trial": asked, "reward": 1.0, "std": value}]),
        "deadline": lambda: study.ask(deadline=value),
        "context": lambda: study.ask([value]),
        "context.hour": lambda: study.ask({"hour": value}),
        "among[1]": lambda: study.ask(among=[0, value]),
        "point": lambda: study.add([value], 1.0),
        "points": lambda: study.predict([[0.5], [value]]),
        "about": lambda: client.create("numbers", policy, about={"lr": value}),
        "about.lr": lambda: study.add_arms([[0.3]], about=[{"lr": value}]),
        "default_reward": lambda: client.create("numbers", policy, default_reward=value),
        "delta": lambda: study.evaluate("uniform", delta=value),
    }.items():
        with pytest.raises(nr.errors.InvalidInput) as refused:
            tell()
        assert f"`{name}" in str(refused.value)
    assert study.trials() == before
    assert {each["state"] for each in before} == {"pending"}


def test_many_answers_are_told_as_to_a_study(url):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=nr.EveryRound(count=1))
    remote, local = Client(url).create("many", policy), nr.Study(policy)
    ids = []
    for study in (remote, local):
        asked = study.ask(count=5)
        assert study.tell_many([]) == []
        study.tell_many([
            (asked[0], 1.0), (asked[1], 0.5, [-1.0]),
            {"trial": asked[2], "reward": np.array(0.25), "std": np.float32(0.5)},
            {"trial": asked[3], "reward": 2.0, "constraints": np.array([0.5]), "std": 0.0},
            {"trial": asked[4], "constraints": [0.5]},
        ])  # fmt: skip
        for wrong, words in (({"trial": asked[4], "value": 1.0}, "An answer in a dict"), ((1,), "An answer is")):
            with pytest.raises(nr.errors.InvalidInput, match=words):
                study.tell_many([wrong])
        with pytest.raises(nr.errors.InvalidInput, match="it must be a list"):
            study.tell_many({"trial": asked[4], "reward": 1.0})
        ids = ids or [each.id for each in asked]
    there = [remote.decision(each) for each in ids]
    assert [(each.reward, each.std) for each in there] == [(each.reward, each.std) for each in local.trials]
    assert [each.constraints for each in there] == [None, [-1.0], None, [0.5], [0.5]]
