"""Random spaces with limits that a random point keeps, and an oracle that shares no code with the library's limits.

A comparison is evaluated by Python itself on the parameters of a trial. The oracle returns how far a side is beyond the
other one, as a share of the size of the terms, or of 1 if they are smaller: parameters have 12 digits. Whole numbers,
options, and < of real numbers are exact.
"""

import math
from dataclasses import dataclass

import numpy as np

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.errors import InvalidInput

NAMES = "abcdefgh"
FLAWED = 1.0  # what is said of a whole number, an option or a strict comparison that is not kept
FUNCTIONS = {"log": math.log, "exp": math.exp, "abs": abs, "min": min, "max": max, "__builtins__": {}}
OPPOSITE = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "==": "!=", "!=": "=="}
FLOATS = ((0, 1), (-1, 1), (0, 1000), (-5, 300), (1e-3, 2e-3), (1e4, 1.001e4), (-1e-3, 1e3))
LOGS, STEPS = ((1e-5, 1), (1, 1e4), (1e-3, 0.5)), ((0, 1, 0.1), (0, 0.4, 0.05), (-2, 2, 0.25))
WHOLE = ((0, 1), (0, 5), (1, 64), (1, 1000), (-20, 20), (1, 100_000))
CHOICES = (("x", "y", "z"), ("x", "y"), (True, False), (16, 32, 64), (0.1, 0.25, 4.0), ("x", None, 3), ("only",))


class Rolls:
    """Random choices."""

    def __init__(self, text):
        self.draws = Draws(text)

    def whole(self, high):
        return self.draws.integers(high)

    def of(self, options):
        return options[self.whole(len(options))]

    def chance(self, share):
        return self.draws.random() < share

    def between(self, low, high):
        return low + self.draws.random() * (high - low)

    def some(self, options, most):
        order = self.draws.permutation(len(options))[: 1 + self.whole(most)]
        return [options[place] for place in order]


@dataclass(frozen=True)
class Compared:
    """A comparison of two texts, which holds where one of its parameters does not count."""

    left: str
    sign: str
    right: str
    names: tuple
    whole: bool = False

    @property
    def text(self):
        return f"{self.left} {self.sign} {self.right}"

    def excess(self, p):
        if not p.keys() >= set(self.names):
            return -FLAWED
        try:
            left, right = eval(self.left, FUNCTIONS, p), eval(self.right, FUNCTIONS, p)
            kept = eval(self.text, FUNCTIONS, p)
        except (ZeroDivisionError, OverflowError, ValueError):
            return FLAWED
        if self.whole or self.sign not in ("<=", ">=", "=="):
            return -FLAWED if kept else FLAWED
        size = max(1.0, abs(left) + abs(right), *(abs(float(p[name])) for name in self.names))
        gap = {"<=": left - right, ">=": right - left, "==": abs(left - right)}[self.sign] / size
        return gap if isinstance(gap, float | int) and math.isfinite(gap) else FLAWED

    def opposite(self):
        return Compared(self.left, OPPOSITE[self.sign], self.right, self.names, self.whole)


@dataclass(frozen=True)
class Joined:
    """Limits of which all must hold, or any one."""

    word: str
    parts: tuple

    @property
    def text(self):
        return f" {self.word} ".join(f"({part.text})" for part in self.parts)

    def excess(self, p):
        return (max if self.word == "and" else min)(part.excess(p) for part in self.parts)


@dataclass(frozen=True)
class Written:
    """A limit in other words: `not` before its opposite, or a chain."""

    text: str
    of: object

    def excess(self, p):
        return self.of.excess(p)


def parameter(rolls):
    """Returns a parameter of any kind."""
    kind = rolls.of(("float", "float", "float", "log", "step", "constant", "int", "int", "int log", "choice", "choice"))
    if kind == "float":
        return nr.Float(*rolls.of(FLOATS))
    if kind == "log":
        return nr.Float(*rolls.of(LOGS), log=True)
    if kind == "step":
        low, high, step = rolls.of(STEPS)
        return nr.Float(low, high, step=step)
    if kind == "constant":
        return nr.Float(*2 * (rolls.of((0.0, 0.3, 7.0)),))
    if kind == "choice":
        return nr.Choice(*rolls.of(CHOICES))
    low, high = rolls.of(WHOLE)
    return nr.Int(max(low, 1), max(high, 2), log=True) if kind == "int log" else nr.Int(low, high)


def declared(rolls):
    """Returns one to eight parameters by name, some of which count only if a choice has some options."""
    found, choices = {}, {}
    for name in NAMES[: 1 + rolls.whole(8)]:
        made = parameter(rolls)
        if choices and rolls.chance(0.25):
            on = rolls.of(sorted(choices))
            found[name] = nr.when(on, rolls.of(choices[on].options), made)
            continue
        found[name] = made
        if isinstance(made, nr.Choice) and len(made.options) > 1 and made.options != (True, False):
            choices[name] = made
    return found


class Maker:
    """Makes limits that a point keeps.

    Args:
        rolls: random choices.
        space: without limits.
        anchor: named parameters of the point.
    """

    def __init__(self, rolls, space, anchor):
        self.rolls, self.anchor, self.parameters = rolls, anchor, space.parameters
        numeric = {n: p for n, p in space.parameters.items() if n in anchor and self._is_number(p)}
        self.numbers = sorted(n for n, p in numeric.items() if not self._single(p))
        self.real = [n for n in self.numbers if getattr(numeric[n], "real", False)]
        conditions = space.conditions.needs if space.conditions else ()
        self.plain = [n for n in self.real if not numeric[n].log and n not in conditions]
        self.choices = [n for n in anchor if isinstance(self.parameters[n], nr.Choice)]

    @staticmethod
    def _is_number(p):
        return not isinstance(p, nr.Choice) or all(type(each) in (int, float) for each in p.options)

    @staticmethod
    def _single(p):
        return len(p.options) == 1 if isinstance(p, nr.Choice) else p.low == p.high

    def value(self, text):
        return eval(text, FUNCTIONS, self.anchor)

    def _is_whole(self, names):
        of = [self.parameters[name] for name in names]
        return all(isinstance(p, nr.Int) or (isinstance(p, nr.Choice) and type(p.options[0]) is int) for p in of)

    def sum(self, names, *, whole=False):
        """Returns a weighted sum of parameters as text."""
        weights = [self.rolls.of((1, 2, -1, 3) if whole else (1, 1, -1, 0.5, -2.5, 1e-3)) for _ in names]
        return " + ".join(name if w == 1 else f"{w} * {name}" for name, w in zip(names, weights, strict=True))

    def term(self):
        """Returns a text and its parameters."""
        rolls, names = self.rolls, self.rolls.some(self.numbers, 3)
        a, b = names[0], names[-1]
        high = max(abs(self.anchor[a]), 1.0)
        curved = (
            f"{a} * {b}", f"{a} / {b}", f"{a} ** 2", f"{a} ** 2 + {b} ** 2", f"abs({a} - {b})", f"max({a}, {b})",
            f"min({a}, 2 * {b})", f"log({a})", f"exp({a} / {high})", f"{a} * {b} - {a}",
        )  # fmt: skip
        linear = rolls.chance(0.5)
        text = self.sum(names, whole=self._is_whole(names)) if linear else rolls.of(curved)
        if ("max(" in text or "min(" in text) and a == b:
            text = a
        return text, tuple(sorted({a, b} if not linear else set(names)))

    def number(self):
        """Returns a comparison of numbers, most often with little room above the point."""
        for _ in range(8):
            text, names = self.term()
            try:
                at = self.value(text)
            except (ZeroDivisionError, ValueError, OverflowError):
                continue
            if isinstance(at, complex) or not math.isfinite(at):
                continue
            whole = self._is_whole(names) and isinstance(at, int)
            room = self.rolls.whole(4) if whole else (1e-3 + abs(at)) * 10 ** self.rolls.between(-3.5, 0)
            sign = self.rolls.of(("<=", ">=", "<", ">"))
            room += whole and sign in "<>"
            bound = repr(at + room if sign[0] == "<" else at - room)
            made = Compared(text, sign, bound, names, whole)
            if made.excess(self.anchor) <= 0.0:
                return made
        return None

    def slice(self):
        """Returns a chain that leaves a thin slice of real numbers."""
        names = self.rolls.some(self.real, 3)
        text, names = self.sum(names), tuple(sorted(names))
        at = self.value(text)
        room = max(self._range(names) * 10 ** self.rolls.between(-4.5, -2), abs(at) * 1e-6)
        low, high = repr(at - 0.3 * room), repr(at + 0.7 * room)
        both = Joined("and", (Compared(low, "<=", text, names), Compared(text, "<=", high, names)))
        return Written(f"{low} <= {text} <= {high}", both)

    def _range(self, names):
        return min(self.parameters[n].high - self.parameters[n].low for n in names)

    def equality(self):
        """Returns a linear equality."""
        names = self.rolls.some(self.plain, 5)
        names = names if len(names) > 1 else self.plain[:2]
        text = self.sum(names)
        return Compared(text, "==", repr(self.value(text)), tuple(sorted(names)))

    def option(self):
        """Returns a comparison of options."""
        name = self.rolls.of(self.choices)
        options, own = self.parameters[name].options, self.anchor[name]
        others = [o for o in options if not (o == own and type(o) is type(own))]
        if others and self.rolls.chance(0.7):
            return Compared(name, "!=", repr(self.rolls.of(others)), (name,), True)
        return Compared(name, "==", repr(own), (name,), True)

    def remainder(self):
        """Returns a comparison of a remainder."""
        name = self.rolls.of([n for n in self.numbers if self._is_whole([n])])
        by = 2 + self.rolls.whole(5)
        text = f"{name} % {by}"
        return Compared(text, "==", repr(self.value(text)), (name,), True)

    def limit(self):
        """Returns a limit of any kind, or None if the space has no parameters for it."""
        kind = self.rolls.of(("number",) * 6 + ("slice", "slice", "option", "either", "either", "not", "remainder"))
        if kind in ("number", "either", "not") and not self.numbers:
            return None
        if kind == "slice":
            return self.slice() if self.real else None
        if kind == "option":
            return self.option() if self.choices else None
        if kind == "remainder":
            return self.remainder() if any(self._is_whole([n]) for n in self.numbers) else None
        made = self.number()
        if kind == "not" and made is not None:
            return Written(f"not {made.opposite().text}", made)
        if kind == "either" and made is not None:
            other = self.option() if self.choices and self.rolls.chance(0.5) else self.number()
            other = made if other is None else other.opposite() if self.rolls.chance(0.5) else other
            return Joined(
                "or", (other, Joined("and", (made, other.opposite()))) if self.rolls.chance(0.2) else (other, made)
            )
        return made


def as_function(limit):
    """Returns a limit as a function of parameters by name, which is False where the limit has no value."""
    names = ", ".join(limit.names)
    pairs = ", ".join(f"{name}={name}" for name in limit.names)
    return eval(f"lambda {names}: kept(dict({pairs}))", {"kept": lambda p: limit.excess(p) <= 0.0, "dict": dict})


def fuzzed(number):
    """Returns a space with limits, the limits for the oracle, and the random choices, or a text: why there is none."""
    rolls = Rolls(f"fuzz {number}")
    space = nr.Space(**declared(rolls))
    cube = 0.1 + 0.8 * rolls.draws.random((1, len(space.parameters)))
    anchor = space.decode(space.snap(space.spread(cube))[0])
    maker = Maker(rolls, space, anchor)
    limits = [found for _ in range(1 + rolls.whole(3)) if (found := maker.limit()) is not None]
    if len(maker.plain) > 1 and rolls.chance(0.35):
        limits += [maker.equality() for _ in range(1 + (len(maker.plain) > 3 and rolls.chance(0.5)))]
    if not limits:
        return "no limit could be made"
    given = [limit.text for limit in limits]
    if isinstance(limits[0], Compared) and limits[0].sign != "==" and rolls.chance(0.05):
        given[0] = as_function(limits[0])
    try:
        return space.where(*given), limits, rolls
    except InvalidInput as error:
        return refusal(str(error))


def refusal(text):
    """Returns why a space was refused, in a few words."""
    reasons = {
        "only at an edge": "at an edge", "contradict": "contradiction", "holds nowhere": "nowhere",
        "points drawn": "hardly anywhere", "one value": "one value", "so it always": "a constant",
    }  # fmt: skip
    return next((short for part, short in reasons.items() if part in text), text)


def excess(limits, parameters):
    """Returns the largest excess of the limits at named parameters."""
    return max(limit.excess(parameters) for limit in limits)


def direction(rolls, dimension):
    """Returns a linear reward, whose optimum is on a border."""
    return np.asarray(rolls.draws.standard_normal(dimension))
