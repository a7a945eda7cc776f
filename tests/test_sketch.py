"""Policies with a sketch, and with kernels of finite rank: what goes with them, and that a record repeats them."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret import gp as posteriors
from nilregret.slots.scores import ThompsonSample
from nilregret.slots.widths.mixtures import AnyRidge

from .composition.fillings import BOX, FILLINGS, NOISE, base, reason_for
from .composition.test_pairs import SHORTEST, problem

ARMS = nr.Arms.grid(0, 1, 9)
RIDGE = 0.01
SMOOTH = nr.SquaredExponential(0.3)
AY = AnyRidge(norm_bound=1.0, noise=0.1, regularization=RIDGE)
COARSE = nr.slots.Sketch(accuracy=1.0, most=20)


def contextual(kernel=SMOOTH, **parts):
    policy = nr.gp_ucb(ARMS, kernel, noise=0.1, context=BOX)
    return policy.using(confidence=AY, regularization=RIDGE, **parts)


def run(policy, rounds, seed=0):
    """A study in which answers are told at once."""
    rng, study = np.random.default_rng([seed, 1]), nr.Study(policy, seed=seed)
    for _ in range(rounds):
        trial = study.ask(rng.uniform(0, 1, 1)) if policy.context is not None else study.ask()
        study.tell(trial, float(np.sin(3 * trial.point.sum()) + 0.1 * rng.standard_normal()))
    return study


def arms(study):
    return [trial.arm for trial in study.trials]


def test_a_sketch_plays_as_the_exact_posterior():
    fine = run(contextual(sketch=nr.slots.Sketch(accuracy=1e-3)), 60)
    exact = run(contextual(), 60)
    assert arms(fine) == arms(exact)
    assert 0.0 < fine.shortfall <= 1e-3
    assert exact.shortfall == 0.0
    assert fine.information_gain == pytest.approx(exact.information_gain, abs=1e-4)


def test_the_width_pays_for_what_was_left_out():
    study = run(contextual(sketch=COARSE), 60)
    spread = 2 * study.information_gain + 2 * math.log(1 / AY.delta)
    assert study.shortfall > 0.0
    assert study.width == pytest.approx(1.0 + study.shortfall + math.sqrt(spread))


@pytest.mark.parametrize(
    ("policy", "valid"),
    [
        (contextual(sketch=COARSE), "f"),
        (nr.igp_ucb(ARMS, SMOOTH, noise=0.1, norm_bound=1.0, context=BOX, width="ay").using(sketch=COARSE), "f"),
        (nr.igp_ucb(ARMS, SMOOTH, noise=0.1, norm_bound=1.0, context=BOX, width="amm").using(sketch=COARSE), "none"),
        (nr.igp_ucb(ARMS, SMOOTH, noise=0.1, norm_bound=1.0, context=BOX, width="dmm").using(sketch=COARSE), "none"),
        (nr.gp_ucb(BOX, nr.Matern(2.5), noise=0.1).using(sketch=COARSE), "none"),
    ],
)
def test_what_is_proved_with_a_sketch(policy, valid):
    assert policy.valid_for == valid
    assert policy.using(sketch=None).valid_for != "none"
    assert nr.Policy.from_json(policy.to_json()) == policy


def test_an_opened_study_goes_on_as_if_it_had_not_been_closed(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    policy, plays = contextual(sketch=nr.slots.Sketch(growth=1.2)), []
    for parts in ([80], [30, 50]):
        rng, name = np.random.default_rng(3), f"in {len(parts)} parts"
        for part in parts:
            study = nr.Study(policy, seed=5, storage=url, name=name)
            for _ in range(part):
                trial = study.ask(rng.uniform(0, 1, 1))
                study.tell(trial, float(np.sin(3 * trial.point.sum()) + 0.1 * rng.standard_normal()))
            study.close()
        again = nr.Study.open(storage=url, name=name)
        plays.append((arms(again), again.predict(context=[0.3])))
    assert plays[0][0] == plays[1][0]
    np.testing.assert_array_equal(plays[0][1], plays[1][1])


WHERE = next(filling for filling in FILLINGS if filling.name == "arms under contexts of a box")
OTHERS = [filling for filling in FILLINGS if filling.slot != "domain" and reason_for(filling, WHERE) is None]
DRIFTS = "f is another function in each round"
NOT = {
    "`Discount`": DRIFTS, "`AllOf` window, detector, discount": DRIFTS, "`ArmModels`": "cost does not grow",
}  # fmt: skip


@pytest.mark.parametrize("filling", OTHERS, ids=[filling.name for filling in OTHERS])
def test_what_goes_with_a_sketch(filling):
    """Late answers, failures, fits and constraints; opened again from the record, to the last bit."""
    policy = filling.put(base(WHERE.name), "")
    if filling.name in NOT:
        with pytest.raises(nr.errors.InvalidInput, match=NOT[filling.name]):
            policy.using(sketch=COARSE)
        return
    assert problem(policy.using(sketch=COARSE), WHERE.name, few=SHORTEST) is None


@pytest.mark.parametrize("where", ["box", "box under contexts of a box", "space"])
@pytest.mark.parametrize("score", ["UCB", "Thompson"])
def test_continuous_domains(where, score):
    policy = base(where) if score == "UCB" else base(where).using(score=ThompsonSample())
    assert problem(policy.using(sketch=nr.slots.Sketch(accuracy=0.5)), where) is None


def test_where_a_sketch_has_no_use():
    for policy in (nr.gp_ucb(ARMS, SMOOTH, noise=0.1), nr.gp_ucb(ARMS, SMOOTH, noise=0.1, context=ARMS)):
        with pytest.raises(nr.errors.InvalidInput, match="does not grow with the number of rounds"):
            policy.using(sketch=nr.slots.Sketch())
    with pytest.raises(
        nr.errors.InvalidInput,
        match=r"`sketch` is 3: it must be a `Sketch`, or nothing\. It is made by `nr.slots.Sketch",
    ):
        contextual(sketch=3)
    for wrong in ({"accuracy": 0.0}, {"growth": 1.0}, {"oversampling": 0.0}, {"most": 0}):
        with pytest.raises(nr.errors.InvalidInput, match=f"`{next(iter(wrong))}`"):
            nr.slots.Sketch(**wrong)


# -- kernels of finite rank ------------------------------------------------------------------------------------------

RANK_3 = nr.Linear().on(0) * (nr.Linear().on(1) + nr.Linear(scale=0.3).on(0)) + nr.Linear().on(1)
FINITE = {
    "UCB": {},
    "window": {"memory": nr.slots.SlidingWindow(15)},
    "hallucinated": {"pending": "hallucinate"},
    "DMM": {},
}


@pytest.mark.parametrize("name", FINITE)
def test_a_kernel_of_finite_rank_plays_as_with_the_points(name, monkeypatch):
    def played():
        policy = nr.igp_ucb(
            ARMS, RANK_3, noise=NOISE, norm_bound=1.0, context=BOX, width="dmm" if name == "DMM" else "ay",
            **FINITE[name],
        )  # fmt: skip
        return run(policy, 60)

    quick = played()
    monkeypatch.setattr(posteriors, "MOST_FEATURES", 0)
    dense = played()
    assert arms(quick) == arms(dense)
    np.testing.assert_allclose(quick.predict(context=[0.4]), dense.predict(context=[0.4]), atol=1e-8)
    assert quick.information_gain == pytest.approx(dense.information_gain, abs=1e-8)


@pytest.mark.parametrize("algorithm", [nr.gp_ucb, nr.expected_improvement])
def test_a_box_is_searched_as_with_the_points(algorithm, monkeypatch):
    box = nr.Box([-1.0, 0.0], [1.0, 1.0])
    search = nr.slots.PointSearch(candidates=64, around=8)

    def played():
        study = nr.Study(algorithm(box, RANK_3, noise=NOISE, search=search), seed=0)
        for _ in range(15):
            trial = study.ask()
            study.tell(trial, float(trial.point @ [1.0, -0.5]))
        return np.array([trial.point for trial in study.trials])

    quick = played()
    monkeypatch.setattr(posteriors, "MOST_FEATURES", 0)
    np.testing.assert_allclose(quick, played(), atol=1e-4)


def test_thompson_draws_in_the_span_of_a_kernel_of_finite_rank():
    study = run(nr.gp_ts(ARMS, RANK_3, noise=NOISE, norm_bound=1.0, context=BOX), 30)
    again = run(nr.gp_ts(ARMS, RANK_3, noise=NOISE, norm_bound=1.0, context=BOX), 30)
    assert arms(study) == arms(again)
    assert len(set(arms(study))) > 1


def test_a_sketch_as_an_argument_says_where_it_belongs():
    with pytest.raises(nr.errors.InvalidInput, match=r"`policy\.using\(sketch=\.\.\.\)`"):
        nr.gp_ucb(nr.Box([0.0], [1.0]), nr.Matern(2.5, 0.2), noise=0.1, sketch=nr.slots.Sketch())
