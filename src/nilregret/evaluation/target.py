"""The policy to be evaluated, as probabilities of actions in each row of a log.

| form | example |
|---|---|
| a word | "uniform": each action alike; "best": the arm of `Study.best`, under the context |
| an action | 3, "banner" |
| probabilities by action | {"banner": 0.9, "none": 0.1} |
| choices | a sequence of n actions |
| probabilities | an array (N,) or (n, N) |
| a function | of the context; returns an action, or probabilities (N,) |
| a policy | `nr.Policy`, whose learning is replayed |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, many, nearest, number, shown
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import exact
from .._utils.randomness import Draws
from ..domains.domain import Arms, space_of
from ..errors import InvalidInput, NoRegretError
from ..policy.availability import available
from ..policy.policy import Policy
from ..study.study import Study
from .log import Log

# Replay of a policy that learns: it sees the rows of a log that it might have produced itself.
#
# A row is learned from with probability min(1, c pi(a given x) / p), where p is its propensity. Then what is learned
# from has the distribution of the policy's own decisions, wherever c pi <= p (Dudik, Erhan, Langford & Li, 2012). In
# each row pi is the policy as it stands then. So pi / p is a weight of mean 1, also in rows that are not learned
# from.

QUANTILE = 0.05  # of the propensities: the factor c


def replayed(policy: Policy, log: Log, *, seed: int) -> tuple[Array, int]:
    """Returns the policy's probabilities in each row as it learns, `(n, N)`, and the number of rows it learned from.

    Args:
        policy: on `Arms`, as many as the log has actions.
        log: whose contexts the policy takes.
        seed: of the policy and of the choice of rows.

    Raises:
        InvalidInput: the policy has other arms than the log.
    """
    domain = policy.domain
    if not isinstance(domain, Arms) or len(domain) != len(log.actions):
        there = many(len(domain), "arm") if isinstance(domain, Arms) else "none"
        raise InvalidInput(
            f"A policy that is replayed decides among {many(len(log.actions), 'arm')}, one for each action of the log "
            f"in their order, and this one has {there}."
        )
    if policy.objective_count > 1:
        raise InvalidInput(
            f"A policy that is replayed learns from one reward, and this one has {policy.objective_count} objectives."
        )
    if policy.guards:
        raise InvalidInput(
            "A policy that is replayed learns from decisions of others, and `NoWorse` has a budget of its own ones.",
            advice="Evaluate it without: `policy.using(constraints=None)`.",
        )
    goal = "maximize" if log.study is None else log.study.goals[0]
    study = Study(policy, goal=goal, seed=seed)
    study.quiet = True
    table, learned = np.zeros((len(log), len(domain))), 0
    factor = float(np.quantile(log.propensities, QUANTILE))
    drawn, first, learns = Draws(f"replay {seed}").random(len(log)), dict[int, int](), np.zeros(len(log), dtype=bool)
    for row, (arm, propensity, reward) in enumerate(zip(log.taken, log.propensities, log.rewards, strict=True)):
        context = log.context(row) if policy.context is not None else None
        draw = row if log.draws is None else first.setdefault(int(log.draws[row]), row)
        probabilities = study.probabilities(context=context) if draw == row else table[draw]
        if probabilities is None:
            raise InvalidInput(
                "A part of this policy draws by a law that it does not say, so its probabilities are not known and it "
                "cannot be replayed.",
                advice="Say the law by `nilregret.slots.Score.law`.",
            )
        table[row] = probabilities
        learns[row] = drawn[draw] * propensity < factor * table[row, arm]
        if learns[row] and not np.isnan(reward):
            where = domain.points[arm] if domain.space is None else domain.parameters(int(arm))
            study.add(where, float(reward), context=context)
            learned += 1
    return table, learned


SUM = 1e-6  # by which probabilities may miss the sum 1
FORMS = (
    'A policy is "uniform", "best" (of a study), an action, a dictionary of probabilities by action, an array of '
    "choices (n,) or of probabilities (N,) or (n, N), a function of the context, or an `nr.Policy`."
)


class Target(ABC):
    """The choices of a policy in the n rows of a log.

    Attributes:
        learned: number of rows from which the policy learned in a replay, or None.
        from_log: whether the policy was chosen by means of the log itself.
    """

    learned: int | None = None
    from_log: bool = False

    @abstractmethod
    def largest(self, least: Array) -> float | None:
        """Returns the largest weight that there can be, or None if there is no limit.

        Args:
            least: lowest propensity of each action, `(N,)`.
        """

    @abstractmethod
    def of(self, taken: IndexArray) -> Array:
        """Returns the probability of the actions taken, `(n,)`."""

    @abstractmethod
    def expected(self, predicted: Array, rows: slice) -> Array:
        """Returns the policy's mean of predictions for each action in some rows, `(m,)`.

        Args:
            predicted: `(m, N)`.
            rows: the m rows.
        """

    @abstractmethod
    def only(self, rows: npt.NDArray[np.bool_]) -> Target:
        """Returns the target for some of the rows, `(n,)`."""


@final
@dataclass(frozen=True, eq=False)
class Choices(Target):
    """Sure choices.

    Attributes:
        actions: as indices, `(n,)`, or `(1,)` for all rows.
    """

    actions: IndexArray
    from_log: bool = False

    def largest(self, least: Array) -> float | None:
        """Returns the inverse of the lowest propensity of a choice."""
        lowest = float(least[self.actions].min())
        return 1.0 / lowest if lowest > 0.0 else None

    def of(self, taken: IndexArray) -> Array:
        """Returns 1 where the action taken is the policy's choice, else 0, `(n,)`."""
        return np.asarray(self.actions == taken, dtype=np.float64)

    def expected(self, predicted: Array, rows: slice) -> Array:
        """Returns the prediction for the action chosen in each row, `(m,)`."""
        at = self.actions if len(self.actions) == 1 else self.actions[rows]
        found: Array = predicted[np.arange(len(predicted)), at]
        return found

    def only(self, rows: npt.NDArray[np.bool_]) -> Choices:
        """Returns the choices in some of the rows."""
        return self if len(self.actions) == 1 else replace(self, actions=self.actions[rows])


@final
@dataclass(frozen=True, eq=False)
class Probabilities(Target):
    """Probabilities of choices.

    Attributes:
        table: of each action, `(n, N)`, or `(N,)` for all rows.
    """

    table: Array
    learned: int | None = None

    def largest(self, least: Array) -> float | None:
        """Returns the largest ratio of an entry and the lowest propensity of its action."""
        most = self.table.reshape(-1, len(least)).max(axis=0, initial=0.0)
        if (most[least == 0.0] > 0.0).any():
            return None
        return float(np.divide(most, least, out=np.zeros(len(least)), where=least > 0.0).max())

    def of(self, taken: IndexArray) -> Array:
        """Returns the entries of the actions taken, `(n,)`."""
        table = self.table
        return np.asarray(table[taken] if table.ndim == 1 else table[np.arange(len(taken)), taken])

    def expected(self, predicted: Array, rows: slice) -> Array:
        """Returns the mean of the predictions in each row, `(m,)`."""
        table = self.table
        return predicted @ table if table.ndim == 1 else np.einsum("ij,ij->i", predicted, table[rows])

    def only(self, rows: npt.NDArray[np.bool_]) -> Probabilities:
        """Returns the probabilities in some of the rows."""
        return self if self.table.ndim == 1 else replace(self, table=self.table[rows])


def target_of(policy: Any, log: Log, *, seed: int) -> Target:
    """Returns the probabilities of a policy's choices.

    Args:
        policy: in one of the forms above.
        log: whose decisions it would make.
        seed: of the replay of a policy that learns.

    Raises:
        InvalidInput: the policy has none of these forms, or does not fit the log.
    """
    if isinstance(policy, Policy):
        table, learned = replayed(policy, log, seed=seed)
        return Probabilities(_checked(table, log), learned)
    if isinstance(policy, str) and policy in ("uniform", "best"):
        return _uniform(log) if policy == "uniform" else _best(log)
    domain = None if log.study is None else log.study.policy.domain
    space = None if domain is None else space_of(domain)
    if (
        isinstance(policy, Mapping)
        and domain is not None
        and space is not None
        and policy.keys() == space.parameters.keys()
    ):
        return Choices(available(domain, [policy], None).numbers)
    if isinstance(policy, Mapping):
        return Probabilities(_checked(_by_name(policy, log), log))
    if callable(policy):
        return _of_function(policy, log)
    if isinstance(policy, str | int | np.integer) and not isinstance(policy, bool):
        return Choices(_codes([policy], log))
    return _of_table(policy, log)


def _uniform(log: Log) -> Target:
    if log.available is None:
        return Probabilities(np.full(len(log.actions), 1.0 / len(log.actions)))
    return Probabilities(log.available / log.offered[:, None])


def _best(log: Log) -> Target:
    study = log.study
    if study is None:
        raise InvalidInput('"best" is what a study thinks best, and the log is no study.', advice=FORMS)
    if log.contexts is None:
        return Choices(np.array([study.best().arm]), from_log=True)
    known: dict[str, int] = {}
    choices = np.empty(len(log), dtype=np.intp)
    for i in range(len(log)):
        context = log.context(i)
        key = str(context if isinstance(context, Mapping) else context.tolist())
        if key not in known:
            known[key] = study.best(context=context).arm or 0
        choices[i] = known[key]
    return Choices(choices, from_log=True)


def _by_name(policy: Mapping[Any, Any], log: Log) -> Array:
    found = np.zeros(len(log.actions))
    for name, probability in policy.items():
        found[_codes([name], log)[0]] = number("policy", probability, why="It has the probability of each action.")
    return found


def _codes(names: Sequence[Any], log: Log) -> IndexArray:
    """Returns actions by name as indices."""
    code = log.code
    try:
        return np.fromiter((code[name] for name in names), np.intp, len(names))
    except (KeyError, TypeError):
        wrong = next(name for name in names if not _known(name, code))
        texts = [each for each in code if isinstance(each, str)]
        hint = nearest(wrong, ["uniform", "best", *texts]) if isinstance(wrong, str) else ""
        raise InvalidInput(
            f"The policy chooses {shown(wrong)}, which is no action of the log. There is {shown(list(log.actions))}."
            + hint,
            advice="Actions that the log never took are named by `actions=`.",
        ) from None


def _known(name: Any, code: Mapping[Any, int]) -> bool:
    try:
        return name in code
    except TypeError:
        return False


def _of_table(policy: Any, log: Log) -> Target:
    try:
        table = np.asarray(policy)
    except ValueError:
        table = np.zeros((0, 0, 0))
    n, count = len(log), len(log.actions)
    if table.ndim == 1 and len(table) == n and (table.dtype.kind != "f" or n != count):
        return Choices(_codes(table.tolist(), log))
    if table.dtype.kind in "fiub" and table.shape in ((count,), (n, count)):
        return Probabilities(_checked(table.astype(np.float64), log))
    raise InvalidInput(
        f"`policy` is {shown(policy)}, of shape {table.shape}. The log has {many(n, 'decision')} with a propensity "
        f"among {many(count, 'action')}.",
        advice=FORMS,
        topic="target",
    )


def _of_function(policy: Callable[[Any], Any], log: Log) -> Target:
    answers = []
    for row in range(len(log)):
        try:
            answers.append(policy(log.context(row)))
        except NoRegretError:
            raise
        except Exception as error:
            raise InvalidInput(
                f"The policy failed at row {row}, with the context {shown(log.context(row))}: "
                f"{type(error).__name__}: {error}."
            ) from error
    if all(np.ndim(answer) == 0 and _known(_plain(answer), log.code) for answer in answers):
        return Choices(_codes([_plain(answer) for answer in answers], log))
    table = np.zeros((len(log), len(log.actions)))
    for row, answer in enumerate(answers):
        if np.ndim(answer) == 0:
            table[row, _codes([_plain(answer)], log)[0]] = 1.0
        elif np.shape(answer) == (len(log.actions),) and np.asarray(answer).dtype.kind in "fiub":
            table[row] = answer
        else:
            raise InvalidInput(
                f"The policy returned {shown(answer)} at row {row}: it must return an action, or the probability of "
                f"each of the {many(len(log.actions), 'action')}, {shown(list(log.actions))}."
            )
    return Probabilities(_checked(table, log))


def _plain(answer: Any) -> Any:
    return answer.item() if isinstance(answer, np.generic | np.ndarray) else answer


def _checked(table: Array, log: Log) -> Array:
    """Returns probabilities, or raises an error if they are none."""
    rows = np.atleast_2d(table)
    wrong = np.flatnonzero(~(rows >= -SUM).all(axis=1) | ~(np.abs(rows.sum(axis=1) - 1.0) <= SUM))
    if len(wrong):
        at = f" in row {wrong[0]}" if table.ndim == 2 else ""
        row = rows[wrong[0]]
        raise InvalidInput(
            f"The policy's probabilities{at} go from {exact(row.min())} to {exact(row.max())}, and their sum is "
            f"{exact(row.sum())}: they must be at least 0 and sum to 1, one for each of {shown(list(log.actions))}."
        )
    return np.maximum(table, 0.0)
