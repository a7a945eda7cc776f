"""A parameter search with cross-validation for scikit-learn (the extra `sklearn`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, final

import numpy as np

from ..errors import needs

with needs("`nilregret.integrations.sklearn`", "scikit-learn", "sklearn"):
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state

from .._utils.checks import Array, integer, shown
from .._utils.executors import HOPELESS
from ..algorithms.auto import auto
from ..domains.domain import Arms, Domain, Space
from ..domains.search.designs import every
from ..errors import InvalidInput, one_line
from ..policy.policy import Policy
from ..storage.trial import MOST_METRICS, metric_of
from ..study.study import MOST_AT_ONCE, Study
from .distributions import Ranges

ALL_FAILED = "All the "  # first words of scikit-learn's error if every fit of a candidate failed
NOT_FINITE = "One or more of the"  # first words of scikit-learn's warning about scores, which repeats with every batch
MOST_COUNTED = 2**12  # combinations of values that are counted, since fewer of them count where some have conditions


@final
class NoRegretSearchCV(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """A search for the parameters with the best cross-validated score, which learns from each score.

    It takes the place of `RandomizedSearchCV`. After `fit` it has the same attributes: `best_estimator_`,
    `best_params_`, `best_score_`, `best_index_`, `cv_results_`, `n_splits_`, `scorer_`, `multimetric_` and
    `refit_time_`. It also has `space_`, `policy_` and `trials_` (see `nr.Trial`). The metrics of a trial
    are its means in `cv_results_`, such as "mean_fit_time".

    All candidates are scored on the same folds. A space with at most `n_iter` points is searched completely, each point
    once, with scikit-learn's warning if there are fewer.

    If every fit of a candidate fails, its trial is recorded as failed and has no row in `cv_results_`. If this happens
    to the first ten candidates, the search ends with scikit-learn's error.

    Args:
        estimator: the estimator, which is cloned and not changed.
        param_space: an `nr.Space`, or a dict of ranges by the estimator's names. A range is an `nr.Float`, `nr.Int`,
            `nr.Choice` or `nr.when`, a tuple (low, high) or (low, high, "log-uniform"), or a list of options.
            `uniform`, `loguniform` and `randint` of scipy.stats are ranges, too.
        n_iter: number of candidates.
        batch_size: number of candidates that are evaluated in parallel with their folds. A candidate is chosen without
            the scores of the others in its batch.
        policy: a policy on the space, or a function that makes a policy of the space. None stands for
            `nr.auto(space, budget=n_iter, parallel=batch_size)`.
        scoring: see `RandomizedSearchCV`. Higher is better. If there are several metrics, `refit` names the one that is
            maximised, or the first is if `refit` is a function.
        n_jobs: processes or threads, as joblib counts them, over the folds (and candidates) of a batch.
        refit: True or the name of a metric if the best estimator is fitted to all data. A function of `cv_results_`
            returns the index of the best candidate.
        cv: see `RandomizedSearchCV`.
        verbose: see `RandomizedSearchCV`.
        pre_dispatch: see `RandomizedSearchCV`.
        random_state: a whole number makes the search repeatable if the estimator is. None draws another seed each time,
            except for a search with a storage.
        error_score: score of a fit that fails, or "raise".
        return_train_score: True if `cv_results_` has the scores on the training folds.
        fold_noise: True tells the search the standard error of each score, the standard deviation of the scores of its
            folds divided by sqrt(n_splits - 1). Candidates with uneven folds then count for less (`Study.tell`).
        storage: URL of a database for the trials, or None for memory. A search with the same name, space, policy and
            `random_state` learns from the stored trials.
        name: name of the study in the storage.
    """

    def __init__(
        self,
        estimator: Any,
        param_space: Space | Mapping[str, Any],
        *,
        n_iter: int = 50,
        batch_size: int = 1,
        policy: Policy | Callable[[Space], Policy] | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = math.nan,
        return_train_score: bool = False,
        fold_noise: bool = False,
        storage: str | None = None,
        name: str = "search",
    ) -> None:
        self.param_space, self.n_iter, self.batch_size, self.policy = param_space, n_iter, batch_size, policy
        self.random_state, self.storage, self.name, self.fold_noise = random_state, storage, name, fold_noise
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]], *, callback_ctx: Any = None) -> None:
        """Asks for candidates, evaluates them and tells their scores, as `fit` wants.

        The argument `callback_ctx` is there from scikit-learn 1.9 on.
        """
        wanted = integer("n_iter", self.n_iter, low=1, why="It counts candidates.")
        size = integer("batch_size", self.batch_size, low=1, high=MOST_AT_ONCE, why="It counts candidates.")
        ranges = Ranges(self.param_space)
        self.space_ = ranges.space
        study = self._open_study()
        self.policy_ = study.policy
        left = _all_points(study.policy.domain, wanted)
        if left is not None and len(left) < wanted:
            warnings.warn(
                f"The total space of parameters {len(left)} is smaller than n_iter={wanted}. Running {len(left)} "
                "iterations. For exhaustive searches, use GridSearchCV.",
                UserWarning,
                stacklevel=2,
            )
            wanted = len(left)
        evaluate = _Evaluation(self, evaluate_candidates, callback_ctx, most=-(-wanted // size))
        done = rows = 0
        while done < wanted:
            trials, left = _ask(study, min(size, wanted - done), left)
            done += len(trials)
            try:
                results = evaluate([ranges.values(trial.parameters or {}) for trial in trials])
            except ValueError as error:
                if not str(error).strip().startswith(ALL_FAILED) or (not rows and done >= min(wanted, HOPELESS)):
                    raise
                for trial in trials:
                    study.fail(trial, one_line(str(error)))
                continue
            scores, errors = self._scores(results)
            for trial, score, spread in zip(trials, scores[rows:], errors[rows:], strict=True):
                if math.isfinite(score):
                    std = float(spread) if self.fold_noise and spread > 0.0 else None
                    study.tell(trial, float(score), std=std, metrics=_metrics(results, rows))
                else:
                    study.fail(trial, f"its score is {score}")
                rows += 1
        evaluate.end()
        self.trials_ = list(study.trials)

    def _open_study(self) -> Study:
        """Returns the study, in which pending trials of an interrupted search are recorded as failed."""
        if self.random_state is None and self.storage is not None:
            seed = 0
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        study = Study(self._make_policy(self.space_), seed=seed, storage=self.storage, name=self.name)
        for trial in list(study.trials):
            if trial.state == "pending":
                study.fail(trial, "the search was interrupted")
        return study

    def _make_policy(self, space: Space) -> Policy:
        if self.policy is None:
            return auto(space, budget=self.n_iter, parallel=self.batch_size)
        policy: object = self.policy
        if callable(policy) and not isinstance(policy, Policy):
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
        return policy

    def _scores(self, results: Mapping[str, Any]) -> tuple[Any, Any]:
        """Returns the scores of all candidates so far and their standard errors over the folds, each `(n,)`."""
        names = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        # With one metric the name in `refit` does not matter, and a function of all metrics names none.
        name = self.refit if self.refit in names else names[0]
        if name == self.refit or len(names) == 1 or callable(self.refit):
            folds = sum(key.startswith("split") and key.endswith(f"_test_{name}") for key in results)
            return results[f"mean_test_{name}"], results[f"std_test_{name}"] / math.sqrt(max(folds - 1, 1))
        raise InvalidInput(
            f"`scoring` gives several metrics ({', '.join(sorted(names))}), and the search maximises one: name it by "
            f"`refit`, such as refit={min(names)!r}."
        )


def _metrics(results: Mapping[str, Any], row: int) -> dict[str, float]:
    """Returns the means of a candidate, by their names in `cv_results_`: times, and scores by each metric."""
    found = {name: metric_of(name, means[row]) for name, means in results.items() if name.startswith("mean_")}
    return dict(islice(((name, value) for name, value in found.items() if value is not None), MOST_METRICS))


@final
class _Folds:
    """The folds of a splitter, drawn once, so that all candidates of a search are scored on the same ones."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._drawn: list[Any] | None = None

    def split(self, *data: Any, **more: Any) -> list[Any]:
        """Returns (training indices, test indices) of each fold. The arguments are those of the first call."""
        if self._drawn is None:
            self._drawn = list(self._splitter.split(*data, **more))
        return self._drawn


@final
class _Evaluation:
    """The evaluations of a search, batch after batch.

    Args:
        search: the search.
        evaluate: scikit-learn's function, which evaluates candidates and returns the results of all so far.
        context: scikit-learn's context for callbacks, or None before version 1.9.
        most: number of batches.
    """

    def __init__(self, search: Any, evaluate: Callable[..., dict[str, Any]], context: Any, *, most: int) -> None:
        self._search, self._evaluate, self._folds = search, evaluate, _Folds(search._checked_cv_orig)
        self._results: dict[str, Any] = {}
        self._context = context
        if context is not None:
            self._context = context.subcontext("search", max_subtasks=most).call_on_fit_task_begin(estimator=search)

    def __call__(self, candidates: list[dict[str, Any]]) -> dict[str, Any]:
        """Evaluates candidates, and returns the results of all so far."""
        options: dict[str, Any] = {}
        batch = None
        if self._context is not None:
            splits = len(candidates) * self._search.n_splits_
            batch = self._context.subcontext("batch", max_subtasks=splits, sequential_subtasks=False)
            options = {"callback_ctx": batch.call_on_fit_task_begin(estimator=self._search)}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=NOT_FINITE)  # `end` gives one warning for all.
                self._results = self._evaluate(candidates, cv=self._folds, **options)
        finally:
            if batch is not None:
                batch.call_on_fit_task_end(estimator=self._search)
        return self._results

    def end(self) -> None:
        """Warns of the scores that are not finite, as scikit-learn does, and closes the context."""
        for name, means in self._results.items():
            kind = name.removeprefix("mean_").split("_")[0]
            if name.startswith(("mean_test_", "mean_train_")) and not np.isfinite(means).all():
                warnings.warn(f"{NOT_FINITE} {kind} scores are non-finite: {means}", UserWarning, stacklevel=2)
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._search)


def _all_points(domain: Domain, most: int) -> Array | None:
    """Returns all points that a policy may play, `(n, d)`, or None if they are more than `most`."""
    if isinstance(domain, Space):
        points = every(domain, max(most, MOST_COUNTED))
    else:
        points = np.unique(domain.points, axis=0) if isinstance(domain, Arms) else np.zeros((0, 0))
    return points if 0 < len(points) <= most else None


def _ask(study: Study, count: int, left: Array | None) -> tuple[list[Any], Array | None]:
    """Returns new trials, and the points that are left, `(n, d)`. None stands for a space that is not listed."""
    if left is None:
        return study.ask(count=count), None
    trials = []
    for _ in range(count):
        trials.append(study.ask(among=left))
        left = left[(left != trials[-1].point).any(axis=1)]
    return trials, left
