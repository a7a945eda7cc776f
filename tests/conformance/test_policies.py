"""Every named algorithm joins by one line in POLICIES; design identities are checked for all of them."""

import functools
import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret import algorithms, testing
from nilregret.algorithms import registry as schema
from nilregret.slots.explore import NoExploration

ARMS = nr.Arms.grid(0, 1, 60)
KERNEL = nr.SquaredExponential(0.15)


def make(algorithm, domain=ARMS, kernel=KERNEL, noise=0.1, **more):
    return algorithm(domain, kernel, noise=noise, **more)


POLICIES = {
    "asy_ts": functools.partial(make, nr.algorithms.asy_ts),
    "gp_bts": functools.partial(make, nr.algorithms.gp_bts, beta=1.0),
    "gp_bucb": functools.partial(make, nr.gp_bucb),
    "gp_ts_sdf": functools.partial(make, nr.gp_ts_sdf, window=5, beta=1.0, minimum=-2.0, prior_mean=0.0),
    "gp_ucb_cpd": functools.partial(make, nr.gp_ucb_cpd, horizon=200),
    "gp_ucb_noiseless_constraints": functools.partial(
        make, nr.gp_ucb_noiseless_constraints, norm_bound=1.0, epoch=8, epochs=5
    ),
    "gp_ucb_noisy_constraints": functools.partial(make, nr.gp_ucb_noisy_constraints, norm_bound=1.0, epoch=8, epochs=5),
    "gp_ucb_sdf": functools.partial(make, nr.gp_ucb_sdf, window=5, minimum=-2.0, prior_mean=0.0),
    "expected_improvement": functools.partial(make, nr.expected_improvement),
    "gp_ts": functools.partial(make, nr.gp_ts, norm_bound=1.0),
    "gp_ucb": functools.partial(make, nr.gp_ucb),
    "greedy_mean": functools.partial(make, nr.algorithms.greedy_mean),
    "greedy_variance": functools.partial(make, nr.algorithms.greedy_variance),
    "hypervolume_thompson": functools.partial(make, nr.algorithms.hypervolume_thompson, reference=(-2.0, -2.0)),
    "hypervolume_ucb": functools.partial(make, nr.algorithms.hypervolume_ucb, reference=(-2.0, -2.0)),
    "igp_ucb": functools.partial(make, nr.igp_ucb, norm_bound=1.0),
    "irgp_ucb": functools.partial(make, nr.irgp_ucb),
    "kernel_ucb": functools.partial(make, nr.kernel_ucb, eta=0.5),
    "lb_gp_ucb": functools.partial(make, nr.algorithms.lb_gp_ucb, norm_bound=1.0, factors=(1.0, 0.5), growth=0.3),
    "probability_of_improvement": functools.partial(make, nr.algorithms.probability_of_improvement),
}
TRACED = POLICIES | {
    "irgp_ucb_half": functools.partial(make, nr.irgp_ucb, shift="half"),
}
GOLDEN = Path(__file__).parent.parent / "golden"


def reward(trial):
    noise = np.random.default_rng([99, trial.number]).normal(scale=0.1)
    return float(np.sin(9 * trial.point[0]) + noise)


def told(study, trial, shift=0.0):
    """A reward or, where the policy has several objectives, the value of each."""
    others = [shift + float(np.sin(5 * trial.point[0] + 2 * j)) for j in range(1, study.policy.objective_count)]
    return (shift + reward(trial), *others) if others else shift + reward(trial)


def answer(study, trial):
    """Tell a reward and, where the policy has constraints, a value of each."""
    values = [float(np.cos(7 * trial.point[0]))] * study.policy.constraint_count or None
    study.tell(trial, told(study, trial), constraints=values)


def recorded(trial):
    """What was told."""
    return trial.values if trial.others else trial.reward


def best(study):
    """The best trial; None where no trial has satisfied the constraints yet."""
    try:
        return study.front()[0]
    except nr.errors.TrialError:
        assert study.policy.constraint_count
        assert all(trial.constraints[0] > 0 for trial in study.trials)
        return None


def play(study, rounds):
    for _ in range(rounds):
        answer(study, study.ask())
    return [trial.arm for trial in study.trials]


@pytest.fixture(params=POLICIES.values(), ids=POLICIES.keys(), name="make")
def make_fixture(request):
    return request.param


def test_table_is_complete():
    named = set(algorithms.__all__) - set(algorithms.baselines.__all__)
    named -= {"boca"}  # It has settings, which its kernel sees, too (tests/test_fidelity.py).
    assert named == set(POLICIES)
    # `auto` is parts that are tested by themselves and together (tests/test_auto.py).
    assert named | {"auto"} == set(schema.ALGORITHMS) | set(schema.ALGORITHMS_LEFT_OUT)
    assert {make().algorithm for make in POLICIES.values()} == named


DIFFERS = {  # from its paper, unless told otherwise, in these words
    "admmbo": "a tenth of the candidates",
    "bandit_oco": "its probes are trials",
    "expected_improvement": "in place of the best reward",
    "gp_bts": "in place of its own",
    "gp_bucb": "without its factor exp(C)",
    "gp_ts": "the realised gain, no grid D_t, lambda = 1",
    "gp_ts_sdf": "realised information gain, lambda = 1",
    "gp_ucb_cpd": "log^3 T in beta_t where the paper prints log^4 T",
    "gp_ucb_noiseless_constraints": "data kept over epochs",
    "gp_ucb_noisy_constraints": "data kept over epochs",
    "gp_ucb_sdf": "realised information gain, lambda = 1",
    "igp_ucb": "*realised* information gain, lambda = 1",
    "kernel_ucb": "lambda is free, and 1 here",
    "lb_gp_ucb": "tighter widths, and candidates that do not grow",
    "probability_of_improvement": "on the highest posterior mean",
}


@pytest.mark.parametrize("name", DIFFERS)
def test_what_differs_from_the_paper_is_said_first(name):
    assert DIFFERS[name] in inspect.getdoc(getattr(algorithms, name)).splitlines()[0]


@pytest.mark.parametrize("name", TRACED)
def test_golden_trace(name):
    """The first 50 arms at a fixed seed; after a wanted change write them anew: python tests/golden/write.py."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    assert play(nr.Study(TRACED[name](), seed=7), 50) == golden


@pytest.mark.parametrize("name", POLICIES)
def test_signature(name):
    parameters = inspect.signature(getattr(algorithms, name)).parameters
    positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["domain", "kernel"]
    assert parameters["noise"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["delta"].default == 0.1
    assert parameters["regularization"].default is None


def test_round_trips_through_json(make):
    policy = make()
    text = policy.to_json()
    again = nr.Policy.from_json(text)
    assert again == policy
    assert again.to_json() == text
    assert hash(again) == hash(policy)
    assert play(nr.Study(again, seed=3), 20) == play(nr.Study(policy, seed=3), 20)
    with pytest.raises(AttributeError):
        policy.noise = 0.2


def test_keeps_the_promises_of_every_policy(make):
    """Asking, looking and reopening, the order of arrival, failures, what counts, bounds and scores."""
    testing.check_policy(make(domain=nr.Arms.grid(0, 1, 20)))


def test_same_seed_same_run_other_seed_other_run(make):
    assert play(nr.Study(make(), seed=1), 30) == play(nr.Study(make(), seed=1), 30)
    assert play(nr.Study(make(), seed=1), 30) != play(nr.Study(make(), seed=2), 30)


@pytest.mark.parametrize("stop", [13, *(pytest.param(stop, marks=pytest.mark.nightly) for stop in (0, 1, 2, 29))])
def test_resuming_from_storage_continues_exactly(make, tmp_path, stop):
    url = f"sqlite:///{tmp_path}/studies.db"
    straight = nr.Study(make(), seed=4)
    play(straight, 30)
    play(nr.Study(make(), seed=4, storage=url, name="a"), stop)
    resumed = nr.Study(make(), seed=4, storage=url, name="a")
    play(resumed, 30 - stop)
    assert [t.arm for t in resumed.trials] == [t.arm for t in straight.trials]
    np.testing.assert_array_equal(resumed.predict(), straight.predict())
    assert resumed.width == straight.width
    assert resumed.information_gain == straight.information_gain


def test_answers_may_come_late_or_never(make):
    study = nr.Study(make(), seed=6)
    never, late = study.ask(), study.ask()
    play(study, 10)
    answer(study, late)
    play(study, 10)
    assert study.trials[never.number].state == "pending"
    assert study.trials[late.number].told_order > study.trials[11].told_order
    if not study.policy.plain:
        return
    # Only what was answered counts.
    answered = nr.Study(make(), seed=6)
    for trial in study.trials:
        if trial.reward is not None:
            answered.add(trial.point, recorded(trial), constraints=trial.constraints)
    np.testing.assert_allclose(study.predict(), answered.predict(), atol=1e-10)


def test_added_points_count_like_asked_ones(make):
    asked, added = nr.Study(make(), seed=0), nr.Study(make(), seed=0)
    play(asked, 12)
    for trial in asked.trials:
        added.add(trial.point, recorded(trial), constraints=trial.constraints)
    if asked.policy.algorithm == "lb_gp_ucb":  # whose turn it is hangs on who asked; what they have learned does not
        np.testing.assert_allclose(asked.lengthscales.weights, added.lengthscales.weights, atol=1e-12)
        return
    np.testing.assert_allclose(asked.predict(), added.predict(), atol=1e-12)
    policy = asked.policy
    if policy.confidence.recent is None and policy.explore == NoExploration():  # these two are about questions asked
        assert asked.ask().arm == added.ask().arm


def test_a_failed_arm_is_set_aside_until_it_is_answered(make):
    study = nr.Study(make(), seed=0)
    trial = study.ask()
    study.fail(trial, "the machine burnt down")
    assert trial.arm not in play(study, 30)[1:]
    high = (100.0,) * study.policy.objective_count if study.policy.objective_count > 1 else 100.0
    study.add(trial.point, high, constraints=[0.0] * study.policy.constraint_count or None)
    study.ask()
    assert study.replica.state.outputs.engine.failed == set()
    assert study.trials[trial.number].reason == "the machine burnt down"


def test_bounds_contain_the_mean_and_best_is_among_the_answered(make):
    study = nr.Study(make(), seed=0)
    play(study, 25)
    lower, upper = study.bounds()
    mean, std = study.predict()
    assert lower.shape == upper.shape == mean.shape == std.shape == (60,)
    assert (lower <= mean).all()
    assert (mean <= upper).all()
    if study.policy.constraint_count:  # then it is not the mean of the reward: tests/test_constraints.py
        assert study.best().constraints[0] <= 0
    else:
        assert mean[study.front()[0].arm] == max(mean[trial.arm] for trial in study.trials)
    np.testing.assert_array_equal(study.predict(ARMS.points[[4, 2]])[0], mean[[4, 2]])


def test_prior_mean_shifts_everything_with_it(make):
    plain = nr.Study(make(), seed=2)
    lowest = {"minimum": 48.0} if "minimum" in make.keywords else {}
    lowest |= {"reference": (48.0, 48.0)} if "reference" in make.keywords else {}
    shifted = nr.Study(make(prior_mean=50.0, **lowest), seed=2)
    for _ in range(25):
        trials = plain.ask(), shifted.ask()
        assert trials[0].arm == trials[1].arm
        values = [0.0] * plain.policy.objective.constraints or None
        plain.tell(trials[0], told(plain, trials[0]), constraints=values)
        shifted.tell(trials[1], told(shifted, trials[1], 50.0), constraints=values)
    np.testing.assert_allclose(plain.predict()[0] + 50.0, shifted.predict()[0], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": -0.1}, "`noise` is -0.1"),
        ({"noise": float("nan")}, "`noise` is nan"),
        ({"noise": "0.1"}, "`noise` must be a number"),
        ({"delta": 0.0}, "`delta`"),
        ({"delta": 1.0}, "`delta`"),
        ({"regularization": -1.0}, "`regularization`"),
        ({"prior_mean": float("inf")}, "`prior_mean`"),
        ({"kernel": "matern"}, "`kernel` must be a kernel"),
        ({"kernel": nr.SquaredExponential([0.1, 0.2])}, "2 lengthscales"),
        ({"kernel": nr.kernels.Empirical(np.eye(3))}, "3 rows and the domain has 60 arms"),
        ({"domain": [1.0, 2.0]}, "`domain`"),
    ],
)
@pytest.mark.parametrize("name", POLICIES)
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        POLICIES[name](**arguments)


def test_descriptions_are_read_in_a_fresh_process(tmp_path):
    """Where nothing but the package has been imported: parts are loaded when they are first used."""
    texts = [make().to_json() for make in reversed(POLICIES.values())]  # any may be the first in its process
    (tmp_path / "policies.json").write_text(json.dumps(texts))
    script = (
        "import json, sys, nilregret as nr\n"
        "for text in json.load(open(sys.argv[1])):\n"
        "    assert nr.Policy.from_json(text).to_json() == text\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "policies.json")], check=True)
