"""A common level that moves: arms are not credited for the days on which they were played (`nilregret.gp.tidal`)."""

import re

import numpy as np
import pytest
from scipy.special import ndtr

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.gp import RatePosterior, RatePrior, TidalPosterior, tidal
from nilregret.gp.tidal import Level
from nilregret.serve.dashboard.views.health import _restarts_sentence
from nilregret.slots.widths.likelihood_ratio import LikelihoodRatio
from nilregret.storage import MemoryStorage

from .service import Client

ARMS = nr.Arms(range(3))
CONTEXT = nr.Box([0.0], [1.0])


def auto(world="tidal", arms=ARMS, **more):
    return nr.auto(arms, reward="bernoulli", world=world, **more)


def played(policy, rates, seed=0, *, context=False, late=0, **more):
    """Returns the study of a policy whose clicks have the rates (rounds, arms). The last arm joins where it has one."""
    study, rng = nr.Study(policy, seed=seed, **more), np.random.default_rng(seed)
    study.quiet = True
    waiting = []
    for t, row in enumerate(rates):
        if t and np.isnan(rates[t - 1]).any() and not np.isnan(row).any():
            study.add_arms([[len(row) - 1]])
        waiting.append((study.ask(rng.random(1)) if context else study.ask(), rng.random()))
        while len(waiting) > late:
            trial, luck = waiting.pop(rng.integers(len(waiting)) if late else 0)
            study.tell(trial, float(luck < rates[trial.number][trial.arm]))
    return study


def good_days(rounds=1000):
    """Rates of two arms. The second, worse by 3 points, joins half-way, when the level has risen from .10 to .30."""
    level = np.where(np.arange(rounds) < 2 * rounds // 5, 0.10, 0.30)[:, None]
    rates = level - np.array([[0.0, 0.03]])
    rates[: rounds // 2, -1] = np.nan
    return rates


def ends(world, seeds, rounds=1000, **more):
    """Returns the share of runs that play an arm which joined on good days, and is worse, most of the time."""
    worse = []
    for seed in seeds:
        study = played(auto(world, nr.Arms(range(1))), good_days(rounds), seed, **more)
        last = [trial.arm for trial in study.trials[-rounds // 10 :]]
        worse.append(np.mean([arm == 1 for arm in last]) > 0.5)
    return np.mean(worse)


@pytest.mark.parametrize("seeds", [4, pytest.param(40, marks=pytest.mark.nightly)])
def test_an_arm_that_joins_on_good_days_is_not_credited_for_them(seeds):
    """A worse arm, joined after a step up, wins with plain averages nearly always, and seldom with a level apart."""
    assert ends("stationary", range(seeds)) >= 0.75
    assert ends("tidal", range(seeds)) <= 0.5


def test_on_a_level_that_stands_decisions_are_those_of_the_default():
    rates = np.full((400, 3), 0.2) - [0.0, 0.05, 0.1]
    arms = [[trial.arm for trial in played(auto(world), rates).trials] for world in ("tidal", "stationary")]
    assert arms[0] == arms[1]


@pytest.mark.parametrize(
    "more",
    [{}, {"context": CONTEXT}, {"context": nr.Arms([[0.0], [1.0]])}, {"answers": "late"}, {"answers": "silent no"}],
    ids=["arms", "contexts", "table", "late", "silent no"],
)
def test_a_level_is_a_function_of_the_record(more):
    """A replay, a resumed study and a policy read from JSON decide the same to the bit."""
    policy = auto(arms=nr.Arms(range(6)), **more)
    nr.testing.check_policy(policy, reward=lambda trial: float((trial.number * 7 + trial.arm) % 3 == 0))


@pytest.mark.parametrize("context", [False, True], ids=["arms", "contexts"])
def test_a_study_with_late_answers_opens_with_the_same_level(context, tmp_path):
    rates = np.repeat([[0.1, 0.05, 0.05], [0.5, 0.45, 0.45]], 60, axis=0)
    policy = auto(context=CONTEXT if context else None)
    path = f"sqlite:///{tmp_path}/study.db"
    study = played(policy, rates, context=context, late=25, storage=path, name="tides")
    at = np.array([0.3]) if context else None
    with nr.Study.open(storage=path) as again:
        assert np.array_equal(study.predict(context=at), again.predict(context=at))
        assert study.ask(at).arm == again.ask(at).arm


def test_the_level_is_learned_apart_from_the_arms():
    """Two arms, one of them played on good days alone but for a few plays: their difference is found."""
    rng = np.random.default_rng(0)
    policy = auto()
    rates = RatePosterior(policy.kernel, ARMS.points, RatePrior(policy.objective, 0.0), regularization=0.25)
    plain, apart = rates.copy(), TidalPosterior(rates)
    for trial in range(6000):
        good = trial >= 3000
        arm = int(rng.random() < (0.75 if good else 0.25))
        click = float(rng.random() < (0.5 if good else 0.1) - 0.05 * arm)
        plain.append(arm, click)
        apart.append(trial * len(ARMS) + arm, click)
    assert plain.predict()[0][1] - plain.predict()[0][0] > 0.1  # credited for its days
    mean, std = apart.predict()
    assert mean[1] - mean[0] == pytest.approx(-0.05, abs=0.065)  # three standard errors
    assert np.all(std < 0.1)
    assert apart.moves
    assert apart.level.at(5995) - apart.level.at(5) == pytest.approx(0.4, abs=0.15)
    weights = np.bincount([0, 1], minlength=3)  # On the average level the arms are near the average click.
    assert 0.1 < float(mean[weights > 0].mean()) < 0.5


def test_an_observation_that_is_revised_or_forgotten_leaves_with_its_own_level():
    policy = auto()
    rates = RatePosterior(policy.kernel, ARMS.points, RatePrior(policy.objective, 0.0), regularization=0.25)
    apart, rng = TidalPosterior(rates), np.random.default_rng(1)
    for trial in range(120):
        apart.append(trial * 3 + trial % 3, float(rng.random() < (0.1 if trial < 60 else 0.9)))
    before = apart.copy()
    apart.append(400 * 3 + 1, 1.0)
    apart.revise(400 * 3 + 1, 1.0, 0.0)
    apart.forget(400 * 3 + 1, 0.0)
    assert apart.count == before.count
    assert apart.level.mean == pytest.approx(before.level.mean)
    assert apart.arms.plays.tolist() == before.arms.plays.tolist()
    assert np.allclose(apart.arms.averages, before.arms.averages)


def test_the_smoothed_level_is_the_recursion_by_hand(monkeypatch):
    """With a period of one trial it is l <- l + g (residual - l)."""
    monkeypatch.setattr(tidal, "PERIOD", 1)
    level, rng, hand = Level(moves=True), np.random.default_rng(2), 0.0
    for trial in range(90):
        residual = float(rng.standard_normal())
        if trial >= tidal.FIRST:
            assert level.at(trial) == pytest.approx(hand)
            hand += tidal.GAIN * (residual - hand)
        level.learn(trial, residual, 1.0)
    level.learn(500, 1.0, 1.0)
    level.change(500, -1.0)
    mean = level.mean
    level.forget(500, 1.0)
    assert level.at(501) == pytest.approx(hand, abs=0.05)
    assert mean == pytest.approx(level.mean, abs=0.05)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nr.auto(nr.Box(0, 1), world="tidal"), "`Tide` is for clicks"),
        (lambda: nr.gp_ucb(ARMS, nr.Matern(2.5, 1.0), noise=0.1, memory=nr.slots.Tide()), "`Tide` is for clicks"),
        (lambda: auto().using(memory=nr.slots.AllOf((nr.slots.EDetector(), nr.slots.Tide()))), "A detector takes"),
        (lambda: auto().using(switching="lazy"), "rounds one by one"),
        (lambda: auto().using(confidence=LikelihoodRatio(norm_bound=1.0)), "rates that stand still"),
    ],
)  # fmt: skip
def test_a_level_goes_with_few_parts(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


def test_a_window_beside_a_level_forgets():
    policy = auto().using(memory=nr.slots.AllOf((nr.slots.SlidingWindow(50), nr.slots.Tide())))
    study = played(policy, np.full((80, 3), 0.3))
    assert study.policy.memory.tides
    assert study.predict()[0].shape == (3,)


def test_a_tidal_study_is_served():
    with Client(MemoryStorage()) as client:
        recipe = {"arms": [[0], [1]], "policy": {"algorithm": "auto", "reward": "bernoulli", "world": "tidal"}}
        assert client.put("/v1/studies/tides", recipe)[0] == 201
        for reward in (0.0, 1.0):
            status, said = client.post("/v1/studies/tides/decisions", {})
            assert status == 201
            at = f"/v1/studies/tides/decisions/{said['decisions'][0]['id']}/reward"
            assert client.put(at, {"reward": reward})[0] == 200
        assert client.get("/v1/studies/tides")[1]["policy"]["memory"] == {"type": "Tide"}
    study = nr.Study(auto())
    study.ask()
    assert (
        _restarts_sentence(study, 0)
        == "Every answer counts, on a level of all rewards that may move: nothing has been forgotten."
    )


# -- evaluation ------------------------------------------------------------------------------------------------------


def logged(level, seed, rounds=2000, gap=0.05, floor=0.05):
    """A log of Thompson sampling of two arms, of normal laws with a floor, whose propensities are exact."""
    rng, yes, no = np.random.default_rng(seed), np.ones(2), np.ones(2)
    log = {"action": [], "propensity": [], "reward": []}
    for t in range(rounds):
        mean = yes / (yes + no)
        variance = float((mean * (1.0 - mean) / (yes + no + 1.0)).sum())
        second = (1.0 - floor) * ndtr((mean[1] - mean[0]) / variance**0.5) + 0.5 * floor
        arm = int(rng.random() < second)
        click = float(rng.random() < level(t) - gap * arm)
        (yes if click else no)[arm] += 1.0
        for name, value in zip(log, (arm, second if arm else 1.0 - second, click), strict=True):
            log[name].append(value)
    return {name: np.array(values) for name, values in log.items()}


def said_of(log):
    return [each for each in nr.evaluate(log, 0).cautions if each.startswith("Shares and level")]


LEVELS = {
    "step": lambda t: 0.1 if t < 1000 else 0.3,
    "still": lambda t: 0.2,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("worlds", [6, pytest.param(200, marks=pytest.mark.nightly)])
def test_evaluate_says_when_shares_and_level_moved_together(worlds):
    """On levels that stand an alarm has a probability of some 1e-4, four standard errors: none in 200 worlds."""
    assert sum(bool(said_of(logged(LEVELS["still"], seed, gap=0.05 * (seed % 2)))) for seed in range(worlds)) == 0
    found = [said for seed in range(min(worlds, 40)) for said in said_of(logged(LEVELS["step"], seed))]
    assert len(found) >= 0.75 * min(worlds, 40)


@pytest.mark.filterwarnings("ignore")
def test_the_caution_has_the_numbers():
    """Arm 1 is equal to arm 0, and had a fifth of the bad days and four fifths of the good ones: credited by .12."""
    rng, n = np.random.default_rng(0), 4000
    good = np.arange(n) >= n // 2
    share = np.where(good, 0.8, 0.2)
    arm = (rng.random(n) < share).astype(int)
    reward = (rng.random(n) < np.where(good, 0.3, 0.1)).astype(float)
    log = {"action": arm, "propensity": np.where(arm, share, 1.0 - share), "reward": reward}
    (said,) = said_of(log)
    numbers = [float(each) for each in re.findall(r"\d*\.\d+|\d+(?=%)", said)]
    expected = [20.0, 0.1, 80.0, 0.3, 0.06]
    if "1 had" not in said:
        expected = [80.0, 0.1, 20.0, 0.3, 0.06]
    assert numbers == pytest.approx(expected, rel=0.25)
    assert said_of({**log, "reward": (rng.random(n) < 0.2).astype(float)}) == []  # shares alone
    even = {**log, "action": (rng.random(n) < 0.5).astype(int), "propensity": np.full(n, 0.5)}
    assert said_of(even) == []  # the level alone
    assert said_of({name: values[::25] for name, values in log.items()}) == []  # too few rows


@pytest.mark.filterwarnings("ignore")
def test_visitors_who_come_in_a_row_are_no_tide():
    """200 visitors of 20 visits in a row, who click always or never, while the share of arm 1 rises."""
    found = {"rows": 0, "units": 0, "step": 0}
    for seed in range(6):
        rng, unit = np.random.default_rng(seed), np.repeat(np.arange(200), 20)
        share = np.linspace(0.2, 0.8, 200)
        arm = (rng.random(200) < share).astype(int)
        log = {"action": arm[unit], "propensity": np.where(arm, share, 1.0 - share)[unit]}
        reward = (rng.random(200) < 0.3)[unit].astype(float)
        step = (rng.random(200) < np.where(np.arange(200) < 100, 0.1, 0.9))[unit].astype(float)
        found["rows"] += len(said_of({**log, "reward": reward}))
        found["units"] += len(said_of({**log, "reward": reward, "unit": unit}))
        found["step"] += len(said_of({**log, "reward": step, "unit": unit}))
    assert found["units"] == 0 < found["rows"]
    assert found["step"] == 6
