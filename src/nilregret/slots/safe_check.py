"""Checks of the model that `Safe` certifies by, against the constraint values.

| symbol | name | meaning | shape |
|---|---|---|---|
| p_0 | | density of all values of g_j under the stated kernel and noise | scalar |
| p_i | `ALTERNATIVES` | the same with a shorter lengthscale, a larger scale or more noise | (8,) |
| E_n | | sum_i p_i(y_1, ..., y_n) / (8 p_0(y_1, ..., y_n)) | scalar |

If kernel and noise are as stated, E_n is a nonnegative martingale of mean 1, however the points are chosen. So it
reaches 1 / alpha at any time with probability at most alpha (Ville's inequality). It grows only if the constraint is
less predictable than stated. Values that vary less than stated certify too little, and never too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable
from .._utils.numerals import numeral, with_error
from ..kernels import Kernel
from ..storage.record import Trial
from ..theory.fronts import LEAST_STD
from .constraints import LEAST_RIDGE
from .envelope import Expected
from .refit import with_factor

FALSE_ALARM = 0.05  # alpha: probability of a contradiction if the model is as stated
MOST = 128  # places with values, beyond which a value is compared with its prediction alone, for speed
CONTRADICTS = 4.0  # standard deviations: 1 of 16,000 values lies further off if the prior is right
REPEATED = 6.0  # standard deviations at a point with an earlier value: 1 of 500 million values lies further off


class Factors(NamedTuple):
    """Multiples of the stated lengthscale, scale and noise."""

    lengthscale: float = 1.0
    scale: float = 1.0
    noise: float = 1.0


ALTERNATIVES = (
    Factors(lengthscale=2 / 3), Factors(lengthscale=0.5), Factors(lengthscale=0.25), Factors(0.5, 2.0),
    Factors(scale=2.0), Factors(scale=4.0), Factors(noise=2.0), Factors(noise=4.0),
)  # fmt: skip


class Model(NamedTuple):
    """The stated model of one constraint: a kernel, the std of the noise, and the prior mean."""

    kernel: Kernel
    noise: float
    mean: float


class _Place(NamedTuple):
    """The values at one (context, point) row.

    Attributes:
        row: `(c + d,)`.
        n: number of values.
        mean: their means, `(m,)`.
        spread: sums of their squared distances from the means, `(m,)`.
    """

    row: Array
    n: int
    mean: Array
    spread: Array


@final
class LikelihoodCheck(Copyable):
    """A test of stated models by all constraint values that count, valid at any time (see the module).

    Args:
        models: the model of each constraint.
    """

    OWNED = ("_answers", "_places")

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)
        self._answers = list[tuple[int, Array, Array]]()  # trial, row and values
        self._places = dict[bytes, _Place]()

    @property
    def ends(self) -> bool:
        """True if there are too many places for a further comparison."""
        return len(self._places) > MOST

    def record(self, trial: Trial, values: Array) -> None:
        """Records the constraint values of a trial, `(m,)`."""
        row = trial.point if trial.context is None else np.concatenate([trial.context, trial.point])
        self._answers.append((trial.number, row, values))
        self._place(row, values)

    def _place(self, row: Array, values: Array) -> None:
        old = self._places.get(row.tobytes(), _Place(row, 0, values, np.zeros(len(values))))
        mean = old.mean + (values - old.mean) / (old.n + 1)
        spread = old.spread + (values - old.mean) * (values - mean)
        self._places[row.tobytes()] = _Place(row, old.n + 1, mean, spread)

    def contradiction(self) -> str | None:
        """Returns a sentence if the recorded values contradict a model, else None."""
        number, row, values = self._answers[-1]
        for j, model in enumerate(self._models):
            logs = self.log_ratios(j)
            evidence = float(np.logaddexp.reduce(logs)) - math.log(len(logs))
            if evidence >= math.log(len(self._models) / FALSE_ALARM):
                times = float(f"{math.exp(min(evidence, math.log(1e6))):.2g}")
                return _sentence(
                    number, j, float(values[j]),
                    f"all values so far are {numeral(times)}{' or more' * (times == 1e6)} times likelier under other "
                    "settings than under those stated",
                    _cause(ALTERNATIVES[int(logs.argmax())], model, row[None]),
                )  # fmt: skip
        return None

    def log_ratios(self, j: int) -> Array:
        """Returns log p_i / p_0 of all values of constraint j, counted from 0, `(8,)`.

        The density of n values at a place is that of their mean, whose noise is sigma / sqrt(n), times that of their
        distances. The latter depends on sigma alone.
        """
        model, places, models = self._models[j], list(self._places.values()), (Factors(), *ALTERNATIVES)
        rows, counts = np.array([each.row for each in places]), np.array([each.n for each in places])
        means, spread = np.array([each.mean[j] for each in places]) - model.mean, sum(each.spread[j] for each in places)
        n, lengths = len(rows), {each.lengthscale for each in models}
        grams = {a: with_factor(model.kernel, a, rows.shape[1])(rows, rows) for a in lengths}
        ridge = max(model.noise**2, LEAST_RIDGE * float(grams[1.0].diagonal().mean()), LEAST_RIDGE**2)
        # The last row of the factor of [[S, y], [y^T, c]] is L^{-1} y, whatever c is.
        blocks = np.empty((len(models), n + 1, n + 1))
        for block, (length, scale, noise) in zip(blocks, models, strict=True):
            block[:n, :n] = scale**2 * grams[length]
            block[np.arange(n), np.arange(n)] += noise**2 * ridge / counts
            block[n, :n] = block[:n, n] = means
        blocks[:, n, n] = 2.0 * float(means**2 @ counts) / ridge + 1.0
        roots, noises = np.linalg.cholesky(blocks), np.array([each.noise for each in models])
        log_p = -np.log(np.diagonal(roots, axis1=1, axis2=2)[:, :n]).sum(axis=1) - (counts.sum() - n) * np.log(noises)
        log_p -= 0.5 * (np.square(roots[:, n, :n]).sum(axis=1) + spread / (noises**2 * ridge))
        return np.asarray(log_p[1:] - log_p[0])

    def forget_before(self, first: int) -> None:
        """Drops earlier trials."""
        self._answers, self._places = [each for each in self._answers if each[0] >= first], {}
        for _, row, values in self._answers:
            self._place(row, values)


def _cause(found: Factors, model: Model, row: Array) -> str:
    said = []
    if found.lengthscale < 1.0:
        said.append(
            "the kernel's lengthscale is too long: the constraint changes faster than it expects, about as with "
            f"{numeral(found.lengthscale, 2)} times the lengthscale"
        )
    if found.scale > 1.0:
        prior = math.sqrt(float(model.kernel.diagonal(row)[0]))
        said.append(
            f"`scale` is too small for the units of the constraint: it is {numeral(prior, 3)}, and "
            f"{found.scale:.0f} times that fits better"
        )
    if found.noise > 1.0:
        said.append(
            f"`noise` is too small: {found.noise:.0f} times that fits better. Or something changes from trial to trial"
        )
    return ", and ".join(said)


def deviation(trial: Trial, predictions: Sequence[Expected], *, bounded: bool, repeated: bool) -> str | None:
    """Returns a sentence if a constraint value lies too far from its prediction, else None.

    Args:
        trial: the trial with its values.
        predictions: each value with its prediction.
        bounded: whether the distance counts from the bounds, in standard deviations of the noise alone.
        repeated: whether a value was told at the same point before.
    """
    for j, each in enumerate(predictions):
        mean, std = float(each.seen.mean[0]), math.hypot(float(each.seen.std[0]), each.noise)
        far = abs(each.value - mean) / max(std, LEAST_STD)
        if bounded:
            beyond = max(each.value - float(each.seen.upper[0]), float(each.seen.lower[0]) - each.value, 0.0)
            far = beyond / max(each.noise, LEAST_STD)
        if far <= (REPEATED if repeated else CONTRADICTS):
            continue
        if repeated:
            cause = "`noise` is too small: the point was told before. Or something changes from trial to trial"
        elif abs(each.value - each.center) > CONTRADICTS * math.hypot(each.prior, each.noise):
            cause = f"`scale` is too small for the units of the constraint: it is {numeral(each.prior, 3)}"
        else:
            cause = "the kernel's lengthscale is too long: the constraint changes faster than it expects"
        said = f"expected was {with_error(mean, std)}, {far:.1f} standard deviations away"
        return _sentence(trial.number, j, each.value, said, cause)
    return None


def _sentence(number: int, j: int, value: float, why: str, cause: str) -> str:
    return (
        f"Constraint value {numeral(value)} of trial {number} (g_{j + 1}) contradicts the prior: {why}. So `Safe` "
        f"certifies nothing new, and plays what it has certified before. Usually {cause}. Make a policy with another "
        "one, or with `scale` 'learned', and `add` these trials to its study."
    )
