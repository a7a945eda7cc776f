"""Memory: the trials that still count, since f may have changed since the others.

Rounds are numbered from 0, as trials are. After a cut at round r, trials from r on count, and no earlier trial,
whenever its reward comes. The round t of every schedule is counted from r.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, final

import numpy as np

from .._utils.checks import Array, IndexArray, flag, integer, listed, many, number, one_of, settle, shown
from .._utils.copying import Copyable
from .._utils.dataclass import replace
from ..domains.domain import Arms, Domain, enclosing_box
from ..errors import InvalidInput, NoRegretError
from ..gp import Belief
from ..kernels import Kernel
from ..serialize import description
from ..storage.record import Trial
from ..theory.change.schedules import PowerLaw, checked_schedule
from .base import Part, Policy

if TYPE_CHECKING:
    from ..theory.change.detector import ChangeDetector

Drift = float | tuple[float, ...] | None
FAR = 10**9  # a round number beyond every run


class Restart(NamedTuple):
    """A cut of the memory."""

    round: int  # the first trial that counts from now on
    reason: str


def checked_restart(memory: Memory, restart: object, *, since: int, round_: int) -> None:
    """Checks the restart that a memory or its detector calls for.

    Args:
        memory: the part.
        restart: its restart.
        since: the round of the last restart.
        round_: the round to come.

    Raises:
        InvalidInput: if it is no `Restart`.
        NoRegretError: if its round is not between the last restart and the round to come.
    """
    name = type(memory).__name__
    if not isinstance(restart, Restart):
        raise InvalidInput(
            f"`{name}` cuts the memory by {shown(restart)}: it must be a `Restart(round, reason)`, or None for no cut."
        )
    if not since < restart.round <= round_:
        raise NoRegretError(
            f"`{name}` cuts the memory at round {restart.round}, which is not after the last cut (round {since}) "
            f"and by the round to come ({round_}): usually it forgets to compare with `since`, or a watch "
            "counts rounds of its own. A trial's round is `trial.number`."
        )


class Prediction(NamedTuple):
    """The prediction of f at a trial, made just before its reward was learned, reward units."""

    mean: float
    std: float


class Observation(NamedTuple):
    """An observed trial that counts, as a detector reads it.

    Attributes:
        trial: the trial with its reward and the constraint values that came with it. A detector with `joins` also gets
            trials whose constraint values came alone, before or after the reward.
        value: target of the trial minus the prior mean, reward units, or nan without a reward.
        before: prediction before the reward was learned, or None unless the detector asks for it (`Detector.predicts`).
        drift: share of f that is new in each round, 0 without drift. Under several rates it is their mean by the data
            before.
    """

    trial: Trial
    value: float
    before: Prediction | None
    drift: float = 0.0


class Model(NamedTuple):
    """The prior of a constraint with a kernel or noise of its own.

    Attributes:
        noise_variance: noise variance in squared units of the prior.
        between: prior covariance `(a, b)` between two lists of cells.
        largest_variance: returns the largest prior variance in the domain.
    """

    noise_variance: float
    between: Callable[[list[Any], list[Any]], Array]
    largest_variance: Callable[[], float]


class ModelInfo(NamedTuple):
    """The model of a policy, from which a detector may build its own posterior.

    Attributes:
        domain: the domain that is searched.
        context: domain of the contexts, or None.
        kernel: current kernel, that of the policy or the last fitted one.
        regularization: lambda of the policy's posterior, in its units squared.
        cell: returns the position of a trial in a posterior.
        fresh: returns a posterior without observations. `put(cell(trial), value)` adds one.
        noise_variance: noise variance of a reward, in squared units of the posterior. It is the policy's, or the last
            fitted one.
        channels: number of values of an observation: the reward and the constraint values.
        between: prior covariance `(a, b)` between two lists of cells.
        largest_variance: returns the largest prior variance in the domain.
        scaled: converts a reward to the units of the posterior.
        learned: False before the first fit of a policy that fits its kernel and noise.
        limits: conversion of each constraint value to the units of its posterior, empty without posteriors of
            constraints.
        models: prior of each constraint. Empty if all constraints share kernel and noise of the reward and come with
            it, and silence (`Waits`) is no observation.
    """

    domain: Domain
    context: Domain | None
    kernel: Kernel
    regularization: float
    cell: Callable[[Trial], Any]
    fresh: Callable[[], Belief[Any]]
    noise_variance: float
    channels: int
    between: Callable[[list[Any], list[Any]], Array]
    largest_variance: Callable[[], float]
    scaled: Callable[[float], float]
    learned: bool
    limits: tuple[Callable[[float], float], ...] = ()
    models: tuple[Model, ...] = ()


class Evidence(NamedTuple):
    """Evidence for a change after each observation.

    Attributes:
        trials: numbers of the observed trials, in the order in which they were added, `(n,)`.
        values: natural log of the evidence after each of them, `(n,)`.
        threshold: value from which on the memory is cut.
    """

    trials: IndexArray
    values: Array
    threshold: float


class Detector(ABC):
    """A change detector: it reads observations and calls for a cut if earlier ones no longer hold.

    Its state is a function of the observations.
    """

    predicts: bool = False  # True if it needs the prediction before each reward, which are then learned one by one
    joins: bool = False  # True if it also gets trials whose constraint values come alone

    @abstractmethod
    def see(self, seen: Observation) -> Restart | None:
        """Reads an observed trial and returns the cut that it calls for, or None.

        Trials that come together are read in the order of their numbers.

        Args:
            seen: the trial, its target, and the prediction if `predicts` is True.
        """

    @abstractmethod
    def reset(self) -> None:
        """Drops all observations, after a cut for any reason."""

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy in the same state."""

    def cut(self, restart: Restart) -> None:  # noqa: ARG002
        """Drops the trials before this cut. Most detectors drop later trials, too.

        Args:
            restart: the cut that was made, whatever its reason.
        """
        self.reset()

    def refitted(self, model: ModelInfo) -> None:  # noqa: B027 - most detectors have no model
        """Takes over the model after a fit of kernel, noise or units.

        Args:
            model: model of the policy after the fit.
        """

    @property
    def evidence(self) -> Evidence | None:
        """Evidence for a change, or None if the detector has no number for it."""
        return None


class Memory(Part):
    """The trials that count. A memory that overrides nothing counts all trials and proves nothing."""

    keeps_all: ClassVar[bool] = False  # True if every reward counts forever, as the theorems assume
    tides: bool = False  # True if a common level of all rewards moves, which is learned apart from the arms

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if f drifts under fits, or at several rates on a continuous domain."""
        drift, name = self.drift(), type(self).__name__
        if drift is None:
            return
        if isinstance(drift, tuple) and not policy.finite:
            raise InvalidInput(
                f"`{name}` keeps a posterior for each rate, of the values of f at finitely many arms (and contexts); "
                "on a continuous domain they are infinitely many. Take `Discount` with the likeliest rate, or arms."
            )
        if policy.refit is not None:
            raise InvalidInput(
                f"What learns the kernel takes all answers for those of one function, and under `{name}` f is another "
                "one in each round: what has drifted would be taken for noise. Leave `refit` out, or take "
                "`SlidingWindow`, under which fits see the answers of the window."
            )

    def cut(self, since: int, round_: int) -> Restart | None:  # noqa: ARG002
        """Returns the last scheduled cut, or None.

        Args:
            since: round of the last cut. The new cut comes after it.
            round_: the coming round. The new cut comes no later.
        """
        return None

    def regularization(self, since: int, given: float) -> float:  # noqa: ARG002
        """Returns lambda from a cut on.

        Args:
            since: round of the cut.
            given: lambda of the policy.
        """
        return given

    def keeping_ridge(self) -> Memory:
        """Returns this memory for a constraint whose own lambda stays."""
        return self

    def first_counted(self, since: int, round_: int) -> int:  # noqa: ARG002
        """Returns the first trial that counts in a round. It never goes back from round to round.

        Args:
            since: round of the last cut.
            round_: the coming round.
        """
        return since

    @property
    def weighs(self) -> bool:
        """True if answers may have a noise of their own (`Study.tell(std=...)`). Tests for changes do not know it."""
        return type(self).watch is Memory.watch

    def drift(self) -> Drift:
        """Returns the share of f that is new in each round, or None if f does not drift.

        A tuple of shares is learned from, on finitely many arms.
        """
        return None

    def watch(self, model: ModelInfo) -> Detector | None:  # noqa: ARG002
        """Returns a fresh change detector, or None.

        Args:
            model: model of the policy at the beginning of the run.
        """
        return None


@final
@description(frozen=True)
class Forever(Memory):
    """All trials."""

    keeps_all: ClassVar[bool] = True
    batched = True


@final
@description(frozen=True)
class RestartAt(Memory):
    """The trials since the last of given rounds, as an oracle knows them (Avanesov, section 4).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.RestartAt((300, 600)))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        why = "They are rounds, counted from 0, at which another function begins."
        given = listed("change_points", self.rounds, why=why)
        rounds = tuple(integer("change_points", round_, low=1, why=why) for round_ in given)
        if list(rounds) != sorted(set(rounds)):
            raise InvalidInput(
                f"`change_points` are {shown(list(rounds))}: they must be in ascending order, each once."
            )
        settle(self, rounds=rounds)

    def cut(self, since: int, round_: int) -> Restart | None:
        """Returns a cut at the last of these rounds so far."""
        due = [at for at in self.rounds if since < at <= round_]
        return Restart(due[-1], "a known change point") if due else None


@final
@description(frozen=True)
class RestartEvery(Memory):
    """The trials since the last multiple of a period (R-GP-UCB, Bogunovic, Scarlett & Cevher 2016, Algorithm 1).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.RestartEvery(200))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    rounds: int

    def __post_init__(self) -> None:
        why = "It is the number of rounds between two restarts."
        settle(self, rounds=integer("rounds", self.rounds, low=1, why=why))

    def cut(self, since: int, round_: int) -> Restart | None:
        """Returns a cut at the last multiple of the period."""
        last = round_ - round_ % self.rounds
        return Restart(last, f"every {many(self.rounds, 'round')}") if last > since else None


@final
@description(frozen=True)
class RestartDoubling(Memory):
    """The trials since the last restart at rounds n, 2n, 4n, ...: the doubling trick for an unknown horizon.

    Besson & Kaufmann 2018, as proposed by Verma, Dai & Low 2022 in footnote 7 of their appendix. A policy for T rounds
    runs afresh in each period, with the length of the period as its T (n, n, 2n, 4n, ...).

    Attributes:
        first: n, rounds.
        ridge: True if lambda is 1 + 2/T of each period, in place of the policy's.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.RestartDoubling(100))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    first: int
    ridge: bool = False

    def __post_init__(self) -> None:
        why = "It is the length of the first period, in rounds."
        settle(self, first=integer("first", self.first, low=1, why=why))
        settle(self, ridge=flag("ridge", self.ridge, why="Is lambda 1 + 2/T of each period?"))

    def cut(self, since: int, round_: int) -> Restart | None:
        """Returns a cut at the last of n, 2n, 4n, ..."""
        if round_ < self.first:
            return None
        last = self.first * 2 ** ((round_ // self.first).bit_length() - 1)
        return Restart(last, "a horizon doubled") if last > since else None

    def regularization(self, since: int, given: float) -> float:
        """Returns 1 + 2/T with T = max(since, n)."""
        return 1.0 + 2.0 / max(since, self.first) if self.ridge else given

    def keeping_ridge(self) -> RestartDoubling:
        """Returns the same restarts without a lambda of their own."""
        return replace(self, ridge=False)


@final
@description(frozen=True, kw_only=True)
class RestartOnChange(Memory):
    """The trials since a change was detected on forced uniform rounds (Avanesov, Algorithms 1 and 2).

    Under contexts, functions of (context, point) are compared. The paper has no contexts. A shift in the distribution
    of contexts may look like a change of f.

    Attributes:
        threshold: theta_n, a number or a `PowerLaw`. None is the default of `detect_change`.
        ridge: n rho_n, a number or a `PowerLaw`. None is the default of `detect_change`.
        distance: "average" or "integral".
    """

    threshold: float | PowerLaw | None = None
    ridge: float | PowerLaw | None = None
    distance: str = "average"

    def __post_init__(self) -> None:
        settle(
            self,
            threshold=checked_schedule("threshold", self.threshold),
            ridge=checked_schedule("ridge", self.ridge),
            distance=one_of("distance", self.distance, ["average", "integral"]),
        )

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the policy forces no uniform rounds."""
        super().check(policy)
        if not policy.explore.uniform:
            raise InvalidInput(
                "Changes are detected on forced uniform rounds: give `exploration` > 0. (`gp_ucb_cpd` has both.)",
                advice="To any other policy `policy.detecting_changes()` adds both.",
            )
        self.detector(policy.domain, policy.context, policy.kernel)  # Errors of the detector are raised here.

    def detector(self, domain: Domain, context: Domain | None, kernel: Kernel) -> ChangeDetector:
        """Returns a fresh detector. Under contexts it compares functions of (context, point)."""
        from ..theory.change.detector import ChangeDetector

        return ChangeDetector(
            kernel, domain=_pairs(domain, context), threshold=self.threshold, ridge=self.ridge, distance=self.distance
        )

    def watch(self, model: ModelInfo) -> UniformRoundDetector:
        """Returns a detector of changes on forced uniform rounds."""
        return UniformRoundDetector(self.detector(model.domain, model.context, model.kernel))


def _pairs(domain: Domain, context: Domain | None) -> Domain:
    """Returns all pairs (context, point), or the box around them if either is continuous."""
    if context is None:
        return domain
    if not isinstance(domain, Arms) or not isinstance(context, Arms):
        return enclosing_box(domain, context)
    rows = [np.hstack([np.tile(each, (len(domain), 1)), domain.points]) for each in context.points]
    return Arms(np.concatenate(rows))


@final
class UniformRoundDetector(Copyable, Detector):
    """A detector that tests the observed uniform rounds, in the order in which their rewards came."""

    OWNED = ("_detector",)

    def __init__(self, detector: ChangeDetector, latest: int = -1) -> None:
        self._detector, self._latest = detector, latest

    def see(self, seen: Observation) -> Restart | None:
        """Carries out lines 10-18 of Algorithm 2."""
        trial = seen.trial
        if not trial.explored or trial.reward is None:
            return None
        row = trial.point if trial.context is None else np.concatenate([trial.context, trial.point])
        found = self._detector.add(row, seen.value)
        self._latest = max(trial.number, self._latest)
        if not found:
            return None
        # The cut follows the latest round of the test. If this reward came late, that is another round.
        return Restart(self._latest + 1, f"a change detected on the last {2 * found.half} uniform rounds")

    def reset(self) -> None:
        """Drops all pairs."""
        self._detector.reset()


@final
@description(frozen=True)
class SlidingWindow(Memory):
    """The last trials up to a number, observed or not (SW-GP-UCB, Zhou & Shroff 2021).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.SlidingWindow(200))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    rounds: int

    def __post_init__(self) -> None:
        settle(self, rounds=integer("rounds", self.rounds, low=1, why="It is the number of trials that count."))

    def first_counted(self, since: int, round_: int) -> int:
        """Returns the oldest trial in the window."""
        return max(since, round_ - self.rounds)


@final
@description(frozen=True)
class Discount(Memory):
    """All trials, weighted by age (TV-GP-UCB, Bogunovic, Scarlett & Cevher 2016, section 4).

    f changes in every round: f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1}, with independent samples g_t of the
    same Gaussian process. The posterior is exact. On arms with a kernel of low rank its cost does not grow with t. On
    other domains it grows with t, as the round is another column with the kernel `Matern(0.5, -2 / log(1 - rate))`. A
    late reward is a reward of f in the round in which its trial was asked.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=nr.slots.Discount(0.01))
    >>> study = nr.Study(policy)
    >>> _ = study.add([0.2], 1.0)
    >>> study.restarts
    []
    """

    rate: float

    def __post_init__(self) -> None:
        why = "It is the share of f that is new in each round."
        settle(self, rate=number("rate", self.rate, low=0.0, high=1.0, why=why))

    def drift(self) -> float | None:
        """Returns the rate, or None if it is 0 and nothing drifts."""
        return self.rate or None


@final
@description(frozen=True)
class Tide(Memory):
    """All trials, on a common level of the rewards that moves with time (`nilregret.gp.tidal`).

    A reward is that of its arm, plus the level of its trial. The level is learned apart from the arms, so an arm that
    was played more on good days is not credited for them. Trials are compared with others of their time, by number.
    For clicks, counts and bounded rewards on arms (`nr.auto(arms, reward=...)`), and for linear models of arms under
    contexts (`nr.slots.ArmModels`).

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Arms(range(3)), reward="bernoulli").using(memory=nr.slots.Tide())
    >>> policy == nr.auto(nr.Arms(range(3)), reward="bernoulli", world="tidal")
    True
    """

    tides = True

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies that learn no level, and for detectors and bounds that know of none."""
        super().check(policy)
        if policy.models is None and policy.objective.learned(policy) is None:
            raise InvalidInput(
                "`Tide` is for clicks, counts and bounded rewards on arms, without fits, constraints or a drift, and "
                "for `ArmModels`: posteriors with a kernel of their own have no level beside the arms.",
                advice='Take `nr.auto(arms, reward="bernoulli", world="tidal")`, or give contexts.',
            )
        if any(type(part).watch is not Memory.watch for part in parts_of(policy.memory)):
            raise InvalidInput(
                "A detector takes a level that moves for a change of the arms: put `SlidingWindow` or `RestartEvery` "
                "beside `Tide`, or leave one of the two out."
            )
        if policy.confidence.likelihood:
            raise InvalidInput("`LikelihoodRatio` bounds rates that stand still: leave it or `Tide` out.")


@final
@description(frozen=True)
class AllOf(Memory):
    """The trials that count for all of several memories: `AllOf((nr.slots.EDetector(), nr.slots.DriftBank()))`.

    A cut by one memory is a cut for all. The first trial that counts is the youngest first trial of all windows. At
    most one part may be a discount or bank, since a function has one law of drift. A detector among the parts assumes
    that f drifts by that law, so that a drift is no change (`EDetector`).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> memory = nr.slots.AllOf((nr.slots.SlidingWindow(200), nr.slots.EDetector()))
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory=memory)
    >>> nr.Policy.from_json(policy.to_json()).memory == memory
    True
    """

    parts: tuple[Memory, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, tuple | list) else ()
        wrong = [part for part in parts if not isinstance(part, Memory)]
        if wrong or not parts:
            what = f"has {shown(wrong[0])}, which is no memory" if wrong else f"is {shown(self.parts)}"
            raise InvalidInput(
                f"`parts` {what}: it must be a tuple of memories.",
                advice=(
                    "Such as nr.slots.AllOf((nr.slots.EDetector(), nr.slots.SlidingWindow(200))), where "
                    'nr.slots.EDetector() is what is called "adaptive" elsewhere.'
                ),
            )
        settle(self, parts=parts)
        drifting = [type(part).__name__ for part in parts if part.drift() is not None]
        if len(drifting) > 1:
            raise InvalidInput(
                f"`parts` has {' and '.join(drifting)}: a function drifts by one law. For several rates give one "
                "`DriftBank`."
            )

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if some part does not fit the policy."""
        super().check(policy)
        for part in self.parts:
            part.check(policy)

    def cut(self, since: int, round_: int) -> Restart | None:
        """Returns the latest cut of any part."""
        cuts = [cut for part in self.parts if (cut := part.cut(since, round_)) is not None]
        return max(cuts, key=lambda cut: cut.round, default=None)

    def regularization(self, since: int, given: float) -> float:
        """Returns lambda after each part in turn has changed it."""
        for part in self.parts:
            given = part.regularization(since, given)
        return given

    def keeping_ridge(self) -> AllOf:
        """Returns the combination of parts that keep their lambda."""
        return AllOf(tuple(part.keeping_ridge() for part in self.parts))

    def first_counted(self, since: int, round_: int) -> int:
        """Returns the youngest of the parts' first trials."""
        return max(part.first_counted(since, round_) for part in self.parts)

    @property
    def weighs(self) -> bool:
        """True if all memories let answers have a noise of their own."""
        return all(memory.weighs for memory in self.parts)

    @property
    def tides(self) -> bool:  # type: ignore[override]  # a class attribute elsewhere
        """True if some memory has a level that moves."""
        return any(part.tides for part in self.parts)

    def drift(self) -> Drift:
        """Returns the drift of the part that has one."""
        return next((drift for part in self.parts if (drift := part.drift()) is not None), None)

    def watch(self, model: ModelInfo) -> Detector | None:
        """Returns the detectors of the parts as one detector."""
        detectors = [detector for part in self.parts if (detector := part.watch(model)) is not None]
        return Detectors(detectors) if len(detectors) > 1 else next(iter(detectors), None)


@final
class Detectors(Copyable, Detector):
    """A detector that shows every observation to several detectors and makes their latest cut."""

    OWNED_EACH = ("_each",)

    def __init__(self, each: list[Detector]) -> None:
        self._each = each
        self.predicts = any(detector.predicts for detector in each)

    def see(self, seen: Observation) -> Restart | None:
        """Shows the observation to every detector and returns the latest cut."""
        cuts = [cut for detector in self._each if (cut := detector.see(seen)) is not None]
        return max(cuts, key=lambda cut: cut.round, default=None)

    def reset(self) -> None:
        """Resets every detector."""
        for detector in self._each:
            detector.reset()

    def cut(self, restart: Restart) -> None:
        """Cuts every detector."""
        for detector in self._each:
            detector.cut(restart)

    def refitted(self, model: ModelInfo) -> None:
        """Passes the new model to every detector."""
        for detector in self._each:
            detector.refitted(model)

    @property
    def evidence(self) -> Evidence | None:
        """Evidence of the first detector that has any."""
        return next((found for detector in self._each if (found := detector.evidence) is not None), None)


def parts_of(memory: Memory) -> list[Memory]:
    """Returns the memories that make up a memory: itself, or the parts of an `AllOf`."""
    return [each for part in memory.parts for each in parts_of(part)] if isinstance(memory, AllOf) else [memory]


def joined(memory: Memory, other: Memory) -> Memory:
    """Returns a memory of the trials that count for both memories."""
    parts = (*parts_of(memory), *parts_of(other))
    parts = tuple(part for part in parts if not part.keeps_all)
    return AllOf(parts) if len(parts) > 1 else next(iter(parts), memory)


def detects_by_rounds(memory: Memory) -> bool:
    """Returns True if the memory has Avanesov's detector, which needs uniform rounds."""
    return any(isinstance(part, RestartOnChange) for part in parts_of(memory))


def most_held(memory: Memory) -> int:
    """Returns the largest number of rounds that a memory ever holds, as far as its description tells."""
    return min(
        part.rounds if isinstance(part, RestartEvery) else FAR - part.first_counted(0, FAR) for part in parts_of(memory)
    )
