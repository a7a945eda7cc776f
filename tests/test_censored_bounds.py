"""Bounds of censored rewards that know which answers are missing: they hold, and are never wider than the paper's."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments.delays import PoissonDelay
from nilregret.gp import PointPosterior
from nilregret.gp.choice import posterior_on_arms
from nilregret.gp.drifting import DriftingPosterior
from nilregret.slots.widths.delayed import CensoredBounds

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 15)
BOX = nr.Box([0.0], [1.0])
HOURS = nr.Arms.grid(0, 1, 2)
KERNEL = nr.SquaredExponential(0.2)
SEARCH = nr.slots.PointSearch(candidates=32, around=4, starts=1, evaluations=5)
M = 8
CENTERS, WEIGHTS = np.array([[0.2], [0.7]]), np.array([0.4, 0.5])
NORM = float(np.sqrt(WEIGHTS @ KERNEL(CENTERS, CENTERS) @ WEIGHTS))


def truth(points):
    return KERNEL(np.atleast_2d(points), CENTERS) @ WEIGHTS  # in [0, 1]


def policy_of(domain=ARMS, width="tight", **more):
    more = {"noise": 0.5, "window": M, "norm_bound": NORM, "search": SEARCH, **more}
    return nr.gp_ucb_sdf(domain, KERNEL, width=width, **more)


def clicks(study, rounds, rng, at=None):
    """Yes or no with probability f, both told after a Poisson delay of mean 5; yields after every round."""
    due = {}
    for t in range(rounds):
        trial = study.ask(at)
        reward = float(rng.uniform() < truth(trial.point)[0])
        due.setdefault(t + int(rng.poisson(5.0)), []).append((trial, reward))
        for known, value in due.pop(t, []):
            study.tell(known, value)
        yield study


@pytest.mark.parametrize("ridge", [1.0, *nightly(0.25)])
def test_they_hold_for_rho_m_f_in_all_rounds(ridge):
    """At 0.1 of 60 runs 12 or more would fail with probability 0.02; they are wide, so that hardly any does."""
    rho, failed = PoissonDelay(5.0).within(M), 0
    for seed in range(60):
        study = nr.Study(policy_of(regularization=ridge), seed=seed)
        assert study.policy.valid_for == "rho_m f"
        outside = False
        for looked in clicks(study, 60, np.random.default_rng(seed)):
            if len(looked.trials) % 10 == 0:
                lower, upper = looked.bounds(ARMS.points)
                outside |= bool(((rho * truth(ARMS.points) < lower) | (rho * truth(ARMS.points) > upper)).any())
        failed += outside
    assert failed < 12


@pytest.mark.parametrize("ridge", [1.0, 0.25, 4.0])
def test_they_are_never_wider_than_the_paper_s_term_by_term(ridge):
    tight = nr.Study(policy_of(regularization=ridge), seed=1)
    paper = nr.Study(policy_of(width="censored", regularization=ridge), seed=1)
    apart = []
    for looked in clicks(tight, 40, np.random.default_rng(1)):
        state, width = looked.replica.current(), paper.policy.confidence
        envelope = state.envelope(ARMS.points)
        bounds = state.bounds()
        recent = state.reward._recent_deviations(np.inf)
        missing = envelope.std * recent.sum() / min(ridge, 1.0)
        pull = bounds._pull(None)
        assert (np.maximum(pull, 0.0).sum(axis=1) <= missing + 1e-9).all()
        assert (np.maximum(-pull, 0.0).sum(axis=1) <= missing + 1e-9).all()
        gain = state.information_gain
        beta = NORM + (0.5 + 1.0) / min(ridge, 1.0) ** 0.5 * np.sqrt(2.0 * (gain + 1.0 + np.log(2.0 / width.delta)))
        assert bounds._beta <= beta
        half = beta * envelope.std + missing
        assert (envelope.upper <= envelope.mean + half + 1e-9).all()
        assert (envelope.lower >= envelope.mean - half - 1e-9).all()
        apart.append(float(np.median((envelope.upper - envelope.lower) / (2.0 * half))))
    assert apart[-1] < 0.5


def test_without_anything_missing_they_are_a_multiple_of_the_deviation():
    study = nr.Study(policy_of(), seed=0)
    for _ in range(5):
        study.tell(study.ask(), 0.5)
    envelope = study.replica.current().envelope(ARMS.points)
    halves = (envelope.upper - envelope.mean, envelope.mean - envelope.lower)
    np.testing.assert_allclose(halves[0], halves[1], atol=1e-12)
    np.testing.assert_allclose(halves[0] / envelope.std, halves[0][0] / envelope.std[0], rtol=1e-9)
    study.ask()
    envelope = study.replica.current().envelope(ARMS.points)
    assert (envelope.upper - envelope.mean > envelope.mean - envelope.lower + 1e-6).any()


@pytest.mark.parametrize("domain", [ARMS, BOX])
def test_what_is_missing_moves_the_mean_by_no_more(domain):
    """Whatever the answers of the pending trials turn out to be: by linearity, exactly what is allowed for."""
    study = nr.Study(policy_of(domain), seed=2)
    at = ARMS.points
    for _ in range(6):
        study.tell(study.ask(), 0.4)
    pending = study.ask(count=4)
    mean = study.predict(at)[0]
    pull = study.replica.current().bounds()._pull(None if domain is ARMS else at)
    answers = np.array([1.0, 0.0, 0.7, 1.0])
    for trial, answer in zip(pending, answers, strict=True):
        study.tell(trial, answer)
    np.testing.assert_allclose(study.predict(at)[0], mean + pull @ answers, atol=1e-8)


@pytest.mark.parametrize("context", [None, HOURS])
@pytest.mark.parametrize("domain", [ARMS, BOX])
def test_they_play_on_arms_boxes_and_under_contexts(domain, context):
    kernel = KERNEL if context is None else nr.SquaredExponential([0.5, 0.2])
    policy = nr.gp_ucb_sdf(domain, kernel, noise=0.5, window=4, width="tight", context=context, search=SEARCH)
    plays = []
    for _ in range(2):
        study = nr.Study(policy, seed=3)
        for _ in clicks(study, 12, np.random.default_rng(0), None if context is None else [1.0]):
            pass
        plays.append([trial.point.tobytes() for trial in study.trials])
    assert plays[0] == plays[1]


def test_what_does_not_go_together_is_refused_or_not_proved():
    with pytest.raises(nr.errors.InvalidInput, match="give one"):
        policy_of(beta=1.0)
    with pytest.raises(nr.errors.InvalidInput, match="it must be 'censored'"):
        nr.gp_ts_sdf(ARMS, KERNEL, noise=0.1, window=4, width="tight")
    assert policy_of(late="accept").valid_for == "none"
    assert policy_of().using(regularization=0.5).valid_for == "none"
    assert nr.Policy.from_json(policy_of().to_json()) == policy_of()
    assert isinstance(policy_of().confidence, CensoredBounds)


@pytest.mark.parametrize(
    "posterior",
    [
        posterior_on_arms(ARMS, KERNEL, 0.1),
        posterior_on_arms(nr.Arms.grid(0, 1, 300), nr.Matern(0.5, 0.05), 0.1),
        PointPosterior(KERNEL, 1, 0.1),
        DriftingPosterior(ARMS, KERNEL, 0.1, rate=0.1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_covariances_between_points_are_those_of_all_together(posterior):
    places = [[0.1], [0.5], [0.9]] if isinstance(posterior, PointPosterior) else [1, 7, 12]
    others = [[0.5], [0.3]] if isinstance(posterior, PointPosterior) else [7, 3]
    for point in (places[1], others[1]):
        posterior.append(point, 0.3)
    together, found = posterior.covariance(np.array(places + others)), posterior.cross_covariance(places, others)
    np.testing.assert_allclose(found, together[:3, 3:], atol=1e-9)
