"""Rules without a posterior of the whole record: scripts that ask for points and go on when the answers are there.

Methods of optimisation that a policy is compared with do not fit the slots of `Policy`. They are written as they
are printed, as a script (a generator): it yields the points whose answers it needs next, and is sent those answers.
`ScriptedState` makes of it what a study needs: a pure function of (policy, seed, record), like `State`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from .._utils import serialize
from .._utils.checks import Array, frozen
from .._utils.errors import InvalidInput, NoRegretError
from .._utils.randomness import Randomness
from ..domains.domain import Box, Space
from ..slots.envelope import Envelope, Window
from ..slots.feasibility import Mask
from ..slots.memory import Restart
from ..slots.objective import averages
from ..slots.pending import Ignored, Pending
from ..storage.record import Event, Trial
from .availability import Available
from .engines import Decision


class Answers(NamedTuple):
    """What a script is sent.

    Attributes:
        trials: the answered (or failed) trials of the points it asked for, in their order; none at the start.
        randomness: of the trial that the next points begin with.
    """

    trials: list[Trial]
    randomness: Randomness


Play = Generator[Array, Answers, None]


class Script(ABC):
    """A run of a rule.

    Attributes:
        multipliers: of the constraints, as the rule has them, `(m,)`.
    """

    multipliers: Array

    @abstractmethod
    def play(self, first: Answers) -> Play:
        """Yield points `(n, d)`, be sent their answers, and so on without end."""


class ScriptedPolicy(ABC):
    """How to decide, by a script: a frozen dataclass, described for JSON, with what a study asks of every policy.

    Attributes:
        algorithm: name of the function that made it.
        domain: what may be played.
        constraints: m.
    """

    algorithm: str
    domain: Box | Space
    constraints: int
    context: ClassVar[None] = None
    pending: ClassVar[Pending] = Ignored()
    window: ClassVar[Window | None] = None

    @property
    def constraint_count(self) -> int:
        """m, how many constraint values the policy wants with each reward."""
        return self.constraints

    @abstractmethod
    def begin(self) -> Script:
        """A run from its start."""

    def to_json(self) -> str:
        """The description as one line of JSON; equal policies give equal text."""
        return serialize.dumps(self)


class ScriptedState:
    """A scripted policy after some events of a record.

    Of the points that the script asked for, each is asked for once, in order. While answers to all of them are still
    to come the first one is asked for again; such trials, and points that were added, are recorded and teach nothing.
    The script goes on when a question is asked, with the randomness of that trial, and not when answers arrive: so
    neither the order of their arrival nor looking leaves a trace.
    """

    saturated = False
    proved = "none"
    remarks: Mapping[str, str] = {}
    minimum: float | None = None  # nothing is censored

    def __init__(self, policy: ScriptedPolicy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        self._rounds = 0
        self._script = policy.begin()
        self._play: Play | None = None  # begins with the first question
        self._points: Array = np.zeros((0, policy.domain.dimension))  # that the script asked for last
        self._numbers: list[int] = []  # of the trials they became, as far as they have been asked for
        self._answers: dict[int, Trial] = {}
        self.price_steps: list[tuple[int, Array]] = [(0, self._script.multipliers.copy())]  # as of `Charges.steps`

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        for event in events:
            number = event.trial.number
            if event.kind == "asked":
                points = self._due()  # the script may go on here, and ask for others
                if len(self._numbers) < len(points):
                    self._numbers.append(number)
            elif event.kind in ("told", "abandoned") and number in self._numbers:
                self._answers[number] = event.trial  # of one that nobody works on any more: none, unless it comes
            self._rounds = max(self._rounds, number + 1)

    def _due(self) -> Array:
        """The points whose answers the script needs, after it has gone on if it could."""
        randomness = Randomness(self._seed, self._rounds)
        if self._play is None:
            self._play = self._script.play(Answers([], randomness))
            self._points = next(self._play)
        elif len(self._answers) == len(self._points):
            answered = [self._answers[number] for number in self._numbers]
            self._numbers, self._answers = [], {}
            self._points = self._play.send(Answers(answered, randomness))
            if not np.array_equal(self._script.multipliers, self.price_steps[-1][1], equal_nan=True):
                self.price_steps.append((self._rounds, self._script.multipliers.copy()))
        return self._points

    def decide(
        self,
        context: Array | None = None,  # noqa: ARG002 - none
        *,
        now: float = math.inf,  # noqa: ARG002 - the interface of `State`
        available: Available | None = None,
        again: Trial | None = None,  # noqa: ARG002 - nothing is fitted
    ) -> Decision:
        """The next point; the same one however often it is asked for."""
        if available is not None:
            raise InvalidInput(
                f"{self.policy.algorithm} plays the points that its script names and cannot choose `among` others. Use "
                "a policy that scores points, such as `gp_ucb_noiseless_constraints`."
            )
        points = self._due()
        asked = len(self._numbers)
        return Decision(frozen(points[asked if asked < len(points) else 0].copy()), None, explored=False)

    def settled(self) -> ScriptedState:
        """Itself: looking takes nothing in."""
        return self

    @property
    def multipliers(self) -> Array:
        """As of the last question, `(m,)`."""
        return self._script.multipliers

    @property
    def restarts(self) -> list[Restart]:
        """None."""
        return []

    @property
    def evidence(self) -> None:
        """None."""

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """None."""
        return []

    @property
    def lengthscales(self) -> None:
        """None."""
        return None

    def answered_means(self, trials: list[Trial]) -> Array:
        """What is known of the expected rewards at answered trials: the average told there, `(n,)`."""
        return averages(trials, [np.array([trial.reward or 0.0]) for trial in trials])[:, 0]

    def width(self, *, now: float = math.inf) -> float:  # noqa: ARG002 - the interface of `State`
        """There are none."""
        self._no("confidence bounds")

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:  # noqa: ARG002
        """There is none."""
        self._no("predictions")

    def limit(self, j: int, points: Any = None, context: Array | None = None) -> Envelope:  # noqa: ARG002
        """There is none."""
        self._no("bounds of constraints")

    def certain(self, points: Any, context: Array | None) -> Array:  # noqa: ARG002
        """Nothing is."""
        self._no("bounds of constraints")

    def infeasible(self, context: Array | None) -> float | None:  # noqa: ARG002
        """Nobody knows."""
        self._no("bounds of constraints")

    def inside(self, trials: list[Trial]) -> Mask | None:  # noqa: ARG002
        """Nobody knows."""
        return None

    @property
    def information_gain(self) -> float:
        """There is none."""
        self._no("information gain")

    def _no(self, what: str) -> NoReturn:
        raise NoRegretError(
            f"{self.policy.algorithm} has no {what}: it keeps no posterior of the record. For that use a policy that "
            "learns, such as `gp_ucb_noiseless_constraints`.",
            advice="`study.best()` and `study.trials` work all the same.",
        )
