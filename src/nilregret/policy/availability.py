"""The points that may be played in one decision: some of the arms, or some points of a box or space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen, many, shown
from ..domains.domain import Arms, Domain, keeping_limits
from ..errors import InvalidInput

# Whole numbers (which arms), a truth value for each arm, points, or dicts of parameters.
Some = npt.ArrayLike | AbstractSet[int] | Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Available(NamedTuple):
    """The points that may be played now.

    Attributes:
        points: the points, `(n, d)`, n >= 1.
        arms: their arms, ascending, `(n,)`, or None on other domains.
    """

    points: Array
    arms: IndexArray | None

    @property
    def numbers(self) -> IndexArray:
        """The arms, or the places of points on other domains, `(n,)`."""
        return np.arange(len(self.points)) if self.arms is None else self.arms


def without(available: Available, gone: npt.NDArray[np.bool_]) -> Available:
    """Returns the available points without those marked in `gone`, `(n,)`."""
    arms = None if available.arms is None else available.arms[~gone]
    return Available(available.points[~gone], arms)


def places_left(
    places: Array, domain: Domain, offered: Available | None, failed: Callable[[Available], npt.NDArray[np.bool_]]
) -> Available | None:
    """Returns the places of a forced round that may be played and have not failed, or None if none is left.

    Args:
        places: points of the domain, `(n, d)`.
        domain: the domain of the policy.
        offered: what may be played this time, or None for everything.
        failed: returns which points have failed.
    """
    if not len(places) or (offered is not None and offered.arms is None):
        return None  # on a box, a place is hardly ever among the offered points
    arms = np.unique(domain.index(places)) if isinstance(domain, Arms) else None
    if arms is not None and offered is not None and offered.arms is not None:
        arms = np.intersect1d(arms, offered.arms)
    among = Available(places if arms is None else domain.points[arms], arms)  # type: ignore[union-attr]  # of arms
    left = without(among, failed(among)) if len(among.points) else among
    return left if len(left.points) else None


def available(domain: Domain, among: Some | None, exclude: Some | None) -> Available:
    """Returns the points that may be played.

    Args:
        domain: arms, or a box or space.
        among: arms or points that may be played, or None for everything.
        exclude: arms that may not be played, even if `among` names them.

    Raises:
        InvalidInput: if nothing is left to play.
    """
    if not isinstance(domain, Arms):
        return _points(domain, among, exclude)
    left = np.ones(len(domain), dtype=bool) if among is None else _named(domain, "among", among)
    if exclude is not None:
        left &= ~_named(domain, "exclude", exclude)
    if not left.any():
        given = " and ".join(
            f"`{name}`" for name, value in (("among", among), ("exclude", exclude)) if value is not None
        )
        rule = "rule" if among is not None and exclude is not None else "rules"
        raise InvalidInput(
            f"Nothing is left to play: {given} {rule} out all that there is ({many(len(domain), 'arm')}). "
            "Usually a filter upstream came back empty, or the two were mixed up. Ask again when an arm is available; "
            "nothing was recorded."
        )
    arms = np.flatnonzero(left)
    return Available(frozen(domain.points[arms]), arms)


def _points(domain: Domain, among: Some | None, exclude: Some | None) -> Available:
    if exclude is not None or among is None:
        raise InvalidInput(
            "`exclude` is for arms: a box or a space has infinitely many points, or too many to list. Pass `among`, "
            "those that may be played now.",
            advice="It is an array (n, d) or a list of dicts of parameters.",
            topic="among",
        )
    whole = isinstance(among, Mapping | np.ndarray) or hasattr(among, "to_numpy")  # a table iterates over columns
    listed = list(among) if isinstance(among, Collection) and not whole else among
    if isinstance(listed, list) and not listed:
        raise _none_given()
    points = domain.inside("among", listed)  # type: ignore[arg-type]  # whatever it is, `inside` says what is wrong
    if not len(points):
        raise _none_given()
    if domain.limits is not None and not len(points := keeping_limits(domain, points)):
        raise InvalidInput(
            f"Nothing is left to play: no point of `among` keeps the limits {shown(domain.limits.texts)} of the space. "
            "Usually it was made for another space. Nothing was recorded."
        )
    return Available(frozen(points.copy()), None)


def _none_given() -> InvalidInput:
    return InvalidInput(
        "Nothing is left to play: `among` has no points. Usually a filter upstream came back empty. Ask again when "
        "something is available; nothing was recorded."
    )


def _named(arms: Arms, name: str, some: Some) -> npt.NDArray[np.bool_]:
    """Returns which arms are meant, `(N,)`."""
    listed: Any = list(some) if isinstance(some, AbstractSet) else some
    of_parameters = isinstance(listed, Mapping) or (isinstance(listed, list | tuple) and _has_dicts(listed))
    meant = np.zeros(len(arms), dtype=bool)
    if not of_parameters:
        try:
            given = np.asarray(listed)
        except ValueError:
            raise InvalidInput(f"`{name}` mixes things of different lengths. {_HOW}") from None
        if given.size == 0:
            return meant
        if given.dtype == np.bool_:
            if given.shape != meant.shape:
                raise InvalidInput(
                    f"`{name}` has {many(given.size, 'truth value')} for {many(len(arms), 'arm')}. {_HOW}"
                )
            return given.copy()
        if given.dtype.kind in "iu" and given.ndim <= 1:
            numbers = np.atleast_1d(given)
            wrong = numbers[(numbers < 0) | (numbers >= len(arms))]
            if wrong.size:
                raise InvalidInput(f"`{name}` has arm {wrong[0]}, but these are arms 0 .. {len(arms) - 1}. {_HOW}")
            meant[numbers.astype(np.intp)] = True
            return meant
    meant[arms.coinciding(arms.index(arms.inside(name, listed)))] = True
    return meant


_HOW = (
    "Give arms by number (whole numbers), a truth value for each arm, their points `(n, d)`, or dicts of parameters "
    "where arms have them."
)


def _has_dicts(listed: Sequence[Any]) -> bool:
    return bool(listed) and all(isinstance(each, Mapping) for each in listed)
