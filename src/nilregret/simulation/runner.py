"""Simulated runs of a policy in an environment, one at a time or many in processes."""

from __future__ import annotations

import heapq
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

import numpy as np

from .._utils.blas import one_thread
from .._utils.checks import LARGEST_SEED, Array, integer, listed, many, shown
from .._utils.errors import InvalidInput, NoRegretWarning
from .._utils.executors import check_executor, results_of
from .._utils.randomness import simulation_generator
from ..policy.policy import Policy
from ..slots.switching import Switching
from ..study.direction import AnyPolicy, has_channels
from ..study.study import Study, check_policy
from .batches import Outcome, play, unintended
from .environments import Environment
from .environments.delays import Delay
from .lazy_simulation import simulate_lazily
from .results import Run

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
    """
    if switching is not None:
        if not isinstance(policy, Policy):
            raise InvalidInput(f"`switching` is a slot of a `Policy`, and {shown(policy)} has none: leave it out.")
        policy = policy.using(switching=switching)
    run, unsaid = _simulate(policy, env, rounds, seed=seed)
    _warn(unsaid)
    return run


def _warn(unsaid: dict[str, str]) -> None:
    """Warns of each kind once, at the line that called `simulate` or `replicate`."""
    for kind, sentence in unsaid.items():
        if kind != "multipliers" or "saturated" not in unsaid:  # The warning about saturation includes the other one.
            warnings.warn(NoRegretWarning(sentence), stacklevel=3)


def _simulate(policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> tuple[Run, dict[str, str]]:
    """Returns the run, and the warnings of its study by kind."""
    rounds = integer("rounds", rounds, low=1, high=MOST_ROUNDS)
    check_policy(policy)
    if not isinstance(env, Environment):
        raise InvalidInput(f"`simulate` takes a policy and an environment, not {shown(env)}.")
    if policy.domain != env.domain or policy.context != env.contexts:
        raise InvalidInput(
            "The policy and the environment have different domains (or contexts): make both from the same."
        )
    if policy.constraint_count != env.constraint_count and policy.constraint_count:
        raise InvalidInput(
            f"The policy has {many(policy.constraint_count, 'constraint')} and the environment {env.constraint_count}: "
            "without their values nothing would be learned. Give the environment `constraints=`."
        )
    # With one BLAS thread sums do not depend on the number of processors, and small matrices are faster.
    if isinstance(policy, Policy) and policy.switching is not None:
        with one_thread:
            return simulate_lazily(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
    with one_thread:
        simulation = _Simulation(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
        run, unsaid = simulation.run(), simulation.study.held_warnings
    return run, unintended(env, unsaid)


class _Simulation:
    """The state of one run, with the answers that are not delivered yet."""

    def __init__(self, policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> None:
        self.env, self.rounds = env, rounds
        self.now = 0.0  # Seconds.
        self.study = Study(policy, seed=seed, clock=lambda: self.now)
        self.study.quiet = True  # The caller warns at the end, once for all replicates.
        self.contexts = simulation_generator(seed, "rewards")
        self.noise = env.noise * self.contexts.standard_normal(rounds)
        m = env.constraint_count
        self.g = np.zeros((rounds, m))
        self.multipliers = np.full((rounds, m), np.nan)
        self.observed_g = np.zeros((rounds, m))
        if m:
            self.observed_g = env.draw_constraint_noise(simulation_generator(seed, "constraints"), rounds)
        self.rewards, self.regret = np.zeros(rounds), np.zeros(rounds)
        self.answered_by = np.full(rounds, rounds, dtype=np.intp)
        self.limited_by = self.answered_by.copy()
        self.rewards_due = _Deliveries(env.delay, simulation_generator(seed, "delays"))
        # Constraint values that are told separately. None if they come with the reward.
        self.constraints_due: _Deliveries | None = None
        if env.constraint_delay is not None:
            self.constraints_due = _Deliveries(env.constraint_delay, simulation_generator(seed, "constraint delays"))
        # A policy that learns from both together is told a reward when both are known.
        self.together = self.constraints_due is not None and policy.constraint_count > 0 and not has_channels(policy)
        self.waiting: set[int] = set()  # Trials whose rewards wait for their constraint values.

    def run(self) -> Run:
        for t in range(self.rounds):
            self._play(t)
            self._deliver(t)
            self.now += self.env.interval
        trials = self.study.trials
        return Run(
            points=np.array([trial.point for trial in trials]),
            arms=np.array([-1 if trial.arm is None else trial.arm for trial in trials], dtype=np.intp),
            contexts=np.array([() if trial.context is None else trial.context for trial in trials]),
            explored=np.array([trial.explored for trial in trials]),
            rewards=self.rewards,
            regret=self.regret,
            answered_by=self.answered_by,
            limited_by=self.limited_by if self.constraints_due is not None else self.answered_by,
            constraints=self.g,
            told_constraints=self.observed_g,
            multipliers=self.multipliers,
            restarts=tuple(self.study.restarts),
        )

    def _play(self, t: int) -> None:
        env = self.env
        trial = self.study.ask(env.draw_context(self.contexts, t))
        value, best = env.expected(trial)
        self.rewards[t], self.regret[t] = value + self.noise.item(t), best - value
        if env.constraint_count:
            self.g[t] = env.constraint(trial)
            self.observed_g[t] += self.g[t]
            known = self.study.last_multipliers
            if len(known) == env.constraint_count:
                self.multipliers[t] = known
        if env.delay is None and self.constraints_due is None:
            self._tell_reward(t, by=t)
            return
        self.rewards_due.send(t, self.now, trial.point, float(self.rewards[t]))
        if self.constraints_due is not None:
            self.constraints_due.send(t, self.now, trial.point, float(self.rewards[t]))

    def _deliver(self, t: int) -> None:
        """Tells the answers that are known before the next question."""
        if self.env.delay is None and self.constraints_due is None:
            return
        if self.constraints_due is not None:
            for when, number in self.constraints_due.due(t, self.now + self.env.interval):
                self._tell_at(when, self._tell_constraints, number, by=t)
        for when, number in self.rewards_due.due(t, self.now + self.env.interval):
            self._tell_at(when, self._tell_reward, number, by=t)

    def _tell_at(self, when: float | None, tell: Callable[..., None], number: int, *, by: int) -> None:
        """Calls `tell`, at a time of the simulated clock unless the time is None."""
        back = self.now
        self.now = back if when is None else max(when, back)
        tell(number, by=by)
        self.now = back

    def _tell_constraints(self, number: int, *, by: int) -> None:
        self.study.tell(number, constraints=self.observed_g[number])
        self.limited_by[number] = by
        if number in self.waiting:
            self.waiting.remove(number)
            self._tell_reward(number, by=by)

    def _tell_reward(self, number: int, *, by: int) -> None:
        if self.together and self.limited_by[number] == self.rounds:
            self.waiting.add(number)
            return
        together = self.env.constraint_count and self.constraints_due is None
        self.study.tell(number, float(self.rewards[number]), constraints=self.observed_g[number] if together else None)
        self.answered_by[number] = by


class _Deliveries:
    """Answers of one kind that are not delivered yet."""

    def __init__(self, delay: Delay | None, rng: np.random.Generator) -> None:
        self._delay, self._rng = delay, rng
        self._in_time = delay is not None and delay.in_time
        self._under_way: list[tuple[float, int]] = []  # A heap of (time, trial).

    def send(self, number: int, now: float, point: Array, reward: float) -> None:
        """Sends the answer of a trial that was asked for now."""
        wait = 0.0 if self._delay is None else self._delay.draw(self._rng, point, reward)
        if wait < math.inf:
            heapq.heappush(self._under_way, ((now if self._in_time else number) + wait, number))

    def due(self, round_: int, next_question: float) -> Iterator[tuple[float | None, int]]:
        """Yields (time, trial) of the answers that arrive by the end of a round. Delays in rounds have time None."""
        limit = next_question if self._in_time else round_
        while self._under_way and self._under_way[0][0] <= limit:
            when, number = heapq.heappop(self._under_way)
            yield (when if self._in_time else None), number


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
    Policies with windows, restarts, fits, forced rounds, constraints or parts of your own run one by one
    (`Run.batched`).

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
    """
    seeds = [integer("seeds", seed, low=0, high=LARGEST_SEED) for seed in listed("seeds", seeds, why=SEEDS)]
    if not seeds:
        raise InvalidInput(f"`seeds` is empty. {SEEDS}")
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
        size = -(-len(seeds) // (4 * workers)) if getattr(_call(make_policy, seeds[0]), "batched", False) else 1
        blocks = [seeds[first : first + size] for first in range(0, len(seeds), size)]
        found = _in_processes(run_some, blocks, workers) if executor is None else results_of(executor, run_some, blocks)
        results = [outcome for block in found for outcome in block]
    unsaid = {kind: sentence for _, sentences in reversed(results) for kind, sentence in sentences.items()}
    _warn(unsaid)
    runs = [run for run, _ in results]
    arrays = [name for name in Run.__dataclass_fields__ if name not in ("restarts", "entries", "batched")]
    stacked: dict[str, Any] = {name: np.stack([getattr(run, name) for run in runs]) for name in arrays}
    return Run(**stacked, restarts=tuple(run.restarts for run in runs), batched=all(run.batched for run in runs))


def _run_some(
    make_policy: Callable[..., AnyPolicy], make_env: Callable[..., Environment], rounds: int, seeds: Sequence[int]
) -> list[Outcome]:
    return play(
        lambda seed: (_call(make_policy, seed), _call(make_env, seed)),
        lambda policy, env, seed: _simulate(policy, env, rounds, seed=seed),
        rounds,
        seeds,
    )


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


def _call(make: Callable[..., T], seed: int) -> T:
    """Returns the result of `make`, called with the seed if it takes one."""
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except ValueError:  # Some built-in functions have no signature.
        return make(seed)
    # A first argument with a default is an option of the function and takes no seed, unless its name is `seed`.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    takes_seed = bool(positional) and (positional[0].default is inspect.Parameter.empty or positional[0].name == "seed")
    return make(seed) if takes_seed else make()
