"""The engine for arms with finitely many contexts or none, which compares all of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray
from ..._utils.process_setting import one_thread
from ..._utils.randomness import Randomness
from ...domains.domain import Arms
from ...domains.search.arms import best_arm, checked_scores
from ...errors import InvalidInput
from ...gp import (
    ArmPosterior,
    AveragedArms,
    BankPosterior,
    DriftingPosterior,
    OutOfSequencePosterior,
    RatePosterior,
    RepeatedPlays,
    TableBelief,
    TidalPosterior,
)
from ...gp.choice import posterior_on_arms
from ...kernels import Kernel
from ...slots.envelope import Bounds, Envelope
from ...slots.scores import Known, TableView
from ...storage.record import Trial
from ..availability import Available
from .base import (
    REWARDS,
    Decision,
    Engine,
    Limit,
    Limits,
    Prior,
    Question,
    Units,
    best_admitted,
    law_of_draw,
    moved,
    multiple,
    none_left,
    table,
)

if TYPE_CHECKING:
    from ...slots.propensities import ScoreLaw

OnArms = ArmPosterior | AveragedArms | OutOfSequencePosterior | RatePosterior | TidalPosterior

ALONE = 10_000  # cells beyond which OpenBLAS shares even sums of vectors, whose threads cost more than they save


@final
class ArmEngine(Engine[TableBelief]):
    """The engine for a table with a row for each context and a column for each arm.

    Attributes:
        failed: arms that are set aside because their trials failed.
    """

    OWNED = ("failed",)

    def __init__(self, domain: Arms, context: Arms | None) -> None:
        self.domain: Arms = domain
        self.context: Arms | None = context
        self._table = table(domain, context)
        if len(self._table) > ALONE:
            self.blas = one_thread
        self._empty: dict[Prior, OnArms] = {}
        self.failed: set[int] = set()
        self._points: dict[int, Array] = {}  # points of arms that were played, which all their trials share
        self._rows: dict[bytes, int] = {}  # row numbers of contexts, which a round looks up several times
        self._row_cells = -1, np.arange(0)  # the cells of the row that was asked for last

    def fresh(self, prior: Prior, *, apart: bool = False) -> TableBelief:
        """Returns an empty belief over the table. Each prior is computed once."""
        if prior not in self._empty:
            if len(self._empty) >= self.outputs:  # only the last priors are kept, since fits make many
                self._empty = {}
            self._empty[prior] = self._posterior(prior)
        return TableBelief(self._empty[prior].copy(), apart=apart)

    def _posterior(self, prior: Prior) -> OnArms:
        kernel, regularization, drift, known, bank, noise_variance, _ = prior
        if known is not None:
            rates = RatePosterior(kernel, self._table.points, known, regularization=regularization)
            return TidalPosterior(rates) if self.tides else rates
        if bank is not None:
            each = bank.posteriors(lambda one, ridge: posterior_on_arms(self._table, one, ridge), regularization)
            return AveragedArms(bank, each)
        if drift is None:
            return posterior_on_arms(self._table, kernel, regularization)
        if isinstance(drift, tuple):
            several = BankPosterior(self._table, kernel, regularization, rates=drift, noise_variance=noise_variance)
            return OutOfSequencePosterior(several)
        return OutOfSequencePosterior(DriftingPosterior(self._table, kernel, regularization, rate=drift))

    def cell(self, trial: Trial) -> int:
        """Returns the index in the table."""
        if trial.arm is None:
            raise InvalidInput(f"Trial {trial.number} has no arm, but the policy plays arms.")
        return self.cell_at(trial.arm, trial.context)

    def cell_at(self, arm: int, context: Array | None) -> int:
        """Returns the index in the table."""
        return arm if self.context is None else self._row(context) * len(self.domain) + arm

    def entry(self, trial: Trial) -> int | RepeatedPlays:
        """Returns the index in the table, with the round if f drifts (`OutOfSequencePosterior`) or a level moves."""
        cell = trial.arm if trial.arm is not None and self.context is None else self.cell(trial)
        if trial.repeats > 1:
            return RepeatedPlays(cell, trial.times, trial.scatter)
        return cell + trial.number * len(self._table) if self.drifts or self.tides else cell

    def cell_now(self, trial: Trial) -> int:
        """Returns the index in the table."""
        return self.cell(trial)

    def _row(self, context: Array | None) -> int:
        if self.context is None or context is None:
            return 0
        key = context.tobytes()
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = int(self.context.index(context[None])[0])
        return row

    def cells_of(self, points: Array, contexts: Array | None) -> IndexArray:
        """Returns the indices in the table, `(n,)`."""
        arms = self.domain.index(points)
        if self.context is None or contexts is None:
            return arms
        return self.context.index(contexts) * len(self.domain) + arms

    def prior_covariance(self, kernel: Kernel, cells: list[int], others: list[int]) -> Array:
        """Returns the prior covariance between cells, `(a, b)`."""
        return kernel.between_arms(self._table.points, np.array(cells), np.array(others))

    def largest_variance(self, kernel: Kernel) -> float:
        """Returns the largest prior variance in the table."""
        return float(kernel.arm_variances(self._table.points).max())

    def means(self, belief: TableBelief, trials: list[Trial]) -> Array:
        """Returns posterior means at answered trials."""
        return belief.mean([self.cell(trial) for trial in trials])

    def deviations(self, belief: TableBelief, trials: list[Trial]) -> Array:
        """Returns posterior deviations of f at trials."""
        return belief.predict([self.cell(trial) for trial in trials])[1]

    def most_deviations(self, belief: TableBelief, trials: list[Trial]) -> Array:
        """Returns posterior deviations at answered trials, since a table knows them."""
        return self.deviations(belief, trials)

    def envelope(
        self, belief: TableBelief, bounds: Bounds, units: Units, points: Any, context: Array | None
    ) -> Envelope:
        """Returns the bounds of f at arms, given as points, or at all arms."""
        cells = self.cells(context)
        if points is not None:
            arms = self.domain.index(points)
            cells = arms if cells is None else cells[arms]
        return bounds(*units.rewards(*belief.predict(cells)), cells)

    def cells(self, context: Array | None) -> IndexArray | None:
        """Returns the cells of the arms under a context, or None if the table has no other cells."""
        if self.context is None:
            return None
        row, count = self._row(context), len(self.domain)
        if self._row_cells[0] != row:
            self._row_cells = row, np.arange(row * count, (row + 1) * count)
        return self._row_cells[1]

    def predict(
        self, belief: TableBelief, question: Question, arms: IndexArray | None
    ) -> tuple[Array, Array, IndexArray | None]:
        """Returns mean and std of f at these arms, or at all, in (warped) rewards, and their cells."""
        cells = None if self.context is None else self.cells(question.context)
        mean, std = belief.predict(cells)
        if arms is not None:
            mean, std, cells = mean[arms], std[arms], arms if cells is None else cells[arms]
        if question.units is not REWARDS:
            mean, std = question.units.rewards(mean, std)
        return mean, std, cells

    def candidates(self) -> None:
        """Returns None, which stands for all arms."""

    def set_aside(self, trial: Trial) -> None:
        """Sets an arm aside, with all arms at the same point."""
        self.failed |= self._arms_at(trial)

    def allow(self, trial: Trial) -> None:
        """Allows an arm again, with all arms at the same point."""
        self.failed -= self._arms_at(trial)

    def allow_all(self) -> None:
        """Allows all arms again."""
        self.failed = set()

    def _arms_at(self, trial: Trial) -> set[int]:
        return set(np.flatnonzero((self.domain.points == trial.point).all(axis=1)).tolist())

    def choose(self, belief: TableBelief, question: Question, available: Available | None) -> Decision:
        """Returns the best arm. Ties are broken at random."""
        if question.units.center:
            question = question.centred()
        scores, size = self.scores(belief, question, available)
        if available is not None:
            return self.best_among(scores, size, question.randomness, available)
        if self.failed:
            none_left(len(self.failed) == len(scores))
            scores[list(self.failed)] = -np.inf
        arm = best_arm(scores, size, question.randomness)
        return Decision(self.point(arm), arm, False)

    def scores(self, belief: TableBelief, question: Question, available: Available | None) -> tuple[Array, float]:
        """Returns the scores of all available arms, and the size by which score differences are judged."""
        arms = None if available is None else available.arms
        count = len(self.domain.points if arms is None else arms)
        if question.score.highest_bound and question.limits is None:
            scores = checked_scores(question.bounds.upper(*self.predict(belief, question, arms)), count)
        else:
            view = self.view(belief, question, available)
            scores = checked_scores(question.score.on_table(view), count)
            if question.limits is not None:
                scores = self._judged(scores, view, question.limits, available)
        return scores, self.size(belief, question, available)

    def view(self, belief: TableBelief, question: Question, available: Available | None) -> _Table:
        """Returns the view of a round on the table, or on the available arms."""
        return _Table(self, belief, question, None if available is None else available.arms)

    def size(self, belief: TableBelief, question: Question, available: Available | None) -> float:  # noqa: ARG002
        """Returns the prior standard deviation, or 1 for a score that is not in reward units."""
        return belief.observed.prior.size * question.units.unit if question.score.in_rewards else 1.0

    def searched(self, belief: TableBelief, question: Question, point: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Raises an error, because arms are not searched."""
        raise InvalidInput("Arms are compared all, not searched.")

    def _judged(self, scores: Array, view: _Table, limits: Limits, available: Available | None) -> Array:
        """Returns the scores under the constraints. Failed arms are excluded first."""
        if self.failed:
            failed = np.isin(np.arange(len(self.domain)) if view.arms is None else view.arms, list(self.failed))
            none_left(available is None and bool(failed.all()))
            scores = np.where(failed, -np.inf, scores)
        judged = checked_scores(limits.rule.judged(scores, view), len(scores))
        none_left(bool(np.isneginf(judged).all()) and available is None)
        return judged

    def draw_uniform(self, randomness: Randomness, available: Available | None) -> Decision:
        """Returns a uniformly drawn arm."""
        if available is not None:
            return self.draw_uniform_among(randomness, available)
        left = [arm for arm in range(len(self.domain)) if arm not in self.failed]
        none_left(not left)
        arm = left[randomness.draws.integers(len(left))]
        return Decision(self.point(arm), arm, explored=True)

    def point(self, arm: int) -> Array:
        """Returns the point of an arm, which all its trials share, `(d,)`."""
        point = self._points.get(arm)
        if point is None:
            point = self._points[arm] = self.domain.points[arm]
        return point

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Returns True for available arms that are excluded because their trials failed."""
        arms = np.arange(len(self.domain)) if available.arms is None else available.arms
        return np.isin(arms, list(self.failed))


@final
class _Table(TableView):
    """The view of a round for scores, on the table or on some of its arms."""

    def __init__(self, engine: ArmEngine, belief: TableBelief, question: Question, arms: IndexArray | None) -> None:
        self._engine, self._belief, self._question, self.arms = engine, belief, question, arms
        self.round, self.width, self.randomness = question.round, question.width, question.randomness
        self.norm_growth = question.norm_growth
        self.points = engine.domain.points if arms is None else engine.domain.points[arms]
        if question.limits is not None:
            self.dual_state, self.context = question.limits.dual, question.context
            self.limit_sizes = np.array(
                [each.belief.observed.prior.size * each.units.unit for each in question.limits.constraints]
            )

    def _where(self) -> IndexArray | None:
        """Returns the cells of the available arms, or None for all of a table without contexts."""
        cells = self._engine.cells(self._question.context)
        if self.arms is None:
            return cells
        return self.arms if cells is None else cells[self.arms]

    def _each(self) -> tuple[Limit, ...]:
        return () if self._question.limits is None else self._question.limits.constraints

    @cached_property
    def _aims(self) -> tuple[Limit, ...]:
        """The beliefs about all objectives, in units without a centre."""
        return self._question.aims(self._belief)

    @staticmethod
    def _bounds(each: tuple[Limit, ...], cells: IndexArray | None) -> list[Envelope]:
        return [bounds(*units.rewards(*belief.predict(cells)), cells) for belief, bounds, units in each]

    def limits(self) -> list[Envelope]:
        return self._bounds(self._each(), self._where())

    def objectives(self) -> list[Envelope]:
        return self._bounds(self._aims, self._where())

    def objective_draws(self) -> list[Array]:
        return [self._drawn(one.belief, one.units) for one in self._aims]

    def known_objectives(self) -> Known:
        def cells_of(points: Array) -> IndexArray:
            arms, cells = self._engine.domain.index(points), self._engine.cells(self._question.context)
            return arms if cells is None else cells[arms]

        return self._question.known_objectives(self._belief, cells_of)

    @property
    def given_reference(self) -> Array | None:
        front = self._question.front
        return None if front is None else front.reference

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        cells = np.arange(len(self.points)) if (where := self._where()) is None else where
        found = self._each()
        return np.array(
            [moved(each.belief, cells[places], cells[goals]) / each.belief.observed.prior.size for each in found]
        )

    def envelope(self) -> Envelope:
        return self._question.bounds(*self._engine.predict(self._belief, self._question, self.arms))

    def best_mean(self) -> float:
        means = self._engine.predict(self._belief, self._question, self.arms)[0]
        return float(best_admitted(means, self.limits()) if self._each() else means.max())

    def best_reward(self) -> float:
        best = self._question.best_reward(self._question.context)
        return self._question.units.center if best is None else best

    def law_of_draw(self) -> ScoreLaw | None:
        cells = self._where()
        cells = np.arange(len(self.points)) if cells is None else cells
        return law_of_draw(self._belief, cells, self.width, self._question.units.unit)

    def draw(self) -> Array:
        return self._drawn(self._belief, self._question.units)

    def _drawn(self, belief: TableBelief, units: Units) -> Array:
        # The draw is made at all arms, so its value at an arm does not depend on which others are available.
        cells = self._engine.cells(self._question.context)
        drawn = belief.draw(self.randomness.draws, cells, width=multiple(self.width))
        drawn = drawn if self.arms is None else drawn[self.arms]
        return units.rewards(drawn, drawn[:0])[0]
