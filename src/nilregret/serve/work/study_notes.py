"""Notes of people beside a study: a text, tags, whether it is archived or paused, and remarks on trials.

They are notes of the storage, so a policy learns nothing from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...storage import ListedStudy, MemoryStorage, SqlStorage, StoredStudy

KEY, OF_TRIAL = "beside", "remark:"  # keys of the notes


class StudyNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Notes on a study.

    Attributes:
        archived: whether lists leave it out.
        paused: whether the service refuses to decide.
        note: free text.
        tags: words to find it by.
    """

    archived: bool = False
    paused: bool = False
    note: str = ""
    tags: tuple[str, ...] = ()


NONE = StudyNotes()


def notes_of(storage: SqlStorage | MemoryStorage, studies: Sequence[StoredStudy | ListedStudy]) -> list[StudyNotes]:
    """Returns the notes on each study, read with one query.

    Args:
        storage: of the studies.
        studies: as the storage gave them.
    """
    found = storage.notes_named(KEY, studies)
    return [_read(found.get(study.id)) for study in studies]


def change_study(
    storage: SqlStorage | MemoryStorage, study: StoredStudy, changes: Mapping[str, Any], *, name: str, new: str
) -> StudyNotes:
    """Updates the notes on a study and its name in one transaction, and returns the notes.

    Args:
        storage: of the study.
        study: as the storage knows it.
        changes: entries of `StudyNotes`. The others stay as they are.
        name: that the study must still have in the storage.
        new: name that it gets, which may be the same.

    Raises:
        InvalidInput: the study is called otherwise, or another one has the new name.
    """
    with storage.writing(study) as writer:
        notes = msgspec.structs.replace(_read(writer.read_notes([KEY]).get(KEY)), **changes)
        writer.rename(name, new)
        writer.write_notes(as_note(notes))
        return notes


def notes_on_trials(storage: SqlStorage | MemoryStorage, study: StoredStudy, numbers: Iterable[int]) -> dict[int, str]:
    """Returns the notes on these trials, by number."""
    wanted = [_of_trial(number) for number in numbers]
    found = storage.read_notes(study, wanted) if wanted else {}
    return {int(key.removeprefix(OF_TRIAL)): text for key, text in found.items()}


def as_note(notes: StudyNotes) -> dict[str, str]:
    """Returns the notes on a study as a note of the storage, in place of those before."""
    return {KEY: msgspec.json.encode(notes).decode()}


def as_trial_note(number: int, text: str) -> dict[str, str]:
    """Returns the note on a trial as a note of the storage. An empty text takes it back."""
    return {_of_trial(number): text}


def _of_trial(number: int) -> str:
    return f"{OF_TRIAL}{number}"


def _read(text: str | None) -> StudyNotes:
    if text is None:
        return NONE
    try:
        return msgspec.json.decode(text, type=StudyNotes)
    except msgspec.MsgspecError:  # a newer version wrote more, or somebody edited the table
        return NONE
