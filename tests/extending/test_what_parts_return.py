"""Parts of a user's own that return what nobody can use are said so in a sentence; those that are right just work."""

from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nilregret as nr
from nilregret.kernels import PointKernel, Stationary
from nilregret.slots import Memory, Pending, PointwiseScore, Score, Width, described
from nilregret.testing import check_policy

KERNEL = nr.Matern(2.5, 0.4)
ARMS = nr.gp_ucb(nr.Arms.grid(0, 1, 20), KERNEL, noise=0.1)
BOX = nr.gp_ucb(nr.Box([0.0, 0.0], [1.0, 1.0]), KERNEL, noise=0.1)
SPACE = nr.Space(rate=nr.Float(1e-4, 1.0, log=True), depth=nr.Int(1, 5), kind=nr.Choice("a", "b"))


@described
@dataclass(frozen=True)
class Entropy(Score):
    """Information about the maximum, which is guessed from all candidates' bounds together."""

    guesses: int = 4

    def _values(self, envelope, maxima):
        z = (maxima[:, None] - envelope.mean) / (envelope.std + 1e-9)
        return np.mean(np.exp(-np.abs(z)) * z - np.log1p(np.exp(-z)), axis=0)

    def _maxima(self, envelope, view):
        return envelope.upper.max() + 0.1 * view.randomness.generator.gumbel(size=self.guesses)

    def on_table(self, view):
        envelope = view.envelope()
        return self._values(envelope, self._maxima(envelope, view))

    def on_points(self, view):
        maxima = self._maxima(view.envelope(view.points), view)
        return view.without_slopes(lambda x: self._values(view.envelope(x), maxima))


def test_what_a_score_makes_of_all_candidates_is_the_same_in_a_study_that_was_opened_again():
    check_policy(BOX.using(score=Entropy()))


def test_slopes_next_to_a_failure_are_numbers():
    seen: list[np.ndarray] = []

    @described
    @dataclass(frozen=True)
    class Looks(Score):
        draws = True

        def on_table(self, view):
            return view.draw()

        def on_points(self, view):
            path = view.path()
            surface = view.without_slopes(path.values)
            seen.append(surface.slopes(np.array([[0.5, 0.5], [0.1, 0.9]]))[1])
            return surface

    study = nr.Study(BOX.using(score=Looks()))
    study.fail(study.ask(among=[[0.5, 0.5]]), "no")
    study.ask()
    assert np.isfinite(seen[-1]).all()
    assert not seen[-1][0].any()
    assert seen[-1][1].all()


@described
@dataclass(frozen=True)
class Returning(Score):
    what: str = ""

    def on_table(self, view):
        return WRONG[self.what](len(view.envelope().mean))

    def on_points(self, view):
        return view.without_slopes(lambda x: WRONG[self.what](len(x)))


WRONG: dict[str, Any] = {
    "fewer": lambda n: np.zeros(max(n - 1, 0)),
    "a column": lambda n: np.zeros((n, 1)),
    "one": lambda n: 1.0,
    "nothing": lambda n: None,
    "text": lambda n: ["a"] * n,
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("policy", [ARMS, BOX], ids=["arms", "box"])
def test_scores_of_a_wrong_shape_are_refused(policy, what):
    study = nr.Study(policy.using(score=Returning(what)))
    with pytest.raises(nr.errors.InvalidInput, match=r"A score returned .* candidates: it must be an array of floats"):
        study.ask()
    some = nr.Study(policy.using(score=Returning(what)))
    with pytest.raises(nr.errors.InvalidInput, match="A score returned"):
        some.ask(among=policy.domain.points[:3] if policy is ARMS else [[0.1, 0.2], [0.5, 0.5], [0.3, 0.3]])


def test_whole_numbers_are_scores():
    @described
    @dataclass(frozen=True)
    class Ranks(PointwiseScore):
        def __call__(self, envelope, incumbent=None):
            return np.arange(len(envelope.mean))

    assert nr.Study(ARMS.using(score=Ranks())).ask().arm == 19


@pytest.mark.parametrize("value", ["2", None, np.nan, np.inf, [2.0]])
def test_a_width_that_is_no_number_is_refused(value):
    @described
    @dataclass(frozen=True)
    class Odd(Width):
        def width(self, t, progress):
            return value

    with pytest.raises(nr.errors.InvalidInput, match=r"`Odd.width` returned"):
        nr.Study(ARMS.using(confidence=Odd())).ask()


def test_infinite_scores_are_refused():
    @described
    @dataclass(frozen=True)
    class Boundless(PointwiseScore):
        def __call__(self, envelope, incumbent=None):
            return np.full(len(envelope.mean), np.inf)

    with pytest.raises(nr.errors.InvalidInput, match="The score of an arm is infinite"):
        nr.Study(ARMS.using(score=Boundless())).ask()


def test_what_an_unanswered_trial_counts_as_is_a_pseudo_observation():
    @described
    @dataclass(frozen=True)
    class Bare(Pending):
        def count_as(self, trial, known):
            return 0.3

    study = nr.Study(ARMS.using(pending=Bare()))
    with pytest.raises(nr.errors.InvalidInput, match=r"`Bare.count_as` returned 0.3: .* an `ImputedValue\(value\)`"):
        study.ask(count=2)


def test_cuts_are_restarts():
    @described
    @dataclass(frozen=True)
    class Bare2(Memory):
        def cut(self, since, round_):
            return round_ if round_ == 2 else None

    study = nr.Study(ARMS.using(memory=Bare2()))
    with pytest.raises(
        nr.errors.InvalidInput, match=r"`Bare2` cuts the memory by 2: it must be a `Restart\(round, reason\)`"
    ):
        study.ask(count=4)


# -- what is refused when the policy is made --------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Lorentz(Stationary):
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = 1.0

    def profile(self, squares):
        value = 1.0 / (1.0 + 0.5 * squares)
        return value, lambda: value**2


def test_lengthscales_of_a_kernel_of_ones_own_may_be_a_list(tmp_path):
    space = nr.gp_ucb(nr.Arms(np.random.default_rng(0).random((9, 2))), Lorentz([0.3, 0.5]), noise=0.1)
    assert space.kernel == Lorentz((0.3, 0.5)) == Lorentz(np.array([0.3, 0.5]))
    study = nr.Study(space, storage=f"sqlite:///{tmp_path}/lists.db")
    study.tell(study.ask(), 0.5)
    assert nr.Study.open(storage=f"sqlite:///{tmp_path}/lists.db").policy == space


@pytest.mark.parametrize("lengthscale", [0.0, -1.0, "a", None, [], [0.1, np.nan]])
def test_lengthscales_of_a_kernel_of_ones_own_are_checked(lengthscale):
    with pytest.raises(nr.errors.InvalidInput, match="lengthscale"):
        Lorentz(lengthscale)


def test_a_kernel_that_cannot_be_told_from_others_is_refused():
    @described
    @dataclass(frozen=True)
    class Bumps(PointKernel):
        places: Any

        def __call__(self, A, B):
            return np.asarray(A) @ np.asarray(B).T

    with pytest.raises(nr.errors.InvalidInput, match="make tuples of lists and arrays in its `__post_init__`"):
        ARMS.using(kernel=Bumps([0.1, 0.2]))


def test_a_part_that_is_no_dataclass_is_refused():
    class Plain(Memory):
        pass

    plain = described(Plain)()
    assert not is_dataclass(plain)
    with pytest.raises(nr.errors.InvalidInput, match="Make it a frozen dataclass"):
        ARMS.using(memory=plain)


@pytest.mark.parametrize("slot", ["search", "refit"])
def test_nothing_is_said_of_deriving_where_nothing_derives(slot):
    with pytest.raises(nr.errors.InvalidInput, match="must be made by") as refusal:
        ARMS.using(**{slot: 3})
    assert "derives" not in str(refusal.value)


# -- tables of what may be played -------------------------------------------------------------------------------------


def test_a_table_says_what_may_be_played():
    table = pd.DataFrame({"kind": ["a", "b"], "rate": [1e-3, 1e-2], "depth": [2, 3]})
    study = nr.Study(nr.gp_ucb(SPACE, KERNEL, noise=0.1))
    assert study.ask(among=table.iloc[[1]]).parameters == {"rate": pytest.approx(1e-2), "depth": 3, "kind": "b"}
    assert study.ask(among=table.iloc[0]).parameters["kind"] == "a"
    points = pd.DataFrame({"x": [0.1, 0.2], "y": [0.3, 0.4]})
    assert nr.Study(BOX).ask(among=points).point.tolist() in points.to_numpy().tolist()
    with pytest.raises(nr.errors.InvalidInput, match="`among` has no points"):
        study.ask(among=table.iloc[:0])
    grid = nr.Study(nr.gp_ucb(SPACE.grid(3), KERNEL, noise=0.1))
    assert grid.ask(among=pd.DataFrame([grid.policy.domain.parameters(4)])).arm == 4
