"""Parts of a user's own work in every room, without a line of the package being changed for them."""

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret import testing
from nilregret.slots import (
    Confidence,
    Explore,
    ImputedValue,
    Memory,
    Objective,
    Pending,
    PointwiseScore,
    Restart,
    Score,
    Width,
    described,
)
from nilregret.slots.scores import ThompsonSample

from . import mine

KERNEL = nr.Matern(2.5, 0.25)
ROOMS = {
    "arms": nr.gp_ucb(nr.Arms.grid(0, 1, 20), KERNEL, noise=0.1),
    "table": nr.gp_ucb(nr.Arms.grid(0, 1, 10), KERNEL, noise=0.1, context=nr.Arms([[0.0], [0.5]])),
    "contexts": nr.gp_ucb(nr.Arms.grid(0, 1, 10), KERNEL, noise=0.1, context=nr.Box([0.0], [1.0])),
    "box": nr.gp_ucb(nr.Box([0.0], [1.0]), KERNEL, noise=0.1),
    "space": nr.gp_ucb(nr.Space(x=nr.Float(0.1, 1.0, log=True), k=nr.Choice("a", "b")), KERNEL, noise=0.1),
}
PARTS = {
    "memory: a window": {"memory": mine.GrowingWindow(4)},
    "memory: a detector": {"memory": mine.Surprise(1.0)},
    "memory: a detector with a belief of its own": {"memory": mine.OwnPicture(1.0)},
    "explore": {"explore": mine.EpsilonGreedy(0.3)},
    "pending: a liar": {"pending": mine.Liar()},
    "pending: a patient one": {"pending": mine.Patient(2)},
    "pending: a believer": {"pending": mine.Believer()},
    "objective": {"objective": mine.Clipped(-0.5, 0.5)},
    "objective: with charges": {"objective": mine.RisingPrice()},
    "confidence: a width": {"confidence": mine.RootWidth()},
    "confidence: bounds": {"confidence": mine.Between(mine.RootWidth(), -0.7, 0.7)},
    "score: pointwise": {"score": mine.Middle(), "confidence": mine.Between(mine.RootWidth(), -2.0, 2.0)},
    "score: draws": {"score": mine.OptimisticThompson()},
    "kernel": {"kernel": mine.Cauchy(0.3)},
    "all together": {
        "memory": mine.Surprise(1.0),
        "explore": mine.EpsilonGreedy(0.2),
        "pending": mine.Patient(1),
        "objective": mine.Clipped(-0.5, 0.5),
        "confidence": mine.Between(mine.RootWidth(), -2.0, 2.0),
        "score": mine.Middle(),
        "kernel": mine.Cauchy(0.3),
    },
}
QUICK = nr.slots.PointSearch(candidates=64, starts=1)


def made(room, parts):
    search = {"search": QUICK} if room in ("box", "space") else {}
    return ROOMS[room].using(**parts, **search)


def test_they_import_nothing_that_is_not_public():
    tree = ast.parse(Path(mine.__file__).read_text())
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in used if name.startswith("nilregret")} == {
        "nilregret.kernels",
        "nilregret.slots",
    }


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_they_keep_the_promises_on_arms(parts):
    testing.check_policy(made("arms", parts), rounds=10)


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("table", "all together"),
        ("contexts", "score: draws"),
        ("box", "all together"),
        ("box", "memory: a detector with a belief of its own"),
        ("space", "objective: with charges"),
    ],
)
def test_they_keep_the_promises_elsewhere(room, name):
    testing.check_policy(made(room, PARTS[name]), rounds=10)


def in_every_room():
    """Each part on arms and in one other room; nightly, in all of them."""
    others = itertools.cycle(room for room in ROOMS if room != "arms")
    for name in PARTS:
        chosen = {"arms", *(ROOMS if name == "all together" else [next(others)])}
        for room in ROOMS:
            yield pytest.param(room, name, marks=[] if room in chosen else [pytest.mark.nightly])


@pytest.mark.parametrize(("room", "name"), list(in_every_room()))
def test_they_play_in_every_room_and_are_read_back(room, name, tmp_path):
    policy = made(room, PARTS[name])
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(policy, storage=url)
    contexts = [None] * 8 if policy.context is None else [[0.0], [0.5]] * 4
    for context in contexts:
        trial = study.ask(context)
        if trial.number % 3:
            study.tell(trial, float(np.sin(5 * trial.point[0])))
    again = nr.Study.open(storage=url)
    assert again.policy == policy
    np.testing.assert_array_equal(
        again.ask(contexts[0]).point, study.replica.state.decide(study.inputs.context(contexts[0])).point
    )


def test_a_window_counts_what_it_says():
    """Of 40 answered trials the younger half, on arms as on a box."""
    for room in ("arms", "box"):
        study = nr.Study(made(room, {"memory": mine.GrowingWindow(4)}))
        for _ in range(40):
            study.tell(study.ask(), 0.3)
        posterior = study.replica.current().reward.posterior.belief.observed
        assert posterior.count == 20


def test_a_pending_part_holds_the_observations_that_it_promises():
    counts = {}
    for name, pending in (("liar", mine.Liar()), ("patient", mine.Patient(3)), ("believer", mine.Believer())):
        study = nr.Study(ROOMS["arms"].using(pending=pending))
        for number in range(10):
            trial = study.ask()
            if number % 2:
                study.tell(trial, 0.3)
        study.ask()
        belief = study.replica.current().reward.posterior.belief
        counts[name] = (belief.observed.count, belief.with_pending.count)
    # 5 answers; 6 questions are open, and 4 of them have waited for three others or more
    assert counts == {"liar": (11, 11), "patient": (5, 9), "believer": (11, 11)}
    assert nr.gp_ucb(nr.Arms.grid(0, 1, 5), KERNEL, noise=0.1).using(pending=mine.Liar()).valid_for == "none"


@pytest.mark.parametrize("memory", [mine.Surprise(2.0), mine.OwnPicture(4.0)], ids=["surprise", "own picture"])
def test_a_detector_of_ones_own_finds_a_change(memory):
    arms = nr.Arms.grid(0, 1, 20)
    env = nr.Environment(
        [lambda x: np.sin(5 * x[:, 0]), lambda x: 4.0 - 3 * x[:, 0]], domain=arms, noise=0.05, change_points=[40]
    )
    run = nr.simulate(nr.gp_ucb(arms, KERNEL, noise=0.05).using(memory=memory), env, 60, seed=1)
    assert len(run.restarts) >= 1
    assert 40 < run.restarts[0] <= 48
    plain = nr.simulate(nr.gp_ucb(arms, KERNEL, noise=0.05), env, 60, seed=1)
    assert run.regret[50:].sum() < plain.regret[50:].sum()


def test_a_prediction_before_an_answer_does_not_know_what_stood_in_for_it():
    """Otherwise the deviation would be that of a point that was seen already, and a surprise no surprise."""
    seen = []

    class Watch(mine.Surprises):
        def see(self, answer):
            seen.append(answer)

    @described
    @dataclass(frozen=True)
    class Looks(Memory):
        def watch(self, world):
            return Watch(mine.Surprise())

    for pending in (nr.slots.Hallucinated(), mine.Liar()):
        seen.clear()
        study = nr.Study(ROOMS["arms"].using(memory=Looks(), pending=pending))
        first = study.ask()
        study.ask()  # by now the first one stands in
        study.tell(first, 0.3)
        study.ask()
        assert seen[0].before.std > 0.9 if pending == nr.slots.Hallucinated() else seen[0].before.std > 0.1
        kept = study.replica.current().reward.posterior.belief
        assert kept.with_pending.count == 3


def test_with_refits_simulations_and_processes():
    arms = nr.Arms.grid(0, 1, 15)
    env = nr.Environment(lambda x: np.sin(5 * x[:, 0]), domain=arms, noise=0.1)
    policy = nr.gp_ucb(arms, mine.Cauchy(0.3), noise=0.1, refit=nr.slots.Refit(every=5)).using(
        memory=mine.GrowingWindow(6), pending=mine.Believer(), score=mine.Middle()
    )
    run = nr.simulate(policy, env, 25, seed=2)
    np.testing.assert_array_equal(nr.simulate(policy, env, 25, seed=2).arms, run.arms)
    assert run.regret[15:].mean() < run.regret[:5].mean()
    runs = nr.replicate(lambda seed: policy, lambda seed: env, 10, seeds=[0, 1], jobs=2)
    np.testing.assert_array_equal(
        runs.arms[0], nr.replicate(lambda seed: policy, lambda seed: env, 10, seeds=[0, 1]).arms[0]
    )


def test_in_every_algorithm():
    arms = nr.Arms.grid(0, 1, 15)
    for policy in (
        nr.igp_ucb(arms, KERNEL, noise=0.1, norm_bound=1.0),
        nr.expected_improvement(arms, KERNEL, noise=0.1),
        nr.gp_ucb_cpd(arms, KERNEL, noise=0.1, horizon=50),
        nr.gp_ucb_noisy_constraints(arms, KERNEL, noise=0.1, norm_bound=1.0, epoch=4, epochs=3),
    ):
        other = policy.using(memory=mine.GrowingWindow(4), pending=mine.Liar(), confidence=mine.RootWidth())
        assert other.valid_for == "none"
        study = nr.Study(other)
        for _ in range(8):
            trial = study.ask()
            study.tell(trial, 0.1 * trial.arm, constraints=[0.1] * other.constraint_count or None)
        assert len(study.replica.current().reward.posterior.entries) <= 5


# -- what is refused, and when ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Undecorated(Memory):
    """Not described."""


@described
@dataclass(frozen=True)
class Unfinished(Explore):
    """Without `due`."""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"memory": Undecorated()}, r"`memory` is a Undecorated, which could not be stored.*described"),
        ({"memory": 50}, r"`memory` is 50: it must be .*SlidingWindow.*One of your own derives from `Memory`"),
        ({"memory": mine.GrowingWindow}, r"derives from `Memory`"),
        ({"memory": mine.RootWidth()}, r"`memory` is RootWidth\(scale=1.0\): it must be"),
        ({"confidence": 3}, r"`confidence` is 3: it must be .*derives from `Confidence`"),
        ({"score": "ucb"}, r"`score` is 'ucb': it must be .*derives from `Score`"),
        ({"pending": 3.0}, r"derives from `Pending`"),
        ({"explore": 0.1}, r"derives from `Explore`"),
        ({"objective": lambda trial: 1.0}, r"derives from `Objective`"),
        ({"search": mine.Middle()}, r"`search` is .*PointSearch"),
        ({"windows": mine.GrowingWindow(3)}, r"no slot 'windows'; its slots are .*memory"),
        (
            {"score": mine.OptimisticThompson(), "confidence": mine.Between(mine.RootWidth())},
            r"`OptimisticThompson` widens its draws by a multiple.*`Between` are none",
        ),
        ({"score": ThompsonSample(), "confidence": mine.Between(mine.RootWidth())}, r"`ThompsonSample` widens"),
        ({"memory": mine.Drifting(0.1), "refit": nr.slots.Refit()}, r"under `Drifting` f is another one in each round"),
    ],
)
def test_what_does_not_fit_is_refused_when_the_policy_is_made(parts, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        ROOMS["arms"].using(**parts)


def test_a_watch_that_wants_predictions_beside_others():
    parts = (
        mine.Surprise(limit=1.0),
        nr.slots.SlidingWindow(8),
        nr.slots.EDetector(delta=0.9),
        nr.slots.Discount(0.05),
    )
    policy = ROOMS["arms"].using(memory=nr.slots.AllOf(parts))
    testing.check_policy(policy, rounds=14)
    study = nr.Study(policy, seed=0)
    for t in range(30):
        study.tell(study.ask(), 3.0 * (t >= 20))
    study.ask()
    assert any(reason.startswith("answers that nothing") for reason in study.restart_reasons)


def test_drift_of_ones_own_goes_with_everything():
    testing.check_policy(ROOMS["arms"].using(memory=mine.Drifting(0.1), pending=mine.Liar()), rounds=10)
    testing.check_policy(ROOMS["box"].using(memory=mine.Drifting(0.1)), rounds=10)

    @described
    @dataclass(frozen=True)
    class DriftingWindow(mine.GrowingWindow):
        def drift(self):
            return 0.1

    testing.check_policy(ROOMS["arms"].using(memory=DriftingWindow(4)), rounds=12)


@pytest.mark.parametrize(
    ("slot", "method"),
    [
        (Explore, "due"),
        (Pending, "count_as"),
        (Objective, "target"),
        (Confidence, "bounds"),
        (Width, "width"),
        (PointwiseScore, "__call__"),
        (Score, "on_points"),
    ],
)
def test_a_missing_method_is_named(slot, method):
    nothing = type("Nothing", (slot,), {})
    with pytest.raises(TypeError, match=method):
        nothing()
    with pytest.raises(TypeError, match="due"):
        Unfinished()


def test_a_part_that_is_not_described_itself_is_refused_though_its_base_is():
    class Longer(mine.GrowingWindow):
        pass

    with pytest.raises(nr.errors.InvalidInput, match="`memory` is a Longer"):
        ROOMS["arms"].using(memory=Longer(3))


def test_a_name_of_the_package_cannot_be_taken():
    with pytest.raises(nr.errors.InvalidInput, match=r"already, in `nilregret.slots.memory`.*Give yours another"):

        @described
        @dataclass(frozen=True)
        class SlidingWindow(Memory):
            rounds: int

    assert nr.Policy.from_json(
        ROOMS["arms"].using(memory=nr.slots.SlidingWindow(3)).to_json()
    ).memory == nr.slots.SlidingWindow(3)


def test_cuts_that_make_no_sense_are_said_so():
    @described
    @dataclass(frozen=True)
    class Always(Memory):
        def cut(self, since, round_):
            return Restart(0, "always")

    study = nr.Study(ROOMS["arms"].using(memory=Always()))
    with pytest.raises(nr.NoRegretError, match="`Always` cuts the memory at round 0, which is not after the last cut"):
        study.ask()


def test_a_score_that_is_no_number_is_said_so():
    @described
    @dataclass(frozen=True)
    class Ratio(PointwiseScore):
        def __call__(self, envelope, incumbent=None):
            return np.full(len(envelope.mean), np.nan)

    for room, what in (("arms", "an arm"), ("box", "every point")):
        with pytest.raises(nr.errors.InvalidInput, match=f"The score of {what} is NaN"):
            nr.Study(ROOMS[room].using(score=Ratio())).ask()


def test_counting_for_the_variance_alone_must_be_declared():
    @described
    @dataclass(frozen=True)
    class Silent(Pending):
        def count_as(self, trial, known):
            return ImputedValue(None)

    study = nr.Study(ROOMS["arms"].using(pending=Silent()))
    study.ask()
    with pytest.raises(
        nr.errors.InvalidInput, match=r"`Silent` counts a trial for the variance alone.*hallucinates = True"
    ):
        study.ask()


def test_a_kernel_need_not_look_for_points_that_are_no_numbers():
    """As the example of `PointKernel` does not."""

    @described
    @dataclass(frozen=True)
    class ThroughTheOrigin(nr.kernels.PointKernel):
        def __call__(self, A, B):
            return np.minimum(np.asarray(A), np.asarray(B).T)

    testing.check_kernel(ThroughTheOrigin(), np.linspace(0.1, 1.0, 8)[:, None])

    @described
    @dataclass(frozen=True)
    class Whatever(nr.kernels.PointKernel):
        def __call__(self, A, B):
            return np.minimum(np.nan_to_num(A), np.nan_to_num(B).T)

    with pytest.raises(AssertionError, match="has covariances of points that are NaN"):
        testing.check_kernel(Whatever(), np.linspace(0.1, 1.0, 8)[:, None])
