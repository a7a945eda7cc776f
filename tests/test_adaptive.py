"""Changes that are noticed in all answers: the e-process against dense sums, and the memory that is made of it."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

import nilregret as nr
from nilregret.environments import drifting_samples, gp_sample
from nilregret.errors import InvalidInput
from nilregret.slots import Restart
from nilregret.slots.envelope import ConstantWidth
from nilregret.testing import check_policy
from nilregret.theory.change import evidence, posterior_sets
from nilregret.theory.change.evidence import ChangeEvidence, last_round, share, tail
from nilregret.theory.change.posterior_sets import OutlierHypotheses

from .marks import nightly

ARMS = nr.Arms.grid(0.0, 1.0, 9)
KERNEL = nr.Matern(2.5, 0.3)
K = KERNEL(ARMS.points, ARMS.points)
NOISE = 0.1
LAMBDA = NOISE**2


def between(cells, others):
    return K[np.ix_(cells, others)]


def fresh(**choices):
    return ChangeEvidence(between, LAMBDA, **choices)


def answers(rounds, seed=0, channels=1, change=None, order=None):
    """(number, arm, values), in the order of arrival."""
    rng = np.random.default_rng(seed)
    before, after = rng.multivariate_normal(np.zeros(9), K + 1e-9 * np.eye(9), size=(2, channels))
    arms, noise = rng.integers(9, size=rounds), NOISE * rng.standard_normal((rounds, channels))
    late = range(rounds) if order is None else sorted(range(rounds), key=lambda number: number + order[number])
    change = rounds if change is None else change
    return [(n, int(arms[n]), (before if n < change else after)[:, arms[n]] + noise[n]) for n in late]


def added(detector, told):
    for number, cell, values in told:
        detector.add(number, cell, values)
    return detector


# -- dense: all starts, a matrix solved for every answer ---------------------------------------------------------------


def dense_log_density(past, number, cell, values, weight, rate=0.0, K=K):
    """Log of the predictive density of each answer after others, from the joint Student-t of all of them."""
    cells, rounds = [other for _, other, _ in past], np.array([other for other, _, _ in past], dtype=float)
    y = np.array([told for *_, told in past]).reshape(len(past), len(values))
    M = K[np.ix_(cells, cells)] * (1 - rate) ** (np.abs(rounds[:, None] - rounds) / 2) + LAMBDA * np.eye(len(cells))
    k = K[cells, cell] * (1 - rate) ** ((number - rounds) / 2)
    solved = np.linalg.solve(M, np.column_stack([y, k])) if cells else np.zeros((0, len(values) + 1))
    variance = K[cell, cell] + LAMBDA - k @ solved[:, -1]
    squares = np.einsum("nc,nc->c", y, solved[:, :-1])  # y^T M^{-1} y, the sum of squared standardised errors
    freedom = weight + len(cells)
    scale = np.sqrt((weight + squares) / freedom * variance)
    return stats.t.logpdf(values, freedom, loc=k @ solved[:, :-1], scale=scale).sum()


def dense_log_ratio(told, start, *, weight=10.0, clip=4.0, rate=0.0):
    """Log e_s after all these answers."""
    total = 0.0
    for i, (number, cell, values) in enumerate(told):
        if number >= start:
            since = [other for other in told[:i] if other[0] >= start]
            q, p = (dense_log_density(past, number, cell, values, weight, rate) for past in (since, told[:i]))
            total += min(q - p, clip)
    return total


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_every_start_is_the_dense_ratio_of_predictions(monkeypatch, channels, late):
    monkeypatch.setattr(evidence, "KEPT", 1000)
    order = np.random.default_rng(5).geometric(0.2, size=24) if late else None
    told = answers(24, channels=channels, change=15, order=order)
    detector = added(fresh(channels=channels), told)
    expected = {start: dense_log_ratio(told, start) for start in range(1, 24)}
    assert detector.starts == list(expected)
    for start, ratio in expected.items():
        np.testing.assert_allclose(detector.log_ratio(start), ratio, atol=1e-3)  # features leave 1e-4 lambda out
    total = tail(23) + sum(share(start) * math.exp(ratio) for start, ratio in expected.items())
    np.testing.assert_allclose(detector.log_evidence, math.log(total), atol=1e-3)
    assert detector.most_likely == max(expected, key=expected.get) == 15


@pytest.mark.parametrize("rate", [0.03, 1.0])
def test_where_f_drifts_it_does_so_before_a_change_and_after_it(monkeypatch, rate):
    monkeypatch.setattr(evidence, "KEPT", 1000)
    told = [answer for answer in answers(24, channels=2, change=15) if answer[0] % 4]  # some rounds have no answer
    detector = fresh(channels=2)
    detector.rate = rate
    added(detector, told)
    for start in range(1, 24):
        np.testing.assert_allclose(detector.log_ratio(start), dense_log_ratio(told, start, rate=rate), atol=1e-3)
    detector.cut(9)
    again = fresh(channels=2, since=9)
    again.rate = rate
    added(again, told)
    assert detector.log_evidence == again.log_evidence


@pytest.mark.parametrize("memory", [nr.slots.Discount(0.002), nr.slots.DriftBank()], ids=["known", "learned"])
def test_a_drift_is_no_change_and_a_switch_is_one(memory):
    arms, kernel = nr.Arms.grid(0, 1, 20), nr.Matern(2.5, 0.3)
    functions = [f for part in range(2) for f in drifting_samples(kernel, arms, rounds=150, rate=0.002, seed=[4, part])]
    env = nr.Environment(functions, domain=arms, noise=0.1, change_points=range(1, 300))
    make = partial(nr.gp_ucb, arms, kernel, noise=0.1, width=ConstantWidth(value=2.0))
    alone = nr.simulate(make(memory="adaptive"), env, 300, seed=0)
    beside = nr.simulate(make(memory=nr.slots.AllOf((nr.slots.EDetector(), memory))), env, 300, seed=0)
    assert len(alone.restarts) > 4
    assert [abs(restart - 150) <= 3 for restart in beside.restarts] == [True]


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_thinned_starts_keep_their_ratios_and_what_was_staked(late):
    """What goes is staked on the next younger start from then on: redone here with dictionaries."""
    order = np.random.default_rng(6).geometric(0.2, size=60) if late else None
    told = answers(60, seed=2, change=40, order=order)
    detector = added(fresh(), told)
    stakes, now, one_by_one = {}, 0, fresh()
    for i, (number, _, _) in enumerate(told):
        for start in range(now + 1, number + 1):
            stakes[start] = share(start)
        now = max(now, number)
        for start in sorted(stakes):
            if start + evidence.KEPT * (start & -start) < now:
                younger = min(other for other in stakes if other > start and last_round(other) >= now)
                stakes[younger] += stakes.pop(start)
        before = {start: one_by_one.log_ratio(start) if start in one_by_one.starts else 0.0 for start in stakes}
        one_by_one.add(*told[i])
        assert one_by_one.starts == sorted(stakes)
        for start in stakes:
            stakes[start] *= math.exp(one_by_one.log_ratio(start) - before[start])
        np.testing.assert_allclose(one_by_one.log_evidence, math.log(tail(now) + sum(stakes.values())), atol=1e-9)
    assert len(detector.starts) < 16 < 59
    for start in detector.starts[::4]:
        np.testing.assert_allclose(detector.log_ratio(start), dense_log_ratio(told, start), atol=3e-3)


def test_starts_thin_out_as_a_logarithm_and_stakes_add_up_to_one():
    detector = fresh()
    for number in range(1000):
        detector.add(number, 0, np.zeros(1))
    ages = [999 - start for start in detector.starts]
    assert len(ages) < 25
    assert ages[-5:] == [4, 3, 2, 1, 0]
    assert all(older / younger <= 2.0 for older, younger in itertools.pairwise(ages[:-5]))
    np.testing.assert_allclose(sum(share(start) for start in range(1, 5001)) + tail(5000), 1.0)
    far = fresh()
    far.add(5000, 0, np.zeros(1))  # all rounds before are opened and thinned at once
    assert far.starts[-1] == 5000
    assert len(far.starts) < 30
    assert abs(far.log_evidence) < 1e-9  # the first answer of a stretch surprises all alike


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_a_stretch_is_a_mixture_of_the_kernel_and_of_it_with_deviations(monkeypatch, late):
    monkeypatch.setattr(evidence, "KEPT", 1000)
    order = np.random.default_rng(5).geometric(0.2, size=24) if late else None
    told, start, misfit = answers(24, change=15, order=order), 15, 0.2
    detector = added(fresh(misfit=misfit), told)
    likelihoods, total = np.array([1.0 - evidence.DEVIATES, evidence.DEVIATES]), 0.0
    for i, (number, cell, values) in enumerate(told):
        each = [
            math.exp(dense_log_density(told[:i], number, cell, values, 10.0, K=kernel))
            for kernel in (K, K + misfit * np.diag(K.diagonal()))
        ]
        if number >= start:
            since = [other for other in told[:i] if other[0] >= start]
            gain = dense_log_density(since, number, cell, values, 10.0) - math.log(
                likelihoods @ each / likelihoods.sum()
            )
            total += min(gain, 4.0)
        likelihoods *= each
    np.testing.assert_allclose(detector.log_ratio(start), total, atol=1e-3)
    assert detector.copy().log_evidence == detector.log_evidence
    assert detector.log_evidence < added(fresh(), told).log_evidence


def test_a_function_that_is_rougher_than_believed_is_no_change():
    """Three runs of 250 rounds with lengthscales told 2.7 times too long, under contexts; the seeds are fixed."""
    alarms = dict.fromkeys((0.0, 0.05), 0)
    contexts = nr.Arms.grid(0.0, 1.0, 8)
    table = nr.Arms(np.array(list(itertools.product(contexts.points[:, 0], contexts.points[:, 0]))))
    for seed, misfit in itertools.product(range(3), alarms):
        f = gp_sample(nr.SquaredExponential(0.15), table, seed=[seed, 2]).values.reshape(8, 8)
        policy = ucb(
            contexts,
            nr.SquaredExponential(0.4),
            context=contexts,
            memory=nr.slots.EDetector(misfit=misfit, outliers=0.0),
        )
        study, rng = nr.Study(policy, seed=seed), np.random.default_rng([seed, 1])
        study.quiet = True
        for _ in range(250):
            row = int(rng.integers(8))
            trial = study.ask(contexts.points[row])
            study.tell(trial, float(f[row, trial.arm] + NOISE * rng.standard_normal()))
        alarms[misfit] += len(study.restarts)
    assert alarms[0.05] <= 1
    assert alarms[0.0] >= 4


# -- the martingale ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [50.0, 1.0], ids=["no clip", "clip"])
def test_evidence_is_a_martingale_under_what_the_whole_stretch_predicts(clip):
    """The mean of the next M over p, by quadrature, is the present one; with a clip it is less."""
    told = answers(12, change=8)
    detector = added(fresh(clip=clip), told)
    for cell in (told[-1][1], 8):
        y = np.sinh(np.linspace(-6.0, 6.0, 241))  # Student-t tails are long
        p = np.array([math.exp(dense_log_density(told, 12, cell, np.array([each]), 10.0)) for each in y])
        after = []
        for each in y:
            other = detector.copy()
            other.add(12, cell, np.array([each]))
            after.append(math.exp(other.log_evidence))
        mean, now = np.trapezoid(p * np.array(after), y), math.exp(detector.log_evidence)
        np.testing.assert_allclose(np.trapezoid(p, y), 1.0, rtol=1e-3)
        assert mean <= now * (1.0 + 1e-3)
        assert clip < 50.0 or mean >= now * (1.0 - 1e-3)


@pytest.mark.parametrize(
    ("noise", "freedom", "most"),
    [
        pytest.param(1.0, None, 2, id="as told"),
        pytest.param(2.0, None, 12, id="twice", marks=pytest.mark.nightly),
        pytest.param(0.5, None, 2, id="half", marks=pytest.mark.nightly),
        pytest.param(1.0, 3, 6, id="t_3", marks=pytest.mark.nightly),
    ],
)
def test_false_alarms(noise, freedom, most):
    """12 runs of 150 rounds: more than 2 alarms at delta 0.05 have a probability below 0.02; the seeds are fixed."""
    alarms = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 1])
        draws = rng.standard_normal(150) if freedom is None else rng.standard_t(freedom, 150) / math.sqrt(3.0)
        f = gp_sample(KERNEL, ARMS, seed=[seed, 2]).values
        study = nr.Study(ucb(memory="adaptive"), seed=seed)
        study.quiet = True
        for draw in draws:
            trial = study.ask()
            study.tell(trial, float(f[trial.arm] + noise * NOISE * draw))
        alarms += len(study.restarts)
    assert alarms <= most


def surprising(kind, rounds, seed):
    """Noise over its told deviation, `(rounds,)`."""
    rng = np.random.default_rng([seed, 1])
    draws = rng.standard_normal(rounds)
    if kind == "one answer 50 off":
        draws[int(rng.integers(20, rounds // 2))] += 50.0
    elif kind == "one in 25 is ten times as noisy":
        draws *= np.where(rng.uniform(size=rounds) < 0.04, 10.0, 1.0)
    return draws


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("one answer 50 off", 0),
        pytest.param("one in 25 is ten times as noisy", 1, marks=pytest.mark.nightly),
        pytest.param("one noisy arm", 0, marks=pytest.mark.nightly),
    ],
)
def test_noise_that_is_not_as_told_is_no_change_and_a_change_is_one(kind, most):
    """Four runs of 120 rounds without a change, four with another function after 60; the seeds are fixed."""
    alarms, found = 0, 0
    for seed, changes in itertools.product(range(4), (False, True)):
        functions = [gp_sample(KERNEL, ARMS, seed=[seed, part]).values for part in (2, 3)]
        study, noisy = nr.Study(ucb(memory="adaptive"), seed=seed), int(functions[0].argmax())
        study.quiet = True
        for number, draw in enumerate(surprising(kind, 120, seed)):
            trial, f = study.ask(), functions[changes and number >= 60]
            times = 5.0 if kind == "one noisy arm" and trial.arm == noisy else 1.0
            study.tell(trial, float(f[trial.arm] + NOISE * times * draw))
        if changes:
            found += any(55 <= restart <= 75 for restart in study.restarts)
        else:
            alarms += len(study.restarts)
    assert alarms <= most
    assert found >= 3


def test_readings_predict_with_a_density():
    """It adds up to 1 over all answers, by quadrature, after answers of which one was an outlier."""
    told = answers(14)
    told[9] = (9, told[9][1], told[9][2] + 7.0)
    readings = OutlierHypotheses(between, LAMBDA, channels=1, weight=10.0, outliers=0.05)
    for _, cell, values in told:
        readings.learn(cell, values)
    y = np.sinh(np.linspace(-12.0, 12.0, 401))
    for cell in (told[-1][1], 8):
        p = np.array([math.exp(readings.copy().learn(cell, np.array([each]))) for each in y])
        whole = np.trapezoid(p, y) / math.sqrt(math.pi)  # the constant that `change.posterior_sets` leaves out
        np.testing.assert_allclose(whole, 1.0, rtol=1e-2)


def test_an_outlier_is_not_learned_and_several_that_agree_are():
    readings = OutlierHypotheses(between, LAMBDA, channels=1, weight=10.0, outliers=0.05)
    for _ in range(20):
        readings.learn(4, np.array([0.3]))
    assert readings.learn(4, np.array([5.0])) > -12.0  # 47 deviations off
    alone = readings.copy()
    assert alone.learn(4, np.array([0.3])) > 2.0
    first = readings.learn(4, np.array([5.0]))
    assert first < -5.0
    assert alone.learn(4, np.array([0.3])) > 2.0


# -- another stretch, another model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_after_a_cut_it_is_one_that_has_only_seen_the_later_trials(late):
    order = np.random.default_rng(7).geometric(0.2, size=40) if late else None
    told = answers(40, change=22, order=order)
    cut = added(fresh(), told[:30])
    cut.cut(23)
    later = added(fresh(since=23), [answer for answer in told[:30] if answer[0] >= 23])
    for detector in (cut, later):
        added(detector, told[30:])
    assert cut.since == 23
    assert cut.starts == later.starts
    assert cut.log_evidence == later.log_evidence
    assert cut.most_likely == later.most_likely


def test_another_model_is_as_if_it_had_been_known_before():
    told = answers(30, change=20)
    other = added(ChangeEvidence(lambda a, b: 0.5 * between(a, b), 9.0 * LAMBDA), told[:25])
    other.remodel(between, LAMBDA)
    known = added(fresh(), told[:25])
    assert other.starts == known.starts
    for start in known.starts:
        np.testing.assert_allclose(other.log_ratio(start), known.log_ratio(start), atol=1e-9)
    staked = np.diff([1.0 - tail(start) for start in (0, *known.starts)])  # on all up to a start, from the one before
    total = tail(24) + sum(np.exp(known.log_ratio(s)) * on for s, on in zip(known.starts, staked, strict=True))
    np.testing.assert_allclose(other.log_evidence, math.log(total), atol=1e-9)

    # Units that are twice as large, with a kernel in them: nothing changes but the words.
    doubled = added(fresh(), told[:25])
    doubled.remodel(lambda cells, others: 4.0 * between(cells, others), 4.0 * LAMBDA, lambda values: 2.0 * values)
    for detector in (other, doubled):
        added(detector, told[25:])
    np.testing.assert_allclose(doubled.log_evidence, other.log_evidence, rtol=1e-6)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
def test_updates_one_by_one_are_those_all_together(monkeypatch, late):
    order = np.random.default_rng(5).geometric(0.2, size=40) if late else None
    told = answers(40, change=30, order=order)
    together = added(fresh(), told)
    monkeypatch.setattr(posterior_sets, "LARGE", 0)
    one_by_one = added(fresh(), told)
    np.testing.assert_allclose(one_by_one.log_evidence, together.log_evidence, rtol=1e-9)
    assert one_by_one.copy().log_evidence == one_by_one.log_evidence


def test_features_beyond_the_most_count_as_noise(monkeypatch):
    monkeypatch.setattr(posterior_sets, "MOST_FEATURES", 3)
    told = answers(60, change=40)
    detector = added(fresh(), told[:40])
    assert detector.log_evidence < math.log(20.0)
    added(detector, told[40:])
    assert detector.log_evidence > math.log(20.0)
    assert abs(detector.most_likely - 40) <= 4


def test_copies_go_on_by_themselves():
    told = answers(30, change=20)
    one = added(fresh(), told[:20])
    two = one.copy()
    added(two, told[20:])
    assert two.log_evidence > one.log_evidence + 1.0
    assert added(one, told[20:]).log_evidence == two.log_evidence


# -- the memory --------------------------------------------------------------------------------------------------------


def ucb(domain=ARMS, kernel=KERNEL, **choices):
    return nr.gp_ucb(domain, kernel, noise=NOISE, width=ConstantWidth(value=2.0), **choices)


def switched(trial, at, shift=2.0):
    x = float(trial.point[0]) + (0.0 if trial.context is None else float(trial.context[0]))
    return math.sin(5.0 * x) if trial.number < at else shift - math.cos(4.0 * x)


WORLDS = {
    "arms": (ucb(memory="adaptive"), None),
    "table of contexts": (
        ucb(kernel=nr.Matern(2.5, [0.5, 0.3]), context=nr.Arms.grid(0.0, 1.0, 4), memory="adaptive"),
        lambda n: [[0.0, 1 / 3, 2 / 3, 1.0][n % 4]],
    ),
    "box": (ucb(nr.Box([0.0], [1.0]), memory="adaptive", search=nr.slots.PointSearch(candidates=32)), None),
    "continuous contexts": (
        ucb(kernel=nr.Matern(2.5, [0.5, 0.3]), context=nr.Box([0.0], [1.0]), memory="adaptive"),
        lambda n: [(0.37 * n) % 1.0],
    ),
    "late, hallucinated": (ucb(memory="adaptive", pending="hallucinate"), None),
    "Thompson": (nr.gp_ts(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, memory="adaptive"), None),
}


def play(study, rounds, *, context=None, delay=0, at=40, start=0):
    rng, waiting = np.random.default_rng(1), []
    noise = NOISE * rng.standard_normal(start + rounds)
    for n in range(start, start + rounds):
        waiting.append(study.ask() if context is None else study.ask(context(n)))
        if len(waiting) > delay:
            trial = waiting.pop(0)
            study.tell(trial, switched(trial, at) + noise[trial.number])
    return study


@pytest.mark.parametrize("world", WORLDS)
def test_a_change_is_noticed_wherever_one_plays_and_what_came_after_is_kept(world):
    policy, context = WORLDS[world]
    delay = 5 if "late" in world else 0
    study = play(nr.Study(policy, seed=3), 70, context=context, delay=delay)
    assert study.restarts
    assert all(abs(restart - 40) <= 2 for restart in study.restarts)
    assert all(reason.startswith("a change, for which the evidence") for reason in study.restart_reasons)
    seen = study.evidence
    assert seen.threshold == math.log(20.0)
    assert len(seen.trials) == len(seen.values) == 70 - delay
    noticed = int(seen.trials[seen.values >= seen.threshold][0])
    assert 40 <= noticed <= 50
    since = study.replica.current().since
    assert since == study.restarts[-1] <= noticed  # answers between the change and the alarm count
    assert not any(trial.explored for trial in study.trials)


def test_a_change_that_only_a_constraint_shows():
    policy = nr.gp_ucb_noisy_constraints(
        ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=10, epochs=8, regularization=LAMBDA, memory="adaptive"
    )
    rng = np.random.default_rng(0)
    restarts = []
    for shift in (0.0, 1.5):
        study = nr.Study(policy, seed=1)
        for n in range(70):
            trial = study.ask()
            x, noise = float(trial.point[0]), NOISE * rng.standard_normal(2)
            g = x - 0.5 - (shift if n >= 40 else 0.0)
            study.tell(trial, math.sin(5.0 * x) + noise[0], constraints=[g + noise[1]])
        restarts.append(study.restarts)
    assert restarts[0] == []
    assert len(restarts[1]) >= 1
    assert abs(restarts[1][0] - 40) <= 2


def test_an_answer_without_its_constraint_values_says_nothing():
    policy = nr.gp_ucb_noisy_constraints(
        ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=10, epochs=8, memory="adaptive"
    )
    study = nr.Study(policy)
    study.tell(study.ask(), 0.5)
    study.tell(study.ask(), 0.5, constraints=[-1.0])
    assert study.evidence.trials.tolist() == [1]


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_a_policy_that_learns_its_kernel_sees_changes_in_the_units_it_has_learned(unit):
    policy = ucb(memory="adaptive", refit=nr.slots.Refit(every=8))
    study, rng = nr.Study(policy, seed=2), np.random.default_rng(4)
    study.quiet = True
    for _ in range(80):
        trial = study.ask()
        study.tell(trial, unit * (7.0 + switched(trial, 50, shift=3.0) + 0.05 * rng.standard_normal()))
    assert study.restarts
    assert abs(study.restarts[0] - 50) <= 2
    assert len(study.evidence.trials) == 64  # those before the first fit to 12 or more were not looked at one by one


@pytest.mark.parametrize("world", ["arms", "late, hallucinated"])
def test_a_study_opened_again_goes_on_as_if_it_had_never_been_closed(tmp_path, world):
    policy, delay = WORLDS[world][0], 4 if "late" in world else 0
    url = f"sqlite:///{tmp_path / 'changes.db'}"
    whole = play(nr.Study(policy, seed=3), 60, delay=delay, at=30)
    play(nr.Study(policy, seed=3, storage=url), 60, delay=delay, at=30)
    again = nr.Study.open(url)
    assert again.restarts == whole.restarts != []
    assert again.restart_reasons == whole.restart_reasons
    for one, other in zip(again.evidence, whole.evidence, strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.ask().arm == whole.ask().arm


@pytest.mark.parametrize(
    "policy",
    [
        ucb(memory=nr.slots.EDetector(delta=0.9, clip=20.0)),  # one that cuts at every chance
        ucb(memory=nr.slots.EDetector(delta=0.9), refit=nr.slots.Refit(every=4)),
        *nightly(
            ucb(memory="adaptive", pending="hallucinate"),
            nr.gp_ucb_sdf(
                ARMS, KERNEL, noise=NOISE, window=3, minimum=-3.0, memory=nr.slots.EDetector(delta=0.9, clip=20.0)
            ),
            nr.gp_ucb_noisy_constraints(
                ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=4, epochs=4, memory="adaptive"
            ),
        ),
    ],
    ids=["often", "fits", "hallucinated", "censored", "constraints"],
)
def test_it_keeps_the_promises_of_a_memory(policy):
    check_policy(policy)


def test_losses_are_seen_as_rewards_are():
    policy = ucb(memory="adaptive")
    rewards, losses = nr.Study(policy, seed=3), nr.Study(policy, seed=3, goal="minimize")
    for n in range(50):
        up, down = rewards.ask(), losses.ask()
        value = switched(up, 30) + NOISE * math.sin(12.9 * n)
        rewards.tell(up, value)
        losses.tell(down, -value)
    assert losses.restarts == rewards.restarts != []
    np.testing.assert_array_equal(losses.evidence.values, rewards.evidence.values)


def test_changes_are_announced_once():
    heard = []
    study = nr.Study(ucb(memory="adaptive"), seed=3, on_change=heard.append)
    play(study, 60, at=30)
    assert [restart.round for restart in heard] == study.restarts != []
    assert all(isinstance(restart, Restart) for restart in heard)
    with pytest.raises(InvalidInput, match="`on_change` is 3: it must be a function"):
        nr.Study(ucb(), on_change=3)


def test_a_study_opened_again_announces_only_what_is_new(tmp_path):
    url, heard = f"sqlite:///{tmp_path / 'heard.db'}", []
    play(nr.Study(ucb(memory="adaptive"), seed=3, storage=url), 60, at=30)
    again = nr.Study.open(storage=url, on_change=heard.append)
    play(again, 40, at=30, start=60)
    assert again.restarts
    assert heard == []


def test_names_and_limits():
    assert ucb(memory="adaptive").memory == nr.slots.EDetector()
    assert ucb(memory="adaptive").valid_for == "none"
    with pytest.raises(InvalidInput, match="`memory` is 'adaptve'"):
        ucb(memory="adaptve")
    for wrong in ({"delta": 0.0}, {"delta": 1.0}, {"clip": 0.0}, {"weight": -1.0}, {"misfit": -0.1}):
        with pytest.raises(InvalidInput, match=f"`{next(iter(wrong))}`"):
            nr.slots.EDetector(**wrong)
    assert nr.Study(ucb()).evidence is None
    fresh_epochs = partial(nr.gp_ucb_noisy_constraints, ARMS, KERNEL, noise=NOISE, norm_bound=1.0, epoch=4, epochs=4)
    assert fresh_epochs(memory="adaptive").memory == nr.slots.EDetector()


@pytest.mark.parametrize(
    "make",
    [
        nr.algorithms.asy_ts, nr.expected_improvement, nr.algorithms.gp_bts, nr.gp_bucb, nr.gp_ucb,
        nr.algorithms.greedy_mean, nr.algorithms.greedy_variance,
        nr.algorithms.probability_of_improvement, partial(nr.gp_ts, norm_bound=1.0), partial(nr.igp_ucb,
        norm_bound=1.0),
        partial(nr.kernel_ucb, eta=1.0), partial(nr.gp_ucb_sdf, window=3), partial(nr.gp_ts_sdf, window=3),
    ],
)  # fmt: skip
def test_every_algorithm_takes_it(make):
    policy = make(ARMS, KERNEL, noise=NOISE, memory="adaptive")
    assert policy.memory == nr.slots.EDetector()
    assert nr.Policy.from_json(policy.to_json()) == policy
    study = nr.Study(policy, seed=0)
    for n in range(30):
        study.tell(study.ask(), 1.0 if n < 15 else 4.0)
    values = study.evidence.values
    assert values[15:].max() > values[:15].max() + 0.05  # of one that played an arm for the first time then, no more
