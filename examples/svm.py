"""The objective of svm.toml: cross-validated accuracy of an RBF support vector machine."""

from functools import cache

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


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
