"""A search with cross-validation that trains its candidates step by step (`NoRegretSearchCV(steps=...)`)."""

from __future__ import annotations

import inspect
import math
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _MultimetricScorer,
    _score,
    _warn_or_raise_about_fit_failures,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .._utils.checks import Array, shown
from .._utils.executors import HOPELESS
from ..errors import InvalidInput, NoRegretWarning, one_line
from ..storage.trial import Trial
from ..study.pruning import pruning_of
from .candidates import Questions, metrics_of, scores_of

PARTIAL = "partial_fit"
COUNTS = ("n_estimators", "max_iter")  # Parameters that say how far `fit` goes, of estimators with `warm_start`.
WHOLE = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)  # Their `max_iter` counts earlier fits, too.


class Fold(NamedTuple):
    """A split of the data: indices of the training and of the test samples."""

    train: Any
    test: Any


class Data(NamedTuple):
    """The data of a search, and how a trained estimator is scored.

    Attributes:
        X: all samples.
        y: their targets, or None.
        fit_params: further arguments of `fit`.
        scorer: of scikit-learn.
        score_params: further arguments of the scorer.
        error_score: the score of a fold that fails, or "raise".
        train_scores: True if the scores on the training samples are wanted.
    """

    X: Any
    y: Any
    fit_params: Mapping[str, Any]
    scorer: Any
    score_params: Mapping[str, Any]
    error_score: Any
    train_scores: bool

    def failed(self) -> Any:
        """Returns the scores of a fold that fails."""
        if isinstance(self.scorer, _MultimetricScorer):
            return dict.fromkeys(scorers_of(self.scorer), self.error_score)
        return self.error_score


def scorers_of(scorer: _MultimetricScorer) -> dict[str, Any]:
    """Returns the scorers of several metrics by name."""
    found: dict[str, Any] = scorer._scorers
    return found


@final
class Training:
    """An estimator, or a pipeline that ends with one, and the steps that it was trained.

    A step is one call of `partial_fit` with all samples. Without `partial_fit` it is a share of `n_estimators` or
    `max_iter`, with `warm_start`.

    Args:
        estimator: not trained yet. It is changed.
        steps: the full number of steps.
    """

    def __init__(self, estimator: Any, steps: int) -> None:
        self.estimator, self._steps, self.done = estimator, steps, 0

    def advance(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        """Trains the estimator by one step.

        Args:
            X: the training samples.
            y: their targets, or None.
            params: further arguments of `fit`.
        """
        model, first = self.estimator, self.done == 0
        if isinstance(model, Pipeline):
            name, model = model.steps[-1]
            params = _of_last(name, params)
            if len(self.estimator) > 1:
                head = self.estimator[:-1]
                X = head.fit_transform(X, y) if first else head.transform(X)
                self.estimator.steps[:-1] = head.steps
        more = {} if y is None else {"y": y}
        means = means_of(model)
        if means == PARTIAL:
            if first and "classes" in inspect.signature(model.partial_fit).parameters and is_classifier(model):
                more["classes"] = np.unique(y)
            model.partial_fit(X, **more, **params)
        else:
            self._fit_further(model, means, X, more | dict(params))
        self.done += 1

    def _fit_further(self, model: Any, name: str, X: Any, more: dict[str, Any]) -> None:
        """Trains an estimator with `warm_start` up to its share of a parameter."""
        whole = getattr(model, name)
        if type(whole) is not int or whole < 1:
            raise InvalidInput(f"`{name}` is {shown(whole)}, and `steps` needs a whole number, at least 1, to share.")
        before, after = (math.ceil(whole * done / self._steps) for done in (self.done, self.done + 1))
        if before == after:
            return
        known = {"warm_start": model.warm_start, name: whole}
        further = name == "max_iter" and not isinstance(model, WHOLE)  # `fit` goes on for this number of iterations.
        model.set_params(**{"warm_start": True, name: after - before if further else after})
        try:
            with warnings.catch_warnings():
                if after < whole:
                    warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, **more)
        finally:
            model.set_params(**known)


def means_of(model: Any) -> str:
    """Returns by what an estimator is trained step by step: "partial_fit", or the name of a parameter.

    Raises:
        InvalidInput: the estimator can be trained in one go only.
    """
    if hasattr(model, PARTIAL):
        return PARTIAL
    known = model.get_params(deep=False)
    for name in COUNTS if "warm_start" in known else ():
        if name in known:
            return name
    raise InvalidInput(
        f"{type(model).__name__} cannot be trained step by step: it has no `partial_fit`, and no `warm_start` with "
        "`n_estimators` or `max_iter`. Leave `steps` out, or take another estimator (in a pipeline, the last one)."
    )


def _of_last(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `fit` of a pipeline that are for its last estimator."""
    prefix = f"{name}__"
    for each in params:
        if not each.startswith(prefix):
            raise InvalidInput(
                f"`fit` was called with {shown(each)}. A search with `steps` passes arguments to the last estimator of "
                f"the pipeline alone: name it {prefix}..."
            )
    return {each.removeprefix(prefix): value for each, value in params.items()}


def advance(
    training: Training | None, out: dict[str, Any], data: Data, fold: Fold
) -> tuple[Training | None, dict[str, Any]]:
    """Trains by one step on a fold, and scores.

    Args:
        training: of this fold, or None if it has failed before.
        out: its last results, empty before the first step.
        data: all data.
        fold: the split.

    Returns:
        The training, or None if it has failed. Its results, as scikit-learn formats them. Times are sums over steps.
    """
    if training is None:
        return None, out
    fit_time, score_time = out.get("fit_time", 0.0), out.get("score_time", 0.0)
    model, begun, error = training.estimator, time.perf_counter(), None
    X, y = _safe_split(model, data.X, data.y, fold.train)
    tested = _safe_split(model, data.X, data.y, fold.test, fold.train)
    try:
        training.advance(X, y, _check_method_params(data.X, params=dict(data.fit_params), indices=fold.train))
    except InvalidInput:
        raise
    except Exception:
        if data.error_score == "raise":
            raise
        training, error = None, traceback.format_exc()
    trained = time.perf_counter()
    scores = {}
    for name, samples, indices in (("test_scores", tested, fold.test), ("train_scores", (X, y), fold.train)):
        if name == "test_scores" or data.train_scores:
            more = _check_method_params(data.X, params=dict(data.score_params), indices=indices)
            scores[name] = data.failed() if error else _score(model, *samples, data.scorer, more, data.error_score)
    times = {"fit_time": fit_time + trained - begun, "score_time": score_time + time.perf_counter() - trained}
    return training, {"fit_error": error, **scores, **times}


def begin(estimator: Any, parameters: Mapping[str, Any], steps: int) -> Training:
    """Returns a new training of a copy of an estimator with these parameters."""
    return Training(clone(estimator).set_params(**clone(dict(parameters), safe=False)), steps)


NOT_FINITE = "One or more of the"  # First words of scikit-learn's warning about scores, which repeats with every batch.


class _Result(NamedTuple):
    """The results of a candidate after a step.

    Attributes:
        steps: number of steps.
        score: mean over the folds.
        std: standard error of the score, or None where the search does not tell it.
        metrics: means by their names in `cv_results_`.
        outs: the results of the folds, as scikit-learn formats them.
    """

    steps: int
    score: float
    std: float | None
    metrics: dict[str, float]
    outs: list[dict[str, Any]]


@dataclass
class _Candidate:
    """A candidate, its trainings, one a fold, and its results.

    Attributes:
        trial: as asked for.
        parameters: as the estimator takes them.
        trainings: None for the folds that have failed.
        outs: last results of the folds.
        steps: number of steps so far.
        score: after the last step.
        result: the result that counts. None before the first score.
        stopped: True if it was stopped.
    """

    trial: Trial
    parameters: dict[str, Any]
    trainings: list[Training | None]
    outs: list[dict[str, Any]]
    steps: int = 0
    score: float = math.nan
    result: _Result | None = None
    stopped: bool = False


@final
class StepSearch:
    """A run of a search. Its candidates are trained side by side, each on all folds.

    Args:
        search: the search, whose attributes `fit` sets.
        X: all samples.
        y: their targets, or None.
        params: further arguments of `fit`.
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        if getattr(search, "_skl_callbacks", None):
            raise InvalidInput("Callbacks of scikit-learn see no single steps: leave out `steps`, or the callbacks.")
        self._search = search
        self._scorers, self._metric = search._get_scorers()
        X, y = indexable(X, y)
        routed = search._get_routed_params_for_fit(_check_method_params(X, params=params))
        cv = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
        self._folds = [Fold(*split) for split in cv.split(X, y, **routed.splitter.split)]
        search.n_splits_ = len(self._folds)
        self._data = Data(
            X, y, routed.estimator.fit, self._scorers, routed.scorer.score, search.error_score,
            search.return_train_score,
        )  # fmt: skip
        self._ended: list[_Candidate] = []  # those with a row in the results
        self._failed = 0
        self._trained = False  # True as soon as a step of a candidate has a score

    def fit(self) -> Any:
        """Runs the search, sets its attributes and returns it."""
        search = self._search
        self._questions = questions = Questions(search)
        self._study, size = questions.study, questions.size
        self._rule = pruning_of(self._study.policy)
        active: list[_Candidate] = []
        paused: list[_Candidate] = []
        with Parallel(n_jobs=search.n_jobs, pre_dispatch=search.pre_dispatch) as parallel:
            while True:
                active += self._awake(paused, size - len(active))
                for trial, parameters in questions.ask(size - len(active)):
                    trainings: list[Training | None] = [
                        begin(search.estimator, parameters, search.steps) for _ in self._folds
                    ]
                    active.append(_Candidate(trial, parameters, trainings, [{} for _ in self._folds]))
                if not active:
                    break
                self._train(parallel, active)
                active = [candidate for candidate in active if self._goes_on(candidate, paused)]
        for candidate in paused:
            self._stop(candidate)
        self._set_results()
        return search

    def _awake(self, paused: list[_Candidate], most: int) -> list[_Candidate]:
        """Returns the paused candidates that go on, which are taken out of the list."""
        found: list[_Candidate] = []
        for candidate in list(paused):
            if len(found) < most and self._report(candidate):
                paused.remove(candidate)
                found.append(candidate)
        return found

    def _train(self, parallel: Any, candidates: list[_Candidate]) -> None:
        """Trains candidates by one step on all folds."""
        folds = range(len(self._folds))
        done = parallel(
            delayed(advance)(each.trainings[k], each.outs[k], self._data, self._folds[k])
            for each in candidates
            for k in folds
        )
        for i, candidate in enumerate(candidates):
            mine = done[i * len(folds) : (i + 1) * len(folds)]
            candidate.trainings, candidate.outs = [each for each, _ in mine], [out for _, out in mine]
            candidate.steps += 1

    def _goes_on(self, candidate: _Candidate, paused: list[_Candidate]) -> bool:
        """Reports the score of a candidate after a step, and ends or pauses the candidate if it is not to go on."""
        study, trial = self._study, candidate.trial
        if not any(candidate.trainings):
            try:
                _warn_or_raise_about_fit_failures(candidate.outs, self._data.error_score)
            except ValueError as error:
                self._failed += 1
                if not self._trained and self._failed >= min(self._questions.wanted, HOPELESS):
                    raise
                study.fail(trial, one_line(str(error)))
            return False
        self._trained = True
        result = self._result(candidate)
        before, candidate.score = candidate.result, result.score
        if before is None or self._rule.of == "last" or not result.score <= before.score:
            candidate.result = result
        if not math.isfinite(result.score):
            study.fail(trial, f"its score is {result.score}")
            self._end(candidate)
            return False
        going_on = self._report(candidate)
        kept = cast(_Result, candidate.result)
        if candidate.steps == self._search.steps:
            study.tell(trial, kept.score, std=kept.std, metrics=kept.metrics)
            self._end(candidate)
        elif not going_on and study.trials[trial.number].curve[-1].verdict == "wait":
            paused.append(candidate)
        elif not going_on:
            self._stop(candidate)
        return going_on and candidate.steps < self._search.steps

    def _result(self, candidate: _Candidate) -> _Result:
        outs = [dict(out) for out in candidate.outs]
        if callable(self._search.scoring):
            _insert_error_scores(outs, self._data.error_score)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=NOT_FINITE)
            means = _formatted(self._search, candidate.parameters, outs)
        scores, errors = scores_of(self._search, means)
        std = float(errors[0]) if self._search.fold_noise and errors[0] > 0.0 else None
        return _Result(candidate.steps, float(scores[0]), std, metrics_of(means, 0), outs)

    def _report(self, candidate: _Candidate) -> bool:
        """Reports the last score of a candidate, and returns True if going on is worth it."""
        return self._study.report(candidate.trial, candidate.steps, candidate.score)

    def _stop(self, candidate: _Candidate) -> None:
        self._study.stop(candidate.trial)
        candidate.stopped = True
        self._end(candidate)

    def _end(self, candidate: _Candidate) -> None:
        _warn_or_raise_about_fit_failures(candidate.outs, self._data.error_score)
        candidate.trainings = []
        self._ended.append(candidate)

    # -- the attributes of the search --------------------------------------------------------------------------------

    def _set_results(self) -> None:
        """Sets the attributes of the search after the last candidate, as `BaseSearchCV.fit` does."""
        search, metric = self._search, self._metric
        ended = sorted(self._ended, key=lambda candidate: candidate.trial.number)
        rows = [cast(_Result, candidate.result) for candidate in ended]
        outs = [out for row in rows for out in row.outs]
        stopped = [candidate.stopped for candidate in ended]
        columns = {"steps": [row.steps for row in rows], "stopped": stopped}
        parameters = [candidate.parameters for candidate in ended]
        results = search._format_results(parameters, len(self._folds), outs, columns)
        _rank_stopped_last(results, np.array(stopped))
        if all(stopped):
            sentence = (
                "All candidates were stopped, so the best one is the best of their last scores. Usually earlier trials "
                "in the storage are better. Search more candidates, or take a rule that stops fewer."
            )
            warnings.warn(NoRegretWarning(sentence), stacklevel=4)
        search.multimetric_ = isinstance(outs[0]["test_scores"], dict)
        if callable(search.scoring) and search.multimetric_:
            search._check_refit_for_multimetric(outs[0]["test_scores"])
            metric = search.refit
        if search.refit or not search.multimetric_:
            search.best_index_ = search._select_best_index(search.refit, metric, results)
            if not callable(search.refit):
                search.best_score_ = results[f"mean_test_{metric}"][search.best_index_]
            search.best_params_ = results["params"][search.best_index_]
        if search.refit:
            self._refit(int(results["steps"][search.best_index_]))
        several = isinstance(self._scorers, _MultimetricScorer)
        search.scorer_ = scorers_of(self._scorers) if several else self._scorers
        search.cv_results_, search.trials_ = results, list(self._study.trials)

    def _refit(self, steps: int) -> None:
        """Trains the best candidate on all samples, for as many steps as its score has."""
        search, data, begun = self._search, self._data, time.perf_counter()
        training = begin(search.estimator, search.best_params_, search.steps)
        for _ in range(steps):
            training.advance(data.X, data.y, data.fit_params)
        search.best_estimator_, search.refit_time_ = training.estimator, time.perf_counter() - begun
        if hasattr(search.best_estimator_, "feature_names_in_"):
            search.feature_names_in_ = search.best_estimator_.feature_names_in_


def _formatted(search: BaseSearchCV, parameters: dict[str, Any], outs: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the results of the folds of a candidate as scikit-learn has them in `cv_results_`."""
    found: dict[str, Any] = search._format_results([parameters], len(outs), outs)
    return found


def _rank_stopped_last(results: dict[str, Any], stopped: Array) -> None:
    """Ranks stopped candidates behind all finished ones, and before those without a score."""
    for name in [name for name in results if name.startswith("rank_test_")]:
        scored = np.isfinite(results[name.replace("rank", "mean", 1)])
        ranks = results[name] + len(stopped) * np.where(scored, stopped, 2)
        results[name] = np.array([1 + np.count_nonzero(ranks < rank) for rank in ranks], dtype=np.int32)
