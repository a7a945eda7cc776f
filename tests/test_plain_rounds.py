"""Plain rounds of a study in memory are those of the full transaction, to the bit, and whatever is unusual between."""

import itertools
import sys

import numpy as np
import pytest

import nilregret as nr
from nilregret.policy.plain_rounds import PlainRounds
from nilregret.policy.policy import Policy
from nilregret.slots.explore import UniformExploration
from nilregret.study import replica
from nilregret.study.plain_rounds import PlainStudy
from tests.conformance.test_policies import POLICIES, told

ARMS, SE = nr.Arms.grid(0, 1, 12), nr.SquaredExponential(0.2)

MORE = {
    "two arms": lambda: nr.gp_ucb(nr.Arms.grid(0, 1, 2), SE, noise=0.2),
    "all features": lambda: nr.gp_ucb(nr.Arms.grid(0, 1, 200), nr.kernels.Matern(0.5, 0.02), noise=0.2),
    "prior mean": lambda: nr.gp_ucb(ARMS, SE, noise=0.1, prior_mean=0.7),
    "forced": lambda: nr.gp_ucb(ARMS, SE, noise=0.1).using(explore=UniformExploration(0.2)),
    "alike": lambda: nr.gp_ucb(nr.Arms(np.repeat([[0.1], [0.9]], 3, axis=0)), SE, noise=0.1),
}
IN_CONTEXTS = {
    "contexts": lambda: nr.gp_ucb(ARMS, SE.on(0) * SE.on(1), noise=0.1, context=nr.Arms([0.0, 0.5])),
    "drawn in contexts": lambda: nr.gp_ts(
        ARMS, SE.on(0) * SE.on(1), noise=0.1, norm_bound=1.0, context=nr.Arms([0.0, 0.5])
    ),
}
CASES = POLICIES | MORE | IN_CONTEXTS


@pytest.fixture(name="taken")
def taken_fixture(monkeypatch):
    """Kinds of calls that took the plain way."""
    taken = []
    for kind in ("ask", "tell"):
        act = getattr(PlainStudy, kind)

        def call(self, *args, kind=kind, act=act, **more):
            found = act(self, *args, **more)
            taken.extend([kind] * (found is not None))
            return found

        monkeypatch.setattr(PlainStudy, kind, call)
    return taken


def seen(study):
    """Everything that a study has on record and knows, to the bit."""
    contexts = [None] if study.policy.context is None else study.policy.context.points
    mean, std = np.array([study.predict(context=context) for context in contexts]).swapaxes(0, 1)
    trials = [(*trial._key(), trial.point.tobytes(), trial.settings) for trial in study.trials]
    return trials, study.replica.record.order, mean.tobytes(), std.tobytes(), study.information_gain


class Player:
    """A study with some unusual acts between its rounds, drawn by numbers of their own."""

    def __init__(self, policy, odd, **more):
        self.time = itertools.count()
        self.study = nr.Study(policy, seed=3, clock=lambda: float(next(self.time)), **more)
        self.study.quiet = True
        self.rng, self.odd, self.open = np.random.default_rng(1), odd, []
        self.limits = [-0.1] * policy.constraint_count or None

    def answer(self, trial, shift=0.0):
        reward = told(self.study, trial, shift)
        return self.study.tell(trial, reward, constraints=self.limits)

    @property
    def context(self):
        contexts = self.study.policy.context
        return {} if contexts is None else {"context": contexts.points[int(self.rng.integers(len(contexts)))]}

    def ask(self):
        study, odd, under = self.study, self.rng.random() if self.odd else 1.0, self.context
        if odd < 0.02:
            study.enqueue(int(self.rng.integers(3)))
        if odd < 0.04:
            return study.ask(among=[0, 1, 3], **under)
        if odd < 0.06:
            return study.ask(lease=40.0, **under)
        if odd < 0.08:
            return study.ask(unit="anna", facts={"at": 3}, **under)
        if odd < 0.10:
            self.open += study.ask(count=2, **under)
        if odd < 0.12:
            study.predict(**under), study.best() if any(trial.reward is not None for trial in study.trials) else None
        return study.ask(**under)

    def tell(self, trial):
        study, odd = self.study, self.rng.random() if self.odd else 1.0
        if odd < 0.04:
            study.fail(trial, "a fault")
        elif odd < 0.06:
            study.abandon(trial)
            self.answer(trial)
        elif odd < 0.08:
            self.answer(trial)
            study.tell(trial, told(study, trial, 0.5), constraints=self.limits, revise=True)
        elif odd < 0.12 and study.policy.objective_count == 1:
            study.tell(trial.number, 1, constraints=self.limits, metrics={"n": 2.0})
        elif odd < 0.15 and not self.limits:
            study.add(trial.point, told(study, trial), **self.context)
            self.answer(trial)
        elif odd < 0.18 and study.policy.confidence.weighs and study.policy.objective_count == 1:
            try:
                study.tell(trial, 0.3, std=0.05, constraints=self.limits)
            except nr.errors.InvalidInput:  # The policy has one noise for all.
                self.answer(trial)
        else:
            self.answer(trial)
            self.answer(trial)  # again, which changes nothing

    def play(self, rounds):
        for at in range(rounds):
            self.open.append(self.ask())
            if self.odd and at == rounds // 2:
                self.study.retire_arm(4)
            if self.odd and at == rounds // 2 + 9:
                self.study.restore_arm(4)
            if self.odd and self.rng.random() < 0.1:
                continue
            while self.open:
                self.tell(self.open.pop(int(self.rng.integers(len(self.open)))))
        return self.study


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_goals_and_names_are_plain_too(goal, taken, monkeypatch):
    named = nr.Space(dose=nr.Int(0, 11)).grid(12)
    policy = nr.gp_ucb(named, nr.SquaredExponential(2.0), noise=0.1, prior_mean=0.2)
    found = seen(Player(policy, odd=True, goal=goal).play(90))
    assert len(taken) > 90
    monkeypatch.setattr(Policy, "direct", False)
    assert seen(Player(policy, odd=True, goal=goal).play(90)) == found


@pytest.mark.parametrize("odd", [False, True], ids=["usual", "unusual"])
@pytest.mark.parametrize("name", CASES)
def test_plain_rounds_are_those_of_a_transaction(name, odd, taken, monkeypatch):
    policy = CASES[name]()
    odd = odd and len(policy.domain) > 5
    rounds = 60 if policy.constraint_count or policy.objective_count > 1 else 90
    found = seen(Player(policy, odd).play(rounds))
    direct, count = policy.direct, len(taken)
    assert (count > 0) == direct
    assert not direct or count > (rounds if odd else 2 * rounds - 1)  # most calls, also after each unusual act
    monkeypatch.setattr(Policy, "direct", False)
    assert seen(Player(policy, odd).play(rounds)) == found
    assert len(taken) == count


@pytest.mark.parametrize("kernel", [SE, nr.kernels.Matern(2.5, 0.05)], ids=["low rank", "by arms"])
def test_posteriors_are_renewed_alike(kernel, monkeypatch):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 150), kernel, noise=0.2)
    found = seen(Player(policy, odd=False).play(600))
    monkeypatch.setattr(Policy, "direct", False)
    assert seen(Player(policy, odd=False).play(600)) == found


def test_errors_are_those_of_a_transaction(taken):
    study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1))
    trial = study.ask()
    for wrong in (float("nan"), float("inf"), 1e300, "much"):
        with pytest.raises(nr.errors.InvalidInput):
            study.tell(trial, wrong)
    study.tell(trial, 0.5)
    with pytest.raises(nr.errors.TrialError, match="told already"):
        study.tell(trial, 0.6)
    other = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1), seed=4)
    with pytest.raises(nr.errors.TrialError):
        study.tell([other.ask() for _ in range(3)][-1], 0.5)
    assert taken == ["ask", "tell", "ask", "ask", "ask"]
    assert study.trials[0].reward == 0.5
    wrong_clock = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1), clock=lambda: float("nan"))
    with pytest.raises(nr.errors.NoRegretError, match="The clock"):
        wrong_clock.ask()


def test_other_studies_take_transactions(taken):
    study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1), propensities=True)
    study.tell(study.ask(), 0.5)
    assert not taken


@pytest.mark.parametrize(
    ("name", "instant"), [("gp_ucb", 0.0), ("gp_ucb", np.inf), ("gp_ts", np.inf), ("contexts", np.inf)]
)
def test_rounds_of_stored_studies_are_plain_too(name, instant, taken, monkeypatch, tmp_path):
    monkeypatch.setattr(replica, "INSTANT", instant)
    policy, url = CASES[name](), f"sqlite:///{tmp_path}/a.db"
    stored = Player(policy, odd=True, storage=url).play(90)
    assert len(taken) > 90
    wanted = seen(stored)
    assert seen(nr.Study.open(storage=url)) == wanted
    monkeypatch.setattr(Policy, "direct", False)
    assert seen(Player(policy, odd=True).play(90)) == wanted


def lines(act, stop):
    """Runs a call and interrupts it before the line of this number, and returns the number of lines."""
    count = itertools.count()

    def trace(frame, event, _):
        if event == "line" and next(count) == stop:
            raise KeyboardInterrupt
        return trace if "nilregret" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return next(count)


@pytest.mark.parametrize("revised", [False, True], ids=["", "after a replay"])
def test_interrupts_lose_nothing(revised):
    """An interrupt before any line of a plain round leaves a study that goes on as if the call had not begun."""

    def begun():
        study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1), seed=1, clock=lambda: 1.0)
        for _ in range(3):
            study.tell(study.ask(), 0.5)
        if revised:
            study.tell(1, 0.7, revise=True)
        return study

    def ended(study):
        if len(study.trials) == 3:
            study.ask()
        study.tell(study.trials[3], 0.2)
        study.tell(study.ask(), 0.7)
        study.ask()
        return seen(study)

    wanted, stopped = ended(begun()), 0
    for stop in itertools.count(0, 3 if revised else 1):
        study = begun()
        try:
            lines(lambda study=study: study.tell(study.ask(), 0.2), stop)
            break
        except KeyboardInterrupt:
            stopped += 1
        assert not any(trial.open for trial in study.trials[:3])
        assert ended(study) == wanted
    assert stopped > (30 if revised else 60)


def test_a_new_state_has_new_rounds():
    study = nr.Study(nr.gp_ucb(ARMS, SE, noise=0.1))
    trial = study.tell(study.ask(), 0.5)
    before = study._plain._rounds
    study.ask()
    assert study._plain._rounds is before
    study.tell(trial, 0.4, revise=True)
    study.ask()
    after = study._plain._rounds
    assert isinstance(after, PlainRounds)
    assert after is not before
    assert after.state is study.replica.state
