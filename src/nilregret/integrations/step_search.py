"""A search with cross-validation that trains its candidates step by step (`NoRegretSearchCV(steps=...)`)."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _MultimetricScorer,
    _warn_or_raise_about_fit_failures,
)
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .._utils.checks import Array
from .._utils.executors import HOPELESS
from ..errors import InvalidInput, NoRegretWarning, one_line
from ..storage.trial import Trial
from ..study.pruning import pruning_of
from .candidates import Questions, metrics_of, scores_of
from .training import Data, Fold, Training, advance, begin, scorers_of

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
        older = "convert_multimetric" in inspect.signature(search._get_scorers).parameters  # scikit-learn 1.4
        self._scorers, self._metric = search._get_scorers(**({"convert_multimetric": True} if older else {}))
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
