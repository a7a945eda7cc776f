"""Arms, with finitely many contexts or none: a table that is searched whole."""

from __future__ import annotations

import itertools
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray
from ..._utils.errors import InvalidInput
from ..._utils.randomness import Randomness
from ...domains.domain import Arms
from ...domains.search.arms import best_arm, checked_scores
from ...gp import (
    ArmPosterior,
    AveragedArms,
    Bank,
    BankPosterior,
    DriftingPosterior,
    RatePosterior,
    RatePrior,
    Retraced,
    Several,
    TableBelief,
)
from ...gp.choice import posterior_on_arms
from ...kernels import Kernel
from ...slots.acquisition import TableView
from ...slots.envelope import Bounds, Envelope
from ...slots.memory import Drift
from ...storage.record import Trial
from ..availability import Available
from .base import Decision, Engine, Limits, Question, Units, best_admitted, moved, multiple, none_left, table

OnArms = ArmPosterior | AveragedArms | Retraced | RatePosterior


@final
class ArmEngine(Engine[TableBelief]):
    """Arms, with finitely many contexts or none: a table with a row for each context and a column for each arm."""

    def __init__(self, domain: Arms, context: Arms | None) -> None:
        self.domain: Arms = domain
        self.context: Arms | None = context
        self._table = table(domain, context)
        self._empty: dict[tuple[Kernel, float, Drift, RatePrior | None, Bank | None, float | None], OnArms] = {}
        self._failed: set[int] = set()
        self._rows: dict[bytes, int] = {}  # of contexts that were looked up: each is several times in a round

    def fresh(
        self,
        kernel: Kernel,
        regularization: float,
        *,
        apart: bool,
        drift: Drift,
        known: RatePrior | None = None,
        bank: Bank | None = None,
        noise_variance: float | None = None,
    ) -> TableBelief:
        """A belief over the table; what a kernel makes of it is worked out once."""
        key = (kernel, regularization, drift, known, bank, noise_variance)
        if key not in self._empty:
            if len(self._empty) >= self.outputs:  # of the last kernels alone: fits make many
                self._empty = {}
            self._empty[key] = self._made(*key)
        return TableBelief(self._empty[key].copy(), apart=apart)

    def _made(
        self,
        kernel: Kernel,
        regularization: float,
        drift: Drift,
        known: RatePrior | None,
        bank: Bank | None,
        noise_variance: float | None,
    ) -> OnArms:
        if known is not None:
            return RatePosterior(kernel, self._table.points, known, regularization=regularization)
        if bank is not None:
            pairs = itertools.product(bank.variances(regularization), bank.kernels)
            return AveragedArms(bank, [posterior_on_arms(self._table, each, variance) for variance, each in pairs])
        if drift is None:
            return posterior_on_arms(self._table, kernel, regularization)
        if isinstance(drift, tuple):
            several = BankPosterior(self._table, kernel, regularization, rates=drift, noise_variance=noise_variance)
            return Retraced(several)
        return Retraced(DriftingPosterior(self._table, kernel, regularization, rate=drift))

    def cell(self, trial: Trial) -> int:
        """The index in the table."""
        if trial.arm is None:
            raise InvalidInput(f"Trial {trial.number} has no arm, but the policy plays arms.")
        if self.context is None:
            return trial.arm
        return self._row(trial.context) * len(self.domain) + trial.arm

    def entry(self, trial: Trial) -> int | Several:
        """The index in the table, and the round where f drifts (`Retraced.entry`)."""
        if trial.repeats > 1:
            return Several(self.cell(trial), trial.times, trial.scatter)
        return self.cell(trial) + (trial.number * len(self._table) if self.drifts else 0)

    def here(self, trial: Trial) -> int:
        """The index in the table."""
        return self.cell(trial)

    def _row(self, context: Array | None) -> int:
        if self.context is None or context is None:
            return 0
        key = context.tobytes()
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = int(self.context.index(context[None])[0])
        return row

    def between(self, kernel: Kernel, cells: list[int], others: list[int]) -> Array:
        """Prior covariance between cells, `(a, b)`."""
        return kernel.between_arms(self._table.points, np.array(cells), np.array(others))

    def largest_variance(self, kernel: Kernel) -> float:
        """The largest prior variance in the table."""
        return float(kernel.arm_variances(self._table.points).max())

    joins = True

    def put(self, belief: TableBelief, cells: list[int], values: list[float | None]) -> None:
        """As one by one, to the bit."""
        belief.put_all(cells, values)

    def fill(self, belief: TableBelief, cells: list[int], values: list[float | None]) -> None:
        """One by one."""
        for cell, value in zip(cells, values, strict=True):
            belief.revise(cell, None, value)

    def revise(self, belief: TableBelief, cell: int, old: float | None, new: float | None) -> None:
        """Change what a trial counts as."""
        belief.revise(cell, old, new)

    def revise_all(
        self, belief: TableBelief, cells: list[int], old: list[float | None], new: list[float | None]
    ) -> None:
        """Change what several trials count as."""
        belief.revise_all(cells, old, new)

    def drop(self, belief: TableBelief, cell: int, value: float | None) -> None:
        """Take a trial back out."""
        belief.drop(cell, value)

    def means(self, belief: TableBelief, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials."""
        return belief.mean([self.cell(trial) for trial in trials])

    def deviations(self, belief: TableBelief, trials: list[Trial]) -> Array:
        """Posterior std of f at trials."""
        return belief.predict([self.cell(trial) for trial in trials])[1]

    def envelope(
        self, belief: TableBelief, bounds: Bounds, units: Units, points: Any, context: Array | None
    ) -> Envelope:
        """The bounds of f at some arms, given as points, or at all."""
        cells = self.cells(context)
        if points is not None:
            arms = self.domain.index(points)
            cells = arms if cells is None else cells[arms]
        return bounds(*units.rewards(*belief.predict(cells)), cells)

    def cells(self, context: Array | None) -> IndexArray | None:
        """Where the arms stand under a context; None where the table has no other rows."""
        if self.context is None:
            return None
        start = self._row(context) * len(self.domain)
        return np.arange(start, start + len(self.domain))

    def candidates(self) -> None:
        """All arms."""

    def fail(self, trial: Trial) -> None:
        """Set an arm aside, and those that coincide with it."""
        self._failed |= self._arms_at(trial)

    def forgive(self, trial: Trial) -> None:
        """Set them aside no more."""
        self._failed -= self._arms_at(trial)

    def forgive_all(self) -> None:
        """Set nothing aside any more."""
        self._failed = set()

    def _arms_at(self, trial: Trial) -> set[int]:
        return set(np.flatnonzero((self.domain.points == trial.point).all(axis=1)).tolist())

    def choose(self, belief: TableBelief, question: Question, available: Available | None) -> Decision:
        """The best arm, ties broken at random."""
        question = question.centred()
        scores, size = self.scores(belief, question, available)
        if available is not None:
            return self.best_among(scores, size, question.randomness, available)
        if self._failed:
            none_left(len(self._failed) == len(scores))
            scores[list(self._failed)] = -np.inf
        arm = best_arm(scores, size, question.randomness)
        return Decision(self.domain.points[arm], arm, explored=False)

    def scores(self, belief: TableBelief, question: Question, available: Available | None) -> tuple[Array, float]:
        """Of all that may be played, and what their differences are measured against."""
        arms = None if available is None else available.arms
        count = len(self.domain) if arms is None else len(arms)
        view = _Table(self, belief, question, arms)
        scores = checked_scores(question.score.on_table(view), count)
        if question.limits is not None:
            scores = self._judged(scores, view, question.limits, available)
        return scores, belief.answered.prior.size * question.units.unit if question.score.in_rewards else 1.0

    def searched(self, belief: TableBelief, question: Question, point: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Nothing is."""
        raise InvalidInput("Arms are compared all, not searched.")

    def _judged(self, scores: Array, view: _Table, limits: Limits, available: Available | None) -> Array:
        """What constraints make of scores; failed arms are out before that."""
        if self._failed:
            failed = np.isin(np.arange(len(self.domain)) if view.arms is None else view.arms, list(self._failed))
            none_left(available is None and bool(failed.all()))
            scores = np.where(failed, -np.inf, scores)
        judged = checked_scores(limits.rule.judged(scores, view), len(scores))
        none_left(bool(np.isneginf(judged).all()) and available is None)
        return judged

    def anywhere(self, randomness: Randomness, available: Available | None) -> Decision:
        """A uniformly drawn arm."""
        if available is not None:
            return self.anywhere_among(randomness, available)
        left = [arm for arm in range(len(self.domain)) if arm not in self._failed]
        none_left(not left)
        arm = left[int(randomness.generator.integers(len(left)))]
        return Decision(self.domain.points[arm], arm, explored=True)

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of some arms have been set aside."""
        arms = np.arange(len(self.domain)) if available.arms is None else available.arms
        return np.isin(arms, list(self._failed))

    def copy(self) -> ArmEngine:
        """An independent engine in the same state."""
        other = ArmEngine.__new__(ArmEngine)
        other.__dict__.update(self.__dict__)
        other._failed = self._failed.copy()
        return other


@final
class _Table(TableView):
    """A round on the table, or on some of its arms."""

    def __init__(self, engine: ArmEngine, belief: TableBelief, question: Question, arms: IndexArray | None) -> None:
        self._belief, self._question, self.arms = belief, question, arms
        self._cells = engine.cells(question.context)
        self.round, self.width, self.randomness = question.round, question.bounds.width, question.randomness
        self.norm_growth = question.norm_growth
        self.points = engine.domain.points if arms is None else engine.domain.points[arms]
        if question.limits is not None:
            self.dual_state, self.context = question.limits.dual, question.context
            self.limit_sizes = np.array(
                [each.belief.answered.prior.size * each.units.unit for each in question.limits.each]
            )

    def _where(self) -> IndexArray | None:
        """The cells of the arms that may be played; None for all of a table without contexts."""
        if self.arms is None:
            return self._cells
        return self.arms if self._cells is None else self._cells[self.arms]

    def limits(self) -> list[Envelope]:
        cells = self._where()
        found = () if self._question.limits is None else self._question.limits.each
        return [each.bounds(*each.units.rewards(*each.belief.predict(cells)), cells) for each in found]

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        cells = np.arange(len(self.points)) if (where := self._where()) is None else where
        found = () if self._question.limits is None else self._question.limits.each
        return np.array(
            [moved(each.belief, cells[places], cells[goals]) / each.belief.answered.prior.size for each in found]
        )

    def _moments(self) -> tuple[Array, Array]:
        mean, std = self._belief.predict(self._cells)
        if self.arms is not None:
            mean, std = mean[self.arms], std[self.arms]
        return self._question.units.rewards(mean, std)

    def envelope(self) -> Envelope:
        cells = self._cells
        if self.arms is not None:
            cells = self.arms if cells is None else cells[self.arms]
        return self._question.bounds(*self._moments(), cells)

    def best_mean(self) -> float:
        means = self._moments()[0]
        return float(means.max() if self._question.limits is None else best_admitted(means, self.limits()))

    def best_reward(self) -> float:
        best = self._question.best_reward(self._question.context)
        return self._question.units.center if best is None else best

    def draw(self) -> Array:
        # At all arms, whichever are available: what is drawn at one does not depend on which others are.
        drawn = self._belief.draw(self.randomness.generator, self._cells, width=multiple(self.width))
        drawn = drawn if self.arms is None else drawn[self.arms]
        return self._question.units.rewards(drawn, drawn[:0])[0]
