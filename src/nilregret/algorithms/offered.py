"""The algorithms that `[policy]` of a file may name, and the options of each, in explicit tables.

An option of an algorithm is in its table or in `LEFT_OUT`, with the reason; a test fails where it is in neither.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from .. import algorithms
from ..policy.policy import Policy
from .auto import auto
from .sections import Section

Inner = dict[str, Any]  # a table within a table, which has a reader of its own

NAMED = ("memory", "pending")  # slots whose filling a name may say
# What no file can say of any algorithm, and why.
LEFT_OUT = {
    "domain": "it is made of [parameters] and `grid`",
    "context": "contexts are for programs that ask and tell by themselves",
    "constraints": "[objective] says what must be satisfied, as in constraints = ['latency <= 50']",
    "reward": "clicks and counts come one by one, to programs that ask and tell by themselves",
    "switching": "each trial of a file is evaluated once; runs of equal plays are for programs that ask and tell",
    "change_points": "of a real objective nobody knows them",
}
# Likewise where programs ask and tell by themselves: what stands beside the policy.
LEFT_OUT_LIVE = {
    "domain": "it is made of the parameters, or of the arms",
    "context": "it stands beside the policy",
    "constraints": "how many there are stands beside the policy, and in which sense they hold is this algorithm's own",
    "change_points": LEFT_OUT["change_points"],
}
_CONSTRAINED = (
    "needs constraint values with every reward, told from Python: `study.tell(trial, reward, constraints=g)`. "
    "Any other algorithm takes constraints = ['latency <= 50'] in [objective]."
)
ALGORITHMS_LEFT_OUT = {
    "gp_ucb_noiseless_constraints": _CONSTRAINED,
    "gp_ucb_noisy_constraints": _CONSTRAINED,
}


def _algorithm(make: Callable[..., Policy], *needed: str, slots: tuple[str, ...], **own: Any) -> Section:
    """The table of an algorithm: its own options, and the slots that it does not fill itself."""
    every = {"kernel": Inner, "noise": float, **own, "delta": float, "regularization": float, "prior_mean": float}
    every |= {slot: str | Inner if slot in NAMED else Inner for slot in slots}
    needs = ("kernel", "noise", *needed)
    optional = {name: kind for name, kind in every.items() if name not in needs}
    return Section(make, {name: every[name] for name in needs}, optional, LEFT_OUT)


_FREE = ("memory", "explore", "pending", "search", "refit")
_WAITING = ("memory", "explore", "search", "refit")  # of those that fill `pending` themselves
_WIDTH: dict[str, Any] = {"width": str | Inner}
_NORM: dict[str, Any] = {"norm_bound": float, "guess_norm": bool, "information_gain": str | float}
_CHOWDHURY: dict[str, Any] = {"horizon": int, **_WIDTH, **_NORM, "v": float | Inner}
_IMPROVEMENT: dict[str, Any] = {"incumbent": str, "margin": float, **_WIDTH}
_CENSORING: dict[str, Any] = {
    "window": float, "minimum": float, "reward_bound": float, "norm_bound": float, "beta": float, **_WIDTH,
    "late": str, "horizon": int | str, "information_gain": str | float,
}  # fmt: skip

ALGORITHMS = {
    "asy_ts": _algorithm(algorithms.asy_ts, slots=_WAITING, beta=float, **_WIDTH),
    "auto": Section(
        auto, {}, {"noise": float, "budget": int, "parallel": int, "world": str, "answers": str}, LEFT_OUT
    ),
    "expected_improvement": _algorithm(algorithms.expected_improvement, slots=_FREE, **_IMPROVEMENT),
    "gp_bts": _algorithm(algorithms.gp_bts, slots=_WAITING, beta=float, **_WIDTH),
    "gp_bucb": _algorithm(
        algorithms.gp_bucb, slots=_WAITING, beta=float, inflation=str | float, initial=int, **_WIDTH
    ),
    "gp_ts": _algorithm(
        algorithms.gp_ts, slots=_FREE, **_CHOWDHURY, lipschitz=float | str, grid=float, growth=float
    ),
    "gp_ts_sdf": _algorithm(algorithms.gp_ts_sdf, "window", slots=_WAITING, **_CENSORING),
    "gp_ucb": _algorithm(
        algorithms.gp_ucb, slots=_FREE, **_WIDTH, scale=float, a=float, b=float, r=float, series=float | Inner, **_NORM
    ),
    "gp_ucb_cpd": _algorithm(
        algorithms.gp_ucb_cpd, "horizon", slots=("pending", "search", "refit"),
        horizon=int, exploration=float, threshold=float | Inner, ridge=float | Inner, distance=str, detector=str,
        **_WIDTH, constant=float, log_power=float, norm_bound=float, information_gain=str | float, alpha=float,
    ),
    "gp_ucb_sdf": _algorithm(algorithms.gp_ucb_sdf, "window", slots=_WAITING, **_CENSORING),
    "greedy_mean": _algorithm(algorithms.greedy_mean, slots=_FREE, **_WIDTH),
    "greedy_variance": _algorithm(algorithms.greedy_variance, slots=_FREE, **_WIDTH),
    "igp_ucb": _algorithm(algorithms.igp_ucb, slots=_FREE, **_CHOWDHURY),
    "irgp_ucb": _algorithm(algorithms.irgp_ucb, slots=_FREE, shift=str, a=float, b=float, r=float),
    "kernel_ucb": _algorithm(algorithms.kernel_ucb, "eta", slots=_FREE, eta=float, horizon=int),
    "lb_gp_ucb": _algorithm(
        algorithms.lb_gp_ucb, "norm_bound", slots=("memory", "explore", "pending", "search"), norm_bound=float,
        factors=list[float], growth=float, **_WIDTH,
    ),
    "probability_of_improvement": _algorithm(algorithms.probability_of_improvement, slots=_FREE, **_IMPROVEMENT),
}  # fmt: skip

_EPOCHS: dict[str, Any] = {
    "epoch": int, "epochs": int, "norm_bound": float, "solver": str, "information_gain": str | float,
}  # fmt: skip
_LIVE = {"reward": str | Inner, "switching": str | Inner, "constraints": str | Inner}
IN_EPOCHS = {  # they heed constraint values, each in its own way
    "gp_ucb_noiseless_constraints": _algorithm(
        algorithms.gp_ucb_noiseless_constraints, "epoch", "epochs", slots=("explore", "pending", "search"), **_EPOCHS,
        penalty=str, c=float, n=float,
    ),
    "gp_ucb_noisy_constraints": _algorithm(
        algorithms.gp_ucb_noisy_constraints, "epoch", "epochs", slots=("explore", "pending", "search"), **_EPOCHS,
        step=float,
    ),
}  # fmt: skip


_BY_COUNT = {described.make for described in IN_EPOCHS.values()}


def _live(described: Section) -> Section:
    """An algorithm for programs that ask and tell: rewards may be clicks and counts, and a choice be played often."""
    options = signature(described.make).parameters
    more = {name: kind for name, kind in _LIVE.items() if name in options}
    if described.make in _BY_COUNT:
        more.pop("constraints", None)
    needed = {name: kind for name, kind in described.needed.items() if name != "noise" or "reward" not in more}
    noise = {name: kind for name, kind in described.needed.items() if name not in needed}
    allowed = {**noise, **described.allowed, **more}
    refused = {name: why for name, why in LEFT_OUT_LIVE.items() if name not in allowed}
    return Section(described.make, needed, allowed, refused, where="in a policy")


ALGORITHMS_LIVE = {name: _live(described) for name, described in sorted({**ALGORITHMS, **IN_EPOCHS}.items())}
