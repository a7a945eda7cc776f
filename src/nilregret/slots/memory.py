"""Which trials still count: the world may have changed since the others.

Rounds are numbered from 0, as trials are. Cutting the memory at round r means that trials from r on count, and no
earlier one, whenever its answer comes; the round t of every schedule is counted from r.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from .._utils.checks import Array, IndexArray, flag, integer, listed, many, number, one_of, settle, shown
from .._utils.errors import InvalidInput, NoRegretError
from .._utils.serialize import described
from ..domains.domain import Arms, Domain, enclosing_box
from ..gp import Belief
from ..kernels import Kernel
from ..storage.record import Trial
from ..theory.change import ChangeDetector, PowerLaw, checked_schedule
from .base import Combination, Part

Drift = float | tuple[float, ...] | None
FAR = 10**9  # a round that no run reaches


class Restart(NamedTuple):
    """A cut of the memory."""

    round: int  # the first trial that counts from now on
    reason: str


def checked_restart(memory: Memory, restart: object, *, since: int, round_: int) -> None:
    """Checks the restart that a memory or its watch calls for.

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
    """What was believed of f at a trial just before its answer was learned, reward units."""

    mean: float
    std: float


class Observation(NamedTuple):
    """An answered trial that counts, as a watch is shown it.

    Attributes:
        trial: with its reward, and the constraint values told with it; to a watch that `joins`, also one of which
            constraint values came by themselves, before the reward or after it.
        value: what it counts as less the prior mean, reward units; nan where there is no reward yet.
        before: what was predicted; None unless the watch asks for it (`Detector.predicts`).
        drift: the share of f that is new in each round, where f drifts; of several the mean, by what was known before.
    """

    trial: Trial
    value: float
    before: Prediction | None
    drift: float = 0.0


class Model(NamedTuple):
    """What a constraint with a kernel or noise of its own is believed to be before anything is seen.

    Attributes:
        noise_variance: as of `ModelInfo`, as all that follows, of this constraint.
        between: prior covariance `(a, b)` between two lists of cells.
        largest_variance: gives the largest prior variance in the domain.
    """

    noise_variance: float
    between: Callable[[list[Any], list[Any]], Array]
    largest_variance: Callable[[], float]


class ModelInfo(NamedTuple):
    """What a watch may build its own picture from.

    Attributes:
        domain: what may be played.
        context: where contexts come from, or None.
        kernel: in use: of the policy, or the last one fitted.
        regularization: lambda of the policy's belief, in its units squared.
        cell: where a belief finds a trial.
        fresh: makes a belief that has learned nothing; `put(cell(trial), value)` teaches it.
        noise_variance: of an answer, in the units of the belief squared: the policy's noise, or the last one fitted.
        channels: how many values an answer has: the reward, and the constraint values.
        between: prior covariance `(a, b)` between two lists of cells.
        largest_variance: gives the largest prior variance in the domain.
        scaled: brings a reward into the units of the belief.
        learned: whether kernel and noise are what they will be; False before the first fit of a policy that fits them.
        limits: brings the value of each constraint into the units of its belief; none where it has none of its own.
        models: of each constraint; none where kernel and noise of all are those of the reward, and values
            come with an answer; where silence is one (`Waits`), they need not.
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
    """How much spoke for a change, answer by answer.

    Attributes:
        trials: numbers of the trials answered, in the order in which their answers were taken in, `(n,)`.
        values: evidence after each of them, natural logs, `(n,)`.
        threshold: from which value on the memory is cut.
    """

    trials: IndexArray
    values: Array
    threshold: float


class Detector(ABC):
    """Looks at answers, and says when what was learned before is no longer true. A function of what it has seen."""

    predicts: bool = False  # whether it wants the prediction before each answer; then they are learned singly
    joins: bool = False  # whether it is shown a trial again, or already, where constraint values come by themselves

    @abstractmethod
    def see(self, seen: Observation) -> Restart | None:
        """One answered trial, by number among those that came in together; the cut that it calls for, or None."""

    @abstractmethod
    def reset(self) -> None:
        """The memory was cut, for whatever reason: what was seen before counts no more."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent one in the same state."""

    def cut(self, restart: Restart) -> None:  # noqa: ARG002 - most forget everything
        """The memory was cut at this round, and earlier trials count no more; most forget the later ones too."""
        self.reset()

    def refitted(self, world: ModelInfo) -> None:  # noqa: B027 - most believe nothing of their own
        """The policy has learned another kernel, noise or unit of the rewards; the world is as it is now."""

    @property
    def evidence(self) -> Evidence | None:
        """What it has come to, if it can be put into a number."""
        return None


class Memory(Part):
    """Which trials count. One that overrides nothing counts them all and proves nothing."""

    keeps_all: ClassVar[bool] = False  # whether every answer counts for good: the theorems are for that

    def check(self, policy: Combination) -> None:
        """Where f drifts, no fit, which is to one function; several rates on finitely many arms."""
        drift, name = self.drift(), type(self).__name__
        if drift is None:
            return
        finite = isinstance(policy.domain, Arms) and isinstance(policy.context, Arms | None)
        if isinstance(drift, tuple) and not finite:
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

    def cut(self, since: int, round_: int) -> Restart | None:  # noqa: ARG002 - most never cut by the round
        """The last cut that is due after `since` and by this round, or None."""
        return None

    def regularization(self, since: int, given: float) -> float:  # noqa: ARG002 - most leave it as it is
        """Lambda from a cut on, of a policy with this one."""
        return given

    def keeping_ridge(self) -> Memory:
        """This memory for a constraint with a lambda of its own, which stays as it is."""
        return self

    def first_counted(self, since: int, round_: int) -> int:  # noqa: ARG002 - most count all since the last cut
        """The first trial that counts in this round, when the last cut was at `since`; never goes back."""
        return since

    def drift(self) -> Drift:
        """The share of f that is new in each round, where f drifts; or several to learn from, on finitely many arms."""
        return None

    def watch(self, world: ModelInfo) -> Detector | None:  # noqa: ARG002 - most look at no answer
        """A fresh watch for changes, if this memory has one."""
        return None


@final
@described
@dataclass(frozen=True)
class Forever(Memory):
    """All of them."""

    keeps_all: ClassVar[bool] = True


@final
@described
@dataclass(frozen=True)
class RestartAt(Memory):
    """Those since the last of these rounds: the oracle that knows the change points (Avanesov, section 5)."""

    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        why = "They are rounds, counted from 0, at which another function begins."
        given = listed("change_points", self.rounds, why=why)
        rounds = tuple(integer("change_points", round_, low=1, why=why) for round_ in given)
        if list(rounds) != sorted(set(rounds)):
            raise InvalidInput(
                f"`change_points` are {shown(list(rounds))}: they must be in ascending order, each once."
            )
        object.__setattr__(self, "rounds", rounds)

    def cut(self, since: int, round_: int) -> Restart | None:
        """The last of the rounds that has come."""
        due = [at for at in self.rounds if since < at <= round_]
        return Restart(due[-1], "a known change point") if due else None


@final
@described
@dataclass(frozen=True)
class RestartEvery(Memory):
    """Those since the last multiple of a period (R-GP-UCB, Bogunovic, Scarlett & Cevher 2016, Algorithm 1)."""

    rounds: int

    def __post_init__(self) -> None:
        why = "It is the number of rounds between two restarts."
        settle(self, rounds=integer("rounds", self.rounds, low=1, why=why))

    def cut(self, since: int, round_: int) -> Restart | None:
        """The last multiple."""
        last = round_ - round_ % self.rounds
        return Restart(last, f"every {many(self.rounds, 'round')}") if last > since else None


@final
@described
@dataclass(frozen=True)
class RestartDoubling(Memory):
    """Those since the last restart, at rounds n, 2n, 4n, ...: the doubling trick for an unknown horizon.

    Besson & Kaufmann 2018, as Verma, Dai & Low 2022 propose in footnote 7 of their appendix: a policy for T rounds runs
    for each period afresh, its T the length of the period (n, n, 2n, 4n, ...).

    Attributes:
        first: n, rounds.
        ridge: whether lambda is 1 + 2/T of each period, in place of the policy's.
    """

    first: int
    ridge: bool = False

    def __post_init__(self) -> None:
        why = "It is the length of the first period, in rounds."
        object.__setattr__(self, "first", integer("first", self.first, low=1, why=why))
        object.__setattr__(self, "ridge", flag("ridge", self.ridge, why="Is lambda 1 + 2/T of each period?"))

    def cut(self, since: int, round_: int) -> Restart | None:
        """The last of n, 2n, 4n, ..."""
        if round_ < self.first:
            return None
        last = self.first * 2 ** ((round_ // self.first).bit_length() - 1)
        return Restart(last, "a horizon doubled") if last > since else None

    def regularization(self, since: int, given: float) -> float:
        """1 + 2/T, T = max(since, n)."""
        return 1.0 + 2.0 / max(since, self.first) if self.ridge else given

    def keeping_ridge(self) -> RestartDoubling:
        """Without the ridge."""
        return replace(self, ridge=False)


@final
@described
@dataclass(frozen=True, kw_only=True)
class RestartOnChange(Memory):
    """Those since a change was detected on the forced uniform rounds (Avanesov, Algorithms 1 and 2).

    Under contexts functions of (context, point) are compared; the paper has none, and contexts of another kind may look
    like another function.

    Attributes:
        threshold: theta_n, a number or a `PowerLaw`; None for the default (see `detect_change`).
        ridge: n rho_n, likewise.
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

    def check(self, policy: Combination) -> None:
        """Forced uniform rounds."""
        super().check(policy)
        if not policy.explore.uniform:
            raise InvalidInput(
                "Changes are detected on forced uniform rounds: give `exploration` > 0. (`gp_ucb_cpd` has both.)",
                advice="To any other policy `policy.detecting_changes()` adds both.",
            )
        self.detector(policy.domain, policy.context, policy.kernel)  # has it all that it needs?

    def detector(self, domain: Domain, context: Domain | None, kernel: Kernel) -> ChangeDetector:
        """A fresh detector; under contexts functions of (context, point) are compared, over all there may be."""
        return ChangeDetector(
            kernel, domain=_pairs(domain, context), threshold=self.threshold, ridge=self.ridge, distance=self.distance
        )

    def watch(self, world: ModelInfo) -> UniformRounds:
        """The detector, on forced uniform rounds."""
        return UniformRounds(self.detector(world.domain, world.context, world.kernel))


def _pairs(domain: Domain, context: Domain | None) -> Domain:
    """All (context, point); where either is continuous, the box around them."""
    if context is None:
        return domain
    if not isinstance(domain, Arms) or not isinstance(context, Arms):
        return enclosing_box(domain, context)
    rows = [np.hstack([np.tile(each, (len(domain), 1)), domain.points]) for each in context.points]
    return Arms(np.concatenate(rows))


@final
class UniformRounds(Detector):
    """Shows a detector the uniform rounds that were answered, in the order in which the answers came in."""

    def __init__(self, detector: ChangeDetector, latest: int = -1) -> None:
        self._detector, self._latest = detector, latest

    def see(self, seen: Observation) -> Restart | None:
        """Lines 10-18 of Algorithm 2."""
        trial = seen.trial
        if not trial.explored or trial.reward is None:
            return None
        row = trial.point if trial.context is None else np.concatenate([trial.context, trial.point])
        found = self._detector.add(row, seen.value)
        self._latest = max(trial.number, self._latest)
        if not found:
            return None
        # After the latest round of the test, which is not this one where this answer came late.
        return Restart(self._latest + 1, f"a change detected on the last {2 * found.half} uniform rounds")

    def reset(self) -> None:
        """Forget all pairs."""
        self._detector.reset()

    def copy(self) -> UniformRounds:
        """An independent one."""
        return UniformRounds(self._detector.copy(), self._latest)


@final
@described
@dataclass(frozen=True)
class SlidingWindow(Memory):
    """The last so many trials, answered or not (SW-GP-UCB, Zhou & Shroff 2021)."""

    rounds: int

    def __post_init__(self) -> None:
        settle(self, rounds=integer("rounds", self.rounds, low=1, why="It is the number of trials that count."))

    def first_counted(self, since: int, round_: int) -> int:
        """The oldest in the window."""
        return max(since, round_ - self.rounds)


@final
@described
@dataclass(frozen=True)
class Discount(Memory):
    """All of them, the older the less (TV-GP-UCB, Bogunovic, Scarlett & Cevher 2016, section 4).

    f changes at every round: f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1}, with g_t independent samples of the
    same Gaussian process. On arms whose kernel has low rank this is exact at a cost that does not grow with t; on other
    domains too, at one that does, with the round as another column and `Matern(0.5, -2 / log(1 - rate))` on it. A late
    answer is one of f as it was when it was asked for.
    """

    rate: float

    def __post_init__(self) -> None:
        why = "It is the share of f that is new in each round."
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0, high=1.0, why=why))

    def drift(self) -> float | None:
        """The rate; None where it is 0, for then nothing drifts."""
        return self.rate or None
