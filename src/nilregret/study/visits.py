"""Visits: the caller's ids of decisions and units, and units that keep the arm of an earlier decision.

| key of a note | value |
|---|---|
| `unit-key` | a random secret of the study, hexadecimal |
| `unit:` and a hash of the name of a unit | the first trial of the unit, and the one whose arm it keeps |

The hash is keyed with the secret (BLAKE2b, RFC 7693). The record holds no name of a unit, but the number of its first
trial. If the note is removed, nothing links the trials to the name any more, and they still belong together.

Rows that belong to units: visitors or machines that come back, so that their rewards are alike.

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `units` | a number for each row, the same for rows of one unit | (n,) |
| J | | number of units | |
| n_j | | rows of unit j | (J,) |
| rho | | correlation of two rewards of one unit at one arm | |

All intervals that are drawn from decisions get their sums and counts here. Without units `units` is None.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast, final

import numpy as np

from .._utils.checks import LONGEST_NAME, Array, IndexArray, number, shown, storable
from ..domains.domain import Arms, Domain, Space
from ..errors import InvalidInput, StorageError, TrialError
from ..policy.availability import Available
from ..serialize import plain_loads
from ..storage.trial import Trial
from ..storage.visit import SCALARS, Facts, Visit
from .inputs import Inputs


def units_of(values: Iterable[object]) -> IndexArray | None:
    """Returns a number of the unit of each row `(n,)`, or None if no two rows are of one unit.

    Args:
        values: name of the unit of each row. A row with None, NaN or an empty text is a unit by itself.
    """
    known: dict[object, int] = {}
    found: list[int] = []
    for row, value in enumerate(values):
        key = value if isinstance(value, Hashable) else repr(value)
        alone = key is None or key == "" or key != key
        found.append(known.setdefault((row,) if alone else (key, None), len(known)))
    return np.array(found, dtype=np.intp) if len(known) < len(found) else None


def sums(values: Array, units: IndexArray) -> Array:
    """Returns the sum of the values of each unit, `(J,)`. Numbers of units are at least 0, and some may be missing."""
    return np.asarray(np.bincount(units, values), dtype=np.float64)[np.bincount(units) > 0]


def error_of_mean(values: Array, units: IndexArray | None) -> float:
    """Returns the standard error of a mean of values `(n,)`, robust to clusters (Liang & Zeger, 1986)."""
    if units is None:
        return float(values.std() / np.sqrt(len(values)))
    return math.sqrt(sum_of_squares(values - values.mean(), units)) / len(values)


def sum_of_squares(values: Array, units: IndexArray | None) -> float:
    """Returns the sum of squares of values `(n,)`, or of the sums of each unit."""
    each = values if units is None else sums(values, units)
    return float((each**2).sum())


def visits(units: IndexArray | None) -> float:
    """Returns sum n_j^2 / n, the mean over rows of the number of rows of their unit. It is 1 without units.

    The variance of a mean is at most this many times that of independent rows (Kish, 1965, design effect).
    """
    if units is None or not len(units):
        return 1.0
    return sum_of_squares(np.ones(len(units)), units) / len(units)


def earlier(units: IndexArray, plays: IndexArray) -> Array:
    """Returns the number of plays of the same unit before each row, `(n,)`.

    Args:
        units: `(n,)`.
        plays: of each row, `(n,)`.
    """
    order = np.argsort(units, kind="stable")
    before = np.cumsum(plays[order]) - plays[order]
    starts = np.flatnonzero(np.diff(units[order], prepend=units[order][0] - 1))
    found = np.empty(len(units))
    found[order] = before - np.repeat(before[starts], np.diff(np.append(starts, len(units))))
    return found


def correlation(rewards: Array, arms: IndexArray, units: IndexArray) -> float:
    """Returns the estimated correlation of two rewards of one unit at one arm, within [0, 1].

    It is the estimate of an analysis of variance with units within arms (Searle, Casella & McCulloch, 1992,
    chapter 3, and Donner & Koval, 1980). If the data cannot tell, it is 1: then a unit says as much as one row.

    Args:
        rewards: `(n,)`.
        arms: played in each row, `(n,)`.
        units: `(n,)`.
    """
    arm = np.unique(arms, return_inverse=True)[1]
    _, first, cell = np.unique(np.column_stack([arm, units]), axis=0, return_index=True, return_inverse=True)
    cell, of_cell = cell.reshape(-1), arm[first]
    n, cells, groups = len(rewards), len(first), int(arm.max()) + 1
    if n == cells:
        return 0.0  # No arm was played twice for a unit.
    if cells == groups:
        return 1.0
    sizes, totals = np.bincount(cell), np.bincount(arm)
    means, grand = np.bincount(cell, rewards) / sizes, np.bincount(arm, rewards) / totals
    between = float(sizes @ (means - grand[of_cell]) ** 2) / (cells - groups)
    within = float(((rewards - means[cell]) ** 2).sum()) / (n - cells)
    size = (n - float((sizes**2 / totals[of_cell]).sum())) / (cells - groups)
    shared = max(0.0, (between - within) / size)
    return shared / (shared + within) if shared > 0.0 else 0.0


def trial_units(trials: Sequence[Trial]) -> IndexArray | None:
    """Returns the number of the first trial of the unit of each trial, `(n,)`, or None if no unit visits twice."""
    if all(trial.visit is None for trial in trials):
        return None
    found = np.array([trial.number if trial.unit is None else trial.unit for trial in trials], dtype=np.intp)
    return found if len(np.unique(found)) < len(found) else None


class Shared(NamedTuple):
    """Dependence of the answered trials of units.

    Attributes:
        units: of the trials, `(n,)`, or None if no unit visits twice.
        correlation: of two rewards of one unit at one arm.
        doubt: factor of the deviations of a mean, which the posterior computes as if all rewards were independent.
    """

    units: IndexArray | None
    correlation: float
    doubt: float

    @property
    def said(self) -> tuple[int, float] | None:
        """Number of units and the correlation, or None."""
        return None if self.units is None else (len(np.unique(self.units)), self.correlation)

    def chance(self, noise: float, plays: IndexArray, recent: int = 0) -> Array:
        """Returns the variance of the sum of the noise up to each trial, `(n,)`, of the latest trials if `recent`.

        A play adds its own variance and twice the covariances with earlier plays of its unit.
        """
        plays = plays[-recent:]
        if self.units is None:
            return np.asarray(noise**2 * np.cumsum(plays))
        pairs = plays * earlier(self.units[-recent:], plays)
        return np.asarray(noise**2 * np.cumsum(plays + 2.0 * self.correlation * pairs))


def shared_of(answered: Sequence[Trial], rewards: Array) -> Shared:
    """Returns what trials of one unit have in common, by rewards of one play `(n,)`."""
    units = trial_units(answered)
    if units is None:
        return Shared(None, 0.0, 1.0)
    known: dict[bytes, int] = {}
    arms = np.array([known.setdefault(trial.point.tobytes(), len(known)) for trial in answered], dtype=np.intp)
    found = correlation(rewards, arms, units)
    return Shared(units, found, math.sqrt(1.0 + found * (visits(units) - 1.0)))


STICKY = "sticky"  # The fact that units keep their arm: True, or for how many seconds.
KEY, UNIT = "unit-key", "unit:"
MOST_FACTS = 20  # of one decision
LONGEST_STICKY = 1e10  # seconds


class Asked(NamedTuple):
    """Checked arguments of a decision besides its context.

    Attributes:
        event: the caller's own id of the decision, or None.
        unit: the name of the unit that visits, or None.
        facts: name and value of each fact.
        given: name and value of the entries of the context that its coordinates do not say.
        slate: number of the first trial of the slate, or None.
        place: place within the slate, or None.
    """

    event: str | None = None
    unit: str | None = None
    facts: Facts = ()
    given: Facts = ()
    slate: int | None = None
    place: int | None = None


@final
class Seen:
    """A context as a caller gave it. It is read anew if the space of contexts has changed meanwhile.

    Args:
        context: as given.
        inputs: checks of the study.

    Raises:
        InvalidInput: it is no context of the study.
    """

    def __init__(self, context: Any, inputs: Inputs) -> None:
        self._context = context
        self._read(inputs)

    def _read(self, inputs: Inputs) -> None:
        self._row, self._given, self._inputs = inputs.context(self._context), inputs.given(self._context), inputs

    def by(self, inputs: Inputs, asked: Any) -> tuple[Array | None, Any]:
        """Returns the coordinates `(c,)`, or None without contexts, and `Asked` or `Visit` with what is unknown."""
        if inputs is not self._inputs:
            self._read(inputs)
        return self._row, (asked or Asked())._replace(given=self._given) if self._given else asked


class Link(NamedTuple):
    """The trials of a unit.

    Attributes:
        unit: number of its first trial.
        chosen: number of the trial whose arm the unit keeps.
    """

    unit: int
    chosen: int


def asked_of(event: object = None, unit: object = None, facts: object = None, given: Facts = ()) -> Asked | None:
    """Returns what a caller says of a decision, checked, or None if it is nothing.

    Raises:
        InvalidInput: an entry cannot be used.
    """
    if event is None and unit is None and not facts and not given:
        return None
    return Asked(_name("event", event), _name("unit", unit), _facts(facts), given)


def _name(called: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value or not storable(value) or len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"`{called}` is {shown(value)}: it must be a text of 1 to {LONGEST_NAME} characters, such as "
            f"{'order-1234' if called == 'event' else 'user-17'!r}. Usually a number was passed; write it as a text."
        )
    return value


def _facts(facts: object) -> Facts:
    if facts is None:
        return ()
    if not isinstance(facts, Mapping) or len(facts) > MOST_FACTS:
        raise InvalidInput(f"`facts` is {shown(facts)}: it must be a dict of at most {MOST_FACTS} facts.")
    for name, value in facts.items():
        _name("facts", name)
        plain = isinstance(value, SCALARS) and not (isinstance(value, str) and not _is_short(value))
        if not plain or (isinstance(value, float) and value - value != 0.0):
            raise InvalidInput(
                f"`facts` has {shown(name)}: {shown(value)}. A fact is a finite number, a truth value, null or a text "
                f"of at most {LONGEST_NAME} characters."
            )
    return tuple(facts.items())


def _is_short(text: str) -> bool:
    return len(text) <= LONGEST_NAME and "\0" not in text and storable(text)


def sticky_of(value: object) -> bool | float:
    """Returns how long units keep their arm as a fact of a study: True for ever, or seconds. False if not at all.

    Raises:
        InvalidInput: the value cannot be used.
    """
    if isinstance(value, bool):
        return value
    seconds: Any = value.total_seconds() if isinstance(value, timedelta) else value
    why = "It is for how long a unit keeps its arm: seconds, a `timedelta`, or True for as long as the arm is played."
    return number(STICKY, seconds, low=0.0, open_low=True, high=LONGEST_STICKY, why=why)


def sticky_seconds(about: Mapping[str, Any]) -> float | None:
    """Returns for how many seconds units keep their arm by the facts of a study, or None if they do not."""
    value = about.get(STICKY)
    if value is True:
        return float("inf")
    return value if type(value) is float and value > 0.0 else None


class Units:
    """The units of a study, by the notes that link them to trials.

    Args:
        read: returns the note under a key, or None.
        write: writes the note under a key, of which "" is none.
    """

    def __init__(self, read: Callable[[str], str | None], write: Callable[[str, str], None]) -> None:
        self._read, self._write = read, write

    def link(self, name: str) -> Link | None:
        """Returns what is known of a unit, or None if it is new."""
        secret = self._read(KEY)
        text = None if not secret else self._read(_key_of(secret, name))
        if not text:
            return None
        try:
            return Link(**plain_loads(text))
        except (InvalidInput, TypeError) as error:
            raise StorageError(f"The note of a unit has been damaged ({shown(text)}). Restore a copy.") from error

    def save(self, name: str, link: Link) -> None:
        """Notes what is known of a unit."""
        secret = self._read(KEY)
        if not secret:
            self._write(KEY, secret := secrets.token_hex(32))
        self._write(_key_of(secret, name), json.dumps(link._asdict()))

    def note(self, name: str, number: int, *, decided: bool) -> None:
        """Notes that a trial is of a unit, as its first one or as that whose arm the unit keeps, if it was decided."""
        link = self.link(name)
        if link is None or decided:
            self.save(name, Link(number if link is None else link.unit, number))

    def visit(self, number: int, asked: Asked, chosen: Trial | None, *, sticky: bool) -> Visit:
        """Returns what is recorded of a visit, and notes whose it is. A slate is noted once it is complete.

        Args:
            number: of the new trial.
            asked: what the caller said.
            chosen: the trial whose arm it keeps, or None.
            sticky: whether units keep their arm.
        """
        unit = None
        if asked.unit is not None:
            link = self.link(asked.unit)
            unit = link.unit if link is not None else number if asked.slate is None else asked.slate
            if asked.slate is None:
                self.note(asked.unit, number, decided=chosen is None and sticky)
        kept = None if chosen is None else chosen.number
        return Visit(asked.event, unit, kept, asked.slate, asked.place, asked.facts, asked.given)

    def forget(self, name: str) -> bool:
        """Removes the link from a unit to its trials. Returns False if there was none."""
        known = self.link(name) is not None
        if known:
            self._write(_key_of(self._read(KEY) or "", name), "")
        return known


def _key_of(secret: str, name: str) -> str:
    said = hashlib.blake2b(name.encode(), digest_size=16, key=bytes.fromhex(secret))
    return UNIT + said.hexdigest()


def kept_in(trials: Sequence[Trial], link: Link, place: int) -> Trial | None:
    """Returns the trial that decided which arm a unit has in a place, 0 where it is of no slate, or None.

    Args:
        trials: all of the study.
        link: of the unit.
        place: of a slate.
    """
    at = link.chosen + place
    if place and (at >= len(trials) or trials[at].slate != link.chosen):
        return None
    kept = trials[at].kept
    return trials[at if kept is None else kept]


def still_kept(chosen: Trial, domain: Domain, offered: Available | None, *, seconds: float, now: float) -> bool:
    """Returns whether a unit keeps the arm or point of an earlier trial.

    Args:
        chosen: the trial, at its place in the domain.
        domain: of now.
        offered: what may be played, or None for everything.
        seconds: for how long it is kept.
        now: Unix seconds.
    """
    if now - chosen.asked_at > seconds:
        return False
    if isinstance(domain, Arms):
        return offered is None or offered.arms is None or chosen.arm in offered.arms
    if offered is not None:
        return bool((offered.points == chosen.point).all(axis=1).any())
    try:
        domain.inside("point", chosen.point[None])
    except InvalidInput:  # The space has become narrower.
        return False
    return True


def same_question(known: Trial, context: Array | None, asked: Asked, inputs: Inputs) -> Trial:
    """Returns the trial of an event that is asked for again.

    Args:
        known: the trial.
        context: `(c,)`, or None.
        asked: what the caller says now.
        inputs: checks of the study.

    Raises:
        TrialError: the trial was asked for under another context.
    """
    domain = inputs.policy.context
    was, seen = dict(known.visit.given if known.visit is not None else ()), cast(Array, known.context)
    other = context is not None and not np.array_equal(seen, context)
    if other and isinstance(domain, Space):
        other = not np.array_equal(domain.as_decoded(seen), cast(Array, context))
    if other or any(was.get(name, value) != value for name, value in asked.given):
        raise TrialError(
            f"The event {shown(asked.event)} is trial {known.number} already, under another context; nothing was "
            "recorded. Usually two decisions got the same id.",
            advice="Give each decision an id of its own, and the same one to repeat the call.",
            topic="event",
        )
    return known
