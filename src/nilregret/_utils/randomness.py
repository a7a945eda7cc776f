"""Random numbers by definition, which no version of a library and no machine changes (docs/recording.md).

| symbol | name | meaning |
|---|---|---|
| w | `bits` | words of 64 bits: SHAKE-128 of the ASCII text "purpose ... call", read as little-endian numbers |
| u | `random` | floor(w / 2^11) / 2^53, so 0 is possible and 1 is not |
| z | `standard_normal` | the standard normal quantile of (floor(w / 2^12) + 1/2) / 2^52, which is never 0 or 1 |
| | `integers` | floor(u high) |
| | `permutation` | the order of n words, equal ones by index |

A call takes the words that it needs, in the order of its result. The next call of the stream has the next number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from hashlib import shake_128
from operator import index
from typing import Any, Literal, TypeAlias, cast, final

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .checks import LARGEST_SEED, Array, IndexArray, integer

# Spawn keys of the noise of a simulated environment, which no trial of a policy shares.
_SIMULATION = {"rewards": (1,), "delays": (1, 1), "constraints": (1, 2), "constraint delays": (1, 3)}
_WORLD = {"arms": 2, "function": 3, "changes": 4}  # spawn keys of the parts of a simulated problem
_DIGITS = 30  # binary digits of the Sobol sequence that are not random

# Columns of the Sobol sequence after the first (Joe & Kuo 2008, table new-joe-kuo-6).
#
# Each has its primitive polynomial, whose coefficients are the binary digits of a number, and its first numbers m.
_JOE_KUO = """
3:1 7:1,3 11:1,3,1 13:1,1,1 19:1,1,3,3 25:1,3,5,13 37:1,1,5,5,17 41:1,1,5,5,5 47:1,1,7,11,19 55:1,1,5,1,1
59:1,1,1,3,11 61:1,3,5,5,31 67:1,3,3,9,7,49 91:1,1,1,15,21,21 97:1,3,1,13,27,49 103:1,1,1,15,7,5 109:1,3,1,15,13,25
115:1,1,5,5,19,61 131:1,3,7,11,23,15,103 137:1,3,7,13,13,15,69 143:1,1,3,13,7,35,63 145:1,3,5,9,1,25,53
157:1,3,1,13,9,35,107 167:1,3,1,5,27,61,31 171:1,1,5,11,19,41,61 185:1,3,5,3,3,13,69 191:1,1,7,13,1,19,1
193:1,3,7,5,13,19,59 203:1,1,3,9,25,29,41 211:1,3,5,13,23,1,55 213:1,3,7,3,13,59,17
"""

Words = npt.NDArray[np.uint64]
Size: TypeAlias = int | tuple[int, ...] | None


@final
class Draws:
    """A stream of random numbers, given by its text. Streams of different texts are independent.

    Methods with names of `numpy.random.Generator` return numbers of the same law, and not the same numbers.

    >>> Draws("trial 7 3").random()
    0.766122035258536

    Args:
        text: a purpose, then whole numbers of any size, such as a seed and the number of a trial.
    """

    def __init__(self, text: str) -> None:
        self._text, self._calls = text, 0

    def digest(self, count: int) -> bytes:
        """Returns the bytes of w of the next call, eight for each of `count`."""
        text, self._calls = f"{self._text} {self._calls}".encode(), self._calls + 1
        return shake_128(text).digest(8 * count)

    def bits(self, count: int) -> Words:
        """Returns w of the next call, `(count,)`."""
        return np.frombuffer(self.digest(count), dtype="<u8")

    def random(self, size: Size = None) -> Any:
        """Returns u, uniform on [0, 1): a float, or an array of this shape."""
        if size is None:  # a third of the time of an array
            return (int.from_bytes(self.digest(1), "little") >> 11) * 2.0**-53
        return ((self.bits(_count(size)) >> 11) * 2.0**-53).reshape(size)

    def standard_normal(self, size: Size = None) -> Any:
        """Returns z: a float, or an array of this shape."""
        drawn = normals_of(self.bits(_count(size)))
        return float(drawn[0]) if size is None else drawn.reshape(size)

    def integers(self, high: int, *, size: Size = None) -> Any:
        """Returns whole numbers from 0 to high - 1: an int, or an array of this shape.

        Their probabilities are 1 / high to a relative error of high / 2^53.

        Raises:
            ValueError: `high` is below 1.
        """
        if high < 1:
            raise ValueError(f"`high` is {high}: there is no whole number from 0 to below it.")
        return int(self.random() * high) if size is None else (self.random(size) * high).astype(np.intp)

    def permutation(self, n: int) -> IndexArray:
        """Returns the numbers from 0 to n - 1 in random order. The first k are a sample without replacement."""
        return np.argsort(self.bits(n), kind="stable")

    def numpy(self) -> np.random.Generator:
        """Returns a generator of NumPy that this stream seeds. Its numbers may change with NumPy's version."""
        return np.random.Generator(np.random.PCG64(self.bits(4).tolist()))


Rng: TypeAlias = Draws | np.random.Generator  # what functions accept whose callers may have a generator of NumPy


def _count(size: Size) -> int:
    return 1 if size is None else math.prod(size) if isinstance(size, tuple) else index(size)


def normals_of(bits: Words) -> Array:
    """Returns z of words, of their shape."""
    from scipy.special import ndtri

    return np.asarray(ndtri(((bits >> 12) + 0.5) * 2.0**-52))


def drawn_places(shares: Array, rng: Rng, size: int) -> IndexArray:
    """Returns indices that are drawn by their shares, `(size,)`: the first whose cumulated share is above u."""
    return np.minimum(np.searchsorted(np.cumsum(shares), rng.random(size), side="right"), len(shares) - 1)


def gammas(rng: Rng, shape: npt.ArrayLike, size: tuple[int, ...]) -> Array:
    """Returns numbers of the gamma distributions with scale 1, of shape `size` (Marsaglia & Tsang 2000, section 3).

    Every attempt draws normal and then uniform numbers of this shape, until each place has been accepted once.

    Args:
        rng: source of randomness.
        shape: their shapes a > 0, which broadcast to `size`. If a < 1, a number for a + 1 is multiplied by u^(1 / a).
        size: shape of the result.
    """
    shapes = np.broadcast_to(np.asarray(shape, dtype=np.float64), size)
    d = np.where(shapes < 1.0, shapes + 1.0, shapes) - 1.0 / 3.0
    left, found = np.ones(size, dtype=bool), np.empty(size)
    while left.any():
        x, u = rng.standard_normal(size), 1.0 - rng.random(size)
        v = np.maximum(1.0 + x / np.sqrt(9.0 * d), 0.0) ** 3
        with np.errstate(divide="ignore"):
            taken = left & (np.log(u) < 0.5 * x**2 + d * (1.0 - v + np.log(v)))
        found[taken], left = (d * v)[taken], left & ~taken
    small = shapes < 1.0
    if small.any():
        found = np.where(small, found * (1.0 - rng.random(size)) ** (1.0 / shapes), found)
    return found


def sobol_points(dimension: int, count: int, rng: Rng) -> Array:
    """Returns the first points of a scrambled Sobol sequence in [0, 1), `(count, dimension)`.

    The scramble is a random linear one with a random shift (Matousek 1998), of 53 binary digits. Each of the first 30
    digits adds a column, which is 1 at this digit and random below it.

    Args:
        dimension: number of columns.
        count: number of points, best a power of two.
        rng: source of randomness, which gives 31 uniform numbers for each column.
    """
    words = (rng.random((dimension, _DIGITS + 1)) * 2.0**53).astype(np.int64)
    unit = 1 << np.arange(52, 52 - _DIGITS, -1)
    columns = unit | words[:, :_DIGITS] & (unit - 1)
    digits = _directions(dimension, max(count - 1, 1).bit_length())
    points = words[None, :, _DIGITS]
    for direction in np.bitwise_xor.reduce(columns * digits, axis=-1):
        points = np.concatenate([points, points ^ direction])
    return np.asarray(points[:count] * 2.0**-53)


@lru_cache(maxsize=64)
def _directions(dimension: int, power: int) -> IndexArray:
    """Returns the digits of the direction numbers of Joe & Kuo 2008, `(power, dimension, 30)`."""
    known = _JOE_KUO.split()
    if dimension <= len(known) + 1:
        columns = [[1] * power, *(_recurred(each, power) for each in known[: dimension - 1])]
        directions = np.array(columns, dtype=np.int64).T << (_DIGITS - 1 - np.arange(power))[:, None]
    else:
        from scipy.stats import qmc  # slow to import, and few designs have so many columns

        plain = qmc.Sobol(dimension, scramble=False, bits=_DIGITS).random_base2(power)
        # Point n is the sum of the directions at the digits of n's Gray code, which has one digit at these n.
        directions = (plain[2 ** np.arange(1, power + 1) - 1] * 2.0**_DIGITS).astype(np.int64)
    digits: IndexArray = directions[..., None] >> np.arange(_DIGITS - 1, -1, -1) & 1
    digits.flags.writeable = False
    return digits


def _recurred(row: str, count: int) -> list[int]:
    """Returns the first numbers m of a row "polynomial:m,..." by its recurrence (Bratley & Fox 1988, equation 3)."""
    polynomial, _, first = row.partition(":")
    m, a = [int(number) for number in first.split(",")], int(polynomial)
    degree = len(m)
    while len(m) < count:
        last = m[-degree] << degree ^ m[-degree]
        for k in range(1, degree):
            last ^= (a >> degree - k & 1) * m[-k] << k
        m.append(last)
    return m[:count]


@final
class Randomness:
    """The random numbers of one trial, made on first use, since most decisions need none.

    Args:
        seed: of the study.
        number: of the trial.
        again: the stream of all its numbers if the trial is decided once more with other numbers.
    """

    def __init__(self, seed: int, number: int, again: Draws | None = None) -> None:
        self.seed, self.number, self._again = seed, number, again

    def _stream(self, purpose: str) -> Draws:
        return Draws(f"{purpose} {self.seed} {self.number}") if self._again is None else self._again

    @cached_property
    def draws(self) -> Draws:
        """Stream of the trial, which depends only on the seed and the trial number."""
        return self._stream("trial")

    @cached_property
    def generator(self) -> np.random.Generator:
        """A generator of NumPy for the trial, independent of `draws`, for laws that `Draws` lacks."""
        return self._stream("numpy").numpy()

    @cached_property
    def uniform(self) -> float:
        """A number of the trial, uniform on (0, 1] and independent of `draws`, however many of these are taken."""
        return float(1.0 - self._stream("uniform").random())

    @property
    def used(self) -> bool:
        """True if a random number has been used."""
        return not self.__dict__.keys().isdisjoint(("draws", "generator", "uniform"))


@final
class RandomnessOfEach:
    """The random numbers of one trial in each of several studies, those that each has alone (see `Randomness`).

    Args:
        seeds: of the studies.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds, self._heads = seeds, [f"trial {seed} ".encode() for seed in seeds]
        self.begin(0)

    def begin(self, number: int) -> None:
        """Begins the trial of this number."""
        self._number, self._made, self._called = number, dict[int, Randomness](), False

    def of(self, study: int) -> Randomness:
        """Returns the random numbers of a study's trial."""
        known = self._made.get(study)
        if known is None:
            known = self._made[study] = Randomness(self._seeds[study], self._number)
            if self._called:
                known.draws.digest(1)  # the call that `normals` made
        return known

    def normals(self, count: int) -> Array:
        """Returns z of the next call of each study's `draws`, `(studies, count)`, at a third of the time of `of`."""
        if self._called or self._made:
            each = [self.of(study).draws.digest(count) for study in range(len(self._seeds))]
        else:
            self._called, tail, size = True, b"%d 0" % self._number, 8 * count
            each = [shake_128(head + tail).digest(size) for head in self._heads]
        return normals_of(np.frombuffer(b"".join(each), dtype="<u8").reshape(len(each), count))


def simulation_generator(
    seed: int, purpose: Literal["rewards", "delays", "constraints", "constraint delays"]
) -> np.random.Generator:
    """Returns the generator of a simulated environment's noise, independent of all decisions under the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_SIMULATION[purpose]))


def world_generator(seed: int | Sequence[int], purpose: Literal["arms", "function", "changes"]) -> np.random.Generator:
    """Returns the generator of a simulated problem. Arms and function under one seed are independent."""
    why = "It is a whole number, or a sequence of them."
    several = isinstance(seed, Sequence) and not isinstance(seed, str | bytes)
    parts = list(cast("Sequence[int]", seed)) if several else [seed]
    if not parts:
        raise InvalidInput(f"`seed` is empty. {why}")
    listed = [integer("seed", part, low=0, high=LARGEST_SEED, why=why) for part in parts]
    return np.random.default_rng(np.random.SeedSequence(listed, spawn_key=(_WORLD[purpose],)))
