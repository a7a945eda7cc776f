"""Problems with limits that are known beforehand: texts over the parameters, which a trial keeps or breaks.

| problem | parameters | limits | feasible share |
|---|---|---|---|
| g1 | 13 real | 9 linear | 0.2% |
| g4 | 5 real | 6 of second degree | 23% |
| g6 | 2 real | 2 circles | 0.006% |
| g8 | 2 real | 2 of second degree | 0.9% |
| g24 | 2 real | 2 of fourth degree | 44% |
| hartmann-6-sum | 6 real | a sum | 1.7% |
| cluster | 2 whole, 1 real, 1 choice | linear, product, one of a choice | 32% |
| glaze, alloy, cocktail, catalyst, feed | mixtures of 3, 4, 5, 6 and 8 | a total, ranges, two sums | 0 |

The g-functions are those of Liang et al. (2006), negated, but x10 to x12 of g1 end at 10. The other optima are by SLSQP
from 60 feasible starts, and by listing all whole numbers.
"""

from functools import cache

import numpy as np
from limits_parts.problems import UNIT_6, Problem, hartmann

from nilregret import Choice, Float, Int, Space

OUTSIDE = 1e-9  # a trial is outside if a side of a limit is beyond the other one by more
KEPT = 1e-6  # a value counts if no limit is missed by more, so that tolerances of solvers cost peers nothing
NAMES = {"abs": abs, "min": min, "max": max, "__builtins__": {}}


@cache
def _gap(text):
    """Returns the code of a comparison: how far its left side is beyond the right one."""
    for sign, form in (("<=", "({0}) - ({1})"), (">=", "({1}) - ({0})"), ("==", "abs(({0}) - ({1}))")):
        left, found, right = text.partition(sign)
        if found:
            return compile(form.format(left.strip(), right.strip()), text, "eval")
    return compile(f"1 - 2 * ({text})", text, "eval")  # "kind != 'a'": -1 where it holds, else 1


def gap(text, p):
    """Returns how far a limit is broken, <= 0 where it is kept. It shares no code with the library's own limits."""
    return min(float(eval(_gap(part), NAMES, p)) for part in text.split(" or "))


def g1(p):
    x = [p[f"x{i}"] for i in range(1, 14)]
    return -(5 * sum(x[:4]) - 5 * sum(v * v for v in x[:4]) - sum(x[4:]))


def g4(p):
    a, c, e = p["x1"], p["x3"], p["x5"]
    return -(5.3578547 * c**2 + 0.8356891 * a * e + 37.293239 * a - 40792.141)


def g6(p):
    return -((p["x1"] - 10) ** 3 + (p["x2"] - 20) ** 3)


def g8(p):
    x, y = p["x1"], p["x2"]
    return np.sin(2 * np.pi * x) ** 3 * np.sin(2 * np.pi * y) / (x**3 * (x + y)) if x else 0.0


def g24(p):
    return p["x1"] + p["x2"]


def hartmann_6_sum(p):
    return hartmann(p)[0]


def cluster(p):
    """Throughput of a made-up cluster."""
    codec, wait = {"none": (1.0, 0.0), "fast": (1.3, 6.0), "small": (1.7, 25.0)}[p["codec"]]
    hits = 1 - np.exp(-p["cache"] / 4)
    answer = 5 + wait + 0.02 * p["batch"]
    return 10 * p["workers"] ** 0.8 * codec * (0.3 + 0.7 * hits) * p["batch"] / (p["batch"] + 60) / answer**0.5


def glaze(p):
    """A special cubic of Scheffé, highest inside."""
    c, f, s = p["clay"], p["flux"], p["silica"]
    return c + 2 * f + 1.5 * s + 8 * c * f + 6 * f * s + 7 * c * s + 15 * c * f * s


def alloy(p):
    """Strength, highest where carbon is at the end of its range."""
    near = np.exp(-(((p["nickel"] - 0.18) / 0.12) ** 2) - ((p["chrome"] - 0.12) / 0.1) ** 2)
    return 100 * near + 800 * p["carbon"] - 5000 * p["carbon"] ** 2 + 20 * p["iron"]


def cocktail(p):
    """Two tastes, the better one narrower."""
    x = np.array([p[name] for name in ("rum", "lime", "sugar", "mint", "soda")])
    first, second = np.array([0.1, 0.1, 0.05, 0.05, 0.7]), np.array([0.35, 0.2, 0.15, 0.05, 0.25])
    return 0.75 * np.exp(-np.sum((x - first) ** 2) / 0.1) + np.exp(-np.sum((x - second) ** 2) / 0.04)


def catalyst(p):
    """Yield with diminishing returns, highest where two ingredients are absent."""
    x = np.array([p[name] for name in "abcdef"])
    good, rate = np.array([1.0, 0.8, 0.6, 0.3, 0.0, 0.0]), np.array([6.0, 9.0, 12.0, 20.0, 1.0, 1.0])
    return good @ np.log1p(rate * x) - 2 * x[4] - 1.5 * x[5] + 3 * x[1] * x[2]


def feed(p):
    """Growth less cost of feed in percent, highest on a face and on the border of both sums."""
    x = np.array(list(p.values())) / 100
    protein, energy = x @ [0.08, 0.12, 0.48, 0.62, 0.2, 0.35, 0.1, 0.0], x @ [3.3, 3.1, 2.4, 2.9, 1.2, 2.7, 2.2, 0.0]
    return 10 - 200 * (protein - 0.24) ** 2 - 4 * (energy - 2.9) ** 2 - x @ [1.0, 1.2, 2.2, 6, 0.6, 2.5, 0.8, 0.3]


def _problem(value, best, typical, limits, **parameters):
    def told(p):
        ranges = (max(r.low - p[n], p[n] - r.high) for n, r in parameters.items() if not isinstance(r, Choice))
        return value(p), [*(gap(text, p) for text in limits), max(ranges)]

    name = value.__name__.replace("_", "-")
    more = {"count": len(limits), "best": best, "typical": typical, "limits": limits}
    return Problem(name=name, space=Space(**parameters), told=told, **more)


def total(problem):
    """Returns what a mixture's ingredients are together, or None."""
    return next((float(text.split("==")[1]) for text in problem.limits if "==" in text), None)


def linear(problem, text):
    """Returns the coefficients by name and the right side of a limit that is linear in the parameters, or None."""
    names = [name for name, p in problem.space.parameters.items() if not isinstance(p, Choice)]
    if " or " in text:
        return None
    zero = dict.fromkeys(names, 0.0)
    side = -gap(text, zero)
    weights = {name: gap(text, {**zero, name: 1.0}) + side for name in names}
    at = {name: 0.3 + 0.7 * i for i, name in enumerate(names)}
    if abs(sum(weights[name] * at[name] for name in names) - side - gap(text, at)) > 1e-9 * (1 + abs(side)):
        return None
    return {name: weight for name, weight in weights.items() if weight}, side


def _mixture(value, best, typical, total, *limits, **ranges):
    limits = (f"{' + '.join(ranges)} == {total}", *limits)
    return _problem(value, best, typical, limits, **{name: Float(*ends) for name, ends in ranges.items()})


G4 = (
    "85.334407 + 0.0056858 * x2 * x5 + 0.0006262 * x1 * x4 - 0.0022053 * x3 * x5",
    "80.51249 + 0.0071317 * x2 * x5 + 0.0029955 * x1 * x2 + 0.0021813 * x3**2",
    "9.300961 + 0.0047026 * x3 * x5 + 0.0012547 * x1 * x3 + 0.0019085 * x3 * x4",
)
KNOWN = [
    _problem(
        g1, 15.0000000001, 2.4173,
        (
            *("2*x1 + 2*x2 + x10 + x11 <= 10", "2*x1 + 2*x3 + x10 + x12 <= 10", "2*x2 + 2*x3 + x11 + x12 <= 10"),
            *("x10 <= 8*x1", "x11 <= 8*x2", "x12 <= 8*x3"),
            *("x10 <= 2*x4 + x5", "x11 <= 2*x6 + x7", "x12 <= 2*x8 + x9"),
        ),
        **{f"x{i}": Float(0.0, 10.0 if i in (10, 11, 12) else 1.0) for i in range(1, 14)},
    ),
    _problem(
        g4, 30665.5386718, 26599,
        (
            *(f"{text} >= {low}" for text, low in zip(G4, (0, 90, 20), strict=True)),
            *(f"{text} <= {high}" for text, high in zip(G4, (92, 110, 25), strict=True)),
        ),
        x1=Float(78.0, 102.0), x2=Float(33.0, 45.0), x3=Float(27.0, 45.0), x4=Float(27.0, 45.0), x5=Float(27.0, 45.0),
    ),
    _problem(
        g6, 6961.81387604, 3209.6,
        ("(x1 - 5)**2 + (x2 - 5)**2 >= 100", "(x1 - 6)**2 + (x2 - 5)**2 <= 82.81"),
        x1=Float(13.0, 100.0), x2=Float(0.0, 100.0),
    ),
    _problem(
        g8, 0.095825041418, 0.0001611, ("x1**2 - x2 + 1 <= 0", "1 - x1 + (x2 - 4)**2 <= 0"),
        x1=Float(0.0, 10.0), x2=Float(0.0, 10.0),
    ),
    _problem(
        g24, 5.5080132716, 2.6415,
        ("x2 <= 2*x1**4 - 8*x1**3 + 8*x1**2 + 2", "x2 <= 4*x1**4 - 32*x1**3 + 88*x1**2 - 96*x1 + 36"),
        x1=Float(0.0, 3.0), x2=Float(0.0, 4.0),
    ),
    _problem(hartmann_6_sum, 2.5951082938, 0.16881, ("x0 + x1 + x2 + x3 + x4 + x5 <= 1.5",), **UNIT_6),
    _problem(
        cluster, 9.23074406262, 2.6222,
        ("3 * workers + 2 * cache <= 30", "workers * batch <= 1024", "codec != 'small' or workers >= 4"),
        workers=Int(1, 16), batch=Int(8, 512, log=True), cache=Float(0.0, 10.0), codec=Choice("none", "fast", "small"),
    ),
    _mixture(glaze, 4.40606511585, 3.6448, 1, clay=(0, 1), flux=(0, 1), silica=(0, 1)),
    _mixture(alloy, 140.524402978, 53.506, 1, iron=(0.4, 0.9), nickel=(0, 0.4), chrome=(0, 0.3), carbon=(0, 0.05)),
    _mixture(cocktail, 1.0457269683, 0.067339, 1, rum=(0, 1), lime=(0, 1), sugar=(0, 1), mint=(0, 1), soda=(0, 1)),
    _mixture(catalyst, 3.63047418914, 1.7287, 1, **dict.fromkeys("abcdef", (0, 1))),
    _mixture(
        feed, 8.56674131804, 7.2006, 100, "corn + wheat <= 60", "fish + soy >= 15",
        corn=(0, 60), wheat=(0, 60), soy=(0, 40), fish=(0, 20), bran=(0, 30), peas=(0, 40), oats=(0, 40), salt=(0, 5),
    ),
]  # fmt: skip
