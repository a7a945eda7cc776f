"""Runs of a policy in an environment: one replicate is a pure function, many run in processes."""

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
from ..study.cautions import NOISE, UNWANTED
from ..study.direction import AnyPolicy, has_channels
from ..study.study import Study, check_policy
from .environments import Environment
from .environments.delays import Delay
from .repeated_plays import play_in_runs
from .results import Run

T = TypeVar("T")
SEEDS = "They are one for each replicate, such as range(30)."
MOST_JOBS = 1000
MOST_ROUNDS = 10_000_000  # of a run, whose record is in memory

START = 1.0  # seconds, about what it takes until processes have imported everything and the first result is back
KEPT = 30.0  # seconds that idle processes are kept for the next call


def simulate(
    policy: AnyPolicy, env: Environment, rounds: int, *, seed: int = 0, switching: str | Switching | None = None
) -> Run:
    """Let a policy decide in an environment; the same arguments give the same run.

    The noise of round t is the same whatever is played, so runs with equal seeds are paired.

    Args:
        policy: how to decide.
        env: where; its arms must be the policy's.
        rounds: how often, T >= 1.
        seed: of the policy's choices and, independently, of the noise.
        switching: "lazy", or a part such as `nr.slots.Lazy(factor=1.1)`: the policy with this in its slot, which
            decides
            rarely and plays in runs. Then the memory that a run takes does not grow with T: `run.entries` has a row for
            each decision, and the arrays of rounds are made when they are looked at.
    """
    if switching is not None:
        if not isinstance(policy, Policy):
            raise InvalidInput(f"`switching` is a slot of a `Policy`, and {shown(policy)} has none: leave it out.")
        policy = policy.using(switching=switching)
    run, unsaid = _simulate(policy, env, rounds, seed=seed)
    _say(unsaid)
    return run


def _say(unsaid: dict[str, str]) -> None:
    """Warn of each kind once, as of the line that called `simulate` or `replicate`."""
    for kind, sentence in unsaid.items():
        if kind != "multipliers" or "saturated" not in unsaid:  # cut off in the end: that says it all
            warnings.warn(NoRegretWarning(sentence), stacklevel=3)


def _simulate(policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> tuple[Run, dict[str, str]]:
    """The run, and what its study would have warned of, by kind."""
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
    # One BLAS thread: these matrices are small, and sums then do not depend on how many processors there are.
    if isinstance(policy, Policy) and policy.switching is not None:
        with one_thread:
            return play_in_runs(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
    with one_thread:
        simulation = _Simulation(policy, env, rounds, seed=integer("seed", seed, low=0, high=LARGEST_SEED))
        run, unsaid = simulation.run(), simulation.study.held_warnings
    # Policies are compared in an environment on purpose that know nothing of its constraints, or of its changes.
    known = {UNWANTED, NOISE} if env.change_points else {UNWANTED}
    return run, {kind: sentence for kind, sentence in unsaid.items() if kind not in known}


class _Simulation:
    """One run, and the answers that are under way."""

    def __init__(self, policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> None:
        self.env, self.rounds = env, rounds
        self.now = 0.0  # seconds
        self.study = Study(policy, seed=seed, clock=lambda: self.now)
        self.study.quiet = True  # it is said at the end, once for all replicates
        self.contexts = simulation_generator(seed, "rewards")
        self.noise = env.noise * self.contexts.standard_normal(rounds)
        m = env.constraint_count
        self.g = np.zeros((rounds, m))
        self.multipliers = np.full((rounds, m), np.nan)
        self.seen_g = np.zeros((rounds, m))
        if m:
            self.seen_g = env.draw_constraint_noise(simulation_generator(seed, "constraints"), rounds)
        self.rewards, self.regret = np.zeros(rounds), np.zeros(rounds)
        self.answered_by = np.full(rounds, rounds, dtype=np.intp)
        self.limited_by = self.answered_by.copy()
        self.answers = _Mail(env.delay, simulation_generator(seed, "delays"))
        # Constraint values that are told by themselves; None where they come with the reward.
        self.limits: _Mail | None = None
        if env.constraint_delay is not None:
            self.limits = _Mail(env.constraint_delay, simulation_generator(seed, "constraint delays"))
        # Who learns from both together is told a reward when both are there.
        self.both = self.limits is not None and policy.constraint_count > 0 and not has_channels(policy)
        self.held: set[int] = set()  # trials whose rewards wait for that

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
            limited_by=self.limited_by if self.limits is not None else self.answered_by,
            constraints=self.g,
            told_constraints=self.seen_g,
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
            self.seen_g[t] += self.g[t]
            known = self.study.last_multipliers
            if len(known) == env.constraint_count:
                self.multipliers[t] = known
        if env.delay is None and self.limits is None:
            self._tell_reward(t, by=t)
            return
        self.answers.send(t, self.now, trial.point, float(self.rewards[t]))
        if self.limits is not None:
            self.limits.send(t, self.now, trial.point, float(self.rewards[t]))

    def _deliver(self, t: int) -> None:
        """What is known before the next question: after d more questions, or by the time it is asked."""
        if self.env.delay is None and self.limits is None:
            return
        if self.limits is not None:
            for when, number in self.limits.due(t, self.now + self.env.interval):
                self._at(when, self._tell_limits, number, by=t)
        for when, number in self.answers.due(t, self.now + self.env.interval):
            self._at(when, self._tell_reward, number, by=t)

    def _at(self, when: float | None, tell: Callable[..., None], number: int, *, by: int) -> None:
        """Tell something, at a time of the simulated clock where there is one."""
        back = self.now
        self.now = back if when is None else max(when, back)
        tell(number, by=by)
        self.now = back

    def _tell_limits(self, number: int, *, by: int) -> None:
        self.study.tell(number, constraints=self.seen_g[number])
        self.limited_by[number] = by
        if number in self.held:
            self.held.remove(number)
            self._tell_reward(number, by=by)

    def _tell_reward(self, number: int, *, by: int) -> None:
        if self.both and self.limited_by[number] == self.rounds:
            self.held.add(number)
            return
        together = self.env.constraint_count and self.limits is None
        self.study.tell(number, float(self.rewards[number]), constraints=self.seen_g[number] if together else None)
        self.answered_by[number] = by


class _Mail:
    """Answers of one kind that are under way."""

    def __init__(self, delay: Delay | None, rng: np.random.Generator) -> None:
        self._delay, self._rng = delay, rng
        self._in_time = delay is not None and delay.in_time
        self._under_way: list[tuple[float, int]] = []  # a heap of (when, trial)

    def send(self, number: int, now: float, point: Array, reward: float) -> None:
        """The answer of a trial that was asked for in its own round, now."""
        wait = 0.0 if self._delay is None else self._delay.draw(self._rng, point, reward)
        if wait < math.inf:
            heapq.heappush(self._under_way, ((now if self._in_time else number) + wait, number))

    def due(self, round_: int, next_question: float) -> Iterator[tuple[float | None, int]]:
        """When (None where delays are in rounds), and which trial's, of what comes by the end of a round."""
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
    """Independent runs, one for each seed, in `jobs` processes or on an executor; the result depends on neither.

    Args:
        make_policy: returns the policy of a replicate; called with its seed, or with nothing if it needs no argument.
        make_env: likewise for the environment.
        rounds: rounds of each run.
        seeds: one for each replicate.
        jobs: processes; -1 for one on every processor. Functions made on the spot (lambdas) may be used. Little work is
            done in this process, where it is over before others would have started; those that were started are kept
            for half a minute, for the next call.
        executor: does them instead: any `concurrent.futures.Executor`, such as `client.get_executor()` of a cluster of
            Dask. It is not shut down. Those of the standard library need functions that can be imported.
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
    one = partial(_one, make_policy, make_env, rounds)
    if executor is not None:
        made = list(results_of(executor, one, seeds))
    else:
        made = list(map(one, seeds)) if jobs == 1 else _in_processes(one, seeds, jobs)
    unsaid = {kind: sentence for _, sentences in reversed(made) for kind, sentence in sentences.items()}
    _say(unsaid)
    runs = [run for run, _ in made]
    whole = [name for name in Run.__dataclass_fields__ if name not in ("restarts", "entries")]
    stacked: dict[str, Any] = {name: np.stack([getattr(run, name) for run in runs]) for name in whole}
    return Run(**stacked, restarts=tuple(run.restarts for run in runs))


def _one(
    make_policy: Callable[..., AnyPolicy], make_env: Callable[..., Environment], rounds: int, seed: int
) -> tuple[Run, dict[str, str]]:
    return _simulate(_made(make_policy, seed), _made(make_env, seed), rounds, seed=seed)


def _in_processes(one: Callable[[int], T], seeds: Sequence[int], jobs: int) -> list[T]:
    """In as many processes, which are kept for the next call; here, as long as that is no slower than starting them."""
    import loky

    workers = min(loky.cpu_count() if jobs == -1 else jobs, len(seeds))
    done: list[T] = []
    began = time.perf_counter()
    for seed in seeds:
        left = len(seeds) - len(done)
        if done and (time.perf_counter() - began) / len(done) * left * (1.0 - 1.0 / workers) > START:
            break
        done.append(one(seed))
    rest = seeds[len(done) :]
    if not rest:
        return done
    pool, whole = loky.get_reusable_executor(max_workers=workers, timeout=KEPT), False
    try:
        done.extend(pool.map(one, rest, chunksize=-(-len(rest) // (4 * workers))))
        whole = True
    finally:
        if not whole:  # an error or an interrupt does not wait for what is running
            pool.shutdown(wait=True, kill_workers=True)
    return done


def _made(make: Callable[..., T], seed: int) -> T:
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except ValueError:  # some built-in callables have no signature
        return make(seed)
    # A first argument with a default is an option of the function, not a place for the seed, unless it is called so.
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    takes_seed = bool(positional) and (positional[0].default is inspect.Parameter.empty or positional[0].name == "seed")
    return make(seed) if takes_seed else make()
