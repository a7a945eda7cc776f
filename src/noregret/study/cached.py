"""The cached state of a study: kept beside its trials, so that whoever opens the study next need not replay them all.

It is a cache and nothing else. What it is keyed by are the policy, the goal and the seed, every event that is in it,
and the program that made it down to the processor (`program`). Where anything differs, or anything in it is odd, the
record is replayed, as if it were not there.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, final

from .. import image
from ..errors import NoRegretError
from ..record import Record
from ..storage.base import States, Storage, StoredState, StoredStudy
from .goal import AnyPolicy, AnyState, Goal, of_rewards

FORMAT = 1  # of what is kept
FEWEST = 20  # events that are replayed before anybody could ask a storage for their state
MOST = 64 * 2**20  # bytes: an exact posterior of 4,000 points. Larger ones would hold up an SQLite file for others
WORTH = 0.5  # seconds of replay from which on a state is kept: reading one back takes up to a fifth of that
SHARE = 0.02  # of the time spent on decisions that may be spent on keeping states
GROWN = 1.25  # by what factor the events have grown before another one is kept


class Outcome(NamedTuple):
    """What came of keeping a state.

    Attributes:
        kept: whether it is in the storage now.
        why: it is not, in words; empty where it is.
        size: bytes.
        seconds: that it took.
        hopeless: whether there is no point in trying again: it has no image, or is too large.
    """

    kept: bool
    why: str
    size: int
    seconds: float
    hopeless: bool = False


class Image(NamedTuple):
    """A state as it is about to be stored."""

    state: StoredState
    seconds: float


@final
class Cache:
    """The cached state of one study in a storage.

    Args:
        policy: of the study.
        goal: likewise.
        seed: likewise.
        storage: that has it.
        study: as the storage knows it.
        program: says which one this is, or None where it cannot be known.
    """

    def __init__(
        self, policy: AnyPolicy, goal: Goal, seed: int, storage: Storage, study: StoredStudy,
        program: Callable[[], str | None],
    ) -> None:  # fmt: skip
        self._policy, self._goal, self._seed, self._study, self._program = policy, goal, seed, study, program
        self._states = storage if isinstance(storage, States) else None
        self._key: str | None = None
        self.found_at = 0  # events in the one that was read last
        self.unused = ""  # why the one there was last is not used, in words

    # -- reading -------------------------------------------------------------------------------------------------

    def found(self, record: Record, fresh: AnyState) -> tuple[AnyState, int] | None:
        """A state after the first events of a record, and how many; None where there is none that fits to the bit.

        One that has its key and does not fit is thrown away.

        Args:
            record: of the study.
            fresh: a state before any event, whose policy the one found shares.
        """
        self.found_at, self.unused = 0, ""
        if self._states is None or record.order < FEWEST:
            return None
        try:
            key = self._known_key()
            stored = None if key is None else self._states.state(self._study, key=key, most=MOST)
            if stored is None:
                return None
            try:
                state = self._read(stored, record, fresh)
            except image.BadImage as error:
                self.unused = str(error)
                self.drop()
                return None
        except NoRegretError as error:  # of the storage: the trials, too, will hear of it, where it matters
            self.unused = str(error)
            return None
        self.found_at = stored.order
        return state, stored.order

    def _read(self, stored: StoredState, record: Record, fresh: AnyState) -> AnyState:
        if hashlib.sha256(stored.content).hexdigest() != stored.digest:
            raise image.BadImage("its content is not what was written")
        if not 0 < stored.order <= record.order or any(
            trial.corrected and (trial.told_order or 0) > stored.order for trial in record
        ):
            raise image.BadImage("it is of other events, or of what has been corrected since")
        before = record if stored.order == record.order else record.as_of(stored.order)
        if digest_of(before) != stored.record:
            raise image.BadImage("it is of other events")
        policy = of_rewards(fresh).policy
        state: AnyState = image.read(stored.content, anchors=image.Anchors(policy).at, trials=before, most=MOST)
        if type(state) is not type(fresh) or type(of_rewards(state)) is not type(of_rewards(fresh)):
            raise image.BadImage("it is no state")
        if of_rewards(state).policy is not policy:
            raise image.BadImage("it is of another policy")
        return state

    def drop(self) -> bool:
        """Throw away the one there is; whether there was one."""
        return self._states is not None and self._states.drop_state(self._study)

    def discard(self) -> None:
        """Likewise, of one that was found and is none; where nothing can be written it stays."""
        self.found_at, self.unused = 0, "it failed at the events after it"
        with suppress(NoRegretError):
            self.drop()

    def is_worth(self, seconds: float) -> bool:
        """Whether a state is to be kept that took so long to make."""
        return self._states is not None and seconds >= WORTH

    # -- writing -------------------------------------------------------------------------------------------------

    def made(self, state: AnyState, record: Record) -> Image | None:
        """The image of a state after a record, while nobody changes either; None where it has none."""
        begin = time.perf_counter()
        key = None if self._states is None else self._known_key()
        if key is None:
            return None
        try:
            anchors = image.Anchors(of_rewards(state).policy)
            content = image.write(state, anchors=anchors.way, trials=record, most=MOST)
        except Exception as error:  # an image is never worth an error: the study goes on without
            self.unused = f"no image can be made: {error}"
            return None
        digest = hashlib.sha256(content).hexdigest()
        stored = StoredState(key, digest_of(record), record.order, digest, content)
        return Image(stored, time.perf_counter() - begin)

    def keep(self, made: Image | None) -> Outcome:
        """Store an image; whatever goes wrong is said and not raised, for the study goes on without."""
        if made is None or self._states is None:
            return Outcome(False, self.unused or "the storage keeps no states", 0, 0.0, hopeless=True)
        begin = time.perf_counter()
        try:
            kept = self._states.keep_state(self._study, made.state)
            why = "" if kept else "another process has kept a later one"
        except NoRegretError as error:
            kept, why = False, str(error)
        return Outcome(kept, why, len(made.state.content), made.seconds + time.perf_counter() - begin)

    def _known_key(self) -> str | None:
        """Of this program, study and machine; None where nobody could say that it is the same one."""
        if self._key is None:
            which = self._program()
            if which is None:
                return None
            said = [FORMAT, which, self._policy.to_json(), self._goal, str(self._seed)]
            try:
                image.Anchors(self._policy)  # of the library's own parts alone
            except image.Unimageable as error:
                self.unused = f"its policy has a part that is not the library's: {error}"
                return None
            self._key = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        return self._key


def digest_of(record: Record) -> str:
    """SHA-256 of all events of a record, hexadecimal."""
    hashed = hashlib.sha256(str(record.order).encode())
    for trial in record:
        hashed.update(repr(trial._key()).encode())
    return hashed.hexdigest()
