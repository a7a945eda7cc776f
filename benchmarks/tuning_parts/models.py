"""Models of scikit-learn on the data it ships: what a user would tune, trained for real at every evaluation.

Nothing is looked up in a table or interpolated: the data are cut down until one evaluation takes some 5 to 60 ms, and
every evaluation is a pure function of its parameters (fixed splits, fixed seeds), so that all methods see one surface.
Losses are what is left as they are: a model that diverges is many times worse than one that does not.

`MORE_MODELS` join neither half of `MODELS`: up to nine parameters, of tree ensembles above all. Those of them that are
held out answer questions that no other model is asked (`data.QUESTIONS`), and were not run before the defaults were
settled.
"""

import numpy as np
from sklearn import ensemble
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, LogisticRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from nilregret import Choice, Float, Int

from .base import log, log_int, model_problem
from .data import accuracy, fitted, log_loss, split, squared_error


def svm_cancer(p):
    model = SVC(C=p["C"], gamma=p["gamma"], kernel=p["kernel"], degree=p["degree"], max_iter=3000)
    X, X_valid, y, y_valid = split("breast_cancer", 569)
    margin = fitted(model, X, y).decision_function(X_valid) * np.where(y_valid == 1, 1.0, -1.0)
    return -float(np.mean(np.maximum(0.0, 1.0 - margin)))  # hinge loss: smooth enough to tell good from better


def boosting_cancer(p):
    model = GradientBoostingClassifier(
        learning_rate=p["learning_rate"], n_estimators=p["trees"], max_depth=p["depth"], subsample=p["subsample"],
        min_samples_leaf=p["leaf"], max_features=p["features"], random_state=0,
    )  # fmt: skip
    return log_loss(model, "breast_cancer", 300)


def mlp_digits(p):
    model = MLPClassifier(
        p["units"], activation=p["activation"], alpha=p["alpha"], learning_rate_init=p["step"],
        batch_size=p["batch"], solver=p["solver"], momentum=p["momentum"], max_iter=15, random_state=0,
    )  # fmt: skip
    return log_loss(model, "digits", 500)


def forest_diabetes(p):
    model = RandomForestRegressor(
        20, max_depth=p["depth"], min_samples_leaf=p["leaf"], max_features=p["features"],
        bootstrap=p["bootstrap"], ccp_alpha=p["pruning"], random_state=0,
    )  # fmt: skip
    return squared_error(model, "diabetes", 442)


def logistic_digits(p):
    power = FunctionTransformer(lambda X: np.sign(X) * np.abs(X) ** p["power"])
    weight = "balanced" if p["balanced"] == "yes" else None
    model = LogisticRegression(C=p["C"], class_weight=weight, max_iter=60, tol=1e-3)
    return log_loss(
        make_pipeline(power, PCA(p["components"], whiten=p["whiten"] == "yes", random_state=0), model), "digits", 600
    )


def knn_digits(p):
    neighbours = KNeighborsClassifier(p["neighbours"], weights=p["weights"], metric=p["metric"], algorithm="brute")
    return accuracy(
        make_pipeline(PCA(p["components"], whiten=p["whiten"] == "yes", random_state=0), neighbours), "digits", 900
    )


def kernel_ridge_diabetes(p):
    model = KernelRidge(alpha=p["alpha"], kernel=p["kernel"], gamma=p["gamma"], degree=p["degree"], coef0=p["constant"])
    return squared_error(model, "diabetes", 442, centre=True)


def svr_diabetes(p):
    model = SVR(C=p["C"], gamma=p["gamma"], epsilon=p["epsilon"], kernel=p["kernel"], max_iter=20000)
    return squared_error(model, "diabetes", 442)


def extra_trees_wine(p):
    model = ExtraTreesClassifier(
        20, criterion=p["criterion"], max_depth=p["depth"], min_samples_leaf=p["leaf"], max_features=p["features"],
        min_impurity_decrease=p["impurity"], bootstrap=p["bootstrap"], random_state=0,
    )  # fmt: skip
    return log_loss(model, "wine", 178)


def sgd(loss, p):
    return SGDClassifier(
        loss=loss, penalty="elasticnet", alpha=p["alpha"], l1_ratio=p["l1"], eta0=p["eta"],
        learning_rate=p["schedule"], power_t=p["power"], average=p["average"], max_iter=p["epochs"], tol=None,
        random_state=0,
    )  # fmt: skip


def sgd_cancer(p):
    return log_loss(sgd("log_loss", p), "breast_cancer", 400)


def splines_diabetes(p):
    splines = SplineTransformer(p["knots"], degree=p["degree"], knots=p["placed"], extrapolation="linear")
    linear = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1"], max_iter=300, tol=1e-3)
    return squared_error(make_pipeline(splines, linear), "diabetes", 442)


def boosting_diabetes(p):
    model = GradientBoostingRegressor(
        loss=p["loss"], learning_rate=p["learning_rate"], n_estimators=p["trees"], max_leaf_nodes=p["leaves"],
        subsample=p["subsample"], max_features=p["features"], random_state=0,
    )  # fmt: skip
    return squared_error(model, "diabetes", 300)


MODELS = [
    model_problem(
        svm_cancer, -1.0,
        C=log(1e-3, 1e3), gamma=log(1e-6, 1e1), kernel=Choice("rbf", "poly", "sigmoid", "linear"), degree=Int(2, 5),
    ),
    model_problem(
        boosting_cancer, -1.0,
        learning_rate=log(1e-3, 1e1), trees=log_int(5, 60), depth=Int(1, 8), subsample=Float(0.2, 1.0),
        leaf=log_int(1, 50), features=Float(0.1, 1.0),
    ),
    model_problem(
        mlp_digits, -1.0,
        units=log_int(4, 64), activation=Choice("relu", "tanh", "logistic"), alpha=log(1e-6, 1e1),
        step=log(1e-4, 1.0), batch=log_int(8, 128), solver=Choice("adam", "sgd"), momentum=Float(0.0, 0.99),
    ),
    model_problem(
        forest_diabetes, -1.0,
        depth=Int(1, 16), leaf=log_int(1, 60), features=Float(0.1, 1.0), bootstrap=Choice(True, False),
        pruning=log(1e-2, 1e3),
    ),
    model_problem(
        logistic_digits, -1.0,
        C=log(1e-5, 1e3), components=Int(2, 50), whiten=Choice("yes", "no"), power=Float(0.2, 2.0),
        balanced=Choice("yes", "no"),
    ),
    model_problem(
        knn_digits, 0.0,
        neighbours=log_int(1, 100), weights=Choice("uniform", "distance"), components=Int(2, 60),
        metric=Choice("euclidean", "manhattan", "chebyshev", "cosine"), whiten=Choice("yes", "no"),
    ),
    model_problem(
        kernel_ridge_diabetes, -1.0,
        alpha=log(1e-4, 1e3), gamma=log(1e-5, 1e1), kernel=Choice("rbf", "laplacian", "polynomial"),
        degree=Int(1, 5), constant=Float(0.0, 5.0),
    ),
    model_problem(
        svr_diabetes, -1.0, held_out=True,
        C=log(1e-2, 1e4), gamma=log(1e-5, 1e1), epsilon=log(1e-2, 1e2), kernel=Choice("rbf", "sigmoid", "linear"),
    ),
    model_problem(
        extra_trees_wine, -1.0, held_out=True,
        criterion=Choice("gini", "entropy"), depth=Int(1, 12), leaf=log_int(1, 30), features=Float(0.05, 1.0),
        impurity=log(1e-5, 0.3), bootstrap=Choice(True, False),
    ),
    model_problem(
        sgd_cancer, -1.0, held_out=True,
        alpha=log(1e-6, 1e1), l1=Float(0.0, 1.0), eta=log(1e-4, 1e1), power=Float(0.0, 1.0),
        schedule=Choice("constant", "invscaling", "adaptive"), average=Choice(True, False), epochs=log_int(2, 40),
    ),
    model_problem(
        splines_diabetes, -1.0, held_out=True,
        knots=Int(2, 12), degree=Int(1, 4), placed=Choice("uniform", "quantile"), alpha=log(1e-4, 1e2),
        l1=Float(0.0, 1.0),
    ),
    model_problem(
        boosting_diabetes, -1.0, held_out=True,
        loss=Choice("squared_error", "absolute_error", "huber"), learning_rate=log(1e-3, 2.0), trees=log_int(5, 100),
        leaves=log_int(2, 32), subsample=Float(0.2, 1.0), features=Float(0.1, 1.0),
    ),
]  # fmt: skip


def histogram(kind, p):
    return getattr(ensemble, f"HistGradientBoosting{kind}")(
        learning_rate=p["learning_rate"], max_iter=p["trees"], max_leaf_nodes=p["leaves"], max_depth=p["depth"],
        min_samples_leaf=p["leaf"], l2_regularization=p["l2"], max_features=p["features"], max_bins=p["bins"],
        interaction_cst=None if p["interactions"] else "no_interactions", early_stopping=False, random_state=0,
    )  # fmt: skip


def forest(kind, p, trees=20):
    return getattr(ensemble, kind)(
        trees, criterion=p["criterion"], max_depth=p["depth"], min_samples_split=p["split"], min_samples_leaf=p["leaf"],
        max_features=p["features"], bootstrap=True, max_samples=p["samples"], ccp_alpha=p["pruning"], random_state=0,
    )  # fmt: skip


def mlp(p):
    return MLPRegressor(
        hidden_layer_sizes=[p["units"]] * p["layers"], activation=p["activation"], alpha=p["alpha"],
        learning_rate_init=p["step"], batch_size=p["batch"], beta_1=p["momentum"], beta_2=1.0 - p["decay"],
        max_iter=p["epochs"], random_state=0,
    )  # fmt: skip


def histogram_cancer(p):
    return log_loss(histogram("Classifier", p), "breast_cancer", 300)


def forest_digits(p):
    return log_loss(forest("RandomForestClassifier", p), "digits", 500)


def mlp_diabetes(p):
    return squared_error(TransformedTargetRegressor(mlp(p), transformer=StandardScaler()), "diabetes", 200)


def nystroem_cancer(p):
    gamma = None if p["kernel"] == "cosine" else p["gamma"]
    features = Nystroem(p["kernel"], gamma=gamma, n_components=p["components"], random_state=0)
    model = LogisticRegression(C=p["C"], max_iter=60, tol=1e-3)
    return log_loss(make_pipeline(features, model), "breast_cancer", 400)


def histogram_pixel(p):
    return squared_error(histogram("Regressor", p), "digits_pixel", 400)


def forest_colour(p):
    return squared_error(forest("RandomForestRegressor", p), "wine_colour", 178)


def extra_trees_glucose(p):
    return squared_error(forest("ExtraTreesRegressor", p), "diabetes_glucose", 300)


def boosting_below(p):
    model = GradientBoostingClassifier(
        loss=p["loss"], learning_rate=p["learning_rate"], n_estimators=p["trees"], subsample=p["subsample"],
        min_samples_split=p["split"], min_samples_leaf=p["leaf"], max_depth=p["depth"], max_features=p["features"],
        min_impurity_decrease=p["impurity"], random_state=0,
    )  # fmt: skip
    return log_loss(model, "digits_below", 300)


def mlp_pixel(p):
    return squared_error(mlp(p), "digits_pixel", 300)


def sgd_below(p):
    crossed = PolynomialFeatures(2, interaction_only=p["products"])
    return log_loss(make_pipeline(crossed, sgd("modified_huber", p)), "digits_below", 300)


def svr_concavity(p):
    model = SVR(
        C=p["C"], gamma=p["gamma"], epsilon=p["epsilon"], kernel=p["kernel"], degree=p["degree"], coef0=p["constant"],
        max_iter=5000,
    )  # fmt: skip
    return squared_error(model, "cancer_concavity", 400, centre=True)


def knn_glucose(p):
    neighbours = KNeighborsRegressor(p["neighbours"], weights=p["weights"], p=p["power"], algorithm="brute")
    return squared_error(make_pipeline(PCA(p["components"], whiten=p["whiten"]), neighbours), "diabetes_glucose", 442)


def kernel_ridge_petal(p):
    model = KernelRidge(alpha=p["alpha"], kernel=p["kernel"], gamma=p["gamma"], degree=p["degree"], coef0=p["constant"])
    return squared_error(model, "iris_petal", 150, centre=True)


def splines_concavity(p):
    splines = SplineTransformer(p["knots"], degree=p["degree"], knots=p["placed"], extrapolation=p["outside"])
    linear = ElasticNet(alpha=p["alpha"], l1_ratio=p["l1"], max_iter=300, tol=1e-3)
    return squared_error(make_pipeline(splines, linear), "cancer_concavity", 400)


HISTOGRAM = {
    "learning_rate": log(1e-3, 1.0), "trees": log_int(5, 60), "leaves": log_int(2, 32), "depth": Int(1, 8),
    "leaf": log_int(1, 60), "l2": log(1e-6, 1e2), "features": Float(0.1, 1.0), "bins": log_int(4, 255),
    "interactions": Choice(True, False),
}  # fmt: skip
FOREST = {
    "depth": Int(1, 16), "split": log_int(2, 40), "leaf": log_int(1, 30), "features": Float(0.05, 1.0),
    "samples": Float(0.1, 1.0), "pruning": log(1e-5, 1e-1),
}  # fmt: skip
ERRORS = Choice("squared_error", "absolute_error")
MLP = {
    "units": log_int(4, 64), "layers": Int(1, 3), "activation": Choice("relu", "tanh", "logistic"),
    "alpha": log(1e-6, 1e2), "step": log(1e-4, 1e-1), "batch": log_int(8, 100), "momentum": Float(0.5, 0.99),
    "decay": log(1e-4, 1e-1), "epochs": log_int(5, 30),
}  # fmt: skip

MORE_MODELS = [
    model_problem(histogram_cancer, -1.0, **HISTOGRAM),
    model_problem(forest_digits, -5.0, criterion=Choice("gini", "entropy"), **FOREST),
    model_problem(mlp_diabetes, -1.0, **MLP),
    model_problem(
        nystroem_cancer, -1.0,
        kernel=Choice("rbf", "laplacian", "sigmoid", "cosine"), gamma=log(1e-5, 1e1), components=log_int(2, 150),
        C=log(1e-3, 1e4),
    ),
    model_problem(histogram_pixel, -1.0, held_out=True, **HISTOGRAM),
    model_problem(forest_colour, -1.0, held_out=True, criterion=ERRORS, **FOREST),
    model_problem(extra_trees_glucose, -1.0, held_out=True, criterion=ERRORS, **FOREST),
    model_problem(
        boosting_below, -1.0, held_out=True,
        loss=Choice("log_loss", "exponential"), learning_rate=log(1e-3, 2.0), trees=log_int(5, 60),
        subsample=Float(0.2, 1.0), split=log_int(2, 60), leaf=log_int(1, 40), depth=Int(1, 8),
        features=Float(0.05, 1.0), impurity=log(1e-5, 1e-1),
    ),
    model_problem(mlp_pixel, -1.0, held_out=True, **MLP),
    model_problem(
        sgd_below, -1.0, held_out=True,
        alpha=log(1e-6, 1e1), l1=Float(0.0, 1.0), eta=log(1e-5, 1e1), power=Float(0.0, 1.0),
        schedule=Choice("constant", "invscaling", "adaptive", "optimal"), average=Choice(True, False),
        epochs=log_int(2, 20), products=Choice(True, False),
    ),
    model_problem(
        svr_concavity, -1.0, held_out=True,
        C=log(1e-3, 1e3), gamma=log(1e-5, 1e1), epsilon=log(1e-4, 1.0), degree=Int(2, 4), constant=Float(0.0, 3.0),
        kernel=Choice("rbf", "sigmoid", "poly", "linear"),
    ),
    model_problem(
        knn_glucose, -1.0, held_out=True,
        neighbours=log_int(1, 100), weights=Choice("uniform", "distance"), power=Float(1.0, 4.0), components=Int(1, 9),
        whiten=Choice(True, False),
    ),
    model_problem(
        kernel_ridge_petal, -1.0, held_out=True,
        alpha=log(1e-5, 1e3), gamma=log(1e-5, 1e1), kernel=Choice("rbf", "laplacian", "polynomial", "sigmoid"),
        degree=Int(1, 4), constant=Float(0.0, 5.0),
    ),
    model_problem(
        splines_concavity, -1.0, held_out=True,
        knots=Int(2, 15), degree=Int(1, 4), placed=Choice("uniform", "quantile"),
        outside=Choice("constant", "linear", "continue"), alpha=log(1e-6, 1.0), l1=Float(0.0, 1.0),
    ),
]  # fmt: skip
