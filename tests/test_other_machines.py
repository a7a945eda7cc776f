"""Another processor or another C library rounds last bits differently. Decisions do not follow that."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.gp import distinct_arms
from nilregret.gp.arms import Prior
from nilregret.gp.binomial_counts import RatePosterior, RatePrior
from nilregret.gp.choice import posterior_on_arms
from nilregret.gp.distinct_arms import DistinctArmsPosterior
from nilregret.gp.drifting import BankPosterior, DriftingPosterior
from nilregret.gp.feature_maps import NystromFeatures
from nilregret.kernels.factorization import covariance_root, pivoted_cholesky
from nilregret.slots.propensities import JointNormals
from nilregret.study.explain import explanation

from .last_bits import last_bits_moved
from .marks import thinned
from .test_golden_auto import ARMS as LINE
from .test_golden_auto import CASES, parted, play

ALIASES = {"Prescott": "Katmai"}  # the first name of these kernels on processors of 64 bits
ROOT = Path(__file__).parent.parent
SQUARE = nr.Arms(np.stack(np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6)), -1).reshape(-1, 2))
ROUGH = nr.Matern(2.5, 0.3)


def rounded_otherwise(matrix, seed):
    """A symmetric matrix with last bits as another machine may have them."""
    noise = np.random.default_rng(seed).integers(-1, 2, matrix.shape)
    return matrix * (1.0 + np.finfo(float).eps * np.tril(noise) + np.finfo(float).eps * np.tril(noise, -1).T)


class Elsewhere:
    """A kernel as another machine computes it."""

    def __init__(self, kernel, points, seed):
        self.matrix = rounded_otherwise(kernel(points, points), seed)

    def arm_variances(self, points):
        return self.matrix.diagonal().copy()

    def diagonal(self, points):
        return self.matrix.diagonal().copy()

    def between_arms(self, points, rows, columns):
        return self.matrix[rows][:, columns]

    def __call__(self, points, others):
        return self.matrix


def drawn_by_pivots(kernel):
    found = pivoted_cholesky(kernel, SQUARE.points, tol=1e-14, max_rank=len(SQUARE)).features
    return found @ np.random.default_rng(1).standard_normal(found.shape[1])


def drawn_by_root(kernel):
    root = covariance_root(kernel(SQUARE.points, SQUARE.points))
    return root @ np.random.default_rng(1).standard_normal(root.shape[1])


def drawn_in_span(kernel):
    span = NystromFeatures(kernel, SQUARE.points, 1e-8, 20)
    return span.points @ np.random.default_rng(1).standard_normal(2)


def propensities(kernel):
    return JointNormals(np.zeros(len(SQUARE)), kernel(SQUARE.points, SQUARE.points)).probabilities(1.0)


DRAWS = [drawn_by_pivots, drawn_by_root, drawn_in_span, propensities]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kernel", [ROUGH, nr.SquaredExponential(0.3)], ids=["rough", "smooth"])
def test_arms_that_mirror_each_other_are_drawn_alike_however_last_bits_are_rounded(draw, kernel):
    plain = draw(kernel)
    for seed in range(5):
        np.testing.assert_allclose(draw(Elsewhere(kernel, SQUARE.points, seed)), plain, rtol=0.0, atol=1e-6)


SAMPLED = {
    "low rank": lambda kernel: posterior_on_arms(LINE, kernel, 0.1),
    "distinct arms": lambda kernel: DistinctArmsPosterior(Prior(kernel, LINE.points), 0.1),
    "many arms": lambda kernel: DistinctArmsPosterior(Prior(kernel, LINE.points), 0.1),
    "rates": lambda kernel: RatePosterior(
        kernel, LINE.points, RatePrior(nr.slots.Bernoulli(), 0.0), regularization=0.25
    ),
    "drifting": lambda kernel: DriftingPosterior(LINE, kernel, 0.1, rate=0.1),
    "bank": lambda kernel: BankPosterior(LINE, kernel, 0.1, rates=(0.0, 0.1)),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_later_numbers_are_the_same_whatever_the_rank_of_a_draw(name, monkeypatch):
    """The rank is where rounding begins. One feature more must not be another draw of all that comes later."""
    if name == "many arms":
        monkeypatch.setattr(distinct_arms, "MOST_JOINT", 10)
    after = []
    for lengthscale in (0.1, 10.0):
        posterior, rng = SAMPLED[name](nr.SquaredExponential(lengthscale)), Draws("trial 0 0")
        posterior.append(3, 1.0)
        posterior.sample(rng, size=3)
        after.append(rng.random())
    assert after[0] == after[1]


def short(name):
    case = CASES[name]
    return partial(case.func, case.args[0], 12, **case.keywords)


PLAYED = {
    "clicks": short("yes and no"),
    "counts": short("counts"),
    "bank of rates": short("bank of rates"),
    "a square of arms": partial(play, nr.gp_ts(SQUARE, ROUGH, noise=0.1, norm_bound=2), 12),
    "a line of arms": partial(play, nr.gp_ts(LINE, ROUGH, noise=0.1, norm_bound=2), 12),
    "on average": short("on average"),
    "adaptive on a box": short("adaptive on a box"),
    "adaptive": partial(play, nr.gp_ts(SQUARE, ROUGH, noise=0.1, norm_bound=2, memory="adaptive"), 12),
    "a box": short("box"),
    "a sketch": short("sketch"),
}


@pytest.mark.parametrize("name", thinned(PLAYED, *PLAYED.keys() - {"adaptive on a box"}))
def test_decisions_do_not_follow_the_last_bits_of_a_library(name):
    here = PLAYED[name]()
    with last_bits_moved():
        assert parted(PLAYED[name], here, PLAYED[name]()) is None


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["Prescott", "Sandybridge", "Haswell"])
def test_decisions_do_not_follow_the_kernels_of_blas(name):
    """The child also does without what NumPy has for newer processors."""
    env = os.environ | {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": " ".join(_newer())}
    code = "from tests.test_other_machines import child; child()"
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    if not set(found["kernels"]) <= {name, ALIASES.get(name)}:
        pytest.skip(f"OpenBLAS cannot be had with its kernels for {name} here, but with {found['kernels']}.")
    for key, case in (PLAYED | CASES).items():
        assert parted(case, case(), found["played"][key]) is None, key
    for draw, numbers in zip(DRAWS, found["drawn"], strict=True):
        np.testing.assert_allclose(draw(ROUGH), numbers, rtol=0.0, atol=1e-6)


def child():
    kernels = [each["architecture"] for each in threadpool_info() if each["internal_api"] == "openblas"]
    played = {key: case() for key, case in (PLAYED | CASES).items()}
    print(json.dumps({"kernels": kernels, "played": played, "drawn": [draw(ROUGH).tolist() for draw in DRAWS]}))


def _newer():
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


def test_a_program_that_another_machine_rounds_otherwise_resumes_its_study(tmp_path):
    """Two workers of different processors share a study, whose policy each has computed by itself."""

    def policy(lengthscale=0.9):
        arms = nr.Space(rate=nr.Float(1e-3, 2.0, log=True), layers=nr.Int(1, 9, log=True)).grid(5)
        kernel = nr.Matern(2.5, [float(np.exp(-lengthscale)), 0.7])
        return nr.gp_ts(arms, kernel, noise=0.1, norm_bound=2.0)

    url = f"sqlite:///{tmp_path}/studies.db"
    here = nr.Study(policy(), storage=url)
    for arm, point in enumerate(here.policy.domain.points):
        here.add(point, 0.1 * arm)
    with last_bits_moved():
        assert policy().to_json() != here.policy.to_json()
        assert (policy().domain.points != here.policy.domain.points).any()
        there = nr.Study(policy(), storage=url)
        assert there.policy.to_json() == here.policy.to_json()
        asked = there.ask().arm
    assert nr.Study(policy(), storage=url).explain(25).repeated
    assert here.trials[25].arm == asked
    with pytest.raises(nr.errors.InvalidInput, match=r"other values: kernel\.lengthscale"):
        nr.Study(policy(lengthscale=0.90000001), storage=url)


def test_a_run_with_computed_bounds_goes_on_elsewhere(tmp_path):
    def run(trials, end):
        box = nr.Box([0.0], [float(np.exp(end))])
        return nr.minimize(lambda x: float(x[0]), box, trials=trials, storage=f"sqlite:///{tmp_path}/a.db", name="a")

    end = next(each for each in np.linspace(0.3, 0.7, 9) if np.exp(each) != _elsewhere(each))
    run(2, end)
    with last_bits_moved():
        assert len(run(3, end).study.trials) == 3
    with pytest.raises(nr.errors.InvalidInput, match="of other parameters"):
        run(4, end + 1e-6)


def _elsewhere(value):
    with last_bits_moved():
        return np.exp(value)


def test_a_decision_of_another_machine_is_repeated():
    """`explain` compares points as far as machines agree, and no further."""
    box, small = nr.Box([0.0, -1.0], [1.0, 1.0]), nr.slots.PointSearch(candidates=64)
    study = nr.Study(nr.gp_ucb(box, ROUGH, noise=0.1, search=small), seed=0)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, float(np.sin(5 * trial.point[0]) - trial.point[1] ** 2))
    with last_bits_moved():
        assert all(study.explain(number).repeated for number in range(6))
    inwards = (box.upper - box.lower) * np.sign(box.upper + box.lower - 2.0 * study.trials[5].point)
    for share, repeated in ((4e-7, True), (4e-6, False)):
        there = study.trials[5]._replace(point=study.trials[5].point + share * inwards)
        said = explanation(study.policy, study.goals, [*study.trials[:5], there], 5, seed=0)
        assert said.repeated is repeated
