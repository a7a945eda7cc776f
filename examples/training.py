"""Tune the training of a classifier that reports its error after each epoch.

    python examples/training.py --pruning halving

`error` is a generator: it yields the share of wrong validation digits after each epoch. Without `--pruning` every
training runs to its last epoch, and its curve is on record all the same. With a rule the training is closed once going
on is not worth it.
"""

import argparse
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import nilregret as nr

SPACE = nr.Space(rate=nr.Float(1e-5, 10.0, log=True), decay=nr.Float(0.0, 1.0), penalty=nr.Float(1e-7, 0.1, log=True))
EPOCHS = 20


@cache
def data():
    """Features and labels to train with, and those to validate with."""
    features, labels = load_digits(return_X_y=True)
    features = StandardScaler().fit_transform(features)
    return train_test_split(features, labels, test_size=0.5, random_state=0, stratify=labels)


def error(rate, decay, penalty):
    """Yields the share of validation digits that are wrong after each epoch."""
    train, validation, labels, wanted = data()
    model = SGDClassifier(loss="log_loss", learning_rate="constant", alpha=penalty, random_state=0)
    for epoch in range(EPOCHS):
        model.set_params(eta0=rate / (1 + epoch) ** decay)
        model.partial_fit(train, labels, classes=np.arange(10))
        yield float(np.mean(model.predict(validation) != wanted))


def main():
    """Tunes, and says how many epochs that took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--pruning", choices=["never", "median", "halving", "predicted"], default="never")
    given = parser.parse_args()
    result = nr.minimize(error, SPACE, trials=given.trials, steps=EPOCHS, pruning=given.pruning, progress=False)
    print(result)
    print(f"epochs: {sum(len(trial.steps) for trial in result.trials)} of {given.trials * EPOCHS}")


if __name__ == "__main__":
    main()
