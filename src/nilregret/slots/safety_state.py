"""Run-time state of `Safe`: points played, constraint values told there, and the part of delta not yet spent.

| symbol | name | meaning | shape |
|---|---|---|---|
| z_j | `_deviation` | distance of a constraint value from its prediction, in standard deviations | scalar |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from .._utils.checks import Array
from .._utils.copying import Copyable
from .._utils.numerals import numeral
from ..storage.record import Trial
from .constraint_state import DualState, Expected
from .envelope import Envelope
from .feasibility import LEAST_STD, Mask, risk

CONTRADICTS = 4.0  # standard deviations: 1 of 16,000 values lies further off if the prior is right
REPEATED = 6.0  # standard deviations at a point with an earlier value: 1 of 500 million values lies further off
PATIENCE = 16  # values at the points of `start`, after which a step away from them is overdue


@final
class SafetyState(Copyable, DualState):
    """Points played under each context, constraint values told there, and the part of delta not yet spent.

    Args:
        start: points `(k, d)` that are safe for sure.
        delta: probability that a run may violate a constraint.
        bounded: whether certificates come from bounds instead of posterior probabilities.
        learned: whether the scale of a constraint is learned.
    """

    watches = True
    OWNED = ("_certified", "_sums", "_unsafe")
    OWNED_EACH = ("_values",)

    def __init__(self, start: Array, delta: float, *, bounded: bool, learned: bool) -> None:
        self._start, self._delta, self._bounded, self._learned = start, delta, bounded, learned
        self._certified: dict[tuple[bytes, bytes], tuple[int, Array, float]] = {}  # first trial, point, its risk
        self._values: dict[tuple[bytes, bytes], dict[int, Array]] = {}  # constraint values by trial
        self._sums: dict[tuple[bytes, bytes], Array] = {}  # sums of these values
        self._unsafe: dict[tuple[bytes, bytes], Array] = {}  # points where one of these sums is above 0
        self._first = 0  # first trial that counts
        self._contradiction: tuple[int, str] | None = None  # trial whose value contradicts the prior, and a sentence
        self._unsafe_trial: int | None = None  # the last trial at a point that is unsafe by its own values

    @property
    def remaining_delta(self) -> float:
        """Part of delta that is not yet spent."""
        return max(self._delta - sum(risk for _, _, risk in self._certified.values()), 0.0)

    @property
    def closed(self) -> bool:
        """True if no new point is certified.

        The reason is a value that contradicts the prior, or a scale to be learned without any value yet.
        """
        return self._contradiction is not None or (self._learned and not self._values)

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings by kind: a contradicted prior, a scale that is never learned, an unsafe `start`."""
        said = {} if self._contradiction is None else {"contradiction": self._contradiction[1]}
        if self._is_stuck():
            said["stuck"] = (
                f"{PATIENCE} or more constraint values have been told at points of `start`, and with a `scale` that is "
                "learned no step away from them has been certified that would pay. Usually the next points are too far "
                "away for what values at `start` say of them. Give a `scale`, more points of `start`, or finer arms."
            )
        if self._unsafe_trial is not None:
            said["unsafe start"] = (
                f"All points of `start` are unsafe by the constraint values told there (above 0 on average), and no "
                f"other point is certified: trial {self._unsafe_trial} is at the one whose values are lowest. Usually "
                "the constraint values do not lie at 0 where they are just met, or have the other sign. Look at them, "
                "and give a `start` that is safe."
            )
        return said

    def _is_stuck(self) -> bool:
        """Returns True if many values came from `start` alone, so that the scale is never learned."""
        if len(self._values) > len(self._start) or not self._learned:
            return False  # Several contexts take longer.
        if sum(map(len, self._values.values())) < PATIENCE:
            return False
        return bool(among(np.array([np.frombuffer(point) for _, point in self._values]), self._start).all())

    def average_at(self, context: Array | None, point: Array) -> Array | None:
        """Returns the average of the constraint values at a point, `(m,)`, or None before the first."""
        key = (_key(context), point.tobytes())
        return np.asarray(self._sums[key] / len(self._values[key])) if key in self._values else None

    def unsafe_points(self, context: Array | None) -> list[Array]:
        """Returns the points at which the values of some g_j are above 0 on average."""
        key = _key(context)
        return [point for (under, _), point in self._unsafe.items() if under == key]

    def certified_points(self, context: Array | None) -> list[Array]:
        """Returns the points played under a context that need no further certificate.

        Under bounds there are none.
        """
        if self._bounded:
            return []
        key = _key(context)
        return [point for (under, _), (_, point, _) in self._certified.items() if under == key]

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """Spends the risk of a point when the point is asked for the first time."""
        key = (_key(trial.context), trial.point.tobytes())
        if key in self._unsafe:
            self._unsafe_trial = trial.number
        if key in self._certified or self._bounded:
            return
        share = 0.0 if (self._start == trial.point).all(axis=1).any() else float(risk(limits())[0])
        self._certified[key] = (trial.number, trial.point, share)

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """Records the constraint values of a trial, and the first value that contradicts its prediction."""
        if trial.number < self._first or trial.constraints is None:
            return
        key = (_key(trial.context), trial.point.tobytes())
        repeated = key in self._values
        for j, each in enumerate(expected() if self._contradiction is None else []):
            far = _deviation(each, bounded=self._bounded)
            if far > (REPEATED if repeated else CONTRADICTS):
                self._contradiction = trial.number, _contradiction(trial, j, each, far, repeated=repeated)
                break
        self._values.setdefault(key, {})[trial.number] = trial.constraints
        self._sums[key] = self._sums.get(key, 0.0) + trial.constraints
        if (self._sums[key] > 0.0).any():
            self._unsafe[key] = trial.point
        else:
            self._unsafe.pop(key, None)

    def forget_before(self, first: int) -> None:
        """Drops the points, values and risks of earlier trials."""
        self._first = first
        self._certified = {key: value for key, value in self._certified.items() if value[0] >= first}
        kept = {key: {n: values for n, values in told.items() if n >= first} for key, told in self._values.items()}
        self._values = {key: told for key, told in kept.items() if told}
        self._sums = {key: np.sum(list(told.values()), axis=0) for key, told in self._values.items()}
        self._unsafe = {key: np.frombuffer(key[1]) for key, total in self._sums.items() if (total > 0.0).any()}
        if self._contradiction is not None and self._contradiction[0] < first:
            self._contradiction = None


def among(points: Array, known: Iterable[ArrayLike]) -> Mask:
    """Returns a mask `(n,)` of the points that equal one of the known points."""
    found = np.zeros(len(points), dtype=bool)
    for point in known:
        found |= (points == point).all(axis=1)
    return found


def _deviation(each: Expected, *, bounded: bool) -> float:
    """Returns how many standard deviations a value lies from its prediction.

    Under bounds this is the distance beyond the bounds, in standard deviations of the noise alone.
    """
    seen, y = each.seen, each.value
    if bounded:
        return max(y - float(seen.upper[0]), float(seen.lower[0]) - y, 0.0) / max(each.noise, LEAST_STD)
    return abs(y - float(seen.mean[0])) / max(math.hypot(float(seen.std[0]), each.noise), LEAST_STD)


def _contradiction(trial: Trial, j: int, each: Expected, far: float, *, repeated: bool) -> str:
    mean, std = float(each.seen.mean[0]), math.hypot(float(each.seen.std[0]), each.noise)
    if repeated:
        cause = "`noise` is too small: the point was told before. Or something changes from trial to trial"
    elif abs(each.value - each.center) > CONTRADICTS * math.hypot(each.prior, each.noise):
        cause = f"`scale` is too small for the units of the constraint: it is {numeral(each.prior, 3)}"
    else:
        cause = "the kernel's lengthscale is too long: the constraint changes faster than it expects"
    return (
        f"Constraint value {numeral(each.value)} of trial {trial.number} (g_{j + 1}) contradicts the prior: expected "
        f"was {numeral(mean)} +- {numeral(std, 3)}, {far:.1f} standard deviations away. So `Safe` certifies nothing "
        f"new, and plays what it has certified before. Usually {cause}. Make a policy with another one, or with "
        "`scale` 'learned', and `add` these trials to its study."
    )


def _key(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()
