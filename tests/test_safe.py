"""`Safe` is safe for people who do not scale their constraint, and says what it was not told."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import nilregret as nr
from nilregret.slots import safe_check
from nilregret.slots.constraints import cautious_scale

ARMS, KERNEL = nr.Arms.grid(0, 10, 101), nr.Matern(2.5, 2.0)
LINE, SHORT = nr.Arms.grid(0, 1, 21), nr.SquaredExponential(0.2)


def degrees(point):
    return 9.0 * float(point[0]) - 50.0


def policy(part, domain=ARMS, kernel=KERNEL, **more):
    return nr.gp_ucb(domain, kernel, noise=0.1, constraints=part, **more)


def hot(part, rounds=25, seed=0, **more):
    """The points too hot that were played, hotter ones being better."""
    study, rng = nr.Study(policy(part, **more), seed=seed), np.random.default_rng(seed)
    for _ in range(rounds):
        trial = study.ask()
        told = degrees(trial.point) + 0.5 * rng.standard_normal()
        study.tell(trial, trial.point[0] / 10, constraints=[told])
    return study, [trial.arm for trial in study.trials if degrees(trial.point) > 0.0]


# -- how large it is ---------------------------------------------------------------------------------------------------


def test_a_constraint_whose_size_nobody_told_is_refused():
    with pytest.raises(nr.errors.InvalidInput, match=r"how large the constraint is.*`scale`.*`kernel`.*'learned'"):
        policy(nr.Safe(start=[2.0], noise=0.5))
    policy(nr.Safe(start=[2.0], kernel=KERNEL))  # which says it
    policy(nr.Safe(start=[2.0], scale="kernel"))
    for scale in (0.0, "large", [1.0, 2.0]):
        with pytest.raises(nr.errors.InvalidInput, match="`scale`"):
            nr.Safe(start=[2.0], scale=scale)


def test_the_scale_is_the_standard_deviation_of_the_constraint():
    made = policy(nr.Safe(start=[2.0], count=2, scale=[30.0, 0.5]), kernel=4.0 * KERNEL)
    study = nr.Study(made)
    for j, scale in ((1, 30.0), (2, 0.5)):
        lower, upper = study.bounds([[7.0]], channel=j)
        assert (upper - lower)[0] == pytest.approx(2.0 * study.width * scale)
    of_kernel = policy(nr.Safe(start=[2.0], scale=5.0, kernel=nr.Linear()))
    assert of_kernel.of_channel(1).kernel.diagonal(np.array([[10.0]])) == pytest.approx(25.0)


@pytest.mark.parametrize("scale", [25.0, "learned"])
def test_degrees_are_kept_where_the_scale_is_told_or_learned(scale):
    study, too_hot = hot(nr.Safe(start=[2.0], scale=scale, noise=0.5))
    assert too_hot == []
    assert max(trial.point[0] for trial in study.trials) > 5.0  # the border is at 5.56
    assert study.valid_for == ("f" if scale == 25.0 else "none")


def test_with_a_scale_that_is_learned_nothing_but_start_is_played_before_a_value():
    study = nr.Study(policy(nr.Safe(start=[[2.0]], scale="learned", noise=0.5)))
    assert study.feasible().sum() == 1.0
    assert {study.ask().point[0] for _ in range(3)} == {2.0}
    study.tell(0, 0.2, constraints=[-32.0])
    assert 1.0 < study.feasible().sum() <= 5.0  # a small step
    with pytest.raises(nr.errors.InvalidInput, match="`prior_mean`"):
        nr.Safe(start=[[2.0]], scale="learned", prior_mean=-30.0)


def test_what_is_learned_is_a_large_scale_and_a_short_lengthscale():
    one = cautious_scale(SHORT, np.array([[0.5]]), np.array([-10.0]), np.array([3]), noise=0.1)
    assert one[0] < 1.0
    assert 20.0 <= one[1] <= 45.0  # nothing but the distance from the border is known
    rng, X = np.random.default_rng(0), np.linspace(0, 1, 25)[:, None]
    drawn = np.linalg.cholesky(SHORT(X, X) + 1e-9 * np.eye(25)) @ rng.standard_normal(25)
    factor, scale = cautious_scale(SHORT, X, 7.0 * drawn, np.ones(25), noise=0.1)
    assert 0.25 <= factor <= 1.0
    assert 5.0 <= scale <= 21.0
    assert cautious_scale(SHORT, X, np.zeros(25), np.ones(25), noise=0.0)[1] == 0.0


def test_what_is_learned_is_a_function_of_the_record(tmp_path):
    made = policy(nr.Safe(start=[2.0], scale="learned", noise=0.5))
    url, rng = f"sqlite:///{tmp_path}/a.db", np.random.default_rng(0)
    study = nr.Study(made, storage=url)
    for i in range(14):
        trial = study.ask()
        study.tell(trial, trial.point[0], constraints=[degrees(trial.point) + 0.5 * rng.standard_normal()])
        if i % 5 == 4:
            study = nr.Study.open(storage=url)
    again = nr.Study.open(storage=url)
    np.testing.assert_array_equal(study.bounds(channel=1), again.bounds(channel=1))
    assert study.ask().arm == again.ask().arm


def test_after_a_restart_the_scale_is_learned_anew():
    study, _ = hot(nr.Safe(start=[2.0], scale="learned", noise=0.5), rounds=12, memory=nr.slots.RestartAt((12,)))
    assert len({trial.arm for trial in study.trials}) > 3
    assert study.feasible().sum() == 1.0


# -- what was risked ---------------------------------------------------------------------------------------------------


def test_the_first_play_of_a_point_takes_its_risk_off_delta():
    made = policy(nr.Safe(start=[[2.0]], scale=25.0, delta=0.1))
    state = made.constraints.begin(made)
    limits = [SimpleNamespace(mean=np.array([-2.0]), std=np.array([1.0]))]
    for number, (place, left) in enumerate([(2.0, 0.1), (3.0, 0.1 - norm.sf(2.0)), (3.0, 0.1 - norm.sf(2.0))]):
        state.asked(SimpleNamespace(number=number, point=np.array([place]), context=None), lambda: limits)
        assert state.remaining_delta == pytest.approx(left)
    state.forget_before(2)
    assert state.remaining_delta == 0.1


# -- what was measured -------------------------------------------------------------------------------------------------


def test_what_was_measured_unsafe_is_not_played_again(monkeypatch):
    """The kernel is sure of g = -1 everywhere, and mistaken, which nothing checks here."""
    monkeypatch.setattr(safe_check, "FALSE_ALARM", 1e-300)
    part = nr.Safe(start=[[0.0]], kernel=1e-6 * SHORT, noise=0.5, prior_mean=-1.0)
    study, told = nr.Study(policy(part, LINE, SHORT)), {}
    for _ in range(30):
        trial = study.ask()
        assert np.mean(told.get(trial.arm, [-1.0])) <= 0.0
        told.setdefault(trial.arm, []).append(0.9 if trial.point[0] > 0.5 else -1.0)
        study.tell(trial, trial.point[0], constraints=told[trial.arm][-1:])
        assert (study.feasible()[[arm for arm, values in told.items() if values[0] > 0.0]] == 0.0).all()
    assert sum(values[0] > 0.0 for values in told.values()) >= 5


def test_a_point_told_several_times_counts_by_the_average():
    part = nr.Safe(start=[[0.0], [1.0]], scale=1.0, noise=1.0)
    study = nr.Study(policy(part, LINE, SHORT))
    study.add([1.0], 0.0, constraints=[0.4])
    assert study.feasible([[1.0]]).tolist() == [0.0]
    study.add([1.0], 0.0, constraints=[-0.5])
    assert study.feasible([[1.0]]).tolist() == [1.0]


def test_where_all_starts_are_unsafe_the_lowest_is_played_with_a_warning():
    part = nr.Safe(start=[[0.0], [0.5], [1.0]], scale=1.0, noise=0.1)
    study = nr.Study(policy(part, LINE, SHORT))
    for point, value in ((0.0, 0.5), (0.5, 0.2), (1.0, 0.9)):
        study.add([point], point, constraints=[value])
    with pytest.warns(nr.errors.NoRegretWarning, match=r"trial 3 is at the point of `start` whose.*lowest"):
        trial = study.ask()
    assert trial.point[0] == 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        assert study.ask().point[0] == 0.5


def test_a_point_that_somebody_enqueued_says_nothing_of_start():
    study = nr.Study(policy(nr.Safe(start=[[0.0]], scale=1.0, noise=0.1), LINE, SHORT))
    study.add([0.0], 0.0, constraints=[-1.0])
    study.add([0.5], 0.0, constraints=[0.5])
    study.enqueue([0.5])
    assert study.ask().point[0] == 0.5
    assert not study.remarks


def test_an_unsafe_start_of_before_a_restart_is_forgotten():
    part = nr.Safe(start=[[0.0]], scale=1.0, noise=0.1)
    study = nr.Study(policy(part, LINE, SHORT).using(memory=nr.slots.RestartAt((2,))))
    study.add([0.0], 0.0, constraints=[0.5])
    with pytest.warns(nr.errors.NoRegretWarning, match="trial 1 is at the point of `start`"):
        study.tell(study.ask(), 0.0, constraints=[0.5])
    study.tell(study.ask(), 0.0, constraints=[-0.5])
    assert study.restarts == [2]
    assert not study.remarks


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ([(0.0, -32.0)], "`scale` is too small"),
        ([(0.0, -0.5), (0.05, -3.0)], "lengthscale is too long"),
        ([(0.0, -0.5), (0.0, -1.8)], "`noise` is too small"),
    ],
)
def test_values_that_contradict_the_prior_stop_the_expansion(values, cause):
    study = nr.Study(policy(nr.Safe(start=[[0.0]], scale=1.0, noise=0.1), LINE, SHORT))
    for point, value in values:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study.ask()  # so that each is expected after those before
        study.add([point], 0.0, constraints=[value])
    with pytest.warns(nr.errors.NoRegretWarning, match=cause):
        study.ask()
    assert study.feasible().sum() == 1.0  # though all of them are far below the border
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once
        assert study.ask().point[0] == 0.0


MODEL = safe_check.Model(SHORT, 0.1, -1.0)


def answer(number, point):
    return SimpleNamespace(number=number, point=np.array(point), context=None)


def test_the_ratio_is_that_of_the_densities_of_all_values():
    X, y = np.array([[0.0], [0.1], [0.1], [0.6], [0.1]]), np.array([0.2, -0.9, -0.7, 1.1, -0.8])
    check = safe_check.LikelihoodCheck([MODEL])
    for number, value in enumerate(y):
        check.record(answer(number, X[number]), np.array([value - 1.0]))
    found = check.log_ratios(0)
    for log_ratio, (length, scale, noise) in zip(found, safe_check.ALTERNATIVES, strict=True):
        S, S_0 = (
            b**2 * nr.SquaredExponential(0.2 * a)(X, X) + (0.1 * c) ** 2 * np.eye(5)
            for a, b, c in ((length, scale, noise), (1.0, 1.0, 1.0))
        )
        wanted = multivariate_normal.logpdf(y, cov=S) - multivariate_normal.logpdf(y, cov=S_0)
        assert log_ratio == pytest.approx(wanted, rel=1e-9)


def test_a_model_that_is_right_is_rarely_contradicted():
    """Each next place is the one with the lowest value so far or a neighbour, and values are drawn as stated.

    At most 1 run in 20 may end. More than 12 of 100 come about with probability 2e-3.
    """
    X, fired = LINE.points, 0
    root = np.linalg.cholesky(SHORT(X, X) + 1e-9 * np.eye(len(X)))
    for seed in range(100):
        rng = np.random.default_rng([seed, 17])
        g, place, said, told = root @ rng.standard_normal(len(X)) - 1.0, 10, [], {}
        check = safe_check.LikelihoodCheck([MODEL])
        for number in range(12):
            told[place] = g[place] + 0.1 * rng.standard_normal()
            check.record(answer(number, X[place]), np.array([told[place]]))
            said.append(check.contradiction())
            place = int(np.clip(min(told, key=told.get) + rng.integers(-2, 3), 0, 20))
        fired += any(said)
    assert fired <= 12


def test_values_that_contradict_only_together_stop_the_expansion():
    """Noise twice as large as stated: no value is four standard deviations off."""
    check, other = (safe_check.LikelihoodCheck([MODEL, MODEL]) for _ in range(2))
    told = 0.2 * np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    for number, value in enumerate(told):
        check.record(answer(number, [0.5]), np.array([-1.0, value - 1.0]))
    copied = check.copy()
    said = check.contradiction()
    assert "of trial 7 (g_2) contradicts the prior" in said
    assert "Usually `noise` is too small: 2 times" in said or "Usually `noise` is too small: 4 times" in said
    for number in (3, 0, 7, 5, 1, 2, 6, 4):  # answers may be late
        other.record(answer(number, [0.5]), np.array([-1.0, told[number] - 1.0]))
    assert other.contradiction() is not None
    check.forget_before(6)
    assert check.contradiction() is None
    assert copied.contradiction() == said


def test_what_contradicts_the_prior_is_a_function_of_the_record(tmp_path):
    made = policy(nr.Safe(start=[[0.0]], scale=1.0, noise=0.1), LINE, SHORT)
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(made, storage=url)
    trials = [study.ask() for _ in range(3)]
    study.tell(trials[2], 0.0, constraints=[-1.5])
    study.tell(trials[0], 0.0, constraints=[-1.4])
    study.tell(trials[1], 0.0, constraints=[-2.9])
    with pytest.warns(nr.errors.NoRegretWarning, match=r"trial 1 \(g_1\) .*`noise` is too small"):
        study.ask()
    assert study.trials[-1].point[0] == 0.0
    again = nr.Study.open(storage=url)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert again.feasible().sum() == 1.0
        assert again.remarks == study.remarks
    again.tell(trials[1], 0.0, constraints=[-1.45], revise=True)
    assert "contradiction" not in again.remarks
    assert again.feasible().sum() > 1.0


def test_beyond_many_places_each_value_is_compared_with_its_prediction(monkeypatch):
    monkeypatch.setattr(safe_check, "MOST", 0)
    study = nr.Study(policy(nr.Safe(start=[[0.0]], scale=1.0, noise=0.1), LINE, SHORT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (-0.5, -0.5, -1.8):
            study.add([0.0], 0.0, constraints=[value])
            study.ask()
    assert "standard deviations away" in study.remarks["contradiction"]


def test_steps_that_are_too_long_to_be_learned_are_said_to_be():
    study = nr.Study(policy(nr.Safe(start=[0.0], scale="learned", noise=0.5), nr.Arms.grid(0, 10, 5)))
    for _ in range(16):
        trial = study.ask()
        assert trial.arm == 0
        study.tell(trial, 0.0, constraints=[-10.0])
    with pytest.warns(nr.errors.NoRegretWarning, match="16 or more constraint values .* finer arms"):
        study.ask()


def test_of_arms_that_are_not_certified_none_is_played():
    study = nr.Study(policy(nr.Safe(start=[[0.0]], scale=1.0, noise=0.1), LINE, SHORT))
    with pytest.raises(nr.NoRegretError, match="Nothing that may be played now is certified"):
        study.ask(among=[5, 6, 7])
    with pytest.raises(nr.NoRegretError, match="Nothing that may be played now is certified"):
        study.ask(among=[6])  # one place is asked for its certificate, too
    assert study.ask(among=[0, 5, 6]).arm == 0


# -- by which noise ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [nr.igp_ucb, nr.gp_ts])
def test_the_certificate_takes_the_noise_told_and_not_the_regulariser(algorithm):
    part = nr.Safe(start=[[0.0]], scale=30.0)
    made = algorithm(LINE, SHORT, noise=3.0, norm_bound=2.0, constraints=part)
    assert made.regularization == 1.0
    assert made.of_channel(1).regularization == 9.0


@pytest.mark.parametrize("part", [nr.EveryRound, nr.OnAverage])
@pytest.mark.parametrize("width", ["igp", "ay", "amm", "dmm"])
def test_a_constraint_with_noise_of_its_own_has_a_width_of_its_own(part, width):
    made = nr.igp_ucb(LINE, SHORT, noise=0.1, norm_bound=1.0, width=width, constraints=part(noise=0.6))
    of_g = made.of_channel(1)
    assert of_g.confidence.noise == of_g.noise == 0.6
    assert getattr(of_g.confidence, "regularization", 0.36) == of_g.regularization == pytest.approx(0.36)
    assert of_g.valid_for == ("none" if width == "igp" else "f")  # Theorem 2 wants lambda >= 1
    assert made.confidence.noise == 0.1
    study = nr.Study(made)
    assert study.valid_for == of_g.valid_for


def test_bounds_of_which_nothing_is_proved_certify_nothing():
    part = nr.Safe(start=[[0.0]], scale=1.0, certificate="bounds")
    assert policy(part, LINE, SHORT).of_channel(1).valid_for == "f"
    # Theorem 2 of Chowdhury and Gopalan has a lambda of its own, whatever the noise.
    own = nr.Safe(start=[[0.0]], scale=1.0, certificate="bounds", noise=0.6)
    of_g = nr.igp_ucb(LINE, SHORT, noise=0.1, norm_bound=1.0, constraints=own).of_channel(1)
    assert (of_g.regularization, of_g.confidence.noise, of_g.valid_for) == (1.0, 0.6, "f")
    for wrong in (
        lambda: policy(nr.Safe(start=[[0.0]], scale=1.0, certificate="bounds", confidence=3.0), LINE, SHORT),
        lambda: policy(nr.Safe(start=[[0.0]], scale="learned", certificate="bounds"), LINE, SHORT),
        lambda: nr.igp_ucb(LINE, SHORT, noise=0.1, norm_bound=1.0, regularization=0.1, constraints=part),
    ):
        with pytest.raises(nr.errors.InvalidInput, match="nothing is proved for those of constraint 1"):
            wrong()


def test_noise_that_nobody_has_told_certifies_nothing():
    with pytest.raises(nr.errors.InvalidInput, match=r"nobody has told it \(`noise` 'unknown'\)"):
        nr.igp_ucb(LINE, SHORT, noise="unknown", norm_bound=1.0, constraints=nr.Safe(start=[[0.0]], scale=1.0))


def test_bounds_with_noise_of_their_own_hold_the_constraint():
    """12 runs of 25 rounds under a noise six times that of the reward: with the reward's width a third violated."""
    K = SHORT(LINE.points, LINE.points)
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        g = np.ones(21)
        while g.min() > -0.8:
            weights = rng.standard_normal(21) * (rng.random(21) < 0.3)
            g = 2.0 * (K @ weights) / np.sqrt(max(weights @ K @ weights, 1e-9))
        part = nr.Safe(start=LINE.points[[int(g.argmin())]], kernel=SHORT, noise=0.6, certificate="bounds")
        study = nr.Study(nr.igp_ucb(LINE, SHORT, noise=0.1, norm_bound=2.0, width="dmm", constraints=part), seed=seed)
        for _ in range(25):
            trial = study.ask()
            assert g[trial.arm] <= 0.0
            study.tell(trial, g[trial.arm], constraints=[g[trial.arm] + 0.6 * rng.standard_normal()])


# -- where to start ----------------------------------------------------------------------------------------------------

SPACE = nr.Space(threads=nr.Int(1, 16), cache=nr.Float(1, 1000, log=True))


@pytest.mark.parametrize("domain", [SPACE, SPACE.grid(8)], ids=["space", "grid"])
def test_start_takes_parameters(domain):
    start = SPACE.grid(8).space.decode(SPACE.grid(8).points[3])
    made = policy(nr.Safe(start=[start], scale=10.0), domain, nr.kernel_for(domain))
    np.testing.assert_array_equal(made.constraints.start, domain.inside("start", [start]))
    assert nr.Policy.from_json(made.to_json()) == made
    assert policy(nr.Safe(start=start, scale=10.0), domain, nr.kernel_for(domain)) == made
    study = nr.Study(made)
    assert study.ask().parameters == start
    assert study.feasible(start).tolist() == [1.0]
    with pytest.raises(nr.errors.InvalidInput, match="do not fit the space"):
        policy(nr.Safe(start={"threads": 4}, scale=10.0), domain, nr.kernel_for(domain))


def test_a_start_out_of_range_has_no_advice_that_such_studies_refuse():
    with pytest.raises(nr.errors.InvalidInput, match=r"Parameter `power` is 9: it must lie in \[0, 5\]\.$"):
        nr.auto(
            nr.Space(power=nr.Float(0, 5)), constraints=nr.Safe(start=[{"power": 9}], slope={"power": 1.0}, noise=0.1)
        )


def test_start_is_a_point_of_the_domain_to_its_last_digit():
    """0.3 is not the fourth of eleven arms, which is 0.30000000000000004: nothing could be played."""
    study = nr.Study(policy(nr.Safe(start=[0.3], scale=1.0), nr.Arms.grid(0, 1, 11), SHORT))
    assert study.ask().arm == 3


def test_a_stored_study_whose_bounds_were_never_proved_is_refused():
    sound = nr.Safe(start=[[0.0]], kernel=SHORT, certificate="bounds")
    text = policy(sound, LINE, SHORT).to_json()
    assert '"certificate": "bounds"' in text
    old = text.replace('"confidence": null', '"confidence": {"type": "ConstantWidth", "value": 3.0}', 1)
    assert old != text
    with pytest.raises(nr.errors.InvalidInput, match="nothing is proved for those of constraint 1"):
        nr.Policy.from_json(old)
