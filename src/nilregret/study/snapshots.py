"""Snapshots of long studies: what the state has learned, so that opening reads no million trials.

A snapshot is a cache of a replay up to one event. It stands in the storage, beside the record, as numbers and JSON. A
study that is opened from a snapshot decides to the bit as after a replay, since both hold the same numbers. Whatever is
wrong with a snapshot, it is dropped with a line in the log, and the record is replayed.

| checked | against |
|---|---|
| digest | damage, and parts that are missing or of another snapshot |
| versions of the format, nilregret and NumPy, kind of processor | other arithmetic |
| study, seed, goal, policy | another study of this name |
| last event and last trial, as they stand in the storage | a record that was replaced or cut off |
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import platform
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._utils.checks import Array
from ..errors import StorageError
from ..policy.learned_state import is_compact, learned, restored
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.changes import change_of, change_text
from ..storage.early_trials import EarlyTrials
from ..storage.record import Record
from ..storage.trial import Trial
from .direction import AnyPolicy, Goal, goals_in, policy_of_rewards, reward_trial
from .spaces import Roster

if TYPE_CHECKING:
    from .stored import StoredStudyHandle

FORMAT = 1
CHUNK = 2**22  # Bytes of a row: a writer holds the lock for some ten milliseconds.
LEAST = 100_000  # Events before which a study has no snapshot: a replay of so many takes seconds.
EVERY = 20_000  # Events between two snapshots, which are replayed after a kill.
AT_CLOSE = 2_000  # Events since the last snapshot from which closing writes one.
DIGEST = 64  # Characters of a digest.
LOG = logging.getLogger("nilregret.study")
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, StorageError)  # What damage may cause.


class Known(NamedTuple):
    """The identity of the study of a snapshot.

    Attributes:
        policy: with which the study was made.
        goal: of the study.
        seed: of the study.
    """

    policy: AnyPolicy
    goal: Goal
    seed: int

    def facts(self, handle: StoredStudyHandle) -> dict[str, Any]:
        """Returns what must be the same when the snapshot is read."""
        from ..storage.rows import owner  # The table of a database, as in the next functions.

        made = hashlib.sha256(self.policy.to_json().encode()).hexdigest()
        return {
            "format": FORMAT, "version": version("nilregret"), "numpy": np.__version__, "machine": platform.machine(),
            "study": owner(handle.study), "seed": str(self.seed), "goal": self.goal, "policy": made,
        }  # fmt: skip


def can_have(handle: StoredStudyHandle | None, state: object, record: Record) -> bool:
    """Returns whether a snapshot can say all of a study: what was learned, and each trial by its row."""
    if handle is None or handle.snapshots is None or not is_compact(state):
        return False
    spaced = any(change.kind == "widened" for change in record.changes)
    return not spaced and not any(trial.curve for trial in record.at_hand)


def write(handle: StoredStudyHandle, known: Known, state: State, record: Record) -> Callable[[], None]:
    """Returns a function that writes a snapshot of a study as it is now, which may go on meanwhile."""
    plain, arrays = learned(state)
    held = [array.copy("K") for array in arrays]
    head = known.facts(handle) | {
        "order": record.order, "count": len(record), "learned": plain,
        "changes": [[change.order, change.time, change.kind, change_text(change)] for change in record.changes],
        "events": record.events,
        "awaited": [trial.number for trial in record.at_hand if is_awaited(trial)],
        "last": [[trial.number, _digest_of(trial)] for trial in _last(record)],
        "arrays": [[array.dtype.str, list(array.shape), "C" if array.flags.c_contiguous else "F"] for array in held],
    }  # fmt: skip
    digest = hashlib.blake2b(digest_size=DIGEST // 2)
    for array in held:
        digest.update(_bytes(array))
    head["digest"] = digest.hexdigest()
    text = json.dumps(head).encode()
    snapshots = handle.snapshots

    def store() -> None:
        if snapshots is not None:
            snapshots.write(handle.study, hashlib.sha256(text).hexdigest().encode() + text, _chunks(held))

    return store


def keep(replica: Any, *, least: int = 0) -> None:
    """Writes a snapshot of a study that can have one. Most of its trials are then held by the storage alone.

    An error of the storage is logged, since a snapshot is a cache. The next one is tried after as many events.

    Args:
        replica: of the study.
        least: events since the last snapshot, before which none is written.
    """
    handle = replica.handle
    with replica.lock:
        record, state = replica.record, replica.state
        since = record.order - (replica.due - EVERY)
        if handle is None or not replica.in_step or (least and since < least):
            return
        if record.order < LEAST or not can_have(handle, state, record):
            replica.due = math.inf
            return
        replica.due = record.order + EVERY
        count, order = len(record), record.order
        store = write(handle, replica.identity, cast(State, state), record)
    try:
        store()
    except StorageError as error:
        LOG.warning("No snapshot of study %r was written: %s", handle.study.name, error)
        return
    with replica.lock:
        if replica.record is record and replica.in_step:
            record.trials = without_early(record, count, order, handle.early)
            let_go(replica)


def let_go(replica: Any) -> None:
    """Lets the state of a long record hold the numbers of trials and not the trials, which the storage has."""
    if replica.handle is None or isinstance(replica.record.trials, list):
        return
    replica.handle.prepare(replica.record)
    if is_compact(replica.state):
        replica.state.reward.posterior.read_trials(partial(_trial_of, weakref.ref(replica)))


def _trial_of(replica: weakref.ref[Any], number: int) -> Trial:
    """Returns a trial as the state of a policy sees it."""
    known: Any = replica()
    return reward_trial(known.record[number].as_corrected(), known.goals)


def is_awaited(trial: Trial) -> bool:
    """Returns whether a trial stays at hand, since its answer is still to come."""
    return trial.state == "pending"


def without_early(record: Record, count: int, order: int, read: Callable[[int, int], list[Trial]]) -> EarlyTrials:
    """Returns the trials of a record, of which the storage alone holds the first ones from now on.

    Args:
        record: of the study.
        count: number of early trials.
        order: of the last event of the snapshot, which all early trials have seen.
        read: returns early trials, checked.
    """
    near = record.at_hand
    own = [trial for trial in near if trial.number < count and (trial.last_order > order or is_awaited(trial))]
    return EarlyTrials(count, read, order, own, [trial for trial in near if trial.number >= count])


def read(handle: StoredStudyHandle, known: Known) -> tuple[Record, State] | None:
    """Returns the record and the state of a study as its snapshot has them, or None if there is none that is right."""
    snapshots = handle.snapshots
    if snapshots is None or snapshots.events(handle.study) < LEAST:
        return None
    try:
        found = snapshots.read(handle.study)
        return None if found is None else _opened(handle, known, *found)
    except BROKEN as error:
        LOG.warning("The snapshot of study %r is not used: %s. The record is replayed.", handle.study.name, error)
        return None


def _opened(handle: StoredStudyHandle, known: Known, head: bytes, parts: list[bytes]) -> tuple[Record, State]:
    text = head[DIGEST:]
    if hashlib.sha256(text).hexdigest().encode() != head[:DIGEST]:
        raise ValueError("its head is damaged")
    facts = json.loads(text)
    for name, value in known.facts(handle).items():
        if facts[name] != value:
            raise ValueError(f"its {name} is {facts[name]!r}, and here it is {value!r}")
    digest = hashlib.blake2b(digest_size=DIGEST // 2)
    for part in parts:
        digest.update(part)
    if digest.hexdigest() != facts["digest"]:
        raise ValueError("its numbers are damaged")
    record = Record()
    record.order, record.events = facts["order"], facts["events"]
    record.changes = tuple(change_of(tuple(row)) for row in facts["changes"])
    handle.prepare(record)
    record.trials = EarlyTrials(facts["count"], handle.early, record.order)
    if [facts["count"] - 1] != [number for number, _ in facts["last"]][:1]:
        raise ValueError("it does not say which trial is the last")
    for number, expected in facts["last"]:
        if _digest_of(record[number]) != expected:
            raise ValueError(f"trial {number} is another one by now")
    record.trials.own = {number: record[number] for number in facts["awaited"]}
    policy, goals = cast(Policy, Roster(known.policy, record.changes).policy), goals_in(known.policy, known.goal)
    state = restored(
        policy_of_rewards(policy, known.goal), known.seed, facts["learned"], _arrays(parts, facts["arrays"]),
        lambda number: reward_trial(record[number].as_corrected(), goals),
    )  # fmt: skip
    return record, state


def _last(record: Record) -> list[Trial]:
    """Returns the last trial, and the trial of the last event."""
    latest = max(record.at_hand, key=lambda trial: trial.last_order, default=record[-1])
    return [record[-1], latest]


def _digest_of(trial: Trial) -> str:
    from ..storage.rows import outcome, question

    return hashlib.sha256(repr((question(trial), outcome(trial))).encode()).hexdigest()


def _bytes(array: Array) -> memoryview:
    flat: Any = (array if array.flags.c_contiguous else array.T).reshape(-1)
    return memoryview(flat).cast("B")


def _chunks(arrays: list[Array]) -> Iterator[bytes]:
    """Yields the bytes of all arrays in parts, of which only the last is shorter than the others."""
    gathered = bytearray()
    for array in arrays:
        data = _bytes(array)
        for first in range(0, len(data), CHUNK):
            gathered += data[first : first + CHUNK]
            while len(gathered) >= CHUNK:
                yield bytes(gathered[:CHUNK])
                del gathered[:CHUNK]
    if gathered:
        yield bytes(gathered)


def _arrays(parts: list[bytes], shapes: list[Any]) -> list[Array]:
    """Returns the arrays in the parts, each with its order in memory, which decides how products round."""
    data, at, found = bytearray().join(parts), 0, []
    for kind, shape, order in shapes:
        count = int(np.prod(shape))
        array = np.frombuffer(data, dtype=np.dtype(kind), count=count, offset=at)
        at += array.nbytes
        found.append(array.reshape(shape) if order == "C" else array.reshape(shape[::-1]).T)
    if at != len(data):
        raise ValueError("its numbers have another length")
    return found
