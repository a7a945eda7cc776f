"""A parameter search with cross-validation for scikit-learn (the extra `sklearn`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from ..errors import needs

with needs("`nilregret.integrations.sklearn`", "scikit-learn", "sklearn"):
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV

from .._utils.checks import integer, shown
from .._utils.executors import HOPELESS
from ..domains.domain import Space
from ..errors import InvalidInput, one_line
from ..policy.policy import Policy
from ..slots.pruning import Pruning
from .candidates import Questions, metrics_of, scores_of
from .step_search import NOT_FINITE, StepSearch

ALL_FAILED = "All the "  # first words of scikit-learn's error if every fit of a candidate failed


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
        steps: None fits each candidate in one go. A number trains it in so many steps, on all folds side by side, and
            reports the mean score after each step. A step is a call of `partial_fit` with all training samples. Without
            `partial_fit` it is a share of `n_estimators` or `max_iter`, with `warm_start`. In a pipeline the last
            estimator has the steps. The best estimator is trained by the same steps. `cv_results_` gets the columns
            "steps" and "stopped". A stopped candidate has the scores of its last step, and a rank behind the others.
        pruning: a rule that stops candidates before their last step, such as "median" or a part of `nr.slots`. None
            stops none.
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
        steps: int | None = None,
        pruning: str | Pruning | None = None,
    ) -> None:
        self.param_space, self.n_iter, self.batch_size, self.policy = param_space, n_iter, batch_size, policy
        self.random_state, self.storage, self.name, self.fold_noise = random_state, storage, name, fold_noise
        self.steps, self.pruning = steps, pruning
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Runs the search, and fits the best estimator to all data.

        Args:
            X: samples, `(n, p)`.
            y: targets, `(n,)`, or None.
            params: further arguments of the estimator's `fit`, of the scorer and of the splitter.
        """
        if self.steps is not None:
            integer("steps", self.steps, low=1, why="It counts the steps of a training.")
            return StepSearch(self, X, y, params).fit()
        if self.pruning is not None:
            raise InvalidInput(
                f"`pruning` is {shown(self.pruning)}, and the candidates are fitted in one go: say by `steps` how many "
                "steps a training has."
            )
        return super().fit(X, y, **params)

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]], *, callback_ctx: Any = None) -> None:
        """Asks for candidates, evaluates them and tells their scores, as `fit` wants.

        The argument `callback_ctx` is there from scikit-learn 1.9 on.
        """
        questions = Questions(self)
        study, size = questions.study, questions.size
        evaluate = _Evaluation(self, evaluate_candidates, callback_ctx, most=-(-questions.wanted // size))
        rows = 0
        while asked := questions.ask(size):
            try:
                results = evaluate([parameters for _, parameters in asked])
            except ValueError as error:
                hopeless = not rows and questions.asked >= min(questions.wanted, HOPELESS)
                if not str(error).strip().startswith(ALL_FAILED) or hopeless:
                    raise
                for trial, _ in asked:
                    study.fail(trial, one_line(str(error)))
                continue
            scores, errors = scores_of(self, results)
            for (trial, _), score, spread in zip(asked, scores[rows:], errors[rows:], strict=True):
                if math.isfinite(score):
                    std = float(spread) if self.fold_noise and spread > 0.0 else None
                    study.tell(trial, float(score), std=std, metrics=metrics_of(results, rows))
                else:
                    study.fail(trial, f"its score is {score}")
                rows += 1
        evaluate.end()
        self.trials_ = list(study.trials)


@final
class _Folds:
    """The folds of a search, drawn once, so that all candidates of a search are scored on the same ones."""

    def __init__(self, search: Any) -> None:
        self._search = search
        self._drawn: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **more: Any) -> list[Any]:
        """Returns (training indices, test indices) of each fold. The arguments are those of the first call."""
        if self._drawn is None:
            splitter = check_cv(self._search.cv, y, classifier=is_classifier(self._search.estimator))
            self._drawn = list(splitter.split(X, y, **more))
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
        self._search, self._evaluate, self._folds = search, evaluate, _Folds(search)
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
