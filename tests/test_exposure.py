"""Yeses at once and noes at the deadline: an open trial counts as the share of the yeses that would have come."""

import json
from datetime import timedelta

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp.binomial_counts import RatePosterior, RatePrior
from nilregret.gp.context_bank import ContextPosterior
from nilregret.policy.trained_posterior import TrainedPosterior
from nilregret.slots.silence import STEP, Exposure
from nilregret.storage import MemoryStorage

from .service import AT, Client, Clock, asked, plain, told

CLICKS = nr.auto(nr.Arms(range(4)), reward="bernoulli")
HOURS = nr.Space(hour=nr.Float(0, 24))
UNDER_HOURS = nr.auto(nr.Arms(range(4)), context=HOURS, reward="bernoulli")
EXPOSED = nr.slots.Exposed


def play(policy, wait, law, *, rounds, seed, rate=0.1, noes=True, clock=None):
    """Clicks that come after a delay drawn from a law on [0, 1), in waits, and noes at the end of the wait."""
    rng, due, given = np.random.default_rng(seed), {}, {} if clock is None else {"clock": clock}
    study = nr.Study(policy, seed=seed, **given)
    study.quiet = True
    for t in range(rounds):
        if clock is not None:
            clock.now = 1000.0 + t
        trial = study.ask(None if policy.context is None else {"hour": 24 * rng.random()})
        yes, delay = rng.random() < rate, int(wait * law(rng))
        if yes or noes:
            due.setdefault(t + (delay if yes else wait), []).append((trial, float(yes)))
        for answer in due.pop(t, []):
            study.tell(*answer)
    return study


def memory_of(study):
    return study.replica.current().reward.data.pending.waits


# -- posteriors learn shares of observations --------------------------------------------------------------------------


def test_shares_of_a_reward_add_up_to_the_reward():
    known = RatePrior(nr.slots.Bernoulli(), 0.5)
    points, kernel = np.arange(3.0)[:, None], nr.SquaredExponential(1.0)
    whole, parts = (RatePosterior(kernel, points, known, regularization=0.25) for _ in range(2))
    rng = np.random.default_rng(0)
    for arm in rng.integers(3, size=60):
        target = float(rng.random() < 0.3) - 0.5
        whole.append(arm, target)
        for weight in (0.25, 0.5, 0.5):
            parts.append(arm, target, weight=weight)
        parts.forget(arm, target, weight=0.25)
    np.testing.assert_allclose(parts.plays, whole.plays)
    np.testing.assert_allclose(parts.averages, whole.averages)
    one, other = (each.deviations_from(each) for each in (whole, parts))
    np.testing.assert_allclose(one.plays, other.plays)
    parts._fit(), whole._fit()
    parts._fit(), whole._fit()
    for mine, theirs in zip(parts.predict(), whole.predict(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3)


@pytest.mark.parametrize("rounds", [30, 90])
def test_shares_of_an_observation_under_contexts_add_up_to_it(rounds):
    arms = nr.Arms(range(3))
    policy = nr.auto(arms, context=HOURS, reward="bernoulli").using(pending=EXPOSED())
    whole, parts = (ContextPosterior(policy.kernel, arms, 1, policy.models, regularization=1.0) for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        row, target = np.array([24 * rng.random(), float(rng.integers(3))]), float(rng.random() < 0.4)
        whole.append(row, target)
        parts.append(row, target, weight=0.25)
        parts.append(row, target, weight=0.5)
        parts.forget(row, target, weight=0.25)
        parts.append(row, target, weight=0.5)
    assert parts.count == whole.count == rounds
    at = np.column_stack([np.linspace(0, 24, 9), np.arange(9) % 3])
    assert np.abs(parts.predict(at)[0] - whole.predict(at)[0]).max() < 0.1  # weights of models differ by their order
    for j, model in parts._models.items():
        np.testing.assert_allclose(model.blocks.covariance(), whole._models[j].blocks.covariance(), atol=1e-6)
        assert model._shape == pytest.approx(whole._models[j]._shape)


@pytest.mark.parametrize("trials", [12, 40, 70, 200])
def test_shares_of_alike_observations_under_contexts_are_told_apart(trials):
    """Contexts that repeat, as kinds of devices do: what is forgotten leaves the shares of the others."""
    arms, models = nr.Arms(range(2)), UNDER_HOURS.using(pending=EXPOSED()).models
    posterior = ContextPosterior(UNDER_HOURS.kernel, arms, 1, models, regularization=1.0)
    rng, open_, known = np.random.default_rng(trials), [], {}

    def change(key, target, weight):
        act = posterior.append if weight > 0.0 else posterior.forget
        act(np.array(key, dtype=float), target, weight=abs(weight))
        known[*key, target] = known.get((*key, target), 0.0) + weight

    for _ in range(trials):
        open_.append([tuple(rng.integers(2, size=2).tolist()), 0.0])
        for trial in [*open_]:
            key, share = trial
            if share and rng.random() < 0.1:  # a yes, which takes the place of the share
                change(key, -0.5, -share)
                change(key, 0.5, 1)
                open_.remove(trial)
            elif share < 1.0 and rng.random() < 0.3:
                more = min(float(rng.choice([0.125, 0.3, 0.5])), 1.0 - share)
                change(key, -0.5, more)
                trial[1] = share + more
    total = sum(known.values())
    assert posterior.count == pytest.approx(total)
    for model in posterior._models.values():
        assert model._shape == pytest.approx(1.0 + total / 2.0)
    found = {}
    for context, arm, target, weight in posterior._early:
        assert 0.0 < weight <= 1.0
        found[int(context[0]), arm, target] = found.get((int(context[0]), arm, target), 0.0) + weight
    assert not found or found == pytest.approx({key: weight for key, weight in known.items() if weight > 1e-9})


# -- shares ------------------------------------------------------------------------------------------------------------


def law_of(study):
    """F at the borders of the groups, learned from all trials so far."""
    waits = memory_of(study)
    waits._learn()
    return np.array(waits._ages), waits._within[1:], np.array(waits._share[1:])


def test_the_law_of_delays_is_learned_relative_to_the_wait():
    """F of delays that are uniform, and of early ones, within .05 (four deviations of some 500 yeses)."""
    for law, within in ((lambda g: g.random(), lambda a: a), (lambda g: g.random() ** 3, lambda a: a ** (1 / 3))):
        study = play(CLICKS.using(pending=EXPOSED(wait=128)), 128, law, rounds=2000, seed=0, rate=0.3)
        ages, found, shares = law_of(study)
        assert np.abs(found - within(ages / 128))[ages >= 4].max() < 0.05
        assert shares[-1] == 1.0
        assert (np.diff(shares) >= 0.0).all()


def test_silence_counts_so_much_that_yeses_over_all_that_counts_are_right():
    """At a rate of .3 and uniform delays: w = F .7 / (1 - .3 F), within .05 (see above)."""
    study = play(CLICKS.using(pending=EXPOSED(wait=128)), 128, lambda g: g.random(), rounds=2000, seed=1, rate=0.3)
    _, found, shares = law_of(study)
    middle = 0.5 * (found[:-1] + found[1:])
    np.testing.assert_allclose(shares[:-1], np.minimum(0.7 * middle / (1 - 0.3 * middle), 1 - STEP), atol=0.05)


def test_silence_teaches_nothing_if_everything_is_answered_before_the_wait_is_over():
    study, rng = nr.Study(CLICKS.using(pending=EXPOSED(wait=100)), seed=0), np.random.default_rng(0)
    due = {}
    for t in range(1000):
        trial = study.ask()
        due.setdefault(t + int(90 * rng.random()), []).append((trial, float(rng.random() < 0.3)))
        for answer in due.pop(t, []):
            study.tell(*answer)
    assert max(law_of(study)[2][:-1]) < 0.1


def test_without_a_wait_it_is_learned_and_noes_need_not_come():
    study = play(CLICKS.using(pending=EXPOSED()), 60, lambda g: g.random(), rounds=1500, seed=0, noes=False, rate=0.2)
    ages, found, _ = law_of(study)
    assert found[ages >= 64].min() > 0.98
    assert 0.4 < found[ages == 32][0] < 0.65
    # 300 yeses: four deviations are .09
    assert study.predict()[0].max() == pytest.approx(0.2, abs=0.09)


def test_an_open_trial_costs_a_handful_of_updates_and_a_decision_a_flat_number(monkeypatch):
    counts, updates, weigh = [], [0], TrainedPosterior._weigh

    def counted(self, *given):
        updates[0] += 1
        weigh(self, *given)

    monkeypatch.setattr(TrainedPosterior, "_weigh", counted)
    for wait in (64, 1024):
        updates[0] = 0
        play(CLICKS.using(pending=EXPOSED(wait=wait)), wait, lambda g: g.random(), rounds=1500, seed=0)
        counts.append(updates[0] / 1500)
    assert max(counts) < 1 / STEP


def test_what_is_forgotten_or_given_up_moves_no_law():
    waits = Exposure(EXPOSED(wait=8))
    study = nr.Study(CLICKS, seed=0)
    trials = study.ask(count=20)
    for trial in trials[:6]:
        waits.ask(trial)
    waits.hear(trials[0]._replace(state="abandoned"))
    waits.forget(3)
    waits.hear(trials[4]._replace(reward=1.0))
    waits.hear(trials[5]._replace(state="abandoned"))
    waits.hear(trials[5]._replace(reward=0.0))  # the default reward after the lease has ended
    for trial in trials[6:]:
        waits.ask(trial)
    assert waits._reached[-1] == 20 - 3 - 8
    assert (waits._yes[-1], waits._no[-1]) == (1, 1)
    assert waits.over(2, 0)
    assert not waits.over(19, 0)
    assert not any(name < 3 for name, _ in waits.shares({}))


# -- regret ------------------------------------------------------------------------------------------------------------


def newcomer(policy, wait, rate, seed):
    """Share of a new arm in the waiting window after it joins arms of 10 and 12%, with early yeses and late noes."""
    rates, due = [0.1, 0.12, 0.1, 0.12, rate], {}
    study, rng, joined = nr.Study(policy, seed=seed), np.random.default_rng(seed), wait + 100
    study.quiet = True
    for t in range(joined + wait):
        if t == joined:
            study.add_arms([[4]])
        trial = study.ask(None if policy.context is None else {"hour": 24 * rng.random()})
        yes = rng.random() < rates[trial.arm]
        delay = min(int(-np.log(1 - rng.random()) * wait / 5), wait - 1)
        due.setdefault(t + (delay if yes else wait), []).append((trial, float(yes)))
        for answer in due.pop(t, []):
            study.tell(*answer)
    return np.mean([trial.arm == 4 for trial in study.trials[joined:]])


def test_a_bad_newcomer_does_not_have_the_window():
    """Its share: .11 on average over these seeds. It was .36 while trials counted when they were answered."""
    shares = [newcomer(CLICKS.using(pending=EXPOSED(wait=300)), 300, 0.02, seed) for seed in range(4)]
    assert np.mean(shares) < 0.2


@pytest.mark.nightly
def test_a_bad_newcomer_under_contexts_does_not_have_the_window():
    shares = [newcomer(UNDER_HOURS.using(pending=EXPOSED(wait=300)), 300, 0.02, seed) for seed in range(4)]
    assert np.mean(shares) < 0.25


# -- records, policies, the service ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [CLICKS, UNDER_HOURS], ids=["arms", "contexts"])
@pytest.mark.parametrize("in_time", [False, True])
def test_a_replay_decides_alike_by_the_clock_on_record(policy, in_time):
    clock = Clock()
    policy = policy.using(pending=EXPOSED(wait=20.0, in_time=in_time))
    study = play(policy, 20, lambda g: g.random(), rounds=80, seed=0, rate=0.3, clock=clock)
    context, state = None if policy.context is None else np.array([3.0]), study.replica.state
    study.replica.rebuild()
    seen = [each.settled().envelope(None, context) for each in (state, study.replica.state)]
    assert seen[0].mean.tobytes() == seen[1].mean.tobytes()
    assert seen[0].std.tobytes() == seen[1].std.tobytes()


def test_a_part_says_where_it_does_not_fit():
    with pytest.raises(nr.errors.InvalidInput, match="share of an observation"):
        nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2), noise=0.1, pending=EXPOSED())
    with pytest.raises(nr.errors.InvalidInput, match="how many seconds"):
        EXPOSED(in_time=True)
    assert EXPOSED.within(timedelta(minutes=1), minimum=2.0) == EXPOSED(wait=60.0, in_time=True, minimum=2.0)
    assert EXPOSED(minimum=2.0).turned().minimum == -2.0


def test_auto_takes_it_where_only_clicks_are_told():
    arms = nr.Arms(range(3))
    under = {"reward": "bernoulli", "context": HOURS}
    for given in ({"reward": "bernoulli"}, {"reward": "poisson"}, {"reward": "bounded"}, under):
        assert nr.auto(arms, answers="silent no", **given).pending == EXPOSED(failed="weighed")
    below = nr.slots.Bounded(low=-1.0)
    for given in ({"reward": "bernoulli", "world": "drifting"}, {"reward": below}, {"context": HOURS}):
        assert isinstance(nr.auto(arms, answers="silent no", **given).pending, nr.slots.Imputed)


@pytest.mark.parametrize("rule", ["reward", "silence"])
@pytest.mark.parametrize("policy", [CLICKS, UNDER_HOURS], ids=["arms", "contexts"])
def test_the_service_counts_open_decisions_by_the_deadline_of_the_study(rule, policy):
    given = {"policy": plain(policy), "deadline": 60.0, "on_deadline": rule, "default_reward": 0.0}
    context = {} if policy.context is None else {"context": {"hour": 3.0}}
    with Client(MemoryStorage(), clock=Clock()) as client:
        assert client.put(AT, given)[0] == 201
        assert client.put(AT, given)[0] == 200
        said = nr.Policy.from_json(json.dumps(client.get(AT)[1]["policy"])).pending
        assert said == EXPOSED(wait=60.0, in_time=True, failed=policy.pending.failed)
        first = asked(client, **context)
        assert first["expires_at"] == 1060.0
        trials = [asked(client, **context) for _ in range(8)]
        assert told(client, trials[0], 1.0)[0] == 200
        client.service.workers._clock.now = 1061.0
        asked(client, **context)
        asked(client, **context)
        late = told(client, first, 1.0)[1]
        assert (late["late"], late["counted"]) == (True, rule == "silence")


def test_the_service_leaves_a_policy_that_cannot_weigh_or_says_itself_what_open_trials_count_as():
    other = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2), noise=0.1)
    own = CLICKS.using(pending=nr.slots.Hallucinated())
    changing = nr.auto(nr.Arms(range(4)), context=HOURS, world="switching")
    plainly = ((other, nr.slots.Ignored()), (own, nr.slots.Hallucinated()), (changing, changing.pending))
    for policy, pending in plainly:
        given = {"policy": plain(policy), "deadline": 60.0, "on_deadline": "reward", "default_reward": 0.0}
        with Client(MemoryStorage(), clock=Clock()) as client:
            assert client.put(AT, given)[0] == 201
            assert nr.Policy.from_json(json.dumps(client.get(AT)[1]["policy"])).pending == pending
            assert client.put(f"{AT}2", given | {"on_deadline": "silence"})[0] == (201 if policy is own else 422)
