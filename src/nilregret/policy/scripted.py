"""Policies without a posterior: scripts that ask for points and continue when the answers are there.

Some methods of optimisation with which policies are compared do not fit the slots of `Policy`. They are written as
scripts, in the form in which they are printed. A script is a generator: it yields the points whose answers it needs
next, and is sent these answers. `ScriptedState` is its state for a study: a pure function of policy, seed and record,
like `State`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from .. import serialize
from .._utils.checks import Array, frozen
from .._utils.randomness import Randomness
from ..domains.domain import Box, Space
from ..errors import InvalidInput, NoRegretError
from ..slots.constraints import Mask
from ..slots.envelope import Envelope, Window
from ..slots.memory import Restart
from ..slots.objective import averages
from ..slots.pending import Ignored, Pending
from ..storage.record import Event, Trial
from .availability import Available
from .decide import Pinned
from .engines import Decision


class Answers(NamedTuple):
    """The answers that a script is sent.

    Attributes:
        trials: answered or failed trials at the points that the script asked for, in their order. Empty at the start.
        randomness: the random numbers of the trial with which the next points begin.
    """

    trials: list[Trial]
    randomness: Randomness


Play = Generator[Array, Answers, None]


class Script(ABC):
    """A run of a scripted policy.

    Attributes:
        multipliers: the multipliers of the constraints, `(m,)`.
    """

    multipliers: Array

    @abstractmethod
    def play(self, first: Answers) -> Play:
        """Yields points `(n, d)` and is sent their answers, without end."""


class ScriptedPolicy(ABC):
    """A policy that decides by a script: a frozen dataclass, described for JSON.

    Attributes:
        algorithm: name of the function that made the policy.
        domain: the points that may be played.
        constraints: m, the number of constraints.
    """

    algorithm: str
    domain: Box | Space
    constraints: int
    context: ClassVar[None] = None
    pending: ClassVar[Pending] = Ignored()
    window: ClassVar[Window | None] = None

    @property
    def constraint_count(self) -> int:
        """The number m of constraint values with each reward."""
        return self.constraints

    @property
    def objective_count(self) -> int:
        """The number of objectives, which is 1."""
        return 1

    @property
    def output_count(self) -> int:
        """The number of values with each trial."""
        return 1 + self.constraints

    @property
    def objective_names(self) -> tuple[str, ...]:
        """The name of the objective."""
        return ("reward",)

    @abstractmethod
    def begin(self) -> Script:
        """Returns a new run."""

    def to_json(self) -> str:
        """Returns the description as one line of JSON. Equal policies give equal text."""
        return serialize.dumps(self)


class ScriptedState:
    """A scripted policy after some events of a record.

    Each point that the script asked for is played once, in order. If all have been played and answers are missing, the
    first point is played again. Such trials, and trials that were added, are recorded and teach nothing.

    The script continues when a trial is asked for, with the random numbers of that trial. It does not continue when
    answers arrive. So neither the order of answers nor reading the state leaves a trace.
    """

    saturated = False
    proved = "none"
    remarks: Mapping[str, str] = {}
    minimum: float | None = None  # no trial is censored

    def __init__(self, policy: ScriptedPolicy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        self._rounds = 0
        self._script = policy.begin()
        self._play: Play | None = None  # begins with the first trial
        self._points: Array = np.zeros((0, policy.domain.dimension))  # the points that the script asked for last
        self._numbers: list[int] = []  # numbers of the trials at these points so far
        self._answers: dict[int, Trial] = {}
        self.price_steps: list[tuple[int, Array]] = [(0, self._script.multipliers.copy())]  # see `PenaltyState.steps`

    def receive(self, events: Iterable[Event]) -> None:
        """Takes in events, in order."""
        for event in events:
            number = event.trial.number
            if event.kind == "asked" and not event.trial.enqueued and event.trial.kept is None:
                points = self._due()  # the script may continue here, and ask for other points
                if len(self._numbers) < len(points):
                    self._numbers.append(number)
            elif event.kind in ("told", "abandoned") and number in self._numbers:
                self._answers[number] = event.trial  # an abandoned trial has no answer, unless one comes
            self._rounds = max(self._rounds, number + 1)

    def _due(self) -> Array:
        """Continues the script if it can. Returns the points whose answers the script needs."""
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
        """Returns the next decision. Repeated calls return the same decision."""
        if available is not None:
            raise InvalidInput(
                f"{self.policy.algorithm} plays the points that its script names and cannot choose `among` others. Use "
                "a policy that scores points, such as `gp_ucb_noiseless_constraints`."
            )
        points = self._due()
        asked = len(self._numbers)
        return Decision(frozen(points[asked if asked < len(points) else 0].copy()), None, explored=False)

    def fill(self, pinned: Pinned, *_: object, **__: object) -> Decision:
        """Returns the decision for a whole point, which is none of the script's."""
        return Decision(frozen(pinned.point.copy()), pinned.arm, explored=False)

    def may_keep(self, chosen: Trial, context: Array | None) -> bool:  # noqa: ARG002
        """Returns True, since nothing is certified."""
        return True

    def keep(self, chosen: Trial) -> Decision:
        """Returns the decision to play the point of an earlier trial again, which is none of the script's."""
        return Decision(chosen.point, chosen.arm, explored=False)

    def settled(self) -> ScriptedState:
        """Returns this state, since reading changes nothing."""
        return self

    @property
    def multipliers(self) -> Array:
        """The multipliers at the last trial, `(m,)`."""
        return self._script.multipliers

    @property
    def restarts(self) -> list[Restart]:
        """An empty list, since scripts have no memory."""
        return []

    @property
    def evidence(self) -> None:
        """None, since scripts detect no changes."""

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """An empty list, since no norm is guessed."""
        return []

    @property
    def lengthscales(self) -> None:
        """None, since scripts have no kernel."""
        return None

    def answered_means(self, trials: list[Trial]) -> Array:
        """Returns the average rewards at the points of answered trials, `(n,)`."""
        return averages(trials, [np.array([trial.reward or 0.0]) for trial in trials])[:, 0]

    def best_answered(self, trials: list[Trial]) -> int:
        """Returns the place of the first trial with the largest of `answered_means`."""
        return int(self.answered_means(trials).argmax())

    def width(self, *, now: float = math.inf) -> float:  # noqa: ARG002 - the interface of `State`
        """Raises an error, because scripts have no bounds."""
        self._no("confidence bounds")

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:  # noqa: ARG002
        """Raises an error, because scripts predict nothing."""
        self._no("predictions")

    def limit(self, j: int, points: Any = None, context: Array | None = None) -> Envelope:  # noqa: ARG002
        """Raises an error, because scripts have no bounds."""
        self._no("bounds of constraints")

    def certain(self, points: Any, context: Array | None) -> Array:  # noqa: ARG002
        """Raises an error, because scripts have no bounds."""
        self._no("bounds of constraints")

    def infeasible(self, context: Array | None) -> float | None:  # noqa: ARG002
        """Raises an error, because scripts have no bounds."""
        self._no("bounds of constraints")

    def inside(self, trials: list[Trial]) -> Mask | None:  # noqa: ARG002
        """Returns None, since scripts do not predict constraints."""
        return None

    @property
    def information_gain(self) -> float:
        """Raises an error, because scripts have no posterior."""
        self._no("information gain")

    def _no(self, what: str) -> NoReturn:
        raise NoRegretError(
            f"{self.policy.algorithm} has no {what}: it keeps no posterior of the record. For that use a policy that "
            "learns, such as `gp_ucb_noiseless_constraints`.",
            advice="`study.best()` and `study.trials` work all the same.",
        )
