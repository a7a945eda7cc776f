"""Fuzzed calls of the public interface: hostile values in the place of good ones.

A call is drawn with good arguments, some of which are then replaced. It must either work, with finite results, or be
refused by an error of the library; nothing may hang, and what is certainly no value for its place must not be taken in
silence.
"""

import contextlib
import dataclasses
import datetime
import decimal
import inspect
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import nilregret as nr
from nilregret import algorithms, environments
from nilregret._utils.checks import shown
from nilregret.environments import delays
from nilregret.errors import NoRegretError
from nilregret.simulation import metrics

SECONDS = 120.0  # that a call may take: thousands of times what it does

# -- hostile values --------------------------------------------------------------------------------------------------

TEXT = ["", "x", "1", "nan", "\ud800", "\0", "x" * 5000, np.str_("a"), "ignore", "mean"]
NO_NUMBERS = [
    b"1",
    bytearray(b"1"),
    1j,
    1 + 0j,
    datetime.date(2026, 1, 1),
    np.datetime64("2026-01-01"),
    np.timedelta64(3, "s"),
    {},
    {"x": 1},
    {0.5},
    object(),
    int,
    lambda *_: 1.0,
    Path("x"),
    decimal.Decimal(1),
    np.ma.masked,
    float("nan"),
    np.float64("nan"),
    np.array("a"),
    np.array(1j),
    np.array(object()),
    (i for i in "ab"),
    NotImplemented,
    ...,
]
BOOLEANS = [True, False, np.True_, np.array(True)]
TOO_LARGE = [10**400, -(10**400), 10**5000]
INFINITE = [float("inf"), -float("inf"), np.float32("inf")]
NO_LISTS = [  # of coordinates, or of anything that is counted or measured
    [[[[1.0]]]],
    [1, [2, 3]],
    [[1.0], [2.0, 3.0]],
    [float("nan")],
    ["a"],
    ["1"],
    [b"1"],
    [True],
    [None],
    [1j],
    [10**400],
    [datetime.date(2026, 1, 1)],
    [object()],
    np.array(["a"]),
    np.array([1j]),
    np.array([True]),
    np.array([1, None]),
    np.zeros((2, 2, 2)),
    np.ma.masked_array([0.1, 0.2], [True, False]),
    [float("inf")],
    np.array(["2026-01-01"], dtype="M8[D]"),
    [np.ma.masked],
    [{}, 1.0],
]
LISTS = [
    [],
    (),
    [[]],
    [{}],
    [0.5],
    [0.5, 0.5],
    [1, 2, 3],
    (0, 1),
    range(3),
    np.array([]),
    np.zeros((0, 3)),
    np.zeros((2, 2)),
    [1e308, -1e308],
    [-1],
    [0.0, 0.0, 1.0],
    [Fraction(1, 2)],
]
NUMBERS = [
    -1,
    0,
    1,
    2,
    3,
    0.5,
    0.0,
    -0.0,
    1e-3,
    1e308,
    -1e308,
    5e-324,
    1e-300,
    1e100,
    1e101,
    2**31,
    2**53,
    2**63,
    -(2**63),
    Fraction(1, 3),
    np.float32(0.5),
    np.float16(2.0),
    np.int64(3),
    np.uint8(1),
    np.array(0.5),
    np.array(2),
    np.array([0.5], dtype=object),  # an array with one entry is that number
    np.longdouble("1e-400"),
]
TIMES = [datetime.timedelta(days=1), datetime.timedelta(days=-1)]
EVERYTHING = [None, *TEXT, *NO_NUMBERS, *BOOLEANS, *TOO_LARGE, *INFINITE, *NO_LISTS, *LISTS, *NUMBERS, *TIMES]
FRACTIONAL = [0.5, 1e-3, 5e-324, 1e-300, Fraction(1, 3), np.float32(0.5), np.array(0.5)]


def ids(*groups):
    """Which objects they are: values themselves cannot be compared, some being arrays."""
    return {id(value) for group in groups for value in group}


# What certainly is no value for a place of this kind.
BAD = {
    "number": ids(TEXT, NO_NUMBERS, BOOLEANS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, TIMES),
    "schedule": ids(TEXT, NO_NUMBERS[:11], BOOLEANS, TOO_LARGE, NO_LISTS, LISTS, TIMES),
    "reward": ids(TEXT, NO_NUMBERS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, TIMES),
    "whole": ids(TEXT, NO_NUMBERS, BOOLEANS, INFINITE, NO_LISTS, LISTS, FRACTIONAL, TIMES),
    "flag": ids(TEXT, NO_NUMBERS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, NUMBERS, TIMES),
    "points": ids(
        TEXT,
        [value for value in NO_NUMBERS if not isinstance(value, dict)],
        BOOLEANS,
        TOO_LARGE,
        INFINITE,
        NO_LISTS,
        TIMES,
    ),
    "part": ids(NO_NUMBERS, BOOLEANS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, NUMBERS, TIMES),
    "text": ids(NO_NUMBERS, BOOLEANS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, NUMBERS, TIMES),
    "gain": ids(TEXT[:8], NO_NUMBERS, BOOLEANS, TOO_LARGE, INFINITE, NO_LISTS, LISTS, TIMES),
    "series": ids(TEXT, NO_NUMBERS, BOOLEANS, TOO_LARGE, INFINITE, NUMBERS, TIMES),
    "any": set(),
}

# -- good arguments --------------------------------------------------------------------------------------------------

SEARCH = nr.slots.PointSearch(candidates=8, around=2, starts=1, evaluations=2)
ARMS = nr.Arms.grid(0, 1, 5)
PLANE = nr.Arms([[0.0, 0.0], [0.5, 1.0], [1.0, 0.5]])
BOX = nr.Box(0, 1)
SPACE = nr.Space(x=nr.Float(0, 1), n=nr.Int(0, 4, step=2), kind=nr.Choice("a", None))
KERNEL = nr.Matern(2.5, 0.4)
POINTS, VALUES = [0.0, 0.25, 0.5, 1.0], [0.1, 0.4, 0.2, -0.3]


@dataclasses.dataclass(frozen=True)
class Place:
    """An argument: a good value and what kind of value belongs there."""

    good: Any
    kind: str
    optional: bool = False

    def is_bad(self, value):
        return id(value) in BAD[self.kind] or (value is None and not self.optional and self.kind != "any")


@dataclasses.dataclass(frozen=True)
class Target:
    """Something to call, with its arguments by name and what is done with what it returns."""

    name: str
    call: Callable[..., Any]
    places: dict[str, Place]
    use: Callable[[Any], Any] = lambda result: result
    infinite: bool = False  # whether results may hold infinity, which then has a meaning


def n(good=1.0, *, optional=False):
    return Place(good, "number", optional)


def w(good=2, *, optional=False):
    return Place(good, "whole", optional)


def f(good=False):
    return Place(good, "flag")


def p(good):
    return Place(good, "points")


def o(good, kind="part", *, optional=False):
    return Place(good, kind, optional)


def any_(good):
    return Place(good, "any")


NAMED = {  # the kind of an argument of the algorithms, by its name
    **dict.fromkeys(
        [
            "noise",
            "norm_bound",
            "delta",
            "scale",
            "a",
            "b",
            "r",
            "regularization",
            "prior_mean",
            "margin",
            "eta",
            "beta",
            "minimum",
            "reward_bound",
            "exploration",
            "constant",
            "log_power",
            "c",
            "n",
            "step",
            "growth",
            "grid",
        ],
        "number",
    ),
    **dict.fromkeys(["epoch", "epochs", "constraints", "initial"], "whole"),
    "guess_norm": "flag",
    **dict.fromkeys(["domain", "kernel", "context", "memory", "search", "refit"], "part"),
    **dict.fromkeys(["threshold", "ridge"], "schedule"),
    **dict.fromkeys(["width", "incumbent", "detector", "distance", "late"], "text"),
    "information_gain": "gain",
}
GOOD = {
    "domain": ARMS,
    "kernel": KERNEL,
    "noise": 0.1,
    "norm_bound": 1.0,
    "horizon": 20,
    "window": 2,
    "epoch": 3,
    "epochs": 2,
    "eta": 1.0,
    "search": SEARCH,
    "reference": (-3.0, -3.0),
    "fidelity": nr.Fidelity("rows", 10, 1000),
}


CONSTRAINED = ("gp_ucb_noiseless_constraints", "gp_ucb_noisy_constraints")


def of_algorithm(name):
    """A named algorithm on arms, on a box and on a space, whose policy then decides a few times."""
    function = getattr(algorithms, name)
    for label, domain in (("arms", ARMS), ("box", BOX), ("space", SPACE)):
        places = {}
        for parameter in inspect.signature(function).parameters.values():
            required = parameter.default is inspect.Parameter.empty
            needed = parameter.name == "norm_bound" and name in ("igp_ucb", "gp_ts", *CONSTRAINED)
            needed |= parameter.name == "noise"  # which may be left out beside `reward` alone
            if not required and parameter.name != "search" and not needed:
                kind, good = NAMED.get(parameter.name, "any"), parameter.default
            else:
                kind, good = NAMED.get(parameter.name, "any"), GOOD[parameter.name]
            optional = parameter.default is None or parameter.name in ("search", "beta")
            optional &= parameter.name != "noise"
            places[parameter.name] = Place(domain if parameter.name == "domain" else good, kind, optional)
        yield Target(f"{name} on {label}", function, places, play)


def play(policy):
    """Some decisions and answers, and everything that is shown of them."""
    study = nr.Study(policy, seed=1)
    constraints = None if not policy.constraint_count else [0.1] * policy.constraint_count
    context = None
    if policy.context is not None:
        context = policy.context.points[0] if isinstance(policy.context, nr.Arms) else policy.context.lower
    for reward in (0.3, -0.2, 1.0):
        told = reward if policy.objective_count == 1 else (reward,) * policy.objective_count
        study.tell(study.ask(context), told, constraints=constraints)
    with contextlib.suppress(
        nr.errors.TrialError
    ):  # none is best where none satisfied the constraints, or after a restart
        study.best()
    mean, std = study.predict([trial.point for trial in study.trials], context=context)
    return study.ask(context).point, mean, std, study.width


def use_kernel(kernel):
    points = np.array([[0.0, 0.1], [0.5, 0.3]])
    return kernel(points, points), kernel.diagonal(points)


def use_domain(domain):
    return play(nr.algorithms.greedy_mean(domain, KERNEL, noise=0.1, search=SEARCH))


def use_parameter(parameter):
    space = nr.Space(x=parameter, y=nr.Float(0, 1))
    arms = space.grid({name: 3 for name, each in space.parameters.items() if not isinstance(each, nr.Choice)})
    return [space.encode(arms.parameters(arm)) for arm in range(min(len(arms), 9))]


def with_slot(slot):
    """Put a part into a policy."""
    return lambda part: play(nr.gp_ucb(ARMS, KERNEL, noise=0.1, **{slot: part}))


def study_of(domain=ARMS, **slots):
    return nr.Study(nr.gp_ucb(domain, KERNEL, noise=0.1, search=SEARCH, **slots), seed=0)


def on_study(domain, method, **slots):
    """A call of a method of a study with one pending and one answered trial; the study must go on afterwards."""

    def call(**arguments):
        study = study_of(domain, **slots)
        context = {"context": 0.5} if slots.get("context") is not None else {}
        study.tell(study.ask(**context), 0.5)
        study.ask(**context)
        result = getattr(study, method)(**arguments)
        study.ask(**context)
        return result

    return call


def simulated(**arguments):
    env = nr.Environment(**arguments)
    policy = nr.gp_ucb(env.domain, KERNEL, noise=0.1, search=SEARCH, context=env.contexts)
    return nr.simulate(policy, env, 3)


def detector(**arguments):
    made = nr.theory.ChangeDetector(**arguments)
    return [made.add(point, value) for point, value in zip(POINTS, VALUES, strict=True)]


def conditional(on, values):
    return nr.Space(a=nr.Choice(1, "b"), c=nr.when(on, values, nr.Float(0, 1)))


def domains_and_kernels():
    yield Target("Float", nr.Float, {"low": n(0.0), "high": n(1.0), "log": f()}, use_parameter)
    yield Target("Int", nr.Int, {"low": w(0), "high": w(8), "log": f(), "step": w(2)}, use_parameter)
    yield Target("Choice", lambda a, b: nr.Choice(a, b), {"a": any_("a"), "b": any_(2)}, use_parameter)
    yield Target("Space", nr.Space, {"x": o(nr.Float(0, 1)), "y": o(nr.Int(0, 3))}, use_domain)
    yield Target("when", conditional, {"on": any_("a"), "values": any_(1)})
    yield Target("Box", nr.Box, {"lower": p(0.0), "upper": p(1.0)}, use_domain)
    yield Target("Arms", nr.Arms, {"points": p(POINTS), "space": o(None, optional=True)}, use_domain)
    yield Target("Arms.grid", nr.Arms.grid, {"lower": n(0.0), "upper": n(1.0), "count": w(3)}, len)
    yield Target("box.grid", BOX.grid, {"per_dimension": any_(3)}, len)
    yield Target("box.sample", BOX.sample, {"count": w(3), "seed": any_(1)}, len)
    yield Target("space.grid", SPACE.grid, {"per_dimension": any_(3)}, len)
    yield Target("space.encode", SPACE.encode, {"parameters": any_({"x": 0.1, "n": 2, "kind": None})})
    yield Target("space.encode(x)", lambda x: SPACE.encode({"x": x, "n": 2, "kind": "a"}), {"x": n(0.5)})
    yield Target("space.encode(n)", lambda n: SPACE.encode({"x": 0.5, "n": n, "kind": "a"}), {"n": w(2)})
    yield Target("space.decode", SPACE.decode, {"point": p([0.1, 0.5, 0.7, 0.0])})
    yield Target("arms.index", ARMS.index, {"points": p([0.25])})
    yield Target("arms.parameters", SPACE.grid(2).parameters, {"arm": w(1)})
    length, scale = Place(0.5, "any"), n(1.0)
    yield Target("Matern", nr.Matern, {"nu": n(2.5), "lengthscale": length, "scale": scale}, use_kernel)
    yield Target("SquaredExponential", nr.SquaredExponential, {"lengthscale": length, "scale": scale}, use_kernel)
    yield Target(
        "RationalQuadratic",
        nr.kernels.RationalQuadratic,
        {"alpha": n(), "lengthscale": length, "scale": scale},
        use_kernel,
    )
    yield Target("Periodic", nr.kernels.Periodic, {"period": length, "lengthscale": length, "scale": scale}, use_kernel)
    yield Target("Linear", nr.Linear, {"scale": scale}, use_kernel)
    yield Target("Empirical", nr.kernels.Empirical, {"covariance": p([[1.0, 0.2], [0.2, 1.0]])})
    yield Target("Sum", nr.kernels.Sum, {"left": o(KERNEL), "right": o(KERNEL)}, use_kernel)
    yield Target("Product", nr.kernels.Product, {"left": o(KERNEL), "right": o(KERNEL)}, use_kernel)
    yield Target("Active", nr.kernels.Active, {"kernel": o(KERNEL), "dimensions": any_((0, 1))}, use_kernel)
    yield Target("Tied", nr.kernels.Tied, {"kernel": o(KERNEL), "groups": any_((0, 0))})
    yield Target("Overlap", nr.kernels.Overlap, {"groups": any_((0, 0)), "scale": scale})
    parts = {"left": o(KERNEL), "right": o(KERNEL)}
    yield Target("Mixture", nr.kernels.Mixture, {**parts, "share": n(0.5), "scale": scale}, use_kernel)
    yield Target("Rounded", nr.kernels.Rounded, {"kernel": o(KERNEL), "space": o(SPACE)})
    yield Target("kernel_for", nr.kernel_for, {"domain": o(BOX), "lengthscale": n(0.3)})
    yield Target("kernel(A, B)", lambda A, B: KERNEL(A, B), {"A": p(POINTS), "B": p(POINTS)})
    yield Target("factor * kernel", lambda factor: KERNEL.__rmul__(factor), {"factor": any_(2.0)})


def parts():
    yield Target("SlidingWindow", nr.slots.SlidingWindow, {"rounds": w(3)}, with_slot("memory"))
    yield Target(
        "EDetector", nr.slots.EDetector, {"delta": n(0.05), "clip": n(4.0), "weight": n(10.0)}, with_slot("memory")
    )
    yield Target("RestartEvery", nr.slots.RestartEvery, {"rounds": w(3)}, with_slot("memory"))
    yield Target("RestartDoubling", nr.slots.RestartDoubling, {"first": w(3), "ridge": f()}, with_slot("memory"))
    yield Target("RestartAt", nr.slots.RestartAt, {"rounds": any_([3])}, with_slot("memory"))
    yield Target("DriftBank", nr.slots.DriftBank, {"rates": any_([0.0, 0.1])}, with_slot("memory"))
    yield Target("Discount", nr.slots.Discount, {"rate": n(0.1)}, with_slot("memory"))
    yield Target(
        "Tide",
        nr.slots.Tide,
        {},
        lambda part: play(nr.auto(ARMS, reward=nr.slots.Bounded(low=-9.0, high=9.0)).using(memory=part))[:3],
    )
    yield Target("AllOf", nr.slots.AllOf, {"parts": any_([nr.slots.SlidingWindow(3)])}, with_slot("memory"))
    yield Target(
        "RestartOnChange",
        nr.slots.RestartOnChange,
        {
            "threshold": o(1.0, "schedule", optional=True),
            "ridge": o(1.0, "schedule", optional=True),
            "distance": o("average", "text"),
        },
    )
    yield Target(
        "Censored",
        nr.slots.Censored,
        {
            "minimum": n(0.0, optional=True),
            "window": n(2.0),
            "in_time": f(),
            "late": o("drop", "text"),
            "failed": o("aside", "text"),
        },
        with_slot("pending"),
    )
    yield Target(
        "Censored.within",
        nr.slots.Censored.within,
        {"window": any_(2), "minimum": n(0.0, optional=True)},
        with_slot("pending"),
    )
    yield Target("Ignored", nr.slots.Ignored, {"failed": o("aside", "text")}, with_slot("pending"))
    yield Target(
        "NearestMeans", nr.slots.NearestMeans, {"neighbours": w(2), "failed": o("aside", "text")}, with_slot("pending")
    )
    for part in (nr.slots.Imputed, nr.slots.LateOrNever):
        yield Target(
            part.__name__,
            part,
            {"minimum": n(0.0, optional=True), "answer": n(1.0, optional=True), "failed": o("aside", "text")},
            with_slot("pending"),
        )
    yield Target(
        "PowerLaw", nr.theory.PowerLaw, {"constant": n(), "exponent": n(-0.5)}, lambda law: [law(1), law(10**6)]
    )
    yield Target("PowerSeries", nr.slots.PowerSeries, {"power": n(2.0)}, with_slot("series"))
    yield Target("EvenSeries", nr.slots.EvenSeries, {"rounds": w(2)}, with_slot("series"))
    yield Target(
        "Refit",
        nr.slots.Refit,
        {
            "every": w(3),
            "prior": o("none", "text"),
            "restarts": w(0),
            "outputs": o("answered", "text"),
            "standardize": f(True),
        },
    )
    yield Target(
        "PointSearch", nr.slots.PointSearch, {"candidates": w(8), "around": w(2), "starts": w(1), "evaluations": w(2)}
    )
    yield Target(
        "admmbo",
        nr.algorithms.admmbo,
        {
            "domain": o(BOX),
            "constraints": w(1),
            "rho": n(0.1),
            "price": n(50.0),
            "first": any_((2, 2)),
            "more": any_((1, 1)),
            "start": w(2),
            "steps": w(2),
            "candidates": w(9),
        },
    )
    yield Target(
        "bandit_oco",
        nr.algorithms.bandit_oco,
        {
            "domain": o(BOX),
            "step": n(0.1),
            "spread": n(0.1, optional=True),
            "damping": n(0.1, optional=True),
            "constraints": w(1),
            "start": any_([0.5]),
        },
    )


def studies():
    reward = Place(0.5, "reward")
    named = {"x": 0.5, "n": 2, "kind": None}
    for label, domain, point, several in (
        ("arms", ARMS, 0.25, [0.25, 0.5]),
        ("plane", PLANE, [0.5, 1.0], [[0.5, 1.0]]),
        ("box", BOX, 0.3, [0.3, 0.4]),
        ("space", SPACE, named, [named, named]),
    ):
        yield Target(
            f"study.add on {label}",
            on_study(domain, "add"),
            {"point_or_parameters": p(point), "reward": reward, "constraints": any_(None)},
        )
        yield Target(
            f"study.predict on {label}", on_study(domain, "predict"), {"points": Place(several, "points", True)}
        )
    contexts = {"context": BOX}
    yield Target("study.ask", on_study(ARMS, "ask"), {"count": w(2, optional=True), "context": any_(None)})
    yield Target("study.ask(context)", on_study(ARMS, "ask", **contexts), {"context": p(0.5)})
    yield Target("study.ask(among)", on_study(ARMS, "ask"), {"among": any_([0, 1]), "exclude": any_(None)})
    yield Target(
        "study.bounds(context)", on_study(ARMS, "bounds", **contexts), {"context": p(0.5), "points": any_(None)}
    )
    yield Target("study.best(context)", on_study(ARMS, "best", **contexts), {"context": any_(0.5)})
    yield Target("study.tell", on_study(ARMS, "tell"), {"trial": w(1), "reward": reward, "constraints": any_(None)})
    yield Target("study.fail", on_study(ARMS, "fail"), {"trial": w(1), "reason": o("it broke", "text")})
    many = {"points": any_([0.3]), "names": any_(None), "about": any_(None)}
    yield Target("study.add_arms", on_study(ARMS, "add_arms"), many)
    for name in ("retire_arm", "restore_arm"):
        yield Target(f"study.{name}", on_study(ARMS, name), {"arm": w(1)})
    described = {"arm": w(1), "name": o("a", "text", optional=True), "about": any_(None)}
    yield Target("study.describe_arm", on_study(ARMS, "describe_arm"), described)
    chances = {"context": any_(None), "among": any_([0, 1]), "exclude": any_(None)}
    yield Target("study.probabilities", on_study(ARMS, "probabilities"), chances)
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
    yield Target(
        "Study",
        nr.Study,
        {"policy": o(policy), "seed": w(0), "name": o("a", "text"), "about": any_(None)},
        lambda study: study.ask().point,
    )
    yield Target("Policy.from_json", nr.Policy.from_json, {"text": o(policy.to_json(), "text")})


def theory():
    bound = o("greedy", "text")
    yield Target(
        "information_gain",
        nr.information_gain,
        {"kernel": o(KERNEL), "points": any_(ARMS), "noise": n(0.1), "bound": bound, "count": w(5)},
    )
    yield Target(
        "GreedyDesign",
        nr.theory.GreedyDesign,
        {"kernel": o(KERNEL), "points": any_(ARMS), "regularization": n()},
        lambda design: design.bound(4),
    )
    yield Target(
        "GreedyDesign.gains", lambda count: nr.theory.GreedyDesign(KERNEL, ARMS, 0.1).gains(count), {"count": w(3)}
    )
    yield Target(
        "Spectrum",
        nr.theory.Spectrum,
        {"eigenvalues": p([1.0, 0.5]), "regularization": n(), "residual": n(0.0)},
        lambda spectrum: (spectrum.bound(5), spectrum.split_bound(5), spectrum.gains(5)),
    )
    yield Target("Spectrum.gain", nr.theory.Spectrum([1.0, 0.5], 0.1).gain, {"count": w(3)})
    yield Target(
        "information_gain_rate",
        nr.theory.information_gain_rate,
        {"kernel": o(KERNEL), "dimension": w(1), "t": n(9.0), "source": o("srinivas", "text"), "constant": n()},
    )
    for name in ("gp_ucb_regret_bound", "igp_ucb_regret_bound", "gp_ts_regret_bound"):
        function = getattr(nr.theory, name)
        places = {}
        for each in inspect.signature(function).parameters.values():
            kind = {"rounds": "whole", "compact": "flag"}.get(each.name, "number")
            good = {"rounds": 9, "delta": 0.1, "compact": False}.get(each.name, 1.0)
            places[each.name] = Place(good, kind, each.default is None)
        yield Target(name, function, places)
    yield Target(
        "fit",
        nr.gp.fit,
        {
            "kernel": o(KERNEL),
            "X": p(POINTS),
            "y": p(VALUES),
            "noise": n(0.1, optional=True),
            "fit_noise": f(True),
            "fit_mean": f(),
            "prior": o("hvarfner", "text", optional=True),
            "restarts": w(0),
            "seed": w(0),
            "bounds": any_(None),
        },
    )
    yield Target(
        "log_marginal_likelihood",
        nr.gp.log_marginal_likelihood,
        {"kernel": o(KERNEL), "X": p(POINTS), "y": p(VALUES), "noise_variance": n(0.1)},
    )
    yield Target("Standardization", nr.gp.Standardization, {"mean": n(0.0), "std": n()}, lambda scale: scale.to([1.0]))
    yield Target("Standardization.of", nr.gp.Standardization.of, {"y": p(VALUES)})


def changes():
    schedule, kernel, domain = o(1.0, "schedule", optional=True), o(KERNEL), o(ARMS)
    rest = {"threshold": schedule, "ridge": schedule, "distance": o("average", "text"), "weights": any_(None)}
    yield Target(
        "detect_change",
        nr.theory.detect_change,
        {"points": p(POINTS), "rewards": p(VALUES), "kernel": kernel, "domain": domain, **rest},
        infinite=True,
    )
    yield Target("ChangeDetector", detector, {"kernel": kernel, "domain": domain, **rest}, infinite=True)
    yield Target(
        "detector.add",
        lambda point, reward: nr.theory.ChangeDetector(KERNEL, domain=ARMS).add(point, reward),
        {"point": p(0.25), "reward": n(0.5)},
        infinite=True,
    )
    yield Target(
        "calibrate_threshold",
        nr.theory.calibrate_threshold,
        {
            "kernel": kernel,
            "domain": domain,
            "noise": n(0.1),
            "count": w(4, optional=True),
            "exploration": n(),
            "rate": n(0.5),
            "runs": w(3),
            "seed": w(0),
            "exponent": n(-0.8, optional=True),
            "ridge": schedule,
            "distance": o("average", "text"),
            "weights": any_(None),
        },
        infinite=True,
    )
    yield Target("even_changes", environments.even_changes, {"rounds": w(9), "periods": w(2)})
    yield Target(
        "random_changes",
        environments.random_changes,
        {"rounds": w(9), "periods": w(2), "seed": any_(1), "shortest": w(1)},
    )
    regret, g = Place([0.1, 0.5, 0.2], "series"), Place([[0.1], [-0.5], [0.2]], "series")
    for name in ("cumulative_regret", "average_regret", "positive_regret"):
        yield Target(name, getattr(metrics, name), {"regret": regret})
    yield Target(
        "simple_regret",
        metrics.simple_regret,
        {"regret": regret, "answered": any_(None), "answered_by": any_(None)},
        infinite=True,
    )
    for name in ("violation", "strong_violation"):
        yield Target(name, getattr(metrics, name), {"constraints": g})
    yield Target("recent_violation", metrics.recent_violation, {"constraints": g, "rounds": w(2)})
    yield Target("regret_by_period", metrics.regret_by_period, {"regret": regret, "change_points": any_([1])})
    yield Target(
        "detections",
        metrics.detections,
        {"restarts": any_([2]), "change_points": any_([1]), "rounds": w(3)},
        infinite=True,
    )


def worlds():
    def best(points):
        return points[:, 0]

    env = nr.Environment(best, domain=ARMS, noise=0.1)
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
    yield Target(
        "Environment",
        simulated,
        {
            "reward": Place(best, "any"),
            "domain": o(ARMS),
            "noise": n(0.1),
            "delay": any_(None),
            "constraint_noise": any_(0.0),
            "change_points": any_(None),
            "contexts": o(None, optional=True),
            "context_order": any_(None),
            "best": any_(None),
            "interval": n(),
        },
    )
    yield Target(
        "what an environment returns",
        lambda value: simulated(reward=lambda _: value, domain=ARMS),
        {"value": Place(np.zeros(5), "any")},
    )
    yield Target("simulate", nr.simulate, {"policy": o(policy), "env": o(env), "rounds": w(2), "seed": w(0)})
    yield Target(
        "replicate",
        nr.replicate,
        {"make_policy": any_(lambda: policy), "make_env": any_(lambda: env), "rounds": w(2), "seeds": any_([1, 2])},
    )
    for label, part in (("FixedDelay", "rounds"), ("PoissonDelay", "mean"), ("GeometricDelay", "mean")):
        kind = "schedule" if part == "rounds" else "number"
        yield Target(
            label,
            getattr(delays, label),
            {part: Place(1.0, kind)},
            lambda delay: simulated(reward=best, domain=ARMS, delay=delay),
        )
    yield Target(
        "gp_sample",
        environments.gp_sample,
        {"kernel": o(KERNEL), "domain": o(ARMS), "seed": any_(1)},
        lambda function: function(ARMS.points),
    )
    yield Target(
        "rkhs_function",
        environments.rkhs_function,
        {
            "kernel": o(KERNEL),
            "domain": o(BOX),
            "seed": any_(1),
            "norm": n(1.0, optional=True),
            "centers": w(3, optional=True),
        },
        lambda function: function([0.5]),
    )
    yield Target(
        "rkhs_fit",
        environments.rkhs_fit,
        {"kernel": o(KERNEL), "arms": o(ARMS), "values": p([0.1] * 5), "regularization": n(0.1)},
        lambda function: function.norm,
    )
    yield Target(
        "drifting_samples",
        environments.drifting_samples,
        {"kernel": o(KERNEL), "arms": o(ARMS), "rounds": w(3), "rate": n(0.1), "seed": any_(1)},
        len,
    )
    yield Target("range_noise", environments.range_noise, {"values": p(VALUES), "share": n(0.01)})
    yield Target(
        "sensor_network",
        environments.sensor_network,
        {
            "training": p([[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]]),
            "held_out": p([[1.0, 2.0]]),
            "kernel": o("covariance", "text"),
            "center": o("global", "text"),
            "standardize": f(),
            "lowest": f(),
            "noise_share": n(0.05),
        },
    )


def targets():
    """All of them."""
    made = [*domains_and_kernels(), *parts(), *studies(), *theory(), *changes(), *worlds()]
    for name in sorted(set(algorithms.__all__) - set(algorithms.baselines.__all__)):
        made += of_algorithm(name)
    return made


# -- calls -----------------------------------------------------------------------------------------------------------


class Hang(BaseException):
    """A call that took too long."""


@contextlib.contextmanager
def limited(seconds):
    """Raise `Hang` in a block that takes longer; where there are no alarms nothing is limited."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def finite(result, infinite=False):
    """Whether every number in a result is one."""
    if isinstance(result, float | np.floating):
        return not np.isnan(result) and (infinite or not np.isinf(result))
    if isinstance(result, np.ndarray):
        if result.dtype.kind != "f":
            return True
        return not np.isnan(result).any() and (infinite or not np.isinf(result).any())
    if isinstance(result, list | tuple):
        return all(finite(item, infinite) for item in result)
    if isinstance(result, nr.simulation.Run):
        return finite([result.rewards, result.regret, result.points])
    return True


@dataclasses.dataclass
class Outcome:
    """What became of a call: "worked", "refused", or what is wrong with it."""

    what: str
    target: str
    arguments: dict[str, Any]
    error: BaseException | None = None

    def __str__(self):
        given = ", ".join(f"{name}={shown(value)}" for name, value in self.arguments.items())
        return f"{self.what}: {self.target}({given}) {type(self.error).__name__}: {self.error}"


def fuzzed(target, rng):
    """A call with one to three hostile arguments."""
    names = list(target.places)
    count = min(len(names), int(rng.choice([1, 1, 1, 2, 3])))
    chosen = rng.choice(names, count, replace=False)
    pools = {str(name): NUMBERS if rng.random() < 0.4 else EVERYTHING for name in chosen}
    replaced = {name: pool[int(rng.integers(len(pool)))] for name, pool in pools.items()}
    arguments = {name: replaced.get(name, place.good) for name, place in target.places.items()}
    bad = any(target.places[name].is_bad(value) for name, value in replaced.items())
    return attempt(target, arguments, replaced, bad=bad)


def attempt(target, arguments, replaced, *, bad):
    """Call it, and judge what comes of it."""
    error = None
    try:
        with limited(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is extreme but possible
            result = target.use(target.call(**arguments))
    except NoRegretError as refused:
        what = "refused" if str(refused) and len(str(refused)) < 2000 else "refused without or with too many words"
        error = refused
    except Hang:
        what = "hangs"
    except Exception as foreign:
        what, error = "foreign exception", foreign
    else:
        what = "worked" if finite(result, target.infinite) else "not finite"
        if bad:
            what = "accepted in silence"
    return Outcome(what, target.name, replaced, error)


def run(calls, *, seed=0):
    """So many calls; counts of what became of them, and those that went wrong."""
    everything, rng = targets(), np.random.default_rng(seed)
    counts, wrong = Counter(), []
    for number in range(calls):
        outcome = fuzzed(everything[number % len(everything)], rng)
        counts[outcome.what] += 1
        if outcome.what not in ("worked", "refused"):
            wrong.append(outcome)
    return counts, wrong
