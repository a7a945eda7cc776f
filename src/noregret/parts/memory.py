"""Which trials still count: the world may have changed since the others.

Rounds are numbered from 0, as trials are. Cutting the memory at round r means that trials from r on count, and no
earlier one, whenever its answer comes; the round t of every schedule is counted from r.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import NamedTuple, final

from ..change import ChangeDetector, PowerLaw, checked_schedule
from ..checks import flag, integer, listed, number, one_of, settle, shown
from ..domain import Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..serialize import described


class Restart(NamedTuple):
    """A cut of the memory."""

    round: int  # the first trial that counts from now on
    reason: str


class Memory(ABC):  # noqa: B024 - what differs is when to cut and what to forget, below
    """Which trials count."""

    def cut(self, since: int, round_: int) -> Restart | None:  # noqa: ARG002 - most never cut by the round
        """The last cut that is due after `since` and by this round, or None."""
        return None

    def regularization(self, since: int, given: float) -> float:  # noqa: ARG002 - most leave it as it is
        """Lambda from a cut on, of a policy with this one."""
        return given


@final
@described
@dataclass(frozen=True)
class Forever(Memory):
    """All of them."""


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
        settle(
            self, rounds=integer("rounds", self.rounds, low=1, why="It is the number of rounds between two restarts.")
        )

    def cut(self, since: int, round_: int) -> Restart | None:
        """The last multiple."""
        last = round_ - round_ % self.rounds
        return Restart(last, f"every {self.rounds} rounds") if last > since else None


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


@final
@described
@dataclass(frozen=True, kw_only=True)
class RestartOnChange(Memory):
    """Those since a change was detected on the forced uniform rounds (Avanesov, Algorithms 1 and 2).

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

    def detector(self, domain: Domain, kernel: Kernel) -> ChangeDetector:
        """A fresh detector."""
        return ChangeDetector(kernel, domain=domain, threshold=self.threshold, ridge=self.ridge, distance=self.distance)


@final
@described
@dataclass(frozen=True)
class SlidingWindow(Memory):
    """The last so many trials, answered or not (SW-GP-UCB, Zhou & Shroff 2021)."""

    rounds: int

    def __post_init__(self) -> None:
        settle(self, rounds=integer("rounds", self.rounds, low=1, why="It is the number of trials that count."))


@final
@described
@dataclass(frozen=True)
class Discount(Memory):
    """All of them, the older the less (TV-GP-UCB, Bogunovic, Scarlett & Cevher 2016, section 4).

    f changes at every round: f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1}, with g_t independent samples of the
    same Gaussian process. On arms whose kernel has low rank this is exact at a cost that does not grow with t. On
    other domains give the time as a context and multiply the kernel with `Matern(0.5, -2 / log(1 - rate))` on it.
    """

    rate: float

    def __post_init__(self) -> None:
        why = "It is the share of f that is new in each round."
        object.__setattr__(self, "rate", number("rate", self.rate, low=0.0, high=1.0, why=why))
