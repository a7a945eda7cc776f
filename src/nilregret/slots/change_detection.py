"""Detection of changes from all rewards, and learning of the rate of drift."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

import numpy as np

from .._utils.checks import Array, listed, number, settle, shown
from .._utils.copying import Copyable
from ..errors import InvalidInput
from ..serialize import description
from ..storage.record import Trial
from .memory import Detector, Evidence, Memory, Model, ModelInfo, Observation, Restart

if TYPE_CHECKING:
    from ..theory.change.evidence import OutputPrior

FEWEST = 12  # observations from which a kernel must have been fitted
MOST = 1000.0  # nats, more than any observation can contribute
LEAST_NOISE = 1e-4  # share of the prior variance, used as noise variance where rewards have no noise


@final
@description(frozen=True, kw_only=True)
class EDetector(Memory):
    """The trials since the last detected change, with a bounded probability of a false alarm.

    After each observation the evidence for a change is computed. It compares posteriors that began at later rounds with
    the posterior of all observations, by their predictions since (`nilregret.theory.change.evidence`, after Shin,
    Ramdas & Rinaldo 2023). When the evidence reaches 1 / delta, the memory is cut at the most likely round of the
    change. Trials asked from that round on are kept. No round is forced. Contexts, boxes, late rewards (by the round of
    the trial), constraint values (all outputs together) and fits are all supported. Combined with a `Discount` or
    `DriftBank` (`AllOf`), f drifts both before and after a change (by the mean rate of a bank). A drift is then no
    change.

    While f is a sample of the policy's kernel and does not change, an alarm is ever raised with probability at most
    delta. Each cut spends delta anew, and the kept trials were chosen by the data, so later alarms have this
    probability only approximately. The probability is a mean over the scale around the stated scale, as `weight`
    describes. At the stated scale itself it is measured. `weight`, `misfit` and `outliers` protect against wrong noise,
    wrong kernels and outliers. `outliers` also protects against heavy tails and against noise that varies over points
    or time. These effects are measured (docs/measured/changing.md) and not proved.

    Where silence means no (`Imputed`, and `LateOrNever` once silence is evident), it is also evidence. It counts as a
    reward of the least value once 99% of the rewards that come have come. Each trial then waits for those asked before
    it, and is evaluated that much later. If the kernel is fitted, nothing is proved. After each fit to at least 12
    observations, all observations since the last cut are evaluated again. None is evaluated before the first fit. A
    change outside the region that the policy plays is not detected.

    Attributes:
        delta: probability of a false alarm in the whole run.
        clip: largest factor e^clip by which one observation can raise the evidence. The mean of min(e, e^clip) is at
            most that of e, so the bound still holds.
        weight: weight of the stated scale of kernel and noise, as a number of observations.
        misfit: share of the prior variance by which f may deviate from the kernel at each point independently. A
            function that is rougher than its kernel then looks less like one that changes. 0 is for a kernel that is
            right.
        outliers: initial share of observations that may be outliers, which the data then update. A change must also
            improve the predictions by 0.05 nats for each observation. 0 is for noise of the stated form, up to its
            scale.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.EDetector(delta=0.01))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    delta: float = 0.05
    clip: float = 8.0
    weight: float = 10.0
    misfit: float = 0.05
    outliers: float = 0.05

    def __post_init__(self) -> None:
        why = "It is the probability of a false alarm."
        settle(
            self,
            delta=number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True, why=why),
            clip=number("clip", self.clip, low=0.0, high=MOST, open_low=True, why="It is a log likelihood ratio."),
            weight=number("weight", self.weight, low=0.0, high=1e9, open_low=True, why="It counts answers."),
            misfit=number("misfit", self.misfit, low=0.0, high=1.0, why="It is a share of the prior variance."),
            outliers=number(
                "outliers", self.outliers, low=0.0, high=1.0, open_high=True, why="It is a share of answers."
            ),
        )

    def watch(self, model: ModelInfo) -> EvidenceDetector:
        """Returns a detector without observations."""
        return EvidenceDetector(self, model)


@final
class EvidenceDetector(Copyable, Detector):
    """A detector that adds every observation to a `ChangeEvidence` and cuts at the threshold.

    Each output has an evidence of its own if constraints have their own kernels or noise, learn these, or if silence is
    an observation. Each value is then added when it comes. Otherwise all values of a trial are added together when the
    last of them has come.
    """

    joins = True
    OWNED = ("_evidence", "_waiting", "_trials", "_values")

    def __init__(self, memory: EDetector, model: ModelInfo) -> None:
        from ..theory.change.evidence import ChangeEvidence, JointEvidence

        self._threshold = math.log(1.0 / memory.delta)
        self._cell, self._learned = model.cell, model.learned
        self._waiting: list[Observation] = []  # observations before the first trusted fit
        self._trials: list[int] = []
        self._values: list[float] = []
        self._evidence = JointEvidence(
            [
                ChangeEvidence(
                    known.covariance, known.noise_variance, channels=1 if model.models else model.channels,
                    weight=memory.weight, clip=memory.clip, misfit=memory.misfit, outliers=memory.outliers,
                    scaled=known.scaled,
                )
                for known in _output_priors(model)
            ]
        )  # fmt: skip

    def see(self, seen: Observation) -> Restart | None:
        """Adds an observation and returns a cut if the evidence reaches 1 / delta."""
        if not self._learned:
            self._waiting.append(seen)
            return None
        if not self._add(seen):
            return None
        evidence = self._evidence.log_evidence
        self._trials.append(seen.trial.number)
        self._values.append(evidence)
        likely = self._evidence.most_likely
        if evidence < self._threshold or likely is None:
            return None
        return Restart(likely, f"a change, for which the evidence after trial {seen.trial.number} was e^{evidence:.1f}")

    def _add(self, seen: Observation) -> bool:
        """Returns True if the observation added any value."""
        trial, count = seen.trial, self._evidence.channels - 1
        reward, limits = _is_new(trial) if not self._evidence.together else (True, True)
        values = np.full(1 + count, np.nan)
        if reward and trial.reward is not None:
            values[0] = trial.reward
        if limits and count and trial.constraints is not None:
            values[1:] = trial.constraints
        self._evidence.rate = seen.drift
        return self._evidence.add(trial.number, self._cell(trial), values)

    def reset(self) -> None:
        """Drops every observation."""
        self._waiting = []
        self._evidence.cut(self._evidence.latest + 1)

    def cut(self, restart: Restart) -> None:
        """Keeps the trials asked from the cut on."""
        self._waiting = [seen for seen in self._waiting if seen.trial.number >= restart.round]
        self._evidence.cut(restart.round)

    def refitted(self, model: ModelInfo) -> None:
        """Evaluates all observations since the last cut again, under the current kernel, noise and units.

        A fit to few observations, as after each restart, is not trusted. The model of the fit before it stays.
        """
        if self._evidence.count + len(self._waiting) < FEWEST:
            return
        self._evidence.remodel(_output_priors(model))
        self._learned = True
        unwatched, self._waiting = self._waiting, []
        for seen in unwatched:
            self._add(seen)

    @property
    def evidence(self) -> Evidence:
        """Log evidence after each observation."""
        return Evidence(np.array(self._trials, dtype=np.intp), np.array(self._values), self._threshold)


def _scaling(scales: Sequence[Callable[[float], float]]) -> Callable[[Array], Array]:
    """Returns a map of the values of an answer into the units of their priors.

    Constraint values without a scale of their own have the prior mean 0 and stay as they are.
    """

    def scaled(values: Array) -> Array:
        inner = values.copy()
        for i, scale in enumerate(scales):
            inner[i] = scale(float(values[i]))
        return inner

    return scaled


def _output_priors(model: ModelInfo) -> list[OutputPrior]:
    """Returns the prior of all outputs together, or of each output if constraints have models of their own."""
    from ..theory.change.evidence import OutputPrior

    scales = (model.scaled, *model.limits)
    if not model.models:
        return [OutputPrior(model.between, _noise_of(model), _scaling(scales))]
    models: list[ModelInfo | Model] = [model, *model.models]
    return [
        OutputPrior(each.between, _noise_of(each), _scaling((scale,)))
        for each, scale in zip(models, scales, strict=True)
    ]


def _is_new(trial: Trial) -> tuple[bool, bool]:
    """Returns whether the reward of an observed trial is new, and whether its constraint values are."""
    by_themselves, told = trial.constraints_order, trial.told_order
    if by_themselves is None:
        return True, True
    return (False, True) if told is None or by_themselves > told else (True, False)


def _noise_of(model: ModelInfo | Model) -> float:
    return max(model.noise_variance, LEAST_NOISE * model.largest_variance())


@final
@description(frozen=True)
class DriftBank(Memory):
    """All trials, weighted by age, under several rates of drift that are averaged by their predictions.

    Each rate has a posterior as under `Discount`. The prediction is the mixture of these posteriors
    (`nilregret.gp.drifting`). With rate 0 in the bank, a function that does not drift costs little. Predictions are
    weighted by the stated noise, even if the regularizer is another number. A round then costs more.

    Attributes:
        rates: shares of f that may be new in each round, from 0 to 1, ascending.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.DriftBank())
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    rates: tuple[float, ...] = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)

    def __post_init__(self) -> None:
        why = "They are the shares of f that may be new in each round."
        rates = tuple(
            number("rates", rate, low=0.0, high=1.0, why=why) for rate in listed("rates", self.rates, why=why)
        )
        if not rates or list(rates) != sorted(set(rates)) or rates[-1] == 0.0:
            raise InvalidInput(
                f"`rates` are {shown(list(rates))}: they must be in ascending order, each once, and not all 0. Several "
                "powers of ten, such as (0, 0.001, 0.01), are enough."
            )
        settle(self, rates=rates)

    def drift(self) -> tuple[float, ...]:
        """Returns all rates."""
        return self.rates
