"""The audit log: who did what to a study by hand, and what came of it.

An entry is on disk before its action begins, and is completed afterwards. If the server ends or stops waiting between
the two, the entry says that the outcome is not known.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ...storage import StoredStudy
from ...study.definition import objectives_of
from ...study.transaction import Transaction
from ..auth.tokens import Caller
from ..wire.messages import Reply
from ..wire.problems import problem_of
from ..work.workers import Change, NotesStorage, StudyWorker

R = TypeVar("R")
PREFIX = "audit:"
DONE = "done"
LONGEST = 2000  # characters of a value in an entry


class AuditEntry(Reply, frozen=True):
    """An action by hand, or a change by an admin."""

    at: float
    token: Annotated[str | None, Meta(description="Id of the caller's token; null before there was one.")]
    action: str
    arguments: dict[str, Any]
    outcome: Annotated[str | None, Meta(description="null: not known, since the server ended or stopped waiting.")]


def note_writing(notes: Mapping[str, str]) -> Change:
    """Returns the command that writes notes of a study, in a transaction that it shares with other commands."""

    def action(transaction: Transaction) -> None:
        for key, text in notes.items():
            transaction.write_note(key, text)

    return Change(lambda _: action)


async def audited(
    worker: StudyWorker, caller: Caller, now: float, what: tuple[str, Mapping[str, Any]],
    act: Callable[[], Awaitable[R]],
) -> R:  # fmt: skip
    """Returns the result of an action, which the log tells before and after.

    Args:
        worker: of the study.
        caller: the person or program that acts.
        now: present time in Unix seconds.
        what: name of the action, and its arguments.
        act: the action.
    """
    key, entry = _entry(caller, now, what)
    await worker.run(note_writing({key: _text(entry)}))
    try:
        result = await act()
    except Exception as error:
        await worker.run(note_writing({key: _text(entry, problem_of(error).sentence)}))
        raise
    await worker.run(note_writing({key: _text(entry, DONE)}))
    return result


def note_making(storage: NotesStorage, study: StoredStudy, caller: Caller) -> None:
    """Writes the first entry of a study that was just made, which no worker has open."""
    goal = list(objectives_of(study).values()) or study.goal
    key, entry = _entry(caller, study.created_at, ("make", {"seed": study.seed, "goal": goal}))
    with storage.writing(study) as writer:
        writer.write_notes({key: _text(entry, DONE)})


def entries(
    storage: NotesStorage, worker: StudyWorker, *, limit: int, before: float | None
) -> tuple[list[AuditEntry], bool]:
    """Returns the latest entries, the latest first, and whether there are earlier ones.

    Args:
        storage: of the study.
        worker: of the study.
        limit: number of entries.
        before: Unix seconds, of which only earlier entries are returned, or None.
    """
    found = storage.notes(worker.stored, PREFIX)
    latest = (msgspec.json.decode(found[key], type=AuditEntry) for key in sorted(found, reverse=True))
    listed = [entry for entry in latest if before is None or entry.at < before]
    return listed[:limit], len(listed) > limit


def _entry(caller: Caller, now: float, what: tuple[str, Mapping[str, Any]]) -> tuple[str, AuditEntry]:
    key = f"{PREFIX}{round(now * 1e6):017d}{secrets.token_hex(3)}"
    return key, AuditEntry(now, caller.token, what[0], {name: _short(value) for name, value in what[1].items()}, None)


def _text(entry: AuditEntry, outcome: str | None = None) -> str:
    return msgspec.json.encode(msgspec.structs.replace(entry, outcome=outcome)).decode()


def _short(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value
