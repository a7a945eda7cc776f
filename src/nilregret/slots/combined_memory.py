"""Several memories at once: windows, restarts, detectors and a drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .._utils.checks import settle, shown
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
    """Those that count for every one of several memories: `AllOf((nr.slots.EDetector(), nr.slots.DriftBank()))`.

    A cut by one of them is a cut for all; the youngest first trial of all windows is the first that counts. Of
    discounts and banks there may be one: a function has one law of drift. A detector among them looks at answers as if
    f drifted by that law, so that a drift is no change (`EDetector`).
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
        """Every part."""
        super().check(policy)
        for part in self.parts:
            part.check(policy)

    def cut(self, since: int, round_: int) -> Restart | None:
        """The last cut of any."""
        cuts = [cut for part in self.parts if (cut := part.cut(since, round_)) is not None]
        return max(cuts, key=lambda cut: cut.round, default=None)

    def regularization(self, since: int, given: float) -> float:
        """As the parts say, one after the other."""
        for part in self.parts:
            given = part.regularization(since, given)
        return given

    def keeping_ridge(self) -> AllOf:
        """Every part does."""
        return AllOf(tuple(part.keeping_ridge() for part in self.parts))

    def first_counted(self, since: int, round_: int) -> int:
        """The youngest of the parts' first trials."""
        return max(part.first_counted(since, round_) for part in self.parts)

    def drift(self) -> Drift:
        """That of the part that has one."""
        return next((drift for part in self.parts if (drift := part.drift()) is not None), None)

    def watch(self, world: ModelInfo) -> Detector | None:
        """All of the parts' watches, or the only one."""
        watches = [watch for part in self.parts if (watch := part.watch(world)) is not None]
        return Detectors(watches) if len(watches) > 1 else next(iter(watches), None)


@final
class Detectors(Detector):
    """Each sees every answer; the latest cut that one of them calls for is made."""

    def __init__(self, each: list[Detector]) -> None:
        self._each = each
        self.predicts = any(watch.predicts for watch in each)

    def see(self, seen: Observation) -> Restart | None:
        """Every watch looks, whatever the others have found."""
        cuts = [cut for watch in self._each if (cut := watch.see(seen)) is not None]
        return max(cuts, key=lambda cut: cut.round, default=None)

    def reset(self) -> None:
        """All."""
        for watch in self._each:
            watch.reset()

    def cut(self, restart: Restart) -> None:
        """All."""
        for watch in self._each:
            watch.cut(restart)

    def refitted(self, world: ModelInfo) -> None:
        """All."""
        for watch in self._each:
            watch.refitted(world)

    @property
    def evidence(self) -> Evidence | None:
        """Of the first that puts it into a number."""
        return next((found for watch in self._each if (found := watch.evidence) is not None), None)

    def copy(self) -> Detectors:
        """An independent one."""
        return Detectors([watch.copy() for watch in self._each])


def parts_of(memory: Memory) -> list[Memory]:
    """The memories that one is made of: itself, or those of an `AllOf`."""
    return [each for part in memory.parts for each in parts_of(part)] if isinstance(memory, AllOf) else [memory]


def joined(memory: Memory, other: Memory) -> Memory:
    """What counts for both."""
    parts = (*parts_of(memory), *parts_of(other))
    parts = tuple(part for part in parts if not part.keeps_all)
    return AllOf(parts) if len(parts) > 1 else next(iter(parts), memory)


def detects_by_rounds(memory: Memory) -> bool:
    """Whether it has Avanesov's detector, which wants uniform rounds."""
    return any(isinstance(part, RestartOnChange) for part in parts_of(memory))


def most_held(memory: Memory) -> int:
    """Most rounds that a memory ever holds, as far as its description says."""
    return min(
        part.rounds if isinstance(part, RestartEvery) else FAR - part.first_counted(0, FAR) for part in parts_of(memory)
    )
