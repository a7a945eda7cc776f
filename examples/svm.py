"""Cross-validated accuracy of an RBF support vector machine: the objective of svm.toml, and a search for its maximum.

`nilregret tune examples/svm.toml` keeps every trial and draws a picture; `python examples/svm.py` does the same from
Python and keeps nothing.
"""

from functools import cache

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import nilregret as nr


@cache
def data():
    """Features (569, 30) and labels (569,)."""
    return load_breast_cancer(return_X_y=True)


def accuracy(C: float, gamma: float) -> float:
    """Mean accuracy over five folds that are always the same."""
    features, labels = data()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma))
    return float(cross_val_score(model, features, labels, cv=folds).mean())


if __name__ == "__main__":
    space = nr.Space(C=nr.Float(1e-2, 1e4, log=True), gamma=nr.Float(1e-6, 10.0, log=True))
    print(nr.maximize(accuracy, space, trials=60))
