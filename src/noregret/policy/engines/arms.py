"""Arms, with finitely many contexts or none: a table that is searched whole."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from ...checks import Array, IndexArray
from ...domain import Arms
from ...errors import InvalidInput
from ...kernels import Kernel
from ...posterior import ArmPosterior, DriftingPosterior, TableBelief, posterior_on_arms
from ...randomness import Randomness
from ...record import Trial
from ...search.arms import best_arm, checked_scores
from ...slots.envelope import Bounds, Envelope
from ...slots.view import TableView
from ..availability import Available
from .base import Decision, Engine, Question, Units, multiple, none_left, table


@final
class ArmEngine(Engine[TableBelief]):
    """Arms, with finitely many contexts or none: a table with a row for each context and a column for each arm."""

    def __init__(self, domain: Arms, context: Arms | None) -> None:
        self.domain: Arms = domain
        self.context: Arms | None = context
        self._table = table(domain, context)
        self._empty: dict[tuple[Kernel, float, float | None], ArmPosterior | DriftingPosterior] = {}
        self._failed: set[int] = set()

    def fresh(self, kernel: Kernel, regularization: float, *, apart: bool, drift: float | None) -> TableBelief:
        """A belief over the table; what a kernel makes of it is worked out once."""
        key = (kernel, regularization, drift)
        if key not in self._empty:
            self._empty = {key: self._made(*key)}  # of the last kernel alone: fits make many
        return TableBelief(self._empty[key].copy(), apart=apart)

    def _made(self, kernel: Kernel, regularization: float, drift: float | None) -> ArmPosterior | DriftingPosterior:
        if drift is None:
            return posterior_on_arms(self._table, kernel, regularization)
        return DriftingPosterior(self._table, kernel, regularization, rate=drift)

    def cell(self, trial: Trial) -> int:
        """The index in the table."""
        if trial.arm is None:
            raise InvalidInput(f"Trial {trial.number} has no arm, but the policy plays arms.")
        if self.context is None:
            return trial.arm
        return self._row(trial.context) * len(self.domain) + trial.arm

    def _row(self, context: Array | None) -> int:
        return 0 if self.context is None or context is None else int(self.context.index(context[None])[0])

    def between(self, kernel: Kernel, cells: list[int], others: list[int]) -> Array:
        """Prior covariance between cells, `(a, b)`."""
        return kernel.between_arms(self._table.points, np.array(cells), np.array(others))

    def largest_variance(self, kernel: Kernel) -> float:
        """The largest prior variance in the table."""
        return float(kernel.arm_variances(self._table.points).max())

    def put(self, belief: TableBelief, cells: list[int], values: list[float | None]) -> None:
        """One by one."""
        for cell, value in zip(cells, values, strict=True):
            belief.put(cell, value)

    def fill(self, belief: TableBelief, cells: list[int], values: list[float | None]) -> None:
        """One by one."""
        for cell, value in zip(cells, values, strict=True):
            belief.revise(cell, None, value)

    def revise(self, belief: TableBelief, cell: int, old: float | None, new: float | None) -> None:
        """Change what a trial counts as."""
        belief.revise(cell, old, new)

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
        arms = None if available is None else available.arms
        count = len(self.domain) if arms is None else len(arms)
        scores = checked_scores(question.score.on_table(_Table(self, belief, question, arms)), count)
        size = belief.answered.prior.size * question.units.unit if question.score.in_rewards else 1.0
        if available is not None:
            return self.best_among(scores, size, question.randomness, available)
        if self._failed:
            none_left(len(self._failed) == len(scores))
            scores[list(self._failed)] = -np.inf
        arm = best_arm(scores, size, question.randomness)
        return Decision(self.domain.points[arm], arm, explored=False)

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
        self._belief, self._question, self._arms = belief, question, arms
        self._cells = engine.cells(question.context)
        self.round, self.width, self.randomness = question.round, question.bounds.width, question.randomness
        self.norm_growth = question.norm_growth

    def _moments(self) -> tuple[Array, Array]:
        mean, std = self._belief.predict(self._cells)
        if self._arms is not None:
            mean, std = mean[self._arms], std[self._arms]
        return self._question.units.rewards(mean, std)

    def envelope(self) -> Envelope:
        cells = self._cells
        if self._arms is not None:
            cells = self._arms if cells is None else cells[self._arms]
        return self._question.bounds(*self._moments(), cells)

    def best_mean(self) -> float:
        return float(self._moments()[0].max())

    def best_reward(self) -> float:
        best = self._question.best_reward(self._question.context)
        return self._question.units.center if best is None else best

    def draw(self) -> Array:
        # At all arms, whichever are available: what is drawn at one does not depend on which others are.
        drawn = self._belief.draw(self.randomness.generator, self._cells, width=multiple(self.width))
        drawn = drawn if self._arms is None else drawn[self._arms]
        return self._question.units.rewards(drawn, drawn[:0])[0]
