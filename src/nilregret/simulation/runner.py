"""Simulated runs of a policy in an environment, one at a time or many in processes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np

from .._utils.checks import LARGEST_SEED, integer, listed, many, shown
from .._utils.executors import check_executor, results_of
from .._utils.process_setting import one_thread
from ..environments import Environment
from ..errors import InvalidInput, warn
from ..gp.choice import posterior_on_arms
from ..gp.low_rank_arms import low_rank
from ..policy.engines import table
from ..policy.policy import Policy
from ..slots.switching import Switching
from ..study.cautions import NOISE, UNWANTED
from ..study.direction import AnyPolicy, check_policy
from .metrics import Run
from .one_run import Simulation, simulate_lazily
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


S = TypeVar("S")
T = TypeVar("T")
SEEDS = "They are one for each replicate, such as range(30)."
MOST_JOBS = 1000
MOST_ROUNDS = 10_000_000  # The record of a run is in memory.

START = 1.0  # Seconds until processes have imported everything and returned a first result.
IDLE = 30.0  # Seconds that idle processes wait for the next call.


def simulate(
    policy: AnyPolicy, env: Environment, rounds: int, *, seed: int = 0, switching: str | Switching | None = None
) -> Run:
    """Runs a policy in an environment. The same arguments give the same run.

    The noise of round t is the same for all decisions, so runs with equal seeds are paired.

    Args:
        policy: the policy.
        env: the environment, with the domain of the policy.
        rounds: number of rounds, T >= 1.
        seed: seed of the policy's choices and, independently, of the noise.
        switching: "lazy", or a part such as `nr.slots.Lazy(factor=1.1)`, for the slot of the policy. The policy then
            decides rarely and repeats plays. The memory for the run does not grow with T: `run.entries` has a row for
            each decision, and the arrays of rounds are computed on access.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> env = nr.Environment(lambda x: -((x[:, 0] - 0.3) ** 2), domain=arms, noise=0.1)
    >>> run = nr.simulate(nr.gp_ucb(arms, kernel, noise=0.1), env, 50, seed=0)
    >>> run.regret.shape, bool(run.simple_regret[-1] < 0.1)
    ((50,), True)
    """
    if switching is not None:
        if not isinstance(policy, Policy):
            raise InvalidInput(f"`switching` is a slot of a `Policy`, and {shown(policy)} has none: leave it out.")
        policy = policy.using(switching=switching)
    run, unsaid = simulated(policy, env, rounds, seed=seed)
    _warn(unsaid)
    return run


def _warn(unsaid: dict[str, str]) -> None:
    """Warns of each kind once, at the line that called `simulate` or `replicate`."""
    for kind, sentence in unsaid.items():
        if kind != "multipliers" or "saturated" not in unsaid:  # The warning about saturation includes the other one.
            warn(sentence)


def simulated(policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> tuple[Run, dict[str, str]]:
    """Returns the run, and the warnings of its study by kind."""
    rounds = integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    check_fit(policy, env)
    # With one BLAS thread sums do not depend on the number of processors, and small matrices are faster.
    if isinstance(policy, Policy) and policy.switching is not None:
        with one_thread:
            return simulate_lazily(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
    with one_thread:
        simulation = Simulation(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
        run, unsaid = simulation.run(), simulation.player.held_warnings
    return run, unintended(env, unsaid)


def check_fit(policy: AnyPolicy, env: Environment) -> None:
    """Raises `InvalidInput` if the policy cannot play in the environment."""
    check_policy(policy)
    if not isinstance(env, Environment):
        raise InvalidInput(f"`simulate` takes a policy and an environment, not {shown(env)}.")
    if policy.objective_count > 1:
        raise InvalidInput(
            f"The policy has {policy.objective_count} objectives, and a simulation is about the regret of one reward.",
            advice="`nr.maximize(f, space, objectives=..., policy=...)` plays it, and `result.study.hypervolume()` is "
            "the volume of its front.",
        )
    if policy.domain != env.domain or policy.context != env.contexts:
        raise InvalidInput(
            "The policy and the environment have different domains (or contexts): make both from the same."
        )
    if policy.constraint_count != env.constraint_count and policy.constraint_count:
        raise InvalidInput(
            f"The policy has {many(policy.constraint_count, 'constraint')} and the environment {env.constraint_count}: "
            "without their values nothing would be learned. Give the environment `constraints=`."
        )


def replicate(
    make_policy: Callable[..., AnyPolicy],
    make_env: Callable[..., Environment],
    rounds: int,
    *,
    seeds: Sequence[int],
    jobs: int = 1,
    executor: Executor | None = None,
) -> Run:
    """Returns independent runs, one for each seed. The result does not depend on `jobs` or `executor`.

    On arms the seeds of equal policies advance together, many times faster, and make the choices that each makes alone.
    Policies with windows, restarts, fits, forced rounds, constraints or parts of your own run one by one. So do kernels
    that need more than 128 features on the arms. `Run.batched` is False if any seed was played alone.

    Args:
        make_policy: returns the policy of a replicate. Called with the seed, or without arguments if it needs none.
        make_env: returns the environment of a replicate. Called in the same way.
        rounds: rounds of each run.
        seeds: one seed for each replicate.
        jobs: number of processes, -1 for one on every processor. Lambdas may be used. A short job runs in this process,
            if it would end before other processes have started. Other processes stay for half a minute, for the next
            call.
        executor: any `concurrent.futures.Executor` to use instead, such as `client.get_executor()` of a Dask cluster.
            The executor is not shut down. Those of the standard library need functions that can be imported.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1)
    >>> env = nr.Environment(lambda x: -((x[:, 0] - 0.3) ** 2), domain=arms, noise=0.1)
    >>> runs = nr.replicate(lambda: policy, lambda: env, 50, seeds=range(4))
    >>> runs.cumulative_regret.shape, runs.batched
    ((4, 50), True)
    """
    run, unsaid = replicated(make_policy, make_env, rounds, seeds=seeds, jobs=jobs, executor=executor)
    _warn(unsaid)
    return run


def replicated(
    make_policy: Callable[..., AnyPolicy],
    make_env: Callable[..., Environment],
    rounds: int,
    *,
    seeds: Sequence[int],
    jobs: int,
    executor: Executor | None = None,
) -> Outcome:
    """Returns the runs of `replicate`, and their warnings by kind."""
    rounds, seeds = integer("rounds", rounds, low=1, high=MOST_ROUNDS), checked_seeds(seeds)
    jobs = integer("jobs", jobs, low=-1, high=MOST_JOBS, why="It is a number of processes, or -1 for all processors.")
    if jobs == 0:
        raise InvalidInput("`jobs` is 0: it must be a number of processes, or -1 for all processors.")

    if not callable(make_policy) or not callable(make_env):
        raise InvalidInput("`make_policy` and `make_env` are functions that return them, such as `lambda: policy`.")

    check_executor(executor)
    if executor is not None and jobs != 1:
        raise InvalidInput(
            "`jobs` is for processes of this call's own; an `executor` has its workers: give one of both."
        )
    run_some = partial(_run_some, make_policy, make_env, rounds)
    if executor is None and jobs == 1:
        results = run_some(seeds)
    else:
        workers = _workers(jobs if executor is None else -1, seeds)
        together = getattr(by_seed(make_policy)(seeds[0]), "batched", False)
        blocks = shares(seeds, max(1, min(4 * workers, len(seeds) // 2)) if together else len(seeds))
        found = _in_processes(run_some, blocks, workers) if executor is None else results_of(executor, run_some, blocks)
        results = [outcome for block in found for outcome in block]
    runs = [run for run, _ in results]
    arrays = [name for name in Run.__dataclass_fields__ if name not in ("restarts", "entries", "batched")]
    stacked: dict[str, Any] = {name: np.stack([getattr(run, name) for run in runs]) for name in arrays}
    restarts, batched = tuple(run.restarts for run in runs), all(run.batched for run in runs)
    return Run(**stacked, restarts=restarts, batched=batched), _of_all(results)


def checked_seeds(seeds: Sequence[int]) -> list[int]:
    """Returns the seeds of the replicates after checks."""
    checked = [integer("seeds", seed, low=0, high=LARGEST_SEED) for seed in listed("seeds", seeds, why=SEEDS)]
    if not checked:
        raise InvalidInput(f"`seeds` is empty. {SEEDS}")
    return checked


def _run_some(
    make_policy: Callable[..., AnyPolicy], make_env: Callable[..., Environment], rounds: int, seeds: Sequence[int]
) -> list[Outcome]:
    policy_of, env_of = by_seed(make_policy), by_seed(make_env)
    return _play(lambda seed: (policy_of(seed), env_of(seed)), rounds, seeds)


def _play(world: Callable[[int], World], rounds: int, seeds: Sequence[int]) -> list[Outcome]:
    return play(world, lambda policy, env, seed: simulated(policy, env, rounds, seed=seed), rounds, seeds)


def simulate_all(worlds: Mapping[int, World], rounds: int) -> list[Run]:
    """Returns the run of each policy in its environment, by seed. Equal policies advance together as in `replicate`."""
    results = _play(worlds.__getitem__, rounds, list(worlds))
    _warn(_of_all(results))
    return [run for run, _ in results]


def _of_all(results: Sequence[Outcome]) -> dict[str, str]:
    """Returns the warnings of all runs. Of each kind it is that of the first run."""
    return {kind: sentence for _, sentences in reversed(results) for kind, sentence in sentences.items()}


def _workers(jobs: int, seeds: Sequence[int]) -> int:
    import loky

    return min(loky.cpu_count() if jobs == -1 else jobs, len(seeds))


def _in_processes(run_some: Callable[[S], T], blocks: Sequence[S], workers: int) -> list[T]:
    """Returns the results for all blocks of seeds, from this process at first, and from others if that is faster."""
    import loky

    done: list[T] = []
    began = time.perf_counter()
    for block in blocks:
        left = len(blocks) - len(done)
        if done and (time.perf_counter() - began) / len(done) * left * (1.0 - 1.0 / workers) > START:
            break
        done.append(run_some(block))
    rest = blocks[len(done) :]
    if not rest:
        return done
    pool = loky.get_reusable_executor(max_workers=workers, timeout=IDLE)
    try:
        done.extend(pool.map(run_some, rest, chunksize=-(-len(rest) // (4 * workers))))
    except BaseException:  # After an error or an interrupt running calls are ended.
        pool.shutdown(wait=True, kill_workers=True)
        raise
    return done


def by_seed(make: Callable[..., T]) -> Callable[[int], T]:
    """Returns a function that calls `make` with a seed if it takes one."""
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except ValueError:  # Some built-in functions have no signature.
        return make
    # A first argument with a default is an option of the function and takes no seed, unless its name is `seed`.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    takes_seed = bool(positional) and (positional[0].default is inspect.Parameter.empty or positional[0].name == "seed")
    return make if takes_seed else lambda _: make()
