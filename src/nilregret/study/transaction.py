"""Several calls to one study in one transaction: one commit for all who wait, and each with an outcome of its own.

A commit takes longer than the decision that it makes durable. A server that has ten requests for a study waiting does
all ten and commits once; none is told before that. One that cannot be done must not take the others with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, final

from .._utils.checks import Array
from ..policy.availability import Available
from ..policy.engines import Decision
from ..policy.state import State
from ..storage.trial import Plays, Trial
from .answers import Told
from .direction import copied, of_rewards
from .replica import Jotter
from .study import Study

R = TypeVar("R")

LEAST = 2  # calls that are done whatever time it takes: else a slow one would never come up


class Failed(NamedTuple):
    """What came of a call that could not be done, and left no trace."""

    error: Exception


class NotYet(NamedTuple):
    """What came of a call that was not begun: the time for a transaction was over."""


class Going(NamedTuple):
    """What came of a call that takes longer than a transaction may: a part of it is done, and this is the rest."""

    then: Callable[[Transaction], Any]


class _Spoilt(Exception):
    """A call failed halfway: what the others did goes with it, and all are done again, each by itself."""


@final
class Transaction:
    """A study in a transaction; every call is made with arguments that have been checked.

    Args:
        study: that is written to.
        notes: of this call; None where the storage keeps none.
        known: notes that were read for these calls, by key.
        until: when it is time to end, by `time.monotonic`.
    """

    def __init__(self, study: Study, notes: Jotter | None, known: Mapping[str, str], until: float) -> None:
        self.study, self._notes, self._known, self._until = study, notes, known, until
        self.written: dict[str, str] = {}
        self.deciding = False

    @property
    def trials(self) -> Sequence[Trial]:
        """All of them, by number, as they are now."""
        return self.study._kept.record

    @property
    def order(self) -> int:
        """Of the last event."""
        return self.study._kept.record.order

    @property
    def over(self) -> bool:
        """Whether it is time to end: a call that has done something goes on in the next turn (`Going`)."""
        return time.monotonic() > self._until

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.study._kept.now()

    def ask(self, context: Array | None, offered: Available | None, lease: float | None) -> Trial:
        """See `Study.ask`."""
        self.deciding = True
        trial = self.study._next(context, offered, lease)
        self.deciding = False
        return trial

    def before(self) -> State | None:
        """An independent state as it is now, from which to work out how probable the next decision was.

        None where a script decides.
        """
        state = of_rewards(self.study._kept.state)
        return state.copy() if isinstance(state, State) else None

    def tell(self, told: Told, *, revise: bool = False) -> Trial:
        """See `Study.tell`."""
        return self.study._answering.tell(told, revise=revise)

    def fail(self, trial: int, reason: str, *, revise: bool = False) -> Trial:
        """See `Study.fail`."""
        return self.study._answering.fail(trial, reason, revise=revise)

    def abandon(self, trial: int, reason: str) -> Trial:
        """See `Study.abandon`."""
        return self.study._answering.abandon(trial, reason)

    def add(
        self, decision: Decision, context: Array | None, reward: float, constraints: Array | None,
        plays: Plays | None = None,
    ) -> Trial:  # fmt: skip
        """See `Study.add`."""
        return self.study._added(decision, context, reward, constraints, plays)

    def would(self, context: Array | None) -> Decision:
        """What `ask` would decide now; nothing is asked."""
        state = self.study._kept.state  # of a copy: a decision may begin anew with a fit of an older record
        return (copied(state) or state).decide(context, now=self.now)

    def noted(self, key: str) -> str | None:
        """The note under a key that was announced."""
        return self.written.get(key, self._known.get(key))

    def note(self, key: str, value: str) -> None:
        """Write a note when the transaction ends, if it ends well."""
        self.written[key] = value

    def begin(self, act: Callable[[Transaction], R]) -> R | Failed:
        """Do it, or say why not; an error if it can no longer be as if it had not been begun."""
        order, notes = self.order, dict(self.written)
        try:
            return act(self)
        except Exception as error:  # whatever it is, the others must not go with it
            if self.deciding or self.order != order:
                raise _Spoilt from error
            self.written = notes
            return Failed(error)

    def end(self) -> None:
        """Hand the notes over."""
        if self._notes is not None:
            self._notes.written.update(self.written)


def several(
    study: Study, acts: Sequence[Callable[[Transaction], R]], *, keys: Iterable[str] = (), seconds: float
) -> list[R | Failed | NotYet]:
    """Do several things to a study, in this order, and commit once; what came of each.

    Args:
        study: with a storage that can keep notes.
        acts: each given the study in its transaction.
        keys: of notes that they will look for.
        seconds: after which, since the first was begun, it is time to commit; those left, but for the first two, are
            `NotYet` begun. Nor are those after one that is `Going` on.
    """

    def all_of(chosen: Sequence[Callable[[Transaction], R]]) -> list[R | Failed | NotYet]:
        notes = study._kept.notes
        known = notes.noted(sought) if sought and notes is not None else {}
        until = time.monotonic() + seconds
        turn = Transaction(study, notes, known, until)
        found = in_time(turn.begin, chosen, until)
        turn.end()
        return found

    def alone(act: Callable[[Transaction], R]) -> R | Failed | NotYet:
        try:
            (found,) = study._kept.write(all_of, [act])
        except _Spoilt as spoilt:
            return Failed(_cause(spoilt))
        return found

    def in_time(
        do: Callable[[Callable[[Transaction], R]], R | Failed | NotYet],
        chosen: Sequence[Callable[[Transaction], R]],
        until: float,
    ) -> list[R | Failed | NotYet]:
        found: list[R | Failed | NotYet] = []
        for act in chosen:
            over = bool(found) and isinstance(found[-1], Going | NotYet)
            over = over or (len(found) >= LEAST and time.monotonic() > until)
            found.append(NotYet() if over else do(act))
        return found

    sought, begin = list(dict.fromkeys(keys)), time.monotonic()
    try:
        found: list[Any] = study._kept.write(all_of, acts)
    except _Spoilt as spoilt:
        found = [Failed(_cause(spoilt))] if len(acts) == 1 else in_time(alone, acts, begin + seconds)
    study._after_asking()
    if len(study._record) >= study._look_at:
        study._look_for_wrong_scales()
    return found


def _cause(spoilt: _Spoilt) -> Exception:
    return spoilt.__cause__ if isinstance(spoilt.__cause__, Exception) else spoilt
