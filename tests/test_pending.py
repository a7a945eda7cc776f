"""Late answers: what an unanswered trial counts as, and that nothing is lost of what comes late."""

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments.delays import PoissonDelay, SilentNo
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.widths.delayed import CensoredWidth
from nilregret.storage.base import News
from nilregret.storage.record import Record

from .marks import nightly

KERNEL = nr.SquaredExponential(0.2)
ARMS = nr.Arms.grid(0, 1, 40)
BOX = nr.Box([0.0], [1.0])
SPACE = nr.Space(x=nr.Float(0.1, 10.0, log=True), kind=nr.Choice("a", "b"))
TIMES = nr.Arms.grid(0, 1, 3)
PLANE = nr.SquaredExponential([0.2, 0.5])
SEARCH = nr.slots.PointSearch(candidates=32, around=4, starts=1, evaluations=5)
NOISE = 0.1

# What may be played, under which context, with which kernel.
WORLDS = {
    "arms": (ARMS, None, KERNEL),
    "box": (BOX, None, KERNEL),
    "space": (SPACE, None, nr.SquaredExponential(0.4)),
    "arms, contexts": (ARMS, TIMES, PLANE),
    "box, contexts": (BOX, TIMES, PLANE),
}
PENDING = {
    "ignored": nr.slots.Ignored(),
    "hallucinated": nr.slots.Hallucinated(),
    "censored": nr.slots.Censored(minimum=-1.0, window=4),
    "censored, late accepted": nr.slots.Censored(minimum=-1.0, window=4, late="accept"),
    "censored, minimum unknown": nr.slots.Censored(minimum=None, window=4),
    "nearest means": nr.slots.NearestMeans(neighbours=2),
    "imputed": nr.slots.Imputed(minimum=-1.0),
    "late or never": nr.slots.LateOrNever(minimum=-1.0),
}
MAKERS = {"UCB": nr.gp_bucb, "Thompson": nr.algorithms.gp_bts}
# Each treatment in each world with one of the makers, and nightly with the other one too.
EACH_PAIR = pytest.mark.parametrize(
    ("maker", "world", "pending"),
    [
        pytest.param(MAKERS[made], WORLDS[where], PENDING[name], id=f"{made}-{where}-{name}",
                     marks=[pytest.mark.nightly] * ((i + j + k) % 2))
        for i, made in enumerate(MAKERS)
        for j, where in enumerate(WORLDS)
        for k, name in enumerate(PENDING)
    ],
)  # fmt: skip


@pytest.fixture(params=WORLDS)
def world(request):
    return WORLDS[request.param]


@pytest.fixture(params=MAKERS)
def maker(request):
    return MAKERS[request.param]


@pytest.fixture(params=PENDING)
def pending(request):
    return PENDING[request.param]


def policy_of(maker, world, pending, **more):
    """The same constant width, whatever unanswered trials count as."""
    domain, context, kernel = world
    policy = maker(domain, kernel, noise=NOISE, beta=1.5, context=context, search=SEARCH, **more)
    return replace(policy, pending=pending)


def context_of(study, number):
    contexts = study.policy.context
    return None if contexts is None else contexts.points[number % len(contexts)]


def reward_of(trial):
    shown = 0.0 if trial.context is None else float(trial.context[0])
    wave = math.sin(7.0 * float(trial.point[0]) + shown)
    return float(np.clip(wave + np.random.default_rng([5, trial.number]).normal(scale=NOISE), -0.99, 2.0))


def play(study, rounds, delay=lambda number: 0):
    """Ask, and tell each answer after so many further questions; returns what was asked."""
    due, asked = {}, []
    for _ in range(rounds):
        trial = study.ask(context_of(study, len(study.trials)))
        asked.append(trial)
        due.setdefault(trial.number + delay(trial.number), []).append(trial)
        for known in due.pop(trial.number, []):
            study.tell(known, reward_of(known))
    return asked


def points(trials):
    return np.array([trial.point for trial in trials])


def some_points(domain):
    """Of the domain, encoded."""
    arms = domain if isinstance(domain, nr.Arms) else domain.grid(7)
    return arms.points[::5]


def random_delay(number):
    """0 to 9 questions, or never."""
    return [0, 3, 1, 9, 4, 5, 2, 10**6][np.random.default_rng([8, number]).integers(8)]


# -- identities --------------------------------------------------------------------------------------------------------


def test_without_delays_every_treatment_plays_the_same(maker, world):
    played = [points(play(nr.Study(policy_of(maker, world, part), seed=3), 7)) for part in PENDING.values()]
    for other in played[1:]:
        np.testing.assert_array_equal(other, played[0])  # to the last bit, on boxes too


@pytest.mark.filterwarnings("ignore:Repeats of a point differ")  # nothing but chance, however much of it
@pytest.mark.parametrize("seed", [2, 11])
def test_without_delays_no_tie_on_a_box_is_broken_by_rounding(seed):
    """A linear kernel on a symmetric box has two equal maxima in every round, repeats of corners, and nothing else."""
    policy = nr.gp_bucb(nr.Box([-1.0, -1.0], [1.0, 1.0]), nr.Linear(), noise=NOISE, beta=1.5, search=SEARCH)
    played = []
    for part in PENDING.values():
        study = nr.Study(replace(policy, pending=part), seed=seed)
        for _ in range(12):
            trial = study.ask()
            study.tell(trial, float(np.random.default_rng([5, trial.number]).uniform(-0.9, 0.9)))
        played.append(points(study.trials))
    for other in played[1:]:
        np.testing.assert_array_equal(other, played[0])


@pytest.mark.parametrize("name", ["gp_ucb_sdf", "gp_ts_sdf"])
def test_without_delays_sdf_is_the_undelayed_rule_of_the_same_width(name):
    policy = getattr(nr, name)(ARMS, KERNEL, noise=NOISE, window=4, minimum=-1.0, beta=1.0)
    ignoring = replace(policy, pending=nr.slots.Ignored())
    censored, plain = (play(nr.Study(each, seed=1), 30) for each in (policy, ignoring))
    assert [trial.arm for trial in censored] == [trial.arm for trial in plain]
    # The sum over the last m queries is there without delays too: this is not GP-UCB with width beta.
    constant = replace(ignoring, confidence=ConstantWidth(value=1.0))
    assert nr.Study(policy).width == nr.Study(constant).width == 1.0
    studies = [nr.Study(each, seed=1) for each in (policy, constant)]
    for study in studies:
        play(study, 5)
    assert studies[0].width > studies[1].width + 0.1


@EACH_PAIR
def test_batches_of_one_are_sequential(maker, world, pending):
    policy = policy_of(maker, world, pending)
    alone, batches = nr.Study(policy, seed=2), nr.Study(policy, seed=2)
    play(alone, 6)
    for number in range(6):
        (trial,) = batches.ask(context_of(batches, number), count=1)
        batches.tell(trial, reward_of(trial))
    np.testing.assert_array_equal(points(alone.trials), points(batches.trials))


@EACH_PAIR
def test_order_of_arrival_between_two_asks_does_not_matter(maker, world, pending):
    outcomes = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        study = nr.Study(policy_of(maker, world, pending), seed=6)
        play(study, 2)
        trials = study.ask(context_of(study, 0), count=4)
        for position in order:
            study.tell(trials[position], reward_of(trials[position]))
        outcomes.append(study.ask(context_of(study, 1)).point.tobytes())
    assert len(set(outcomes)) == 1


def test_an_answer_told_twice_is_taken_once_and_another_is_refused(pending):
    study = nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], pending))
    trials = study.ask(count=3)
    told = study.tell(trials[1], 0.5)
    events = study.replica.record.order
    assert study.tell(trials[1], 0.5) is told
    assert study.replica.record.order == events
    with pytest.raises(nr.errors.TrialError, match=r"told already \(reward 0.5\), and now another .*\(reward 0.6\)"):
        study.tell(trials[1], 0.6)
    with pytest.raises(nr.errors.TrialError, match="told already"):
        study.fail(trials[1], "late")
    study.fail(trials[0], "lost")
    with pytest.raises(nr.errors.TrialError, match="told already"):
        study.tell(trials[0], 0.5)


# -- hallucination -----------------------------------------------------------------------------------------------------


def test_hallucination_leaves_the_mean_and_shrinks_the_variance(maker, world):
    study = nr.Study(policy_of(maker, world, nr.slots.Hallucinated()), seed=6)
    play(study, 8, delay=lambda number: number % 3)
    domain = study.policy.domain
    at = some_points(domain)
    seen = context_of(study, 1)
    before, spread = study.predict(at, context=seen)
    study.ask(context_of(study, 0), count=5)
    after, less = study.predict(at, context=seen)
    np.testing.assert_allclose(after, before, atol=1e-10)
    assert (less <= spread + 1e-10).all()
    assert (less < spread - 1e-6).any()
    # The mean is that of the answered trials alone, the variance that of all.
    answered = nr.Study(replace(study.policy, pending=nr.slots.Ignored()), seed=4)
    everything = nr.Study(replace(study.policy, pending=nr.slots.Ignored()), seed=4)
    for trial in study.trials:
        if trial.reward is not None:
            answered.add(_given(study, trial), trial.reward, context=trial.context)
        everything.add(_given(study, trial), 0.0, context=trial.context)
    np.testing.assert_allclose(after, answered.predict(at, context=seen)[0], atol=1e-10)
    np.testing.assert_allclose(less, everything.predict(at, context=seen)[1], atol=1e-8)


def _given(study, trial):
    return trial.point if trial.parameters is None else trial.parameters


def test_hallucination_spreads_a_batch_and_ignoring_repeats_it():
    asked = {}
    for name in ("ignored", "hallucinated"):
        study = nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], PENDING[name]), seed=2)
        play(study, 4)
        asked[name] = [trial.arm for trial in study.ask(count=6)]
    assert len(set(asked["ignored"])) == 1
    assert len(set(asked["hallucinated"])) > 2


# -- censoring ---------------------------------------------------------------------------------------------------------


def dense(kernel, rows, targets, ridge, at, mean):
    """Posterior of eq. 1."""
    K, k = kernel(rows, rows) + ridge * np.eye(len(rows)), kernel(rows, at)
    solved = np.linalg.solve(K, k)
    variance = kernel.diagonal(at) - np.einsum("ij,ij->j", k, solved)
    return mean + solved.T @ (targets - mean), np.sqrt(np.maximum(variance, 0.0))


@pytest.mark.parametrize("late", ["drop", "accept"])
@pytest.mark.parametrize("name", ["gp_ucb_sdf", "gp_ts_sdf"])
def test_censored_posterior_is_that_of_the_paper_in_every_round(world, name, late):
    domain, context, kernel = world
    m, minimum, ridge = 4, -1.0, 0.02
    make = getattr(nr.algorithms, name)
    policy = make(
        domain,
        kernel,
        noise=NOISE,
        window=m,
        minimum=minimum,
        context=context,
        late=late,
        regularization=ridge,
        beta=0.7,
        search=SEARCH,
    )
    study, due, dropped = nr.Study(policy, seed=9), {}, 0
    at = some_points(domain)
    delays, rewards, rows = [], [], []
    for t in range(16):
        seen = context_of(study, t)
        trial = study.ask(seen)
        delays.append(random_delay(t))
        rewards.append(reward_of(trial))
        rows.append(np.concatenate([[] if seen is None else seen, trial.point]))
        due.setdefault(t + delays[t], []).append(trial)
        for known in due.pop(t, []):
            study.tell(known, reward_of(known))
        # Before the next question, number t + 1: d_s <= min(m, t - s), d counted in further questions asked.
        ages = t - np.arange(t + 1)
        d = np.array(delays)
        counted = (d <= ages) if late == "accept" else (d <= np.minimum(m, ages))
        dropped += int(((d <= ages) & ~counted).any())
        targets = np.where(counted, rewards, minimum)  # ytilde of section 3.1
        here = at if seen is None else np.column_stack([np.tile(seen, (len(at), 1)), at])
        mean, std = dense(kernel, np.array(rows), targets, ridge, here, minimum)
        np.testing.assert_allclose(study.predict(at, context=seen)[0], mean, atol=1e-7)
        np.testing.assert_allclose(study.predict(at, context=seen)[1], std, atol=1e-6)
        recent = dense(kernel, np.array(rows), targets, ridge, np.array(rows[-m:]), minimum)[1]
        assert study.width == pytest.approx(recent.sum() + 0.7, abs=1e-5)  # nu_t of eq. 2, B_y = 1
    assert (dropped > 0) == (late == "drop")


def test_width_is_that_of_the_paper():
    """nu_t = B_y sum sigma + B_f + (R + B_y) sqrt(2 (gamma + 1 + log(2 / delta))), 4 for Thompson sampling."""
    for make, parts in ((nr.gp_ucb_sdf, 2), (nr.gp_ts_sdf, 4)):
        policy = make(ARMS, KERNEL, noise=0.3, window=2, reward_bound=3.0, norm_bound=1.7, delta=0.05, horizon=100)
        assert policy.regularization == 1.02
        assert policy.valid_for == "rho_m f"
        study = nr.Study(policy, seed=0)
        trials = study.ask(count=4)
        gamma = study.information_gain
        K = KERNEL(points(trials), points(trials))
        assert gamma == pytest.approx(0.5 * np.linalg.slogdet(np.eye(4) + K / 1.02)[1])
        recent = study.predict(points(trials[-2:]))[1].sum()
        beta = 1.7 + (0.3 + 3.0) * math.sqrt(2.0 * (gamma + 1.0 + math.log(parts / 0.05)))
        assert study.width == pytest.approx(3.0 * recent + beta)
    assert nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.3, window=2, regularization=0.5).valid_for == "rho_m f"
    assert nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.3, window=2, beta=1.0).valid_for == "none"


@pytest.mark.parametrize("b", [1, 2, 5])
def test_every_answer_counts_in_batches_with_m_one_less_than_their_size(b):
    study = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=b - 1, minimum=-1.0, beta=1.0), seed=0)
    short = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=b - 2, minimum=-1.0, beta=1.0)) if b > 1 else None
    for _ in range(4):
        for trial in study.ask(count=b):
            study.tell(trial, reward_of(trial))
        study.predict()
    # A whole batch is told before the next one: the first of it after b - 1 further questions.
    assert study.replica.state.settled().reward.data.pending.dropped == set()
    if short is not None:
        for trial in short.ask(count=b):
            short.tell(trial, reward_of(trial))
        assert short.replica.state.settled().reward.data.pending.dropped == {0}


def test_points_told_without_a_question_do_not_make_answers_late():
    study = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=1, minimum=-1.0, beta=1.0, regularization=0.001))
    trial = study.ask()
    for arm in range(5):
        study.add(ARMS.points[arm], 0.1)
    study.tell(trial, 1.5)
    assert study.predict(trial.point[None])[0][0] > 1.0
    assert study.best().number == trial.number


def test_an_unknown_minimum_follows_the_smallest_reward_and_says_so():
    study = nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], nr.slots.Censored(minimum=None, window=5), prior_mean=0.3))
    trials = study.ask(count=3)
    assert study.minimum == 0.3  # the prior mean, before the first reward
    np.testing.assert_allclose(study.predict()[0], 0.3)
    study.tell(trials[0], 0.6)
    assert study.minimum == 0.6
    study.tell(trials[1], -4.0)  # two were censored at another value: both, and later ones, move
    assert study.minimum == -4.0
    rows = points(trials)
    mean, _ = dense(KERNEL, rows, np.array([0.6, -4.0, -4.0]), NOISE**2, ARMS.points, 0.3)
    np.testing.assert_allclose(study.predict()[0], mean, atol=1e-8)
    study.tell(trials[2], 0.0)
    assert study.minimum == -4.0
    known = nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], nr.slots.Censored(minimum=-1.0, window=5)))
    assert known.minimum == -1.0
    assert nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], nr.slots.Ignored())).minimum is None


# -- time --------------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that goes where it is told to."""

    def __init__(self, now=1_700_000_000.1):
        self.now = now

    def __call__(self):
        return self.now


def timed(**more):
    clock = Clock()
    settings = dict(noise=NOISE, window=timedelta(seconds=30), minimum=-1.0, beta=0.5, regularization=1e-3) | more
    return nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, **settings), clock=clock), clock


def test_windows_in_time():
    study, clock = timed()
    trials = []
    for _ in range(3):
        trials.append(study.ask())
        clock.now += 10.0
    # 30, 20 and 10 s have passed: the first answer is at the very end of its window.
    recent = study.predict(points(trials))[1].sum()
    assert study.width == pytest.approx(0.5 + recent, rel=1e-6)
    for trial in trials:
        study.tell(trial, 1.0)
    assert (study.predict(points(trials))[0] > 0.8).all()
    late = study.ask()
    clock.now += 30.1
    assert study.width == pytest.approx(0.5)  # nothing is younger than the window
    study.tell(late, 1.0)
    assert study.predict(late.point[None])[0][0] < 0.5  # too late: it stays at the minimum
    assert study.trials[late.number].reward == 1.0
    kind, clock = timed(late="accept")
    late = kind.ask()
    clock.now += 1000.0
    kind.tell(late, 1.0)
    assert kind.predict(late.point[None])[0][0] > 0.9


@pytest.mark.parametrize("start", [0.1, 0.3, 1_700_000_000.7])
def test_an_answer_at_the_very_end_of_the_window_counts(start):
    for seconds in (0.0, 0.1, 0.7, 29.9):
        study, clock = timed(window=timedelta(seconds=seconds))
        clock.now = start
        trial = study.ask()
        clock.now = start + seconds
        study.tell(trial, 1.0)
        assert study.predict(trial.point[None])[0][0] > 0.9
        clock.now = start + seconds + 1.0
        trial = study.ask()
        clock.now += seconds + 0.001
        study.tell(trial, 1.0)
        assert study.replica.state.settled().reward.data.pending.dropped == {1}


def test_a_clock_that_runs_backwards_records_nothing():
    study, clock = timed()
    trial = study.ask()
    clock.now -= 5.0
    for call in (
        study.ask,
        lambda: study.tell(trial, 0.5),
        lambda: study.fail(trial, "no"),
        lambda: study.add([0.0], 1.0),
    ):
        with pytest.raises(nr.NoRegretError, match="clock has gone back by 5 s"):
            call()
    assert [each.state for each in study.trials] == ["pending"]
    clock.now += 6.0
    study.tell(trial, 0.5)
    clock.now = math.nan
    with pytest.raises(nr.NoRegretError, match="clock says nan"):
        study.ask()
    # Where waiting is counted in questions, times are only written down.
    rounds = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=-1.0, beta=1.0), clock=Clock(5.0))
    rounds.ask()
    rounds.replica.clock.now = 4.0
    assert rounds.ask().asked_at == 4.0


def test_simulated_time_and_rounds_agree():
    """One question a second: an answer that takes 2.5 s is known after two further questions."""
    kwargs = dict(domain=ARMS, noise=NOISE)
    reward = lambda x: np.sin(7 * x[:, 0])  # noqa: E731
    in_rounds = nr.Environment(reward, delay=2, **kwargs)
    in_time = nr.Environment(reward, delay=timedelta(seconds=2.5), interval=1.0, **kwargs)
    by_round = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=2, minimum=-1.0, beta=1.0)
    by_time = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=timedelta(seconds=2.5), minimum=-1.0, beta=1.0)
    runs = [nr.simulate(by_round, in_rounds, 40), nr.simulate(by_time, in_time, 40)]
    np.testing.assert_array_equal(runs[1].answered_by, runs[0].answered_by)
    np.testing.assert_array_equal(runs[1].arms, runs[0].arms)


# -- bad input and answers that do not come ----------------------------------------------------------------------------


@pytest.mark.parametrize("window", [-1, -0.5, float("nan"), timedelta(seconds=-1)])
def test_a_negative_window_is_refused(window):
    with pytest.raises(nr.errors.InvalidInput, match="`window`"):
        nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=window)
    with pytest.raises(nr.errors.InvalidInput, match="`window`"):
        nr.slots.Censored.within(window, minimum=0.0)


def test_a_reward_below_the_declared_minimum_is_refused():
    study = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=0.0, beta=1.0))
    trial = study.ask()
    with pytest.raises(nr.errors.InvalidInput, match="below the declared minimum of 0"):
        study.tell(trial, -0.61)
    with pytest.raises(nr.errors.InvalidInput, match="below the declared minimum"):
        study.add(ARMS.points[0], -7.0)
    assert [each.state for each in study.trials] == ["pending"]
    study.tell(trial, -0.59)  # noise may have done that


@pytest.mark.parametrize("name", PENDING)
def test_a_failed_trial_counts_as_nothing(name):
    for world in (WORLDS["arms"], WORLDS["box"]):
        study = nr.Study(policy_of(nr.gp_bucb, world, PENDING[name]), seed=2)
        first, second = study.ask(), study.ask()
        study.tell(first, 0.8)
        study.fail(second, "the machine burnt down")
        alone = nr.Study(policy_of(nr.gp_bucb, world, nr.slots.Ignored()), seed=2)
        alone.add(first.point, 0.8)
        at = ARMS.points
        np.testing.assert_allclose(study.predict(at), alone.predict(at), atol=1e-7)
        with pytest.raises(nr.errors.TrialError):
            study.tell(second, 0.1)


ONE_OF_TWO = nr.Space(kind=nr.Choice("a", "b"))


@pytest.mark.parametrize("domain", [nr.Arms([[0.3], [0.3], [0.9]]), ONE_OF_TWO], ids=["arms", "space"])
def test_a_failed_point_that_is_answered_later_is_forgiven(domain, pending):
    kernel = nr.SquaredExponential(0.3)
    study = nr.Study(policy_of(nr.gp_bucb, (domain, None, kernel), pending), seed=0)

    def aside():
        failed = study.replica.current().outputs.engine.failed
        return {domain.points[arm].tobytes() for arm in failed} if isinstance(domain, nr.Arms) else set(failed)

    trials = study.ask(count=3)
    where = [trial.point.tobytes() for trial in trials]
    first, second = next((i, j) for j in range(3) for i in range(j) if where[i] == where[j])
    study.fail(second, "it broke")
    study.ask()
    assert aside() == {where[second]}
    study.tell(first, 1.0)
    study.ask()
    assert aside() == set()


def test_a_point_is_set_aside_while_what_counts_there_has_failed_alone():
    arms = nr.Arms([[0.0], [1.0]])
    for part in PENDING.values():
        policy = nr.algorithms.greedy_mean(arms, KERNEL, noise=NOISE, memory=nr.slots.SlidingWindow(3), pending=part)
        study = nr.Study(policy, seed=0)
        aside = []
        study.add([0.0], 5.0)
        study.add([1.0], 0.0)
        study.fail(study.ask(), "it broke")
        for _ in range(4):
            aside.append(study.replica.current().outputs.engine.failed)
            study.add([1.0], 0.0)
        # The answer counts, and leaves; the failure alone counts; it leaves too.
        assert aside == [set(), {0}, {0}, set()]


def test_a_replay_does_not_see_answers_before_they_came():
    """Two questions, then their answers: what the second one knew is nothing."""
    arms, kernel = nr.Arms.grid(0, 1, 3), nr.SquaredExponential(0.2)
    for window in (0.0, 1.0):
        part = nr.slots.Censored(minimum=0.0, window=window)
        policy = nr.expected_improvement(arms, kernel, noise=0.1, incumbent="reward", pending=part)
        for rewards in ((3.0, 0.5), (0.5, 3.0)):
            study, again = nr.Study(policy), nr.Study(policy)
            for trial, reward in zip(study.ask(count=2), rewards, strict=True):
                study.tell(trial, reward)
            again.replica.apply(News(list(study.trials), ""))
            assert study.ask().arm == again.ask().arm
    events = Record().apply(list(study.trials))
    assert [event.trial.state for event in events if event.kind == "asked"] == ["pending"] * 3
    assert [event.trial for event in events if event.kind == "told"] == list(study.trials[:2])


def test_the_width_sums_over_trials_that_are_data():
    """Eq. (5) in the proof of Verma et al.'s Theorem 1 sums what censoring takes from the data."""
    common = {"noise": 0.1, "window": 6, "minimum": 0.0, "beta": 1.0}
    study = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, **common))
    for trial in study.ask(count=6):
        study.fail(trial, "it broke")
    assert study.width == 1.0
    window = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, memory=nr.slots.SlidingWindow(2), regularization=0.01, **common))
    trials = window.ask(count=6)
    std = window.predict(points(trials[4:]))[1]
    assert window.width == pytest.approx(1.0 + std.sum())
    assert window.width < 1.3
    worst = nr.gp_ucb_sdf(ARMS, KERNEL, **common)
    worst = nr.Study(replace(worst, pending=replace(worst.pending, failed="worst")))
    for trial in worst.ask(count=6):
        worst.fail(trial, "it broke")
    assert worst.width == pytest.approx(1.0 + worst.predict(points(worst.trials))[1].sum())  # these are data


def test_a_context_that_is_missing_is_asked_for(pending):
    for name in ("arms, contexts", "box, contexts"):
        study = nr.Study(policy_of(nr.gp_bucb, WORLDS[name], pending))
        with pytest.raises(nr.errors.InvalidInput, match="Pass `context=`"):
            study.ask()
        with pytest.raises(nr.errors.InvalidInput, match="Pass `context=`"):
            study.ask(count=3)
        assert len(study.trials) == 0
    with pytest.raises(nr.errors.InvalidInput, match="no context"):
        nr.Study(policy_of(nr.gp_bucb, WORLDS["arms"], pending)).ask([0.0])


@pytest.mark.parametrize("delay", [math.inf, SilentNo(1e9)])
def test_answers_that_never_come(maker, pending, delay):
    env = nr.Environment(lambda x: np.sin(7 * x[:, 0]), domain=ARMS, noise=NOISE, delay=delay)
    run = nr.simulate(policy_of(maker, WORLDS["arms"], pending), env, 12)
    assert (run.answered_by == 12).all()
    assert np.isinf(run.simple_regret).all()
    # Nothing is known of f, but where pending trials count every question spreads out.
    if not isinstance(pending, nr.slots.Ignored):
        assert len(set(run.arms.tolist())) > 3


# -- replay ------------------------------------------------------------------------------------------------------------

REFITS = {
    "no fits": None,
    "answered": nr.slots.Refit(every=3, restarts=0),
    "own": nr.slots.Refit(every=4, restarts=0, outputs="own", prior="none", standardize=False),
}


RESUMED = [("arms", "answered"), ("box", "no fits"), ("arms, contexts", "own")]


@pytest.mark.parametrize(
    ("treatment", "name", "refit"),
    [
        *((treatment, *RESUMED[i % 3]) for i, treatment in enumerate(PENDING)),
        *nightly(*((treatment, *RESUMED[(i + j) % 3]) for i, treatment in enumerate(PENDING) for j in (1, 2))),
        *nightly(
            *((treatment, *case) for treatment in PENDING for case in [("arms", "own"), ("box, contexts", "answered")])
        ),
    ],
)
def test_resuming_continues_exactly(treatment, name, refit, tmp_path):
    domain, context, kernel = WORLDS[name]
    policy = replace(
        nr.algorithms.gp_bts(domain, kernel, noise=NOISE, beta=1.5, context=context, search=SEARCH),
        pending=PENDING[treatment],
        refit=REFITS[refit],
    )
    url = f"sqlite:///{tmp_path}/studies.db"
    straight, stored = nr.Study(policy, seed=4), nr.Study(policy, seed=4, storage=url)
    due = {}
    for t in range(11):
        if t in (4, 8):
            stored = nr.Study(policy, seed=4, storage=url)  # everything from the record
        trials = [study.ask(context_of(study, t)) for study in (straight, stored)]
        np.testing.assert_array_equal(trials[0].point, trials[1].point)
        due.setdefault(t + random_delay(t), []).append(trials[0])
        for known in due.pop(t, []):
            for study in (straight, stored):
                study.tell(known.number, reward_of(known))
        if t == 7:
            straight.predict(points(trials[:1]), context=context_of(straight, t))  # looking changes nothing
    again = nr.Study(policy, seed=4, storage=url)
    at, seen = points(straight.trials), context_of(straight, 0)
    np.testing.assert_array_equal(again.predict(at, context=seen), straight.predict(at, context=seen))
    assert again.width == straight.width


def test_own_outputs_are_what_a_fit_sees():
    """Censored: the minimum of unanswered trials; hallucinated: their posterior mean."""
    seen = {}
    for name in ("censored", "hallucinated"):
        refit = nr.slots.Refit(every=4, restarts=0, outputs="own", prior="none", standardize=False)
        policy = replace(nr.gp_bucb(ARMS, KERNEL, noise=NOISE, beta=1.5), pending=PENDING[name], refit=refit)
        study = nr.Study(policy, seed=1)
        trials = study.ask(count=4)
        study.tell(trials[0], 1.0)
        state = study.replica.state.settled()
        (fitted,) = state.reward.fits.made.values()
        seen[name] = fitted
        others = [-1.0] * 3
        if name == "hallucinated":
            alone = nr.Study(replace(policy, refit=None, pending=nr.slots.Ignored()))
            alone.add(trials[0].point, 1.0)
            others = alone.predict(points(trials[1:]))[0]
        expected = nr.gp.fit(KERNEL, points(trials), [1.0, *others], noise=NOISE, prior=None, restarts=0, seed=1)
        np.testing.assert_allclose(fitted.kernel.log_parameters, expected.kernel.log_parameters, rtol=1e-4, atol=1e-6)
        assert (fitted.scale.mean, fitted.scale.std) == (0.0, 1.0)
    assert seen["censored"] != seen["hallucinated"]


# -- the simulator -----------------------------------------------------------------------------------------------------


def test_contexts_in_a_given_order():
    order = TIMES.points[[2, 2, 0, 1]]
    env = nr.Environment(
        lambda x, z: np.sin(7 * x[:, 0] + z[:, 0]),
        domain=ARMS,
        contexts=TIMES,
        context_order=order,
        delay=PoissonDelay(1),
    )
    policy = nr.gp_ucb_sdf(ARMS, PLANE, noise=NOISE, context=TIMES, window=2, minimum=-1.0, beta=1.0)
    run = nr.simulate(policy, env, 10)
    np.testing.assert_array_equal(run.contexts, np.resize(order, (10, 1)))
    for t in range(10):  # against the best arm of each context
        best = np.sin(7 * ARMS.points[:, 0] + run.contexts[t, 0]).max()
        assert run.regret[t] == pytest.approx(best - math.sin(7 * run.points[t, 0] + run.contexts[t, 0]))
    with pytest.raises(nr.errors.InvalidInput, match="context_order"):
        nr.Environment(lambda x: x[:, 0], domain=ARMS, context_order=order)


def test_samples_at_few_arms_are_of_the_posterior():
    """Fails by chance less than once in 1e6: 4,000 draws, entries of the covariance within 6 standard errors."""
    from nilregret.gp.arms import Prior
    from nilregret.gp.distinct_arms import DistinctArmsPosterior

    posterior = DistinctArmsPosterior(Prior(nr.Matern(1.5, lengthscale=0.3), ARMS.points), 0.1)
    for arm, target in ((3, 1.0), (20, -1.0), (21, 0.5), (3, 0.8)):
        posterior.append(arm, target)
    few = [1, 3, 8, 20, 33]
    draws = posterior.sample(np.random.default_rng(0), few, size=4000)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.predict(few)[0], atol=6 / math.sqrt(4000))
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance(few), atol=6 * math.sqrt(2 / 4000))


def test_censored_width_needs_sensible_numbers():
    with pytest.raises(nr.errors.InvalidInput, match="`reward_bound`"):
        CensoredWidth(window=3, reward_bound=-1.0, norm_bound=1.0, noise=0.1)
    with pytest.raises(nr.errors.InvalidInput, match="`late`"):
        nr.slots.Censored(minimum=0.0, window=3, late="maybe")


@nr.slots.described
@dataclass(frozen=True, kw_only=True)
class Watching(nr.slots.scores.Improvement):
    """Plays the best mean, and remembers the incumbents."""

    seen: ClassVar[list[float]] = []

    def __call__(self, envelope, incumbent=None):
        self.seen.append(incumbent)
        return envelope.mean


@pytest.mark.parametrize("world", ["box", "box, contexts", "arms"])
def test_pending_points_belong_to_the_incumbent_where_it_says_so(world):
    found, context = {}, [0.5] if "contexts" in world else None
    few = {"search": nr.slots.PointSearch(candidates=4, around=0, starts=1, evaluations=20)}
    searches = {"box": few, "box, contexts": few}
    for which in ("mean", "pending"):
        policy = policy_of(nr.gp_bucb, WORLDS[world], nr.slots.Hallucinated()).using(score=Watching(incumbent=which))
        study = nr.Study(policy.using(**searches.get(world, {})), seed=0)
        for x in ARMS.points[[16, 23]]:
            study.add(x, 1.0, context=context)
        first = study.ask(context)  # The posterior mean is highest between the two answers.
        assert Watching.seen[-1] == found.setdefault("before", Watching.seen[-1])
        study.ask(context)
        found[which] = Watching.seen[-1]
        found["at it"] = float(study.predict([first.point], context=context)[0][0])
    assert found["pending"] == pytest.approx(found["at it"], abs=1e-9)
    if world == "arms":
        assert found["mean"] == found["pending"]  # All arms are compared, pending ones among them.
    else:
        assert found["mean"] < found["pending"] - 1e-4
