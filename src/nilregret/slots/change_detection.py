"""Changes that are noticed in all answers, whatever was played: abrupt ones, and how fast the world drifts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from .._utils.checks import Array, listed, number, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..storage.record import Trial
from ..theory.change.evidence import ChangeEvidence
from ..theory.change.joint_evidence import JointEvidence, OutputPrior
from .memory import Detector, Evidence, Memory, Model, ModelInfo, Observation, Restart

FEWEST = 12  # answers that a kernel must have been learned from
MOST = 1000.0  # natural log: no answer can say more than this
LEAST_NOISE = 1e-4  # of the prior variance: what a model is trusted with, also where answers have no noise


@final
@described
@dataclass(frozen=True, kw_only=True)
class EDetector(Memory):
    """Those since a change that was noticed in any of the answers, at any time, with a bounded chance of a false alarm.

    After each answer the evidence for a change is worked out: how much better beliefs that began at some later round
    predicted the answers since than the belief that has all of them (`nilregret.theory.change.evidence`, after Shin,
    Ramdas &
    Rinaldo 2023). Where it reaches 1 / delta the memory is cut at the most likely round of the change; what was asked
    for from there on is kept. No round is forced; contexts, boxes, late answers (by the round of the question),
    constraint values (all channels together) and fits are all taken as they come. Beside a `Discount` or `DriftBank`
    (`AllOf`) f drifts before a change and after it (by the mean of the rates of a bank), so that a drift is none.

    While f is a sample of the policy's kernel and does not change, an alarm is ever raised with probability at most
    delta (each cut spends delta anew, and what is kept was chosen by looking: for later alarms that is approximate).
    That is a mean over the scale, about the told one, that `weight` says; at the told scale itself it is measured.
    Noise that was told wrongly, a wrong kernel, and outliers are what `weight`, `misfit` and `outliers` are for; the
    last also for heavy tails, and noise of one size here and another there, or now and then. What they do there is
    measured (docs/changing.md) and not proved. Where silence means no (`Imputed`, and
    `LateOrNever` once that is evident) it is shown too, as an answer of the least value, once 99% of the answers that
    come have come; each trial then waits for those asked for before it, and is seen so much later. Where the kernel is
    fitted nothing is promised: after each fit to at least 12 answers all since the last cut are weighed anew, and none
    before the first. A change that cannot be seen where the policy plays is not seen.

    Attributes:
        delta: probability of a false alarm in the whole run.
        clip: no single answer speaks for a change at some round by more than a factor e^clip; min(e, e^clip) has no
            larger mean than e, so that the bound holds as before.
        weight: how many answers the scale that kernel and noise say is worth, against what the answers say.
        misfit: share of the prior variance by which f may deviate from what the kernel says, at each point by itself.
            A function that is rougher than it was believed to be then looks less like one that changes; 0 for a kernel
            that is right.
        outliers: share of the answers that may be outliers, at first; the answers say more. A change must then also
            predict better by 0.05 nats an answer. 0 for noise that is as told but for its scale.
    """

    delta: float = 0.05
    clip: float = 8.0
    weight: float = 10.0
    misfit: float = 0.05
    outliers: float = 0.05

    BEFORE: ClassVar[dict[str, float]] = {"outliers": 0.0}  # of what was stored when there was no such field

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

    def watch(self, world: ModelInfo) -> EvidenceDetector:
        """The evidence, from nothing."""
        return EvidenceDetector(self, world)


@final
class EvidenceDetector(Detector):
    """Shows every answer to a `ChangeEvidence`, and cuts where it has come far enough.

    Where constraints have kernels or noise of their own, or learn them, or silence is an answer, each channel has one,
    to which an answer is shown when it comes; else all values of a trial are shown when the last of them has come.
    """

    joins = True

    def __init__(self, memory: EDetector, world: ModelInfo) -> None:
        self._threshold = math.log(1.0 / memory.delta)
        self._cell, self._learned = world.cell, world.learned
        self._unwatched: list[
            Observation
        ] = []  # before the first fit that is trusted, of a policy that learns its kernel
        self._trials: list[int] = []
        self._values: list[float] = []
        self._evidence = JointEvidence(
            [
                ChangeEvidence(
                    known.covariance, known.noise_variance, channels=1 if world.models else world.channels,
                    weight=memory.weight, clip=memory.clip, misfit=memory.misfit, outliers=memory.outliers,
                    scaled=known.scaled,
                )
                for known in _known_of(world)
            ]
        )  # fmt: skip

    def see(self, seen: Observation) -> Restart | None:
        """Take in the answer; the cut, where the evidence now reaches 1 / delta."""
        if not self._learned:
            self._unwatched.append(seen)
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
        """Whether the answer says something."""
        trial, count = seen.trial, self._evidence.channels - 1
        reward, limits = _news(trial) if not self._evidence.together else (True, True)
        values = np.full(1 + count, np.nan)
        if reward and trial.reward is not None:
            values[0] = trial.reward
        if limits and count and trial.constraints is not None:
            values[1:] = trial.constraints
        self._evidence.rate = seen.drift
        return self._evidence.add(trial.number, self._cell(trial), values)

    def reset(self) -> None:
        """Forget every answer."""
        self._unwatched = []
        self._evidence.cut(self._evidence.latest + 1)

    def cut(self, restart: Restart) -> None:
        """Keep what was asked for from this round on."""
        self._unwatched = [seen for seen in self._unwatched if seen.trial.number >= restart.round]
        self._evidence.cut(restart.round)

    def refitted(self, world: ModelInfo) -> None:
        """Weigh all answers of the stretch anew, under the kernel, noise and units that the policy has now.

        A fit to a few answers, as there is one soon after each restart, is not trusted: the last one before stays.
        """
        if self._evidence.count + len(self._unwatched) < FEWEST:
            return
        self._evidence.remodel(_known_of(world))
        self._learned = True
        unwatched, self._unwatched = self._unwatched, []
        for seen in unwatched:
            self._add(seen)

    @property
    def evidence(self) -> Evidence:
        """Answer by answer."""
        return Evidence(np.array(self._trials, dtype=np.intp), np.array(self._values), self._threshold)

    def copy(self) -> EvidenceDetector:
        """An independent one."""
        other = EvidenceDetector.__new__(EvidenceDetector)
        other.__dict__.update(self.__dict__)
        other._evidence = self._evidence.copy()
        for name in ("_unwatched", "_trials", "_values"):
            setattr(other, name, getattr(self, name).copy())
        return other


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


def _known_of(world: ModelInfo) -> list[OutputPrior]:
    """Of all channels together, or where constraints have models of their own, of each."""
    scales = (world.scaled, *world.limits)
    if not world.models:
        return [OutputPrior(world.between, _noise_of(world), _scaling(scales))]
    models: list[ModelInfo | Model] = [world, *world.models]
    return [
        OutputPrior(model.between, _noise_of(model), _scaling((scale,)))
        for model, scale in zip(models, scales, strict=True)
    ]


def _news(trial: Trial) -> tuple[bool, bool]:
    """Whether the reward of a trial that is shown is new, and whether its constraint values are."""
    by_themselves, told = trial.constraints_order, trial.told_order
    if by_themselves is None:
        return True, True
    return (False, True) if told is None or by_themselves > told else (True, False)


def _noise_of(model: ModelInfo | Model) -> float:
    return max(model.noise_variance, LEAST_NOISE * model.largest_variance())


@final
@described
@dataclass(frozen=True)
class DriftBank(Memory):
    """All of them, the older the less, at rates of drift that are weighed by how well they predict the answers.

    A posterior as of `Discount` is kept for each rate, and what is believed is their mixture
    (`nilregret.gp.bank`). With rate 0 among them a world that does not drift costs little. Answers are weighed by
    the noise that was told, also where the regulariser is another number: a round then costs more.

    Attributes:
        rates: shares of f that may be new in each round, from 0 to 1, ascending.
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
        """All of them."""
        return self.rates
