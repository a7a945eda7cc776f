"""The model of one output: the reward is output 0, and constraint j is output j."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable, independent
from ..gp import Averaged
from ..gp.fitting import Standardization
from ..kernels import Kernel
from ..kernels.domains import prior_std
from ..slots.constraints import LEAST_RIDGE, cautious_scale
from ..slots.envelope import Bounds, Envelope, Expected, Progress
from ..slots.memory import Model
from ..slots.refit import Lengthscales, RegretBalancing, with_factor
from ..storage.record import Event, Trial
from .engines import REWARDS, Engine, Limit, row_of, table
from .fits import Balance, FitJob, Fits, FitsOnRecord, LateFits
from .policy import Policy
from .rounds import Rounds
from .training_data import TrainingData

if TYPE_CHECKING:
    from ..gp.information_gain import GreedyDesign

FEW, SHARE = 64, 0.1  # beyond so many values the size is learned anew after this share more


@final
class SizeLearner(Copyable):
    """The learned size of one constraint: its standard deviation and a factor of its lengthscales.

    Args:
        policy: the policy of the constraint.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._shape = (1.0 / prior_std(policy.domain, policy.context, policy.kernel) ** 2) * policy.kernel
        self._new = 0  # values since the last update
        self._size: tuple[float, float] | None = None  # factor of the lengthscales, and standard deviation

    @property
    def known(self) -> bool:
        """True if a size has been learned since the last restart."""
        return self._size is not None

    def observe(self, count: int) -> None:
        """Counts new constraint values."""
        self._new += count

    def restart(self, data: TrainingData) -> None:
        """Returns to the policy's kernel. The data are then restarted."""
        data.posterior.kernel, self._size = self._policy.kernel, None

    def count_again(self, data: TrainingData) -> None:
        """Counts all values as new, after a restart."""
        self._new = len(data.posterior.entries)

    def update(self, data: TrainingData) -> bool:
        """Learns the size from the values that count. Returns whether the posterior was rebuilt."""
        entries, policy = data.posterior.entries, self._policy
        if not self._new or (len(entries) > FEW and self._new < SHARE * len(entries)):
            return False
        self._new = 0
        told: dict[bytes, tuple[Array, list[float]]] = {}
        for number in sorted(entries):
            trial = entries[number].trial
            if trial.reward is not None:
                row = row_of(trial)
                told.setdefault(row.tobytes(), (row, []))[1].append(trial.reward)
        if not told:
            return False
        rows = np.array([row for row, _ in told.values()])
        means, counts = (np.array([found(values) for _, values in told.values()]) for found in (np.mean, len))
        factor, size = cautious_scale(self._shape, rows, means, counts, noise=policy.noise)
        if (factor, size) == self._size or not size:
            return False
        self._size = factor, size
        data.posterior.kernel = size**2 * with_factor(self._shape, factor, rows.shape[1])
        ridge = policy.regularization if policy.noise else LEAST_RIDGE * size**2
        data.rebuild(data.posterior.kernel, ridge, Standardization(policy.prior_mean, 1.0))
        return True


NEGLIGIBLE = 0.05  # deviation of the noise, as a share of the prior deviation of f, that fits find where there is none


@final
class OutputModel:
    """The model of one output.

    Args:
        policy: the policy of the output (`Policy.of_channel`).
        engine: the engine of the policy.
        rounds: the rounds of the run.
        seed: the seed of the run.
        index: 0 for the reward, j for output j.
        learns_size: whether the size of the constraint is learned with caution.
        late: fits that are made apart from decisions, or None.

    Attributes:
        data: the trials that count, with their targets.
        posterior: the posterior that has learned `data`.
        fits: the fits of the kernel, or None.
        balance: the balance between lengthscales, or None.
        size: the learned size of the constraint, or None.
        guess: the guess of the norm bound, or None.
        charges: the multipliers by which rewards are charged for violations.
    """

    def __init__(
        self, policy: Policy, engine: Engine[Any], rounds: Rounds, *, seed: int, index: int, learns_size: bool = False,
        late: LateFits | None = None,
    ) -> None:  # fmt: skip
        self.policy, self._engine, self._rounds, self._index = policy, engine, rounds, index
        self.size = SizeLearner(policy) if learns_size else None
        self.data = TrainingData(policy, engine, rounds, of_reward=index == 0)
        self.posterior = self.data.posterior
        refit = policy.fitting
        self.fits = None if refit is None else Fits(policy, refit, seed=seed, index=index, late=late)
        balances = policy.refit is not None and policy.refit.balances
        self.balance = Balance(policy, cast(RegretBalancing, policy.refit)) if balances else None
        self.guess = policy.confidence.guess()
        self.charges = policy.objective.begin()
        self._noisier = self.charges.changes_noise()  # read once, as most do not
        self.data.multipliers = self.charges.values
        self._valid_for = policy.valid_for
        self._windowed = index == 0 and policy.confidence.recent is not None
        self._design: tuple[Kernel, float, GreedyDesign] | None = None
        self._progress: Progress | None = None  # of the belief now

    def value_of(self, trial: Trial) -> Trial:
        """Returns the trial with its value of this output in place of the reward."""
        if not self._index:
            return trial
        j = self._index - 1
        if trial.constraints is None or j >= len(trial.constraints):  # Objectives were told without constraint values.
            return trial._replace(reward=None, std=None)
        std = trial.others[j].std if j < len(trial.others) else None
        return trial._replace(reward=float(trial.constraints[j]), state="observed", reason=None, std=std)

    def add_arms(self, policy: Policy) -> bool:
        """Takes over a policy on more arms (see `State.add_arms`)."""
        self.policy, self._valid_for = policy, policy.valid_for
        self._design = self._progress = None
        return self.size is None and self.data.add_arms(policy)

    # -- learning ------------------------------------------------------------------------------------------------

    def learn_value(self, trials: list[Trial]) -> None:
        """Learns the values of this output, not the reward, of trials that count."""
        self.data.update([self.value_of(trial) for trial in trials])
        if self.size is not None:
            self.size.observe(len(trials))

    def plan_replay(self, events: list[Event], waiting: list[Trial] | None) -> None:
        """Finds out which fits of a replay are needed (see `Fits.plan_replay`)."""
        if self.fits is not None:
            self.fits.plan_replay(events, self.data, waiting)

    def end_replay(self) -> None:
        """Ends what `plan_replay` began."""
        if self.fits is not None:
            self.fits.end_replay()

    def check_guess(self) -> None:
        """Raises the guess of the norm bound if the data contradict it."""
        if self.guess is not None:
            self.guess.check(self._rounds.count, self.posterior.belief.observed)

    def update_kernel(self, known: FitsOnRecord | None = None) -> bool:
        """Makes or reads the fit that is due, or picks the likeliest lengthscale.

        Args:
            known: fits that came into force with the decision if it is on record, else None.

        Returns:
            Whether the kernel in use has changed.
        """
        if self.balance is not None:
            self.balance.update(self.data)
            return False
        rebuilt = self.fits is not None and self.fits.update(self.data, known)
        averaged = self._averaged() if self.posterior.bank is not None else None
        if averaged is None or not averaged.count:
            return rebuilt
        kernel = averaged.bank.kernels[averaged.likeliest]
        changed = kernel is not self.posterior.in_use and kernel != self.posterior.in_use
        if changed:
            self.posterior.in_use = kernel
        return rebuilt or changed

    def update_size(self) -> bool:
        """Learns the size of the constraint if it is due. Returns whether the posterior was rebuilt."""
        return self.size is not None and self.size.update(self.data)

    @property
    def tells_exactly(self) -> bool:
        """True if noise is learned, and fits have found none that would matter."""
        learned = self.policy.fitting is not None and self.policy.fitting.noise != "given" and self.posterior.begun > 1
        return learned and self.posterior.noise_share <= NEGLIGIBLE

    @property
    def answers_for_units(self) -> int:
        """Number of rewards of the first fit, if their units are not known before it. Else 0.

        They are known if a prior mean or a scale of the kernel is given.
        """
        refit, posterior = self.policy.fitting, self.posterior
        if refit is None or not refit.standardize or self.policy.prior_mean or posterior.units is not REWARDS:
            return 0
        return refit.seen_by(1) if self._engine.largest_variance(posterior.in_use) == 1.0 else 0

    @property
    def unrecorded_fits(self) -> FitsOnRecord:
        """Fits in force for the next decision that are not on record."""
        return () if self.fits is None else self.fits.unrecorded

    def may_fit(self, more: int) -> bool:
        """Returns whether a fit may be due after `more` outcomes that the data have not learned."""
        return self.fits is not None and self.fits.may_be_due(self.data, more)

    def fit_job(self) -> FitJob | None:
        """Returns the fit that is due and not in force, or None."""
        return None if self.fits is None else self.fits.job(self.data)

    def restart(self, first: int) -> None:
        """Forgets trials before number `first`, and all fits."""
        if self.fits is not None:
            self.fits.restart()
        if self.balance is not None:
            self.balance.restart()
        if self.size is not None:
            self.size.restart(self.data)
        self.data.restart(first)
        if self.size is not None:
            self.size.count_again(self.data)

    def forget_before(self, first: int) -> None:
        """Forgets trials before number `first`. The kernel stays."""
        if self.fits is not None:
            self.fits.forget_before(first, self.data)
        if self.balance is not None:
            self.balance.forget_before(first)
        self.data.forget_before(first)

    # -- bounds --------------------------------------------------------------------------------------------------

    def bounds(self, *, now: float = math.inf) -> Bounds:
        """Returns the bounds of the next round. `now` is the time in Unix seconds."""
        return self.policy.confidence.bounds(self._rounds.number, self.progress(now))

    def progress(self, now: float) -> Progress:
        """Returns the state on which the bounds of the next round depend."""
        belief, progress = self.posterior.belief, self._progress
        if progress is None or progress.answers is not belief.observed:
            progress = Progress(
                belief.with_pending, design=self._greedy_design, answers=belief.observed, guess=self.guess
            )
            self._progress = progress
        if self._noisier:
            progress.noise_factor = self.charges.noise_factor
        if self.guess is not None:
            progress.norm_bound = self.guess.bound
        elif self.balance is not None:
            progress.norm_bound = self.balance.norm()
        if self._windowed:
            progress.recent, progress.pull = partial(self._recent_deviations, now), partial(self._pull, now)
        return progress

    @property
    def valid_for(self) -> str:
        """The claim for which the bounds of the next round are proved (see `Envelope`)."""
        spoilt = self.size is not None or (self.guess is not None and self.guess.refuted)
        spoilt = spoilt or (bool(self.data.outcomes.failed) and self.policy.pending.failed != "aside")
        return "none" if spoilt else self._valid_for

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:
        """Returns the bounds at points, or at all arms, in the units in which the output is learned."""
        posterior, bounds = self.posterior, self.bounds(now=now)
        found = self._engine.envelope(posterior.belief, bounds, posterior.units, points, context)
        found.valid_for = self.valid_for
        return found

    def expected(self, trial: Trial) -> Expected:
        """Returns a constraint value with its prediction."""
        policy, seen = self.policy, self.bounds_at(trial)
        value = math.nan if trial.constraints is None else float(trial.constraints[self._index - 1])
        prior = noise = math.inf
        if self.size is None or self.size.known:
            cell = [self._engine.cell_now(trial)]
            prior = math.sqrt(self._engine.prior_covariance(self.posterior.kernel, cell, cell)[0, 0])
            noise = max(policy.noise, math.sqrt(LEAST_RIDGE) * prior)
        return Expected(value, seen, noise, prior, policy.prior_mean)

    def bounds_at(self, trial: Trial) -> Envelope:
        """Returns the bounds at the point of a trial."""
        cell, posterior = np.array([self._engine.cell_now(trial)]), self.posterior
        return self.bounds()(*posterior.units.rewards(*posterior.belief.predict(cell)), cell)

    def _recent_deviations(self, now: float) -> Array:
        """Returns posterior deviations in reward units at the trials in the window of the width.

        Eq. (5) in the proof of Verma et al.'s Theorem 1 sums what censoring takes from B_t. So trials that have
        failed, or that the memory forgot, are left out.
        """
        posterior = self.posterior
        trials = [trial for trial in self._rounds.recent(now) if self.data.contains(trial.number)]
        if not trials:
            return np.zeros(0)
        return posterior.units.unit * self._engine.deviations(posterior.belief, trials)

    def _pull(self, now: float, cells: Any) -> Array:
        """Returns the effect of unanswered trials in the window on the mean at cells, `(n, k)`."""
        trials = [trial for trial in self._rounds.recent(now) if trial.number in self.data.pending.open]
        if not trials:
            return np.zeros((1, 0))
        return self.posterior.belief.pull(cells, [self._engine.cell_now(trial) for trial in trials])

    def _greedy_design(self) -> GreedyDesign:
        """Returns the greedy design, which depends on the kernel and lambda alone."""
        from ..gp.information_gain import GreedyDesign

        policy, kernel = self.policy, self.policy.kernel if self.size is not None else self.posterior.kernel
        ridge = policy.memory.regularization(self._rounds.since, policy.regularization)
        if self._design is None or self._design[0] is not kernel or self._design[1] != ridge:
            self._design = kernel, ridge, GreedyDesign(kernel, table(policy.domain, policy.context), ridge)
        return self._design[2]

    # -- descriptions --------------------------------------------------------------------------------------------

    def limit(self) -> Limit:
        """Returns the belief and bounds of a constraint for the next round."""
        return Limit(self.posterior.belief, self.bounds(), self.posterior.units)

    def description(self) -> Model:
        """Returns the prior of a constraint, for change detectors."""
        policy, kernel, engine = self.policy, self.posterior.in_use, self._engine
        noise = policy.noise**2
        if policy.fitting is not None:
            noise = max(self.posterior.ridge, self.data.noise_of_silence())
        return Model(noise, partial(engine.prior_covariance, kernel), partial(engine.largest_variance, kernel))

    def _averaged(self) -> Averaged[Any] | None:
        answered = self.posterior.belief.observed
        return answered if isinstance(answered, Averaged) else None

    @property
    def lengthscales(self) -> Lengthscales | None:
        """The belief about lengthscales, or None if there is one kernel."""
        averaged = self._averaged()
        if averaged is None:
            return None
        eliminated = () if self.balance is None else self.balance.eliminated
        bank = averaged.bank
        return Lengthscales(bank.factors, averaged.shares, bank.kernels, averaged.leader, eliminated)

    def copy(self, engine: Engine[Any], rounds: Rounds) -> OutputModel:
        """Returns an independent copy."""
        data = self.data.copy(engine, rounds)
        fresh = {"_engine": engine, "_rounds": rounds, "data": data, "posterior": data.posterior}
        return independent(self, ("charges", "size", "fits", "balance", "guess"), fresh=fresh)
