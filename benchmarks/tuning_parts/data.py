"""Data that scikit-learn ships, split once, and the losses of models on them."""

import math
import warnings
from functools import cache

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

WORST = 50.0  # of a logarithmic loss or a relative squared error: what a prediction that is not finite counts as


def _other(name, target, features=None):
    """The data of another question: one column from the others, or from these."""
    X, _ = getattr(datasets, f"load_{name}")(return_X_y=True)
    y = X[:, target]
    return X[:, features] if features is not None else np.delete(X, target, axis=1), (y - y.mean()) / y.std()


def _below():
    """Whether a digit is odd, from the lower half of its picture."""
    X, y = datasets.load_digits(return_X_y=True)
    return X[:, 32:], y % 2


QUESTIONS = {
    "wine_colour": lambda: _other("wine", 9),
    "cancer_concavity": lambda: _other("breast_cancer", 26, range(10)),
    "diabetes_glucose": lambda: _other("diabetes", 9),
    "iris_petal": lambda: _other("iris", 3),
    "digits_pixel": lambda: _other("digits", 27),
    "digits_below": _below,
}  # beside those that come with the data


@cache
def split(name, rows):
    """Training and validation data, half each, of at most so many rows, standardised by the training half."""
    X, y = QUESTIONS[name]() if name in QUESTIONS else getattr(datasets, f"load_{name}")(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    X, y = X[chosen], y[chosen]
    stratify = y if y.dtype.kind in "iu" else None  # classes are whole numbers
    parts = train_test_split(X, y, test_size=0.5, random_state=0, stratify=stratify)
    mean, std = parts[0].mean(axis=0), parts[0].std(axis=0)
    std = np.where(std > 0, std, 1.0)
    return (parts[0] - mean) / std, (parts[1] - mean) / std, parts[2], parts[3]


def log_loss(model, name, rows):
    """Minus the mean log probability of the validation classes; probabilities as they are, at least 1e-15."""
    X, X_valid, y, y_valid = split(name, rows)
    probabilities = fitted(model, X, y).predict_proba(X_valid)
    chosen = probabilities[np.arange(len(y_valid)), np.searchsorted(model.classes_, y_valid)]
    loss = -float(np.mean(np.log(np.clip(chosen, 1e-15, 1.0))))
    return -loss if math.isfinite(loss) else -WORST


def accuracy(model, name, rows):
    X, X_valid, y, y_valid = split(name, rows)
    return float(np.mean(fitted(model, X, y).predict(X_valid) == y_valid))


def squared_error(model, name, rows, centre=False):
    """Minus the squared error, relative to that of the mean. `centre`: of models without a constant."""
    X, X_valid, y, y_valid = split(name, rows)
    mean = y.mean() if centre else 0.0
    with np.errstate(all="ignore"):
        left = y_valid - mean - fitted(model, X, y - mean).predict(X_valid)
        loss = float(np.mean(left**2) / np.var(y_valid))
    return -min(loss, WORST) if math.isfinite(loss) else -WORST


def fitted(model, X, y):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # that it has not converged, which is a part of the problem
        return model.fit(X, y)
