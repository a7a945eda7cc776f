"""The candidates that a search of scikit-learn asks for, with their ranges, and what it tells of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, final

import numpy as np
from sklearn.utils import check_random_state

from .._utils.checks import Array, integer, shown
from ..algorithms.auto import auto
from ..domains.conditions import Conditional
from ..domains.domain import Arms, Domain, Space
from ..domains.parameters import Choice, Float, Int, Parameter
from ..domains.search.designs import every
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..slots.by_name import chosen, part_of
from ..slots.pruning import Never, Pruning
from ..storage.trial import MOST_METRICS, Trial, metric_of
from ..study.study import MOST_AT_ONCE, Study

LOG = ("log", "log-uniform")  # third entry of a range on a logarithmic scale


@final
class Ranges:
    """A space, and those options of its choices that a record cannot name (estimators, arrays).

    Attributes:
        space: the domain of the study.
    """

    def __init__(self, given: Space | Mapping[str, Any]) -> None:
        self._options: dict[str, list[Any]] = {}
        if isinstance(given, Space):
            self.space = given
            return
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                f"`param_space` is {shown(given)}: it must be an nr.Space, or a dict such as "
                "{'C': nr.Float(1e-3, 1e3, log=True), 'kernel': ['rbf', 'linear']}."
            )
        self.space = Space(**{str(name): self._parameter(str(name), each) for name, each in given.items()})

    def _parameter(self, name: str, given: Any) -> Parameter | Conditional:
        if isinstance(given, Float | Int | Choice | Conditional):
            return given
        if isinstance(given, list | np.ndarray):
            options = list(given)
            try:
                return Choice(*options)
            except InvalidInput:
                if not options:
                    raise
                self._options[name] = options
                return Choice(*range(len(options)))
        if isinstance(given, tuple):
            return _range(name, given)
        return _of_scipy(name, given)

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters of a trial as the estimator takes them."""
        return {
            name: self._options[name][value] if name in self._options else value for name, value in parameters.items()
        }


def _range(name: str, given: tuple[Any, ...]) -> Parameter:
    log = len(given) == 3 and given[2] in LOG
    ends = [end.item() if isinstance(end, np.generic) else end for end in given[:2]]
    if len(given) != 2 + log or not all(type(end) in (int, float) for end in ends):
        raise InvalidInput(
            f"The range of `{name}` is {shown(given)}: write (low, high), or (low, high, 'log-uniform') where the "
            "logarithm varies; options are a list."
        )
    low, high = ends
    return Int(low, high, log=log) if type(low) is type(high) is int else Float(low, high, log=log)


def _of_scipy(name: str, given: Any) -> Parameter:
    """Returns the parameter of a frozen distribution of `scipy.stats`, as `RandomizedSearchCV` takes it."""
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal", "randint"):
        low, high = (end.item() if isinstance(end, np.generic) else end for end in given.support())
        return Int(int(low), int(high)) if kind == "randint" else Float(low, high, log=kind != "uniform")
    raise InvalidInput(
        f"The range of `{name}` is {shown(given)}: it must be an nr.Float, nr.Int or nr.Choice, (low, high), a list of "
        "options, or `uniform`, `loguniform` or `randint` of scipy.stats. Of other distributions only the ends would "
        "count: write those."
    )


MOST_COUNTED = 2**12  # Combinations of values that are counted, since fewer of them count where some have conditions.


@final
class Questions:
    """The questions of a search to its study, which is opened. Sets the search's `space_` and `policy_`.

    Args:
        search: the search.

    Attributes:
        study: the study.
        size: number of candidates that are evaluated side by side.
        wanted: number of candidates in all.
        asked: number of candidates so far.
    """

    def __init__(self, search: Any) -> None:
        wanted = integer("n_iter", search.n_iter, low=1, why="It counts candidates.")
        self.size = integer("batch_size", search.batch_size, low=1, high=MOST_AT_ONCE, why="It counts candidates.")
        self._ranges = Ranges(search.param_space)
        search.space_ = self._ranges.space
        self.study = _open_study(search)
        search.policy_ = self.study.policy
        self._left = _all_points(self.study.policy.domain, wanted)
        self.wanted = wanted if self._left is None else min(wanted, len(self._left))
        self.asked = 0
        if self.wanted < wanted:
            warnings.warn(
                f"The total space of parameters {self.wanted} is smaller than n_iter={wanted}. Running {self.wanted} "
                "iterations. For exhaustive searches, use GridSearchCV.",
                UserWarning,
                stacklevel=3,
            )

    def ask(self, most: int) -> list[tuple[Trial, dict[str, Any]]]:
        """Returns new trials, at most this number, with their parameters as the estimator takes them."""
        count = min(most, self.wanted - self.asked)
        self.asked += count
        if self._left is None:
            trials = self.study.ask(count=count) if count else []
        else:
            trials = []
            for _ in range(count):
                trials.append(self.study.ask(among=self._left))
                self._left = self._left[(self._left != trials[-1].point).any(axis=1)]
        return [(trial, self._ranges.values(trial.parameters or {})) for trial in trials]


def _all_points(domain: Domain, most: int) -> Array | None:
    """Returns all points that a policy may play, `(n, d)`, or None if they are more than `most`."""
    if isinstance(domain, Space):
        points = every(domain, max(most, MOST_COUNTED))
    else:
        points = np.unique(domain.points, axis=0) if isinstance(domain, Arms) else np.zeros((0, 0))
    return points if 0 < len(points) <= most else None


def _open_study(search: Any) -> Study:
    """Returns the study of a search, in which trials of an interrupted search are ended."""
    if search.random_state is None and search.storage is not None:
        seed = 0
    else:
        seed = int(check_random_state(search.random_state).randint(2**31 - 1))
    study = Study(_policy_of(search), seed=seed, storage=search.storage, name=search.name)
    for trial in list(study.trials):
        if trial.state == "pending":
            (study.stop if trial.curve else study.fail)(trial, "the search was interrupted")
    return study


def _policy_of(search: Any) -> Policy:
    """Returns the policy of a search, with its pruning rule."""
    space, policy = search.space_, search.policy
    if policy is None:
        policy = auto(space, budget=search.n_iter, parallel=search.batch_size)
    elif callable(policy) and not isinstance(policy, Policy):
        policy = policy(space)
    domain = getattr(policy, "domain", None)
    if not isinstance(policy, Policy) or space not in (domain, getattr(domain, "space", None)):
        raise InvalidInput(
            f"The `policy` of the search is {shown(policy)}: it must be of {shown(space)}, or of arms of it. A "
            "function of the space, such as `lambda space: nr.auto(space)`, makes one that fits."
        )
    if policy.objective_count > 1:
        raise InvalidInput(
            f"The `policy` of the search has {policy.objective_count} objectives, and a search maximises one "
            "score: make it without `objectives`. Further scores are metrics of the trials."
        )
    return policy if search.steps is None else policy.using(pruning=_rule_of(search, policy))


def _rule_of(search: Any, policy: Policy) -> Pruning:
    """Returns the pruning rule of a search, which knows the full number of steps."""
    given = chosen({"pruning": search.pruning})["pruning"] or policy.pruning or Never()
    rule: Pruning | None = part_of("pruning", given)
    if rule is None:
        raise InvalidInput(f"`pruning` is {shown(given)}: it must be a part such as nr.slots.Never(), or its name.")
    if rule.steps not in (None, search.steps):
        raise InvalidInput(
            f"`steps` is {search.steps}, and the pruning rule has steps={rule.steps}: leave it out of the rule."
        )
    return replace(rule, steps=search.steps)


def scores_of(search: Any, results: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the scores of all candidates in results and their standard errors over the folds, each `(n,)`."""
    names = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    # With one metric the name in `refit` does not matter, and a function of all metrics names none.
    name = search.refit if search.refit in names else names[0]
    if name == search.refit or len(names) == 1 or callable(search.refit):
        folds = sum(key.startswith("split") and key.endswith(f"_test_{name}") for key in results)
        return results[f"mean_test_{name}"], results[f"std_test_{name}"] / math.sqrt(max(folds - 1, 1))
    raise InvalidInput(
        f"`scoring` gives several metrics ({', '.join(sorted(names))}), and the search maximises one: name it by "
        f"`refit`, such as refit={min(names)!r}."
    )


def metrics_of(results: Mapping[str, Any], row: int) -> dict[str, float]:
    """Returns the means of a candidate, by their names in `cv_results_`: times, and scores by each metric."""
    found = {name: metric_of(name, means[row]) for name, means in results.items() if name.startswith("mean_")}
    return dict(islice(((name, value) for name, value in found.items() if value is not None), MOST_METRICS))
