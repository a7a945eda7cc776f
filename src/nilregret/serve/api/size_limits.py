"""Limits on the size of a study that a caller puts, checked before anything is made.

A few words describe a grid of a million arms, or a search over a million candidates in each decision. A caller could so
take the memory and the processor time that all studies share.

The memory of the posterior of a policy is computed before the posterior is made.
A short request can describe thousands of arms with a rough kernel, under which hardly any two arms are correlated. The
memory then grows with the square of the number of arms, and with the rates of a bank or the constraints. On boxes and
under continuous contexts a request can describe kernels with many features.

| part | numbers in memory |
|---|---|
| features of N arms of rank r (smooth kernels) | N r + r^2 |
| columns of the u arms played (rough kernels) | N u + u^2 |
| a joint draw of all arms (Thompson sampling on a rough kernel) | N^2, and N (r + u) of more than `MOST_JOINT` arms |
| a function that drifts, for each of J rates | J r^2, several times |
| K blocks of r features, on boxes and under continuous contexts | K r^2 |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..._utils.checks import shown
from ..._utils.numerals import exact
from ...domains.domain import Arms, Domain, Space
from ...errors import InvalidInput
from ...gp.arms import MOST_JOINT, PIVOTS, Prior
from ...gp.binomial_counts import MOST_FEATURES as RATES
from ...gp.choice import features_at_points
from ...gp.context_bank import numbers_held
from ...gp.distinct_arms import FEW
from ...gp.drifting import FEWEST, TOLERANCE
from ...gp.feature_maps import arm_columns
from ...gp.linear_model import Candidate
from ...gp.low_rank_arms import MAX_RANK
from ...kernels import Kernel
from ...kernels.factorization import factor_of_arms, pivoted_cholesky, tolerance
from ...policy.engines.base import table
from ...policy.policy import Policy
from ...policy.trained_posterior import noise_told
from ...serialize import DEEPEST, from_plain
from ...study.direction import AnyPolicy
from ..wire.settings import Limits

BYTES = 8  # of a number
PLAYED = 1000  # distinct arms that the estimate assumes to be played; each one more takes a column
AT_A_DRAW = 3  # matrices of all arms while one matrix is factored
AT_WORK = 3  # posteriors of a drifting function besides the stored ones of earlier rounds
WORK = 1e9  # multiplications for the features of a drifting function: about half a second


def check_posterior(policy: AnyPolicy, limits: Limits) -> None:
    """Refuses a policy whose posterior would be too large.

    Raises:
        InvalidInput: the posterior would be too large.
    """
    if not isinstance(policy, Policy):
        return
    if policy.models is not None:
        _check_models(policy.models, policy, limits)
        return
    room = limits.posterior_bytes / BYTES
    if not policy.finite:
        _check_features(policy, room)
        return
    arms = table(policy.domain, policy.context)
    known: dict[tuple[Kernel, tuple[float, ...], bool], float] = {}
    for kernel, ridges, draws in _posteriors(policy):
        key = kernel, ridges, draws
        if key not in known:
            known[key] = _numbers(Prior(kernel, arms.points), ridges, policy, room, draws=draws)
        room -= known[key] * (2 if policy.pending.hallucinates else 1)
        if room < 0:
            raise InvalidInput(
                f"The posterior of this policy on {len(arms):,} arms would hold more than the "
                f"{limits.posterior_bytes / 2**20:,.0f} MB that this service takes, or take too long to begin: its "
                "kernel is so rough that hardly an arm says anything of another. Take fewer arms, a longer lengthscale "
                "or a smoother kernel, or leave out what multiplies it (rates of a bank, Thompson sampling, "
                "constraints)."
            )


def _check_features(policy: Policy, room: float) -> None:
    """Refuses a policy at points with too many features. Other memory there grows with the answers only."""
    dimension = policy.domain.dimension + (0 if policy.context is None else policy.context.dimension)
    arms, known = arm_columns(policy.domain, dimension), 0
    for kernel, ridges, _ in _posteriors(policy):
        span = features_at_points(kernel, dimension, arms)
        numbers = 0 if span is None else span.blocks * span.size**2
        known += numbers * len(ridges) * (2 if policy.pending.hallucinates else 1)
    if known > room:
        raise InvalidInput(
            f"The posterior of this policy would hold {known * BYTES / 2**20:,.0f} MB for the features of its kernels, "
            f"more than the {room * BYTES / 2**20:,.0f} MB that this service takes. Take fewer features "
            "(`RandomFeatures`, products of `Linear`), or fewer kernels (those of a bank, constraints)."
        )


def _check_models(models: tuple[Candidate, ...], policy: Policy, limits: Limits) -> None:
    """Raises an error if linear models of arms under contexts would be too large."""
    columns = 0 if policy.context is None else policy.context.dimension
    arms = policy.domain
    held = numbers_held(models, arms, columns) if isinstance(arms, Arms) else 0
    if BYTES * held * policy.output_count > limits.posterior_bytes:
        raise InvalidInput(
            f"The models of this policy on {len(arms):,} arms would hold more than the "
            f"{limits.posterior_bytes / 2**20:,.0f} MB that this service takes: take fewer arms, or fewer columns of "
            "the context."
        )


def _posteriors(policy: Policy) -> Iterator[tuple[Kernel, tuple[float, ...], bool]]:
    """Yields kernel, regularizations and whether there are joint draws, for each posterior of the policy.

    If lambda is not the noise that was given, a bank also has posteriors with that noise.
    """
    ridge, judging = policy.regularization, noise_told(policy, policy.regularization)
    bank = None if policy.refit is None else policy.refit.bank(policy.kernel, len(policy.sides), 0, judging)
    if bank is not None:
        for kernel, variance in itertools.product(bank.kernels, bank.variances(ridge)):
            yield kernel, (variance,), policy.score.draws
    else:
        yield policy.kernel, (ridge,) if judging is None else (ridge, judging), policy.score.draws
    for j in range(0 if policy.constraints is None else policy.constraints.count):
        own = policy.of_channel(j + 1)
        judging = noise_told(own, own.regularization)
        yield own.kernel, (own.regularization,) if judging is None else (own.regularization, judging), False


def _drawn(policy: Policy, count: int, played: int) -> float:
    """Returns how many numbers joint draws take beside the posterior."""
    own = len(policy.domain) if isinstance(policy.domain, Arms) else count  # arms under one context
    if own > FEW * count:
        own = count
    return float(AT_A_DRAW * own**2 if own <= MOST_JOINT else count * (PIVOTS + played))


def _numbers(prior: Prior, ridges: tuple[float, ...], policy: Policy, room: float, *, draws: bool) -> float:
    """Returns how many numbers one posterior holds, or infinity if there is no room for them."""
    if policy.objective.learned(policy) is not None:  # rewards that are clicks or counts, with any kernel
        return float(2 * len(prior.points) * RATES)
    count, drift, tol = len(prior.points), policy.memory.drift(), tolerance(prior.variance, ridges[0])
    if drift is None:
        found = factor_of_arms(prior.kernel, prior.points, tol=tol, max_rank=MAX_RANK)
        rank = found.features.shape[1]
        if found.complete:
            return float(2 * count * rank + rank * rank)
        played = min(count, PLAYED)
        return float(count * played + played**2) + (_drawn(policy, count, played) if draws else 0.0)
    rates, copies = 1, FEWEST + AT_WORK
    if isinstance(drift, tuple):
        least = min(ridges)
        rates, tol = len(drift) * len(ridges), max(tolerance(prior.variance, least), TOLERANCE * least)
    most = math.isqrt(int(min(room / (rates * copies), WORK / count))) + 1
    found = pivoted_cholesky(prior.kernel, prior.points, tol=tol, max_rank=min(most, count))
    rank = found.features.shape[1]
    return float(count * rank + copies * rates * rank * rank) if found.complete else math.inf


# The largest values of entries of a policy, by class: some ten times the defaults.
MOST: dict[str, dict[str, float]] = {
    "PointSearch": {
        "candidates": 8192, "around": 1024, "starts": 64, "evaluations": 200, "mutations": 4096, "incumbents": 64,
    },
    "Refit": {"restarts": 20},
    "Sketch": {"most": 2000, "oversampling": 100.0},
    "Pareto": {"objectives": 5, "limits": 100},  # the time of a volume grows by some ten times with each objective
    "EveryRound": {"count": 100}, "OnAverage": {"count": 100}, "Safe": {"count": 100},
    "AdditivePenalty": {"constraints": 100}, "MultiplicativePenalty": {"constraints": 100},
    "NearestMeans": {"neighbours": 1000},
    "InitialDesign": {"rounds": 10_000},
}  # fmt: skip
LISTED = {"DriftBank": {"rates": 64}, "Safe": {"start": 1000, "slope": 1000}}  # the largest number of entries in a list


def check_columns(space: Space, limits: Limits) -> None:
    """Refuses a space with too many columns."""
    if space.dimension > limits.columns:
        raise InvalidInput(
            f"These parameters have {space.dimension} columns, one for each number and one for each option of a "
            f"choice, and this service takes {limits.columns}. Leave out what hardly matters."
        )


def check_arms(count: int, limits: Limits) -> None:
    """Refuses too many arms."""
    if count > limits.arms:
        raise InvalidInput(
            f"There are {count:,} arms, and this service takes {limits.arms:,} of a study. Give the parameters "
            "without a grid, which are then searched, or say with each decision which points may be played (`among`)."
        )


def check_policy(described: Mapping[str, Any], limits: Limits) -> None:
    """Refuses a policy that would be too large.

    Args:
        described: policy as `Policy.to_json` writes it. May hold anything at all.
        limits: of the service.
    """
    for count, part in enumerate(_parts(described, DEEPEST)):
        if count >= limits.parts:
            raise InvalidInput(f"The policy has more than {limits.parts} parts, and this service takes no more.")
        _check_numbers(part)
        _check_domain(part, limits)
    check_arms(_arms(described.get("domain"), limits) * _arms(described.get("context"), limits), limits)


def _parts(data: Any, levels: int) -> Iterator[Mapping[str, Any]]:
    """Yields the descriptions within a description, outermost first."""
    if not isinstance(data, dict | list) or levels == 0:  # the parser refuses deeper descriptions
        return
    if isinstance(data, dict):
        yield data
    for each in data.values() if isinstance(data, dict) else data:
        yield from _parts(each, levels - 1)


def _check_numbers(part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if not isinstance(kind, str):
        return
    for name, most in MOST.get(kind, {}).items():
        value = part.get(name)
        if isinstance(value, int | float) and value > most:
            raise InvalidInput(f"`{name}` of `{kind}` is {shown(value)}, and this service takes at most {exact(most)}.")
    for name, most in LISTED.get(kind, {}).items():
        value = part.get(name)
        if isinstance(value, list) and len(value) > most:
            raise InvalidInput(f"`{name}` of `{kind}` has {len(value)} entries, and this service takes {exact(most)}.")


def _check_domain(part: Mapping[str, Any], limits: Limits) -> None:
    if part.get("type") == "Space":
        space = from_plain(part)
        check_columns(space, limits)
    check_arms(_arms(part, limits), limits)
    for name in ("lower", "points"):
        values = part.get(name)
        if part.get("type") in ("Box", "Arms") and isinstance(values, list) and values:
            row = values if name == "lower" else values[0]
            if isinstance(row, list) and len(row) > limits.columns:
                raise InvalidInput(f"Points have {len(row)} coordinates, and this service takes {limits.columns}.")


def _arms(domain: Any, limits: Limits) -> int:
    """Returns the number of arms in the description of a domain. 1 means other domains."""
    if not isinstance(domain, dict) or domain.get("type") != "Arms":
        return 1
    points, counts = domain.get("points"), domain.get("counts")
    if not isinstance(counts, list):
        return len(points) if isinstance(points, list) else 1
    space = from_plain(domain.get("space"))
    pairs = [each for each in counts if isinstance(each, list) and len(each) == 2]
    if not isinstance(space, Space) or len(pairs) < len(counts):
        raise InvalidInput("A grid is described by its `space` and by `counts`, a list of [name, number].")
    return len(gridded(space, {str(name): steps for name, steps in pairs}, limits))


def gridded(space: Space, steps: int | Mapping[str, int], limits: Limits) -> Arms:
    """Returns the grid of a space, and refuses one that is too large before it is made."""
    check_columns(space, limits)
    return space.grid(steps, most=limits.arms)


def check_made(domain: Domain, context: Space | None, limits: Limits) -> None:
    """Refuses points with contexts of too many columns."""
    columns = domain.dimension + (0 if context is None else context.dimension)
    if columns > limits.columns:
        raise InvalidInput(
            f"A point and its context have {columns} columns, one for each number and one for each option of a choice, "
            f"and this service takes {limits.columns}. Leave out what hardly matters."
        )
