"""The list of studies: found, sorted and shown by page, from stored summaries alone."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ....errors import InvalidInput, NoRegretError
from ....policy.policy import Policy
from ....storage import ListedStudy, Storage
from ....storage.base import Summary
from ....storage.trial import TrialState
from ....study.direction import goals_in
from ...work.study_notes import StudyNotes
from .forms import page_number
from .pictures import short
from .status import RECENT, WHY_PAUSED, state_of

PER_PAGE = 50
LATEST = 40  # trials whose rewards a sparkline shows
LONGEST_QUERY = 200
DAYS = {"": "any time", "1": "the last day", "7": "the last 7 days", "30": "the last 30 days", "365": "the last year"}
STATES = ("empty", "waiting", "active", "silent", "failing", "paused", "ended")
WIDTH, HEIGHT = 96, 24  # of a sparkline
BEST = {"maximize": "highest", "minimize": "lowest"}


# The objectives of each study by its id (see `objectives_of`), which never change.
_objectives: WeakKeyDictionary[Storage, dict[int, tuple[tuple[str, str], ...]]] = WeakKeyDictionary()
# Summary of each study with failures, and the states of its latest trials then.
_latest: WeakKeyDictionary[Storage, dict[int, tuple[Summary, list[TrialState]]]] = WeakKeyDictionary()


class Item(NamedTuple):
    """A study of the list.

    Attributes:
        name: as its reader knows it.
        stored: row of the storage.
        notes: of people.
        state: see `state_of`, or "paused".
        why: explanation of the state.
    """

    name: str
    stored: ListedStudy
    notes: StudyNotes
    state: str
    why: str


SORTS: dict[str, tuple[str, Callable[[Item], Any]]] = {
    "-created": ("newest first", lambda item: (-item.stored.created_at, -item.stored.id)),
    "created": ("oldest first", lambda item: (item.stored.created_at, item.stored.id)),
    "-last": ("last answer first", lambda item: -(item.stored.summary.last_at or 0.0)),
    "name": ("by name", lambda item: item.name.casefold()),
    "-trials": ("most trials first", lambda item: -item.stored.summary.trials),
    "-pending": ("most pending first", lambda item: -item.stored.summary.pending),
    "state": ("by state", lambda item: (STATES.index(item.state), -item.stored.created_at)),
}


def items_of(
    storage: Storage, studies: Sequence[tuple[str, ListedStudy]], notes: Sequence[StudyNotes], *, now: float
) -> list[Item]:
    """Returns the studies of the list with their states.

    The latest trials are read of studies with failures alone, and again only if the summary of a study has changed.

    Args:
        storage: of the studies.
        studies: rows of the storage, each with the name that its reader knows.
        notes: of people, on each study.
        now: present time in Unix seconds.
    """
    known = _latest.setdefault(storage, {})
    failed = [stored for _, stored in studies if stored.summary.failed]
    changed = {each.id: each.summary for each in failed if known.get(each.id, (None,))[0] != each.summary}
    for id_, outcomes in storage.latest(list(changed), RECENT).items():
        known[id_] = changed[id_], [each.state for each in outcomes]
    return [
        _item(name, stored, each, known[stored.id][1] if stored.summary.failed and stored.id in known else [], now=now)
        for (name, stored), each in zip(studies, notes, strict=True)
    ]


def _item(name: str, stored: ListedStudy, notes: StudyNotes, latest: Sequence[TrialState], *, now: float) -> Item:
    if notes.paused:
        return Item(name, stored, notes, "paused", WHY_PAUSED)
    known = stored.summary
    states: dict[TrialState, int] = {
        "observed": known.observed, "pending": known.pending, "failed": known.failed, "abandoned": known.abandoned,
        "stopped": known.stopped,
    }  # fmt: skip
    return Item(name, stored, notes, *state_of(latest, states, known.last_at, now))


class Wanted(NamedTuple):
    """A question of the reader: the studies to show, and their order.

    Attributes:
        text: parts of names, tags and notes.
        state: one of `STATES`, or "" for all.
        tag: or "" for all.
        age: days since the last event, or "" for any.
        sort: a key of `SORTS`.
        archived: whether archived studies are shown, and no others.
        page: from 1.
    """

    text: str = ""
    state: str = ""
    tag: str = ""
    age: str = ""
    sort: str = "-created"
    archived: bool = False
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wanted:
        """Returns what the query of an address asks for.

        Raises:
            InvalidInput: an entry is none of those that there are.
        """
        state, age, sort = query.get("state", ""), query.get("age", ""), query.get("sort", "") or "-created"
        for value, known, what in ((state, ("", *STATES), "state"), (age, DAYS, "age"), (sort, SORTS, "order")):
            if value not in known:
                raise InvalidInput(f"There is no {what} {value[:20]!r}: there are {', '.join(filter(None, known))}.")
        page = page_number(query.get("page", "") or "1")
        text, tag = query.get("q", "")[:LONGEST_QUERY], query.get("tag", "")[:LONGEST_QUERY]
        return cls(text.strip(), state, tag, age, sort, query.get("archived") == "1", page)

    def takes(self, item: Item, now: float) -> bool:
        """Returns whether a study is among what is wanted."""
        notes = item.notes
        text = " ".join((item.name, *notes.tags, notes.note)).casefold()
        recent = not self.age or (item.stored.summary.last_at or item.stored.created_at) >= now - 86_400 * int(self.age)
        return (
            notes.archived == self.archived and recent
            and self.state in ("", item.state)
            and (not self.tag or self.tag in notes.tags)
            and all(part in text for part in self.text.casefold().split())
        )  # fmt: skip


def listed(items: Sequence[Item], wanted: Wanted, *, now: float) -> tuple[list[Item], dict[str, Any]]:
    """Returns the studies of a page, and how many there are.

    Args:
        items: all studies of the reader.
        wanted: of the reader.
        now: present time in Unix seconds.
    """
    found = sorted((item for item in items if wanted.takes(item, now)), key=SORTS[wanted.sort][1])
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(wanted.page, pages)
    tags = sorted({tag for item in items for tag in item.notes.tags})
    archived = sum(item.notes.archived for item in items)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    return shown, {
        "count": len(found), "total": len(items), "page": page, "pages": pages, "tags": tags, "archived": archived
    }  # fmt: skip


def objectives_of(storage: Storage, item: Item) -> tuple[tuple[str, str], ...]:
    """Returns the name and the goal of each of several objectives of a study, or none with one. It is read once."""
    known = _objectives.setdefault(storage, {})
    if item.stored.id not in known:
        stored = storage.find(item.stored.name)
        known[item.stored.id] = () if stored is None else _objectives_in(stored.policy)
    return known[item.stored.id]


def _objectives_in(text: str) -> tuple[tuple[str, str], ...]:
    if '"Pareto"' not in text:
        return ()
    try:
        policy = Policy.from_json(text)
    except NoRegretError:  # It has a part that this process does not know. The page of the study says so.
        return ()
    goals = goals_in(policy, "maximize")
    return tuple(zip(policy.objective_names, goals, strict=True)) if len(goals) > 1 else ()


def row(
    item: Item, latest: Sequence[float | None], objectives: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:  # fmt: skip
    """Returns the data of a row.

    Args:
        item: the study.
        latest: rewards of the latest trials, oldest first, None where there is none.
        objectives: name and goal of each of several objectives, or none with one.
    """
    word = objectives[0][0] if objectives else "rewards"
    known, rewards = item.stored.summary, [reward for reward in latest if reward is not None]
    return {
        "name": item.name, "state": item.state, "why": item.why, "trials": known.trials, "pending": known.pending,
        "failed": known.failed, "last_at": known.last_at, "goal": item.stored.goal, "tags": item.notes.tags,
        "best": None if known.best is None else short(known.best), "created_at": item.stored.created_at,
        "spark": sparkline(rewards),
        "said": f"latest {word}, from {short(min(rewards))} to {short(max(rewards))}" if rewards else "",
    } | ({"objectives": [(name, BEST[goal]) for name, goal in objectives]} if objectives else {})  # fmt: skip


def sparkline(rewards: Sequence[float]) -> str:
    """Returns the points of a line through the rewards, for an SVG of `WIDTH` by `HEIGHT`."""
    if len(rewards) < 2:
        return ""
    low, high = min(rewards), max(rewards)
    span = high - low if math.isfinite(high - low) and high > low else 0.0
    step = (WIDTH - 4) / (len(rewards) - 1)
    heights = [(reward - low) / span if span else 0.5 for reward in rewards]
    return " ".join(f"{2 + i * step:.1f},{HEIGHT - 3 - y * (HEIGHT - 6):.1f}" for i, y in enumerate(heights))


def digest(rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
    """Returns a text that differs if the list does."""
    return hashlib.sha256(repr((rows, facts)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
