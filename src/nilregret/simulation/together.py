"""Many worlds of one policy on finitely many arms, which advance together round by round.

| symbol | name | meaning | shape |
|---|---|---|---|
| S | `worlds` | simulated worlds, each with its seed and environment | |
| N, C | | arms, and contexts (1 without contexts) | |
| T | `rounds` | rounds | |

The policy's own parts decide. They are called once for all worlds (`Part.batched`), with arrays `(S, N)` of all arms.
Random numbers are those of each world's own study, so each world makes the choices that it makes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Randomness, RandomnessOfEach, simulation_generator
from ..domains.domain import Arms
from ..domains.search.arms import best_arms
from ..environments import Environment
from ..errors import NoRegretError
from ..gp.information_gain import GreedyDesign
from ..gp.low_rank_arms import ArmBeliefs, LowRankPosterior
from ..policy.engines import table
from ..policy.policy import Policy
from ..slots.envelope import Envelope, Progress, Symmetric, Width, Window
from ..slots.scores import TableView
from ..storage.trial import Trial
from ..study.cautions import FIRST, Answered, cautions, next_check, suspicious
from ..study.inputs import Inputs
from .metrics import Run
from .one_run import LateAnswers, Told


@final
class Learning:
    """The beliefs of S worlds, with the trials that they have learned.

    Args:
        policy: the policy of all worlds.
        beliefs: the beliefs, without observations.
        rewards: the rewards of each trial, `(S, T)`, told or not, which a simulation fills.
        clock: the time of each question, seconds, `(T,)`.

    Attributes:
        cells: the arm of each trial in the beliefs' table, `(S, T)`.
        known: True for trials whose own reward counts, `(S, T)`.
    """

    def __init__(self, policy: Policy, beliefs: ArmBeliefs, rewards: Array, clock: Array) -> None:
        self.policy, self.beliefs, self._rewards, self._clock = policy, beliefs, rewards, clock
        worlds = len(rewards)
        self.cells = np.zeros(rewards.shape, dtype=np.intp)
        self.known = np.zeros(rewards.shape, dtype=bool)
        self._targets = np.zeros(rewards.shape)
        self._imputed, self._dropped = self.known.copy(), self.known.copy()  # by a stand-in, and for good
        self._least = np.full(worlds, np.inf)  # smallest reward told
        self._stands_in = policy.pending.stand_in(0.0) is not None

    def learn_at_once(self, t: int, cells: IndexArray, rewards: Array) -> None:
        """Learns the reward of each world's trial t, told at once."""
        self.cells[:, t], self.known[:, t] = cells, True
        self.beliefs.observed.append(cells, rewards - self.policy.prior_mean)

    def learn(self, t: int, cells: IndexArray, came: Told) -> None:
        """Learns the answers that came since trial t was asked for, and imputes what is missing.

        Args:
            t: number of the last trial.
            cells: its cell in each world, `(S,)`.
            came: the answers.
        """
        self.cells[:, t] = cells
        told = came.by_number()
        if self._stands_in:
            self._learn_censored(t, told)
            return
        self.known[told.worlds, told.numbers] = True
        late = told.numbers < t
        self._append(told.some(late))
        if self.beliefs.with_pending is not self.beliefs.observed:
            self.beliefs.with_pending.append(cells, np.zeros(len(cells)))
        self._append(told.some(~late))

    def _append(self, told: Told) -> None:
        """Observes answers, the first of each world, then the second, and so on."""
        targets = self._rewards[told.worlds, told.numbers] - self.policy.prior_mean
        cells, ranks = self.cells[told.worlds, told.numbers], told.ranks
        for rank in range(int(ranks.max(initial=-1)) + 1):
            which = ranks == rank
            everywhere = int(which.sum()) == len(self._rewards)
            self.beliefs.observed.append(cells[which], targets[which], None if everywhere else told.worlds[which])

    # -- censored rewards ----------------------------------------------------------------------------------------

    def _learn_censored(self, t: int, told: Told) -> None:
        """Learns answers in time, and the stand-in for all others (see `Censored`)."""
        worlds, numbers, _ = told
        values = self._rewards[worlds, numbers]
        before = self._least.copy()
        np.minimum.at(self._least, worlds, values)
        counts = self._counting(t, told)
        self.known[worlds[counts], numbers[counts]] = True
        self._dropped[worlds[~counts], numbers[~counts]] = True
        late = counts & (numbers < t)
        self._revise(worlds[late], numbers[late], values[late] - self.policy.prior_mean)
        self._imputed[worlds[late], numbers[late]] = False
        stand_in = self._stand_in()
        now = counts & (numbers == t)
        targets = stand_in.copy()
        targets[worlds[now]] = values[now] - self.policy.prior_mean
        self._imputed[:, t] = ~self.known[:, t]
        self._targets[:, t] = targets
        self.beliefs.observed.append(self.cells[:, t], targets)
        lowered = self._imputed[:, : t + 1] & (self._least < before)[:, None]
        for some in (lowered & self._dropped[:, : t + 1], lowered & ~self._dropped[:, : t + 1]):
            where, which = np.nonzero(some & (self._targets[:, : t + 1] != stand_in[:, None]))
            self._revise(where, which, stand_in[where], together=True)

    def _counting(self, t: int, told: Told) -> npt.NDArray[np.bool_]:
        """Returns True for answers that come in time, `(k,)`."""
        part, point = self.policy.pending, self.policy.domain.points[0]
        counts = np.ones(len(told.worlds), dtype=bool)
        for i, (number, time) in enumerate(zip(told.numbers.tolist(), told.times.tolist(), strict=True)):
            asked = Trial(number, point, 0, None, 0, self._clock.item(number))
            counts[i] = part.counts(asked.answered(reward=0.0, order=1, time=time), partial(int, t - number))
        return counts

    def _stand_in(self) -> Array:
        """Returns the target of each world's unanswered trials, `(S,)`."""
        part, mean = self.policy.pending, self.policy.prior_mean
        lowest = part.lowest(cast(float, np.where(self._least < np.inf, self._least, mean)), mean)
        return np.broadcast_to(np.asarray(part.stand_in(lowest)) - mean, self._least.shape)

    def _revise(self, worlds: IndexArray, numbers: IndexArray, targets: Array, *, together: bool = False) -> None:
        """Replaces targets. Those of a world are as many updates, or one if they change together."""
        changes = targets - self._targets[worlds, numbers]
        moved = changes != 0.0
        if not moved.any():
            return
        worlds, numbers, changes = worlds[moved], numbers[moved], changes[moved]
        self._targets[worlds, numbers] += changes
        updates = np.bincount(worlds, minlength=len(self._rewards))
        self.beliefs.observed.revise(
            worlds, self.cells[worlds, numbers], changes, np.minimum(updates, 1) if together else updates
        )

    # -- reading -------------------------------------------------------------------------------------------------

    def recent(self, t: int, window: Window) -> Array:
        """Returns posterior deviations at the trials of a window before round t that count, `(S, k)`, or 0."""
        first = max(0, t - int(min(window.length, t)))
        if window.in_time:
            first = int(np.searchsorted(self._clock[:t], self._clock[t] - window.length))
        counts = self.known[:, first:t] | self._imputed[:, first:t]
        if self.beliefs.with_pending is not self.beliefs.observed:
            counts = np.ones_like(counts)
        return np.where(counts, self.beliefs.predict(self.cells[:, first:t])[1], 0.0)

    def best_rewards(self, t: int, rows: IndexArray, now: IndexArray) -> Array:
        """Returns the best reward that counts under each world's context, `(S, 1)`, or -inf before the first.

        Args:
            t: the round.
            rows: the context of each round, `(S, T)`.
            now: the context of this round, `(S,)`.
        """
        counted = self.known[:, :t] & (rows[:, :t] == now[:, None])
        rewards = np.where(counted, self._rewards[:, :t], -np.inf)
        return np.asarray(rewards.max(axis=1, keepdims=True, initial=-np.inf))


@final
class Truths:
    """The environments of S worlds with the same N arms and C contexts (1 without contexts).

    Args:
        envs: the environments, each with a `table`.
        rounds: T.
        seeds: the seed of each world.

    Attributes:
        noise: the noise of each round, `(S, T)`.
        contexts: C.
        rows: the number of the context of each round, `(S, T)`.
    """

    def __init__(self, envs: Sequence[Environment], rounds: int, seeds: Sequence[int]) -> None:
        self._envs, self._arms = envs, len(cast(Arms, envs[0].domain))
        self._worlds = np.arange(len(envs))
        generators = [simulation_generator(seed, "rewards") for seed in seeds]
        self.noise = np.array(
            [env.noise * rng.standard_normal(rounds) for env, rng in zip(envs, generators, strict=True)]
        )
        known = cast("Arms | None", envs[0].contexts)
        self.contexts = 1 if known is None else len(known)
        self._seen = np.zeros((len(envs), rounds, 0))
        self.rows = np.zeros((len(envs), rounds), dtype=np.intp)
        if known is not None:
            self._seen = np.array(
                [[env.draw_context(rng, t) for t in range(rounds)] for env, rng in zip(envs, generators, strict=True)]
            )
            each, which = np.unique(self._seen.reshape(-1, known.dimension), axis=0, return_inverse=True)
            self.rows = known.index(each)[which].reshape(self.rows.shape)
        self._still = not any(env.change_points or env.changes_in(1) for env in envs)
        self._values, self._best = np.zeros((0, 0)), np.zeros((0, 0))

    def expected(self, t: int, arms: IndexArray) -> tuple[Array, Array]:
        """Returns the expected reward of each world's arm, and the largest one, each `(S,)`."""
        if t == 0 or (not self._still and any(env.changes_in(t) for env in self._envs)):
            tables = [cast(tuple[Array, Array], env.table(t)) for env in self._envs]
            self._values = np.array([values.reshape(-1) for values, _ in tables])
            self._best = np.array([best for _, best in tables])
        if self.contexts == 1:
            return self._values[self._worlds, arms], self._best[:, 0]
        return self._values[self._worlds, self.cells(t, arms)], self._best[self._worlds, self.rows[:, t]]

    def cells(self, t: int, arms: IndexArray) -> IndexArray:
        """Returns the place of each world's arm in the table of contexts and arms, `(S,)`."""
        return arms if self.contexts == 1 else self.rows[:, t] * self._arms + arms

    def cells_now(self, t: int) -> IndexArray | None:
        """Returns the places of all arms under each world's context, `(S, N)`, or None if the table has no others."""
        return None if self.contexts == 1 else self.rows[:, t, None] * self._arms + np.arange(self._arms)

    def places(self, world: int, arms: IndexArray) -> IndexArray:
        """Returns the places of a world's arms in all rounds, `(T,)`."""
        return np.asarray(self.rows[world] * self._arms + arms)

    def contexts_of(self, world: int) -> Array:
        """Returns the context of each round of a world, `(T, c)`."""
        return np.asarray(self._seen[world])


@final
class ManyTables(TableView):
    """The view of a round of S worlds. Its arrays have a leading axis of worlds, and its numbers are `(S, 1)`.

    Args:
        learning: what the worlds have learned.
        truths: their environments.
        seeds: the seed of each world.
    """

    def __init__(self, learning: Learning, truths: Truths, seeds: Sequence[int]) -> None:
        self._learning, self._policy, self._beliefs = learning, learning.policy, learning.beliefs
        self._truths, self._worlds, self.trials = truths, range(len(seeds)), RandomnessOfEach(seeds)
        self.norm_growth = 1.0

    def begin(self, t: int) -> None:
        """Begins a round, from 0."""
        self.round, self._number = t + 1, t
        self._cells = self._truths.cells_now(t)
        self.trials.begin(t)
        self.width = cast(Width, self._policy.confidence).width(t + 1, self._progress(t))

    def _progress(self, t: int) -> Progress:
        window = self._policy.window
        return Progress(
            cast(Any, self._beliefs.with_pending),
            design=lambda: self._greedy_design,
            recent=None if window is None else partial(self._learning.recent, t, window),
            answers=cast(Any, self._beliefs.observed),
        )

    @cached_property
    def _greedy_design(self) -> GreedyDesign:
        policy = self._policy
        return GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)

    def limits(self) -> list[Envelope]:
        """Returns an empty list, since worlds whose constraints have posteriors are simulated one by one."""
        return []

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns an empty array, as there are no such constraints."""
        return np.zeros((0, len(places), len(goals)))

    def envelope(self) -> Envelope:
        """Returns the bounds of every arm, `(S, N)`."""
        return Symmetric(cast(float, self.width))(*self._beliefs.predict(self._cells))

    def best_mean(self) -> Any:
        """Returns the highest posterior mean of each world, `(S, 1)`."""
        return self._beliefs.predict(self._cells)[0].max(axis=1, keepdims=True)

    def best_reward(self) -> Any:
        """Returns the highest reward under the context of each world, `(S, 1)`, less the prior mean."""
        rows = self._truths.rows
        best = self._learning.best_rewards(self._number, rows, rows[:, self._number])
        return np.where(best > -np.inf, best - self._policy.prior_mean, 0.0)

    def drawn(self, width: Callable[[int, Randomness], float]) -> Any:
        """Returns the random width of each world, `(S, 1)`."""
        return np.array([[width(self.round, self.trials.of(world))] for world in self._worlds])

    def draw(self) -> Array:
        """Returns a draw from GP(mu, width^2 cov) of each world, `(S, N)`."""
        own, normal = self._policy.score.own_width, self.trials.normals(self._beliefs.observed.rank)
        return self._beliefs.draw(normal, self._cells, width=cast(float, self.width) if own is None else own)


class NotTogether(NoRegretError):
    """A sign that worlds must be simulated one by one, such as an error of one of them."""


@final
class ManyWorlds:
    """The state of S runs.

    Args:
        policy: the policy of all worlds, which is `batched`.
        envs: the environment of each world. All have delays, with the same interval, or none has.
        rounds: T.
        seeds: the seed of each world.
        empty: the posterior before the first observation.
    """

    def __init__(
        self, policy: Policy, envs: Sequence[Environment], rounds: int, *, seeds: Sequence[int], empty: LowRankPosterior
    ) -> None:
        self.policy, self.rounds, self.seeds = policy, rounds, seeds
        self.truths = Truths(envs, rounds, seeds)
        clock = np.concatenate([[0.0], np.cumsum(np.full(rounds, envs[0].interval))])
        self.late = None if envs[0].delay is None else LateAnswers(envs, seeds, clock)
        shape = (len(seeds), rounds)
        self.arms, self.answered_by = np.zeros(shape, dtype=np.intp), np.full(shape, rounds, dtype=np.intp)
        self.rewards, self.regret = np.zeros(shape), np.zeros(shape)
        apart = self.late is not None and policy.pending.hallucinates
        self.learning = Learning(policy, ArmBeliefs(empty, len(seeds), apart=apart), self.rewards, clock)
        self.tables = ManyTables(self.learning, self.truths, seeds)
        self._next_check: list[float] = [FIRST] * len(seeds)
        self.unsaid: list[dict[str, str]] = [{} for _ in seeds]

    def run(self) -> list[tuple[Run, dict[str, str]]]:
        """Plays all rounds. Returns the run of each world, with the warnings of its study by kind.

        Raises:
            NoRegretError: if some world raises an error. It raises the same error alone.
        """
        for t in range(self.rounds):
            arms = self.arms[:, t] = self._choose(t)
            values, best = self.truths.expected(t, arms)
            rewards = self.rewards[:, t] = values + self.truths.noise[:, t]
            self.regret[:, t] = best - values
            if self.late is None:
                self.answered_by[:, t] = t
                self.learning.learn_at_once(t, self.truths.cells(t, arms), rewards)
                if t + 1 >= self._next_check[0]:
                    self._next_check[0] = next_check(t + 1, constrained=False)
                    self._compare_all(t + 1)
                continue
            came = self.late.after(t, self.policy.domain.points[arms], rewards)
            self._compare_told(t + 1, came)
            self.answered_by[came.worlds, came.numbers] = t
            self.learning.learn(t, self.truths.cells(t, arms), came)
        self._check()
        return [(self._run_of(world), self.unsaid[world]) for world in range(len(self.seeds))]

    def _choose(self, t: int) -> IndexArray:
        """Returns the arm of each world in a round, `(S,)`."""
        score, tables = self.policy.score, self.tables
        tables.begin(t)
        if type(tables.width) is not float and not np.isfinite(cast(Array, tables.width)).all():
            raise NotTogether("The width of a world is no finite number.")
        size = self.learning.beliefs.observed.size if score.in_rewards else 1.0
        return best_arms(score.on_table(tables), size, tables.trials.of)

    # -- checks of a study ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raises an error for rewards that a study would not accept."""
        told, inputs = self.rewards[self.answered_by < self.rounds], Inputs(self.policy, "maximize")
        if told.size:
            inputs.reward(float(told.min()))
            inputs.reward(float(told.max()))

    def _compare_all(self, asked: int) -> None:
        """Compares the rewards of all trials with the policy's scales, as a study does."""
        cells = self.learning.cells[:, :asked]
        for world in np.flatnonzero(suspicious(self.policy, self.rewards[:, :asked], cells, asked)).tolist():
            self._compare(world, np.arange(asked), asked)

    def _compare_told(self, asked: int, came: Told) -> None:
        """Compares the rewards told so far, where a check is due at the first answer of a round."""
        first = came.some(came.ranks == 0)
        for world, number in zip(first.worlds.tolist(), first.numbers.tolist(), strict=True):
            if asked >= self._next_check[world]:
                self._next_check[world] = next_check(asked, constrained=False)
                self.answered_by[world, number] = asked - 1
                self._compare(world, np.flatnonzero(self.answered_by[world] < self.rounds), asked)

    def _compare(self, world: int, numbers: IndexArray, asked: int) -> None:
        where = self.truths.places(world, self.arms[world])[numbers].tolist()
        answered = Answered.once(self.rewards[world, numbers], where, trials=asked)
        said = self.unsaid[world]  # First, so that kinds stay in their order, and last, so that sentences stay.
        self.unsaid[world] = said | cautions(self.policy, answered, np.zeros(0)) | said

    # -- results -------------------------------------------------------------------------------------------------

    def _run_of(self, world: int) -> Run:
        rounds, g = self.rounds, np.zeros((self.rounds, 0))
        return Run(
            points=self.policy.domain.points[self.arms[world]],
            arms=self.arms[world],
            contexts=self.truths.contexts_of(world),
            explored=np.zeros(rounds, dtype=bool),
            rewards=self.rewards[world],
            regret=self.regret[world],
            answered_by=self.answered_by[world],
            limited_by=self.answered_by[world],
            constraints=g,
            told_constraints=g,
            multipliers=g,
            restarts=(),
            batched=True,
        )
