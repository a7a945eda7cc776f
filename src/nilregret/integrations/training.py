"""Training of scikit-learn's estimators step by step, on several folds side by side."""

from __future__ import annotations

import inspect
import math
import time
import traceback
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._validation import _MultimetricScorer, _score
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from .._utils.checks import shown
from ..errors import InvalidInput

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
