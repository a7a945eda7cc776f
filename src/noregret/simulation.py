"""Runs of a policy in an environment: one replicate is a pure function, many run in processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from . import metrics
from .checks import Array, integer
from .environments import Environment
from .errors import InvalidInput
from .policy import Policy
from .randomness import simulation_generator
from .study import Study

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """What happened in T rounds; with replicates (`replicate`), every array has a leading axis of them.

    Attributes:
        points: what was played, `(T, d)`.
        arms: which arms, `(T,)`; -1 on continuous domains.
        contexts: what was known before each round, `(T, c)`; c = 0 without contexts.
        rewards: noisy rewards as seen, `(T,)`.
        regret: best expected reward minus the played point's, `(T,)`.
    """

    points: Array
    arms: npt.NDArray[np.intp]
    contexts: Array
    rewards: Array
    regret: Array

    @property
    def cumulative_regret(self) -> Array:
        """Sum of the regret up to each round, `(T,)`."""
        return metrics.cumulative_regret(self.regret)

    @property
    def average_regret(self) -> Array:
        """Cumulative regret divided by the number of rounds, `(T,)`."""
        return metrics.average_regret(self.regret)

    @property
    def simple_regret(self) -> Array:
        """Smallest regret of an answered round so far, `(T,)`."""
        return metrics.simple_regret(self.regret)


def simulate(policy: Policy, env: Environment, rounds: int, *, seed: int = 0) -> Run:
    """Let a policy decide in an environment; the same arguments give the same run.

    The noise of round t is the same whatever is played, so runs with equal seeds are paired.

    Args:
        policy: how to decide.
        env: where; its arms must be the policy's.
        rounds: how often, T >= 1.
        seed: of the policy's choices and, independently, of the noise.
    """
    rounds = integer("rounds", rounds, low=1)
    if not isinstance(policy, Policy) or not isinstance(env, Environment):
        raise InvalidInput(f"`simulate` takes a policy and an environment, not {policy!r} and {env!r}.")
    if policy.domain != env.domain or policy.context != env.contexts:
        raise InvalidInput(
            "The policy and the environment have different domains (or contexts): make both from the same."
        )
    rng = simulation_generator(integer("seed", seed, low=0))
    noise = env.noise * rng.standard_normal(rounds)
    ticks = iter(range(2 * rounds))
    study = Study(policy, seed=seed, clock=lambda: float(next(ticks)))
    regret = np.zeros(rounds)
    # One BLAS thread: these matrices are small, and sums then do not depend on how many processors there are.
    with blas_threads().limit(limits=1, user_api="blas"):
        for t in range(rounds):
            trial = study.ask(env.draw_context(rng))
            value, best = env.expected(trial)
            study.tell(trial, value + float(noise[t]))
            regret[t] = best - value
    trials = study.trials
    return Run(
        points=np.array([trial.point for trial in trials]),
        arms=np.array([-1 if trial.arm is None else trial.arm for trial in trials], dtype=np.intp),
        contexts=np.array([() if trial.context is None else trial.context for trial in trials]),
        rewards=np.array([trial.reward for trial in trials]),
        regret=regret,
    )


@cache
def blas_threads() -> ThreadpoolController:
    """Finding the loaded BLAS libraries takes a millisecond, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def replicate(
    make_policy: Callable[..., Policy],
    make_env: Callable[..., Environment],
    rounds: int,
    *,
    seeds: Sequence[int],
    jobs: int = 1,
) -> Run:
    """Independent runs, one for each seed, in `jobs` processes; the result does not depend on `jobs`.

    Args:
        make_policy: returns the policy of a replicate; called with its seed, or with nothing if it needs no argument.
        make_env: likewise for the environment.
        rounds: rounds of each run.
        seeds: one for each replicate.
        jobs: processes; -1 for one on every processor. Functions made on the spot (lambdas) may be used.
    """
    if isinstance(seeds, int) or len(seeds) == 0:
        raise InvalidInput(f"`seeds` must be a non-empty sequence such as range(30), not {seeds!r}.")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs == 0 or jobs < -1:
        raise InvalidInput(f"`jobs` is {jobs!r}: it must be a number of processes, or -1 for all processors.")

    if not callable(make_policy) or not callable(make_env):
        raise InvalidInput("`make_policy` and `make_env` are functions that return them, such as `lambda: policy`.")

    def one(seed: int) -> Run:
        return simulate(_made(make_policy, seed), _made(make_env, seed), rounds, seed=seed)

    runs = list(map(one, seeds)) if jobs == 1 else _in_processes(one, seeds, jobs)
    return Run(**{name: np.stack([getattr(run, name) for run in runs]) for name in Run.__dataclass_fields__})


def _in_processes(one: Callable[[int], Run], seeds: Sequence[int], jobs: int) -> list[Run]:
    import loky

    workers = min(loky.cpu_count() if jobs == -1 else jobs, len(seeds))
    with loky.ProcessPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(one, seeds, chunksize=-(-len(seeds) // (4 * workers))))


def _made(make: Callable[..., T], seed: int) -> T:
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except ValueError:  # some built-in callables have no signature
        return make(seed)
    # A first argument with a default is an option of the function, not a place for the seed, unless it is called so.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    takes_seed = bool(positional) and (positional[0].default is inspect.Parameter.empty or positional[0].name == "seed")
    return make(seed) if takes_seed else make()
