"""Several calls of a study that share one commit, each with an outcome of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from .replica import Replica
from .transaction import LEAST, Failed, Going, HalfDone, NotYet, Transaction

R = TypeVar("R")


def group_commit(
    replica: Replica,
    acts: Sequence[Callable[[Transaction], R]],
    alike: Transaction,
    *,
    keys: Iterable[str] = (),
    seconds: float,
) -> list[R | Failed | NotYet]:
    """Runs several calls in one transaction and returns the outcome of each (see `Study.group_commit`)."""

    def together(chosen: Sequence[Callable[[Transaction], R]]) -> list[R | Failed | NotYet]:
        until = time.monotonic() + seconds
        transaction = Transaction(replica, propensities=alike.propensities, plain=alike.plain, until=until)
        transaction.fetch_notes(sought)
        found = in_time(transaction.run, chosen, until)
        transaction.save_notes()
        return found

    def alone(act: Callable[[Transaction], R]) -> R | Failed | NotYet:
        try:
            (found,) = replica.write(together, [act])
        except HalfDone as error:
            return Failed(_cause(error))
        return found

    def in_time(
        run: Callable[[Callable[[Transaction], R]], R | Failed | NotYet],
        chosen: Sequence[Callable[[Transaction], R]],
        until: float,
    ) -> list[R | Failed | NotYet]:
        found: list[R | Failed | NotYet] = []
        for act in chosen:
            over = bool(found) and isinstance(found[-1], Going | NotYet)
            over = over or (len(found) >= LEAST and time.monotonic() > until)
            found.append(NotYet() if over else run(act))
        return found

    sought, begin = list(dict.fromkeys(keys)), time.monotonic()
    try:
        return replica.write(together, acts)
    except HalfDone as error:
        return [Failed(_cause(error))] if len(acts) == 1 else in_time(alone, acts, begin + seconds)


def _cause(error: HalfDone) -> Exception:
    return error.__cause__ if isinstance(error.__cause__, Exception) else error
