"""Seeds that are simulated together, and those that are simulated one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from .._utils.blas import one_thread
from ..gp.arm_batches import low_rank
from ..gp.choice import posterior_on_arms
from ..policy.engines import table
from ..policy.policy import Policy
from ..study.cautions import NOISE, UNWANTED
from ..study.direction import AnyPolicy
from .environments import Environment
from .results import Run
from .together import ManyWorlds

MOST_SEEDS = 256  # The most seeds whose environments are in memory at once.
ROOM = 200_000  # The most numbers in the arrays of a round, which then stay in the processor's cache.

Outcome = tuple[Run, dict[str, str]]  # A run, and the warnings of its study by kind.
World = tuple[AnyPolicy, Environment]


def play(
    world: Callable[[int], World], alone: Callable[[AnyPolicy, Environment, int], Outcome], rounds: int,
    seeds: Sequence[int],
) -> list[Outcome]:  # fmt: skip
    """Returns the outcome of each seed. Worlds of equal policies advance together if their parts can.

    Args:
        world: returns the policy and the environment of a seed.
        alone: simulates a policy in an environment with a seed.
        rounds: rounds of each run.
        seeds: the seeds.
    """
    outcomes: list[Outcome] = []
    for chunk in shares(seeds, -(-len(seeds) // MOST_SEEDS)):
        outcomes += _chunk([world(seed) for seed in chunk], alone, rounds, chunk)
    return outcomes


def shares(seeds: Sequence[int], count: int) -> list[Sequence[int]]:
    """Returns the seeds in `count` parts, whose sizes differ by one at most, so that no seed is left over alone."""
    edges = [len(seeds) * part // count for part in range(count + 1)]
    return [seeds[first:last] for first, last in pairwise(edges)]


def unintended(env: Environment, said: dict[str, str]) -> dict[str, str]:
    """Returns the warnings that a simulation passes on.

    Policies that do not know the constraints or the changes are compared in an environment on purpose.
    """
    intended = {UNWANTED, NOISE} if env.change_points else {UNWANTED}
    return {kind: sentence for kind, sentence in said.items() if kind not in intended}


def _chunk(
    worlds: Sequence[World], alone: Callable[[AnyPolicy, Environment, int], Outcome], rounds: int, seeds: Sequence[int]
) -> list[Outcome]:
    groups: dict[tuple[Policy, bool, float], list[int]] = {}
    for place, (policy, env) in enumerate(worlds):
        if _can_join(policy, env):
            key = cast(Policy, policy), env.delay is None, env.interval
            groups.setdefault(key, []).append(place)
    found: dict[int, Outcome] = {}
    for key, places in groups.items():
        found |= _together(key[0], {place: worlds[place][1] for place in places}, rounds, seeds)
    return [
        found[place] if place in found else alone(policy, env, seeds[place])
        for place, (policy, env) in enumerate(worlds)
    ]


def _can_join(policy: AnyPolicy, env: Environment) -> bool:
    """Returns whether a world can advance together with others of its policy."""
    if not (isinstance(policy, Policy) and policy.batched and isinstance(env, Environment)):
        return False
    if env.constraint_count or policy.domain != env.domain or policy.context != env.contexts:
        return False
    try:
        return env.table(0) is not None
    except Exception:  # A function may fail under contexts that never come.
        return False


def _together(policy: Policy, envs: dict[int, Environment], rounds: int, seeds: Sequence[int]) -> dict[int, Outcome]:
    """Returns the outcomes by place. A world is missing if it must be simulated alone."""
    found: dict[int, Outcome] = {}
    if len(envs) == 1:  # Alone it is as fast.
        return found
    with one_thread:
        empty = low_rank(posterior_on_arms(table(policy.domain, policy.context), policy.kernel, policy.regularization))
        if empty is None:
            return found
        size, places = max(ROOM // (len(empty.plays) + empty.rank**2), 1), list(envs)
        for first in range(0, len(places), size):
            block = places[first : first + size]
            many = [envs[place] for place in block]
            try:
                worlds = ManyWorlds(policy, many, rounds, seeds=[seeds[p] for p in block], empty=empty)
                with np.errstate(all="ignore"):  # Rewards are checked at the end.
                    outcomes = worlds.run()
            except Exception:  # The first world alone that meets it raises it, in its words.
                continue
            for place, (run, said) in zip(block, outcomes, strict=True):
                found[place] = run, unintended(envs[place], said)
    return found
