"""Combinations of memories: windows, restarts, detectors and a drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .._utils.checks import settle, shown
from .._utils.copying import Copyable
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from .base import Policy
from .memory import (
    FAR,
    Detector,
    Drift,
    Evidence,
    Memory,
    ModelInfo,
    Observation,
    Restart,
    RestartEvery,
    RestartOnChange,
)


@final
@described
@dataclass(frozen=True)
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
