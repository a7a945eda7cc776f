"""A simulated run in progress: decisions, rewards and the answers that are under way."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.randomness import simulation_generator
from ..environments import Environment
from ..environments.delays import Delay
from ..errors import InvalidInput
from ..policy.plain_rounds import PlainRounds
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.trial import Trial
from ..study.cautions import FIRST, Answered, cautions, next_check
from ..study.direction import AnyPolicy, has_channels
from ..study.inputs import Inputs
from ..study.play_rewards import Rewards
from ..study.study import Study
from .metrics import Columns, Entries, Run


class Played(NamedTuple):
    """A decision, with the attributes of a `Trial` that an environment reads."""

    number: int
    point: Array
    arm: int | None
    context: Array | None
    explored: bool


@final
class DirectPlayer:
    """A player in place of a study, with the same decisions and warnings.

    A study takes half as long again and more memory, many worlds with one world twice as long.

    Args:
        policy: a policy that is `direct`.
        columns: of the simulation, which holds the decisions and rewards.
        seed: of the policy's choices.

    Attributes:
        held_warnings: sentences of warnings, by kind.
        restarts: rounds at which the memory was cut, of which there are none.
        last_multipliers: multipliers of the constraints, of which there are none.
    """

    def __init__(self, policy: Policy, columns: Columns, *, seed: int) -> None:
        self._policy, self._columns, self._inputs = policy, columns, Inputs(policy, "maximize")
        state = State(policy, seed=seed)
        state.reward.posterior.read_trials(self._trial)
        self._rounds = PlainRounds(state)
        self._count = 0
        self._told: list[int] = []  # Numbers of rewards since the last decision.
        self._has_contexts = policy.context is not None
        self._contexts: dict[bytes, Array | None] = {}  # Contexts that were checked.
        self._next_check: float = FIRST
        self.held_warnings: dict[str, str] = {}
        self.restarts: list[int] = []
        self.last_multipliers: Array = np.zeros(0)

    def ask(self, context: Array | None) -> Played:
        """Returns the next decision."""
        if self._told:
            self._learn()
        if context is not None:
            context = self._checked(context)
        point, arm, explored = self._rounds.play(context)
        number, self._count = self._count, self._count + 1
        return Played(number, point, arm, context, explored)

    def _learn(self) -> None:
        arms, rewards, told = self._columns.arms, self._columns.rewards, self._told
        for number in sorted(told) if len(told) > 1 else told:
            context = self._columns.contexts[number] if self._has_contexts else None
            self._rounds.learn(number, arms.item(number), context, rewards.item(number))
        told.clear()

    def _checked(self, context: Array) -> Array | None:
        key = context.tobytes()
        if key not in self._contexts:
            self._contexts[key] = self._inputs.context(context)
        return self._contexts[key]

    def tell(self, number: int, reward: float | None = None, *, constraints: Array | None = None) -> None:  # noqa: ARG002
        """Tells the reward of a round, which the columns hold. Constraint values teach a direct policy nothing."""
        if reward is None:
            return
        self._inputs.reward(reward)
        self._told.append(number)
        if self._count >= self._next_check:
            self._check()

    def _check(self) -> None:
        """Compares the rewards with the policy's scales, at 4, 16, 64, ... rounds."""
        count, columns = self._count, self._columns
        self._next_check = next_check(count, constrained=False)
        known = np.flatnonzero(columns.answered_by[:count] < len(columns.answered_by))
        arms, contexts = columns.arms[known].tolist(), columns.contexts[known]
        where = zip(arms, map(bytes, contexts), strict=True) if self._has_contexts else arms
        answered = Answered.once(columns.rewards[known], where, trials=count)
        said = self.held_warnings  # First, so that kinds stay in their order, and last, so that sentences stay.
        self.held_warnings = said | cautions(self._policy, answered, self.last_multipliers) | said

    def _trial(self, number: int) -> Trial:
        """Returns a round as a trial, as far as a direct policy reads it: without the times of its events."""
        columns = self._columns
        asked = Trial(
            number, columns.point(number), columns.arms.item(number), None, 2 * number + 1, 0.0,
            columns.contexts[number] if self._has_contexts else None, columns.explored.item(number),
        )  # fmt: skip
        return asked.answered(reward=columns.rewards.item(number), order=2 * number + 2, time=0.0)


@final
class Simulation:
    """A run in progress, with the answers that are not delivered yet.

    Args:
        policy: plays through a study, or, if it is `direct`, without one.
        env: the environment.
        rounds: T.
        seed: of the choices and of the noise.

    Attributes:
        player: decides and is told the answers.
        columns: the rounds so far.
    """

    def __init__(self, policy: AnyPolicy, env: Environment, rounds: int, *, seed: int) -> None:
        self.env, self.rounds = env, rounds
        self.now = 0.0  # Seconds.
        self.contexts = simulation_generator(seed, "rewards")
        noise = self.contexts.standard_normal(rounds)
        noise *= env.noise
        constraint_noise = np.zeros((rounds, 0))
        if env.constraint_count:
            constraint_noise = env.draw_constraint_noise(simulation_generator(seed, "constraints"), rounds)
        self.columns = Columns(env.domain, env.contexts, noise, constraint_noise)
        self.player = self._player(policy, seed)
        self.limited_by = self.columns.answered_by
        self.rewards_due = Deliveries(env.delay, simulation_generator(seed, "delays"))
        # Constraint values that are told separately. None if they come with the reward.
        self.constraints_due: Deliveries | None = None
        if env.constraint_delay is not None:
            self.constraints_due = Deliveries(env.constraint_delay, simulation_generator(seed, "constraint delays"))
            self.limited_by = self.columns.answered_by.copy()
        self.at_once = env.delay is None and self.constraints_due is None
        if self.at_once:
            self.columns.answered_by[:] = np.arange(rounds)
        # A policy that learns from both together is told a reward when both are known.
        self.together = self.constraints_due is not None and policy.constraint_count > 0 and not has_channels(policy)
        self.waiting: set[int] = set()  # Trials whose rewards wait for their constraint values.

    def _player(self, policy: AnyPolicy, seed: int) -> DirectPlayer | Study:
        if isinstance(policy, Policy) and policy.direct:
            return DirectPlayer(policy, self.columns, seed=seed)
        study = Study(policy, seed=seed, clock=lambda: self.now)
        study.quiet = True  # The caller warns at the end, once for all replicates.
        return study

    def run(self) -> Run:
        """Plays all rounds."""
        for t in range(self.rounds):
            self._play(t)
            if not self.at_once:
                self._deliver(t)
            self.now += self.env.interval
        columns = self.columns
        return Run(
            points=columns.points,
            arms=columns.arms,
            contexts=columns.contexts,
            explored=columns.explored,
            rewards=columns.rewards,
            regret=columns.regret,
            answered_by=columns.answered_by,
            limited_by=self.limited_by,
            constraints=columns.constraints,
            told_constraints=columns.told_constraints,
            multipliers=columns.multipliers,
            restarts=tuple(self.player.restarts),
        )

    def _play(self, t: int) -> None:
        env, columns, player = self.env, self.columns, self.player
        play = player.ask(None if env.contexts is None else env.draw_context(self.contexts, t))
        value, best = env.expected(play)
        reward = columns.record(play, value, best)
        if env.constraint_count:
            columns.record_constraints(t, env.constraint(play), player.last_multipliers)
        if self.at_once:
            player.tell(t, reward, constraints=columns.told_constraints[t] if env.constraint_count else None)
            return
        self.rewards_due.send(t, self.now, play.point, reward)
        if self.constraints_due is not None:
            self.constraints_due.send(t, self.now, play.point, reward)

    def _deliver(self, t: int) -> None:
        """Tells the answers that are known before the next question."""
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
        self.player.tell(number, constraints=self.columns.told_constraints[number])
        self.limited_by[number] = by
        if number in self.waiting:
            self.waiting.remove(number)
            self._tell_reward(number, by=by)

    def _tell_reward(self, number: int, *, by: int) -> None:
        if self.together and self.limited_by[number] == self.rounds:
            self.waiting.add(number)
            return
        columns, together = self.columns, self.env.constraint_count and self.constraints_due is None
        constraints = columns.told_constraints[number] if together else None
        columns.answered_by[number] = by
        self.player.tell(number, columns.rewards.item(number), constraints=constraints)


class Deliveries:
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


AT_ONCE = 65_536  # The number of rewards drawn at a time, which bounds the memory of a long run.


def simulate_lazily(policy: Policy, env: Environment, rounds: int, *, seed: int) -> tuple[Run, dict[str, str]]:
    """Returns the run, and the warnings of its study.

    The noise of round t is the same in every simulation with this seed.
    """
    if not env.still or env.delay is not None or env.constraint_count:
        raise InvalidInput(
            "A policy with `switching` plays a choice for many rounds, and this environment has delays, constraints, "
            "contexts or changes, in which each round is another one: take an environment without, or a policy "
            "without `switching`."
        )
    now = 0.0
    study = Study(policy, seed=seed, clock=lambda: now)
    study.quiet = True
    rng, t = simulation_generator(seed, "rewards"), 0
    regret, expected = [], []
    while t < rounds:
        trial = study.ask()
        count = min(trial.repeats, rounds - t)
        value, best = env.expected(trial)
        total, squares = _noise(rng, count, env.noise)
        if count == 1:
            study.tell(trial.number, value + total)
        else:
            study.tell(trial.number, Rewards(count=count, sum=total, squares=squares, about=value))
        expected.append(value)
        regret.append(best - value)
        t += count
        now += env.interval * count
    trials = study.trials
    entries = Entries(
        points=np.array([trial.point for trial in trials]),
        arms=np.array([-1 if trial.arm is None else trial.arm for trial in trials], dtype=np.intp),
        explored=np.array([trial.explored for trial in trials]),
        plays=np.array([trial.times for trial in trials], dtype=np.int64),
        means=np.array([trial.reward for trial in trials]),
        scatters=np.array([trial.scatter for trial in trials]),
        expected=np.array(expected),
        regret=np.array(regret),
        noise=env.noise,
        seed=seed,
    )
    return Run.of(entries), study.held_warnings


def _noise(rng: np.random.Generator, count: int, noise: float) -> tuple[float, float]:
    """Returns the sum and the sum of squares of the noise of `count` rounds."""
    sums, squares = [], []
    for start in range(0, count, AT_ONCE):
        drawn = noise * rng.standard_normal(min(AT_ONCE, count - start))
        sums.append(float(drawn.sum()))
        squares.append(float(drawn @ drawn))
    return math.fsum(sums), math.fsum(squares)


class Told(NamedTuple):
    """The k answers that came in one round, world by world, those of a world in the order in which they came.

    Attributes:
        worlds: `(k,)`.
        numbers: their trials, `(k,)`.
        times: seconds, `(k,)`.
    """

    worlds: IndexArray
    numbers: IndexArray
    times: Array

    def by_number(self) -> Told:
        """Returns the answers of each world in the order of their trials, as a world learns them."""
        order = np.lexsort((self.numbers, self.worlds))
        return Told(self.worlds[order], self.numbers[order], self.times[order])

    def some(self, which: npt.NDArray[np.bool_]) -> Told:
        """Returns the answers where `which`, `(k,)`, is True."""
        return Told(self.worlds[which], self.numbers[which], self.times[which])

    @property
    def ranks(self) -> IndexArray:
        """The number of answers of its world before each one, `(k,)`."""
        return np.arange(len(self.worlds)) - np.searchsorted(self.worlds, self.worlds)


@final
class LateAnswers:
    """The deliveries of S worlds.

    Args:
        envs: the environments.
        seeds: the seed of each world.
        clock: the time of each question and of the end, seconds, `(T + 1,)`.
    """

    def __init__(self, envs: Sequence[Environment], seeds: Sequence[int], clock: Array) -> None:
        self._each = [
            Deliveries(env.delay, simulation_generator(seed, "delays")) for env, seed in zip(envs, seeds, strict=True)
        ]
        self._clock = clock
        self._floating = np.geterr()  # Of the caller. NumPy warns in functions of delays as it does in one world.

    def after(self, t: int, points: Array, rewards: Array) -> Told:
        """Sends the answers of a round, and returns those that arrive before the next question.

        Args:
            t: the round, from 0.
            points: played points, `(S, d)`.
            rewards: `(S,)`.
        """
        now, following = self._clock.item(t), self._clock.item(t + 1)
        came: list[tuple[int, int, float]] = []
        with np.errstate(**self._floating):
            for each, point, reward in zip(self._each, points, rewards.tolist(), strict=True):
                each.send(t, now, point, reward)
        for world, each in enumerate(self._each):
            for when, number in each.due(t, following):
                came.append((world, number, now if when is None else max(when, now)))
        worlds, numbers, times = zip(*came, strict=True) if came else ((), (), ())
        return Told(np.array(worlds, dtype=np.intp), np.array(numbers, dtype=np.intp), np.array(times))
