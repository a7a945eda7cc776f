"""Tune boosted trees: six parameters, real, whole, a choice, and one that counts only where the choice has use for it.

    python examples/boosting.py

What is wanted is the parameters at which a gradient boosting of scikit-learn predicts the progress of diabetes with
the smallest error. Nothing is said of how to search: `nr.minimize` learns from the answers what matters. Every trial is
in boosting.db the moment it is known: interrupt this, run it again, and it goes on where it was (with a larger
--trials, it goes on beyond). At the end: the best parameters, what scikit-learn's own would have brought, and
boosting.png.
"""

import argparse
from functools import cache
from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_score

import nilregret as nr
from nilregret import plots

SPACE = nr.Space(
    learning_rate=nr.Float(0.01, 0.5, log=True),
    max_depth=nr.Int(1, 6),
    loss=nr.Choice("squared_error", "huber"),
    alpha=nr.when("loss", "huber", nr.Float(0.5, 0.99)),  # errors beyond this quantile are outliers
    n_estimators=nr.Int(10, 300, log=True),
    subsample=nr.Float(0.2, 1.0),
)


@cache
def data():
    """Features (442, 10) and what became of the patients (442,)."""
    return load_diabetes(return_X_y=True)


def error(**parameters):
    """Mean absolute error over four folds that are always the same."""
    features, progress = data()
    model = GradientBoostingRegressor(**parameters, random_state=0)
    folds = KFold(4, shuffle=True, random_state=0)
    return -cross_val_score(model, features, progress, cv=folds, scoring="neg_mean_absolute_error").mean()


def error_and_size(**parameters):
    """The same error, and the number of leaves of all trees: a small model answers faster."""
    model = GradientBoostingRegressor(**parameters, random_state=0).fit(*data())
    return {"error": error(**parameters), "leaves": sum(tree.get_n_leaves() for tree in model.estimators_.ravel())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50, help="how many in all (default 50, about a minute)")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent, help="of boosting.db and boosting.png")
    parser.add_argument("--pictures", type=Path, help="folder for one PNG of each picture of `nr.plots`")
    options = parser.parse_args()
    storage = f"sqlite:///{options.folder.resolve()}/boosting.db"
    result = nr.minimize(error, SPACE, trials=options.trials, storage=storage, name="boosting")
    print(result)
    print(f"with scikit-learn's own parameters: {error():.6g}")
    picture = options.folder / "boosting.png"
    plots.overview(result.study, picture, label="mean absolute error")
    print(f"picture: {picture}")
    if options.pictures is not None:
        for draw in (plots.history, plots.importance, plots.slices, plots.contour, plots.parallel):
            draw(result, options.pictures / f"boosting-{draw.__name__}.png")
        for name, style in (("boosting", "light"), ("boosting-dark", "dark")):
            with plots.style(style):
                plots.overview(result.study, options.pictures / f"{name}.png", label="mean absolute error")
        both = {"error": "minimize", "leaves": "minimize"}
        found = nr.minimize(
            error_and_size, SPACE, objectives=both, trials=options.trials, storage=storage, name="boosting-front"
        )
        weights = {"error": 1, "leaves": 1}
        plots.front(found, options.pictures / "boosting-front.png", weights=weights, log="leaves")


if __name__ == "__main__":
    main()
