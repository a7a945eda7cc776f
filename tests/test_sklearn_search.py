"""The search for scikit-learn: its own checks of estimators, and that it learns, repeats and says what is wrong."""

import pickle
import subprocess
import sys
import warnings
from typing import ClassVar

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import nilregret as nr
from nilregret.integrations.candidates import Ranges
from nilregret.integrations.sklearn import NoRegretSearchCV

X, y = make_classification(120, 6, n_informative=3, flip_y=0.1, random_state=0)
SPACE = {"C": (1e-3, 1e3, "log-uniform"), "kernel": ["rbf", "linear"]}
# As of `RandomizedSearchCV` itself: what the estimator within says, or does not say, of y.
NOT_OURS = {"LogisticRegression-check_requires_y_none", "Ridge-check_requires_y_none", "Ridge-check_supervised_y_2d"}


def search(space=None, estimator=None, **more):
    settings = {"n_iter": 4, "cv": 3, "random_state": 0} | more
    return NoRegretSearchCV(estimator or SVC(), space or SPACE, **settings)


def checks_of_scikit_learn():
    for estimator, ranges in ((LogisticRegression(), {"C": (0.1, 1.0)}), (Ridge(), {"alpha": (0.1, 1.0)})):
        made = NoRegretSearchCV(estimator, ranges, n_iter=2, cv=2, error_score="raise", random_state=0)
        for each, check in estimator_checks_generator(made):
            name = f"{type(estimator).__name__}-{getattr(check, 'func', check).__name__}"
            if name not in NOT_OURS and "array_api" not in name:  # those need libraries of arrays
                yield pytest.param(each, check, id=name)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks_of_scikit_learn()))
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_it_has_what_the_random_search_has():
    own = search(n_iter=12, return_train_score=True).fit(X, y)
    theirs = RandomizedSearchCV(
        SVC(), {"C": stats.loguniform(1e-3, 1e3), "kernel": ["rbf", "linear"]}, n_iter=12, cv=3, random_state=0,
        return_train_score=True,
    ).fit(X, y)  # fmt: skip
    public = {name for name in vars(theirs) if name.endswith("_")}
    assert public <= {name for name in vars(own) if name.endswith("_")}
    assert set(own.cv_results_) == set(theirs.cv_results_)
    best = own.cv_results_["mean_test_score"].max()
    assert own.best_score_ == best == own.cv_results_["mean_test_score"][own.best_index_]
    assert own.best_params_["C"] == own.best_estimator_.C
    assert own.score(X, y) == own.best_estimator_.score(X, y)
    assert own.n_splits_ == 3
    assert [trial.reward for trial in own.trials_] == own.cv_results_["mean_test_score"].tolist()
    assert own.space_ == nr.Space(C=nr.Float(1e-3, 1e3, log=True), kernel=nr.Choice("rbf", "linear"))


def test_it_learns():
    def score(estimator, X, y):
        return -abs(np.log10(estimator.C) - 1.0)

    found = search({"C": nr.Float(1e-4, 1e4, log=True)}, scoring=score, n_iter=25).fit(X, y)
    assert found.best_score_ > -0.01


def test_a_search_repeats_and_jobs_change_nothing():
    with joblib.parallel_backend("threading"):
        runs = [search(n_jobs=jobs, random_state=state).fit(X, y) for jobs, state in ((1, 3), (2, 3), (1, 4))]
    tried = [run.cv_results_["params"] for run in runs]
    assert tried[0] == tried[1] != tried[2]
    assert runs[0].cv_results_["mean_test_score"].tolist() == runs[1].cv_results_["mean_test_score"].tolist()


def test_a_batch_is_asked_for_together_and_its_points_differ():
    found = search(n_iter=7, batch_size=3).fit(X, y)
    assert len(found.trials_) == 7
    assert len({trial.parameters["C"] for trial in found.trials_}) == 7
    assert found.policy_.pending == nr.slots.Hallucinated(failed="weighed")


def test_pipelines_options_of_any_kind_and_conditions():
    space = {
        "minmaxscaler": [MinMaxScaler(), StandardScaler(), "passthrough"],
        "svc__kernel": nr.Choice("rbf", "linear"),
        "svc__gamma": nr.when("svc__kernel", "rbf", nr.Float(1e-3, 1, log=True)),
        "svc__class_weight": [None, "balanced"],
    }
    found = search(space, make_pipeline(MinMaxScaler(), SVC()), n_iter=8).fit(X, y)
    assert {type(each["minmaxscaler"]) for each in found.cv_results_["params"]} <= {MinMaxScaler, StandardScaler, str}
    assert all(("svc__gamma" in each) == (each["svc__kernel"] == "rbf") for each in found.cv_results_["params"])
    assert found.cv_results_["param_svc__gamma"].mask.any()


@pytest.mark.filterwarnings("ignore:l1_ratio parameter:UserWarning")  # scikit-learn 1.6
def test_a_candidate_that_cannot_be_fitted_is_told_as_failed():
    # a liblinear model cannot have this penalty
    space = {"l1_ratio": nr.Choice(0.5, 7.0), "C": (0.1, 10.0)}
    estimator = LogisticRegression(solver="saga", max_iter=20, tol=0.5)
    found = search(space, estimator, n_iter=12).fit(X, y)
    states = [trial.state for trial in found.trials_]
    # how many of each differs with the last bit of a machine's arithmetic
    assert {"failed", "observed"} == set(states)
    assert len(found.cv_results_["params"]) == states.count("observed")
    assert "l1_ratio" in next(trial.reason for trial in found.trials_ if trial.state == "failed")


def test_hopeless_searches_end_with_the_error_of_scikit_learn():
    with pytest.raises(ValueError, match=r"All the 3 fits failed"):
        search({"C": (-2.0, -1.0)}, n_iter=40).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter"):
        search({"C": (-2.0, -1.0)}, n_iter=40, error_score="raise").fit(X, y)


def test_scores_that_are_no_numbers_fail():
    def score(estimator, X, y):
        return np.nan if estimator.C < 1.0 else estimator.C

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn says so, too
        found = search({"C": (0.0625, 2.0)}, scoring=score, n_iter=10).fit(X, y)
    assert {trial.state for trial in found.trials_} == {"failed", "observed"}
    assert found.best_params_["C"] > 1.0


class OneFoldFails(LogisticRegression):
    def fit(self, X, y):
        if len(X) < len(y_all) and X[0, 0] == X_all[0, 0]:
            raise ValueError("one fold fails")
        return super().fit(X, y)


X_all, y_all = X, y


def test_where_one_fold_fails_the_error_score_counts():
    with pytest.warns(FitFailedWarning):
        found = search({"C": (0.1, 1.0)}, OneFoldFails(), n_iter=2, error_score=0.0).fit(X, y)
    assert [trial.state for trial in found.trials_] == ["observed", "observed"]
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        found = search({"C": (0.1, 1.0)}, OneFoldFails(), n_iter=2).fit(X, y)
    assert [trial.state for trial in found.trials_] == ["failed", "failed"]


def test_several_metrics():
    found = search(scoring=["accuracy", "roc_auc"], refit="roc_auc").fit(X, y)
    assert found.best_score_ == found.cv_results_["mean_test_roc_auc"].max()
    assert [trial.reward for trial in found.trials_] == found.cv_results_["mean_test_roc_auc"].tolist()
    for name in ("mean_test_accuracy", "mean_fit_time"):
        assert [trial.metrics[name] for trial in found.trials_] == found.cv_results_[name].tolist()
    with pytest.raises(nr.errors.InvalidInput, match=r"several metrics \(accuracy, roc_auc\)"):
        search(scoring=["accuracy", "roc_auc"], refit=False).fit(X, y)


def test_without_refit_and_with_a_function_of_the_results():
    bare = search(refit=False).fit(X, y)
    assert not hasattr(bare, "best_estimator_")
    assert bare.best_params_ == bare.cv_results_["params"][bare.best_index_]
    chosen = search(refit=lambda results: 2).fit(X, y)
    assert chosen.best_index_ == 2


def test_a_function_chooses_among_several_metrics_of_which_the_first_is_maximised():
    found = search(scoring=["roc_auc", "accuracy"], refit=lambda results: 1).fit(X, y)
    assert found.best_index_ == 1
    assert [trial.reward for trial in found.trials_] == found.cv_results_["mean_test_roc_auc"].tolist()


class Folds(ClassifierMixin, BaseEstimator):
    """A classifier that remembers what it was trained on."""

    seen: ClassVar[list] = []

    def __init__(self, a=1.0):
        self.a = a

    def fit(self, X, y):
        Folds.seen.append(X.tobytes())
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True), ShuffleSplit(2)], ids=["folds", "splits"])
def test_all_candidates_are_scored_on_the_same_folds(cv):
    Folds.seen.clear()
    search({"a": (0.0, 1.0)}, Folds(), cv=cv, refit=False, n_iter=5).fit(X, y)
    assert len(Folds.seen) == 5 * cv.get_n_splits()
    assert len(set(Folds.seen)) == cv.get_n_splits()


@pytest.mark.parametrize("size", [1, 4])
def test_a_finite_space_is_searched_once(size):
    space = {"C": nr.Int(1, 3, log=True), "kernel": ["rbf", "linear"], "gamma": nr.when("kernel", "rbf", nr.Int(1, 2))}
    with pytest.warns(UserWarning, match="The total space of parameters 9 is smaller than n_iter=20") as caught:
        found = search(space, n_iter=20, batch_size=size).fit(X, y)
    assert len(caught) == 1
    rows = [tuple(sorted(each.items())) for each in found.cv_results_["params"]]
    assert len(rows) == len(set(rows)) == len(found.trials_) == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(search(space, n_iter=9).fit(X, y).trials_) == 9
    ten = nr.Space(C=nr.Float(0.1, 10, log=True)).grid(3)
    with pytest.warns(UserWarning, match="space of parameters 3 is smaller"):
        found = search(ten.space, policy=nr.gp_ucb(ten, nr.Matern(lengthscale=0.3), noise=0.05), n_iter=5).fit(X, y)
    assert len({trial.arm for trial in found.trials_}) == 3


def test_one_warning_says_all_scores_that_are_not_finite():
    def score(estimator, X, y):
        return np.nan if estimator.a < 0.5 else estimator.a

    with pytest.warns(UserWarning, match="One or more of the test scores are non-finite") as caught:
        found = search({"a": (0.0, 1.0)}, Folds(), scoring=score, n_iter=8).fit(X, y)
    assert len(caught) == 1
    assert str(caught[0].message).count("nan") == np.isnan(found.cv_results_["mean_test_score"]).sum() > 1


class Seen:
    """A callback of scikit-learn that counts the tasks it sees."""

    def __init__(self):
        self.tasks, self.open = [], 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        assert self.open == 0

    def on_fit_task_begin(self, estimator, context):
        self.tasks.append(context.task_name)
        self.open += 1

    def on_fit_task_end(self, estimator, context):
        self.open -= 1


@pytest.mark.parametrize("space", [SPACE, {"C": (-2.0, 1.0)}], ids=["all can be fitted", "some fail"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more:UserWarning")
def test_callbacks_see_candidates(space):
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    seen = Seen()
    found = search(space, n_iter=5, batch_size=2).set_callbacks(seen).fit(X, y)
    assert seen.tasks.count("candidate-split-evaluation") == 3 * len(found.trials_) == 15
    assert [seen.tasks.count(name) for name in ("search", "batch", "refit-with-best-params")] == [1, 3, 1]


def test_a_storage_keeps_the_trials_and_the_next_search_learns_from_them(tmp_path):
    url = f"sqlite:///{tmp_path}/search.db"
    first = search(storage=url, name="svm").fit(X, y)
    study = nr.Study.open(storage=url, name="svm")
    study.ask()  # as a crash would leave it
    second = search(storage=url, name="svm").fit(X, y)
    assert len(first.cv_results_["params"]) == len(second.cv_results_["params"]) == 4
    assert [trial.state for trial in second.trials_] == ["observed"] * 4 + ["failed"] + ["observed"] * 4
    assert search(storage=url, name="other", random_state=None).fit(X, y).trials_


def test_copies_and_pickles():
    made = search()
    again = clone(made)
    assert again.get_params()["param_space"] == SPACE
    fitted = pickle.loads(pickle.dumps(made.fit(X, y)))
    assert fitted.predict(X).tolist() == made.predict(X).tolist()
    assert fitted.trials_ == made.trials_
    assert len(cross_val_score(search(n_iter=2, cv=2), X, y, cv=2)) == 2


def test_a_policy_of_ones_own():
    space = nr.Space(C=nr.Float(1e-2, 1e2, log=True))
    for policy in (
        lambda space: nr.gp_bucb(space.grid(9), nr.Matern(lengthscale=0.3), noise=0.05, beta=2.0),
        nr.auto(space),
    ):
        found = search(space, policy=policy).fit(X, y)
        assert isinstance(found.policy_, nr.Policy)


def test_ranges():
    found = Ranges(
        {
            "a": (1, 9),
            "b": (0.1, 2),
            "c": (1, 100, "log"),
            "d": stats.uniform(2, 3),
            "e": stats.randint(1, 5),
            "f": stats.loguniform(0.1, 10),
            "g": np.array([1, 2]),
            "h": [(10,), (5, 5)],
            "i": [SVC(), None],
        }
    )
    assert found.space == nr.Space(
        a=nr.Int(1, 9), b=nr.Float(0.1, 2), c=nr.Int(1, 100, log=True), d=nr.Float(2, 5), e=nr.Int(1, 4),
        f=nr.Float(0.1, 10, log=True), g=nr.Choice(1, 2), h=nr.Choice((10,), (5, 5)), i=nr.Choice(0, 1),
    )  # fmt: skip
    assert found.values({"a": 3, "h": (5, 5), "i": 1}) == {"a": 3, "h": (5, 5), "i": None}


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({}, "must be an nr.Space, or a dict"),
        ([1, 2], "must be an nr.Space, or a dict"),
        ({"C": ("a", "b")}, "options are a list"),
        ({"C": (1, 2, "linear")}, "log-uniform"),
        ({"C": []}, "at least one option"),
        ({"C": stats.norm()}, "only the ends would"),
        ({"C": 3}, "must be an nr.Float"),
        ({"C": (2.0, 1.0)}, "swapped"),
    ],
)
def test_ranges_that_are_none(space, sentence):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        NoRegretSearchCV(SVC(), space).fit(X, y)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"n_iter": 0}, "`n_iter`"),
        ({"batch_size": 1.5}, "`batch_size`"),
        ({"policy": nr.auto(nr.Space(x=nr.Float(0, 1)))}, "must be of Space"),
        ({"policy": lambda space: "auto"}, "must be of Space"),
        ({"policy": "auto"}, "must be of Space"),
    ],
)
def test_settings_that_make_no_sense(more, sentence):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        search(**more).fit(X, y)


@pytest.mark.parametrize(("missing", "said"), [("sklearn", "pip install 'nilregret[sklearn]'"), ("optuna", "imported")])
def test_it_needs_scikit_learn_and_no_other_extra(missing, said):
    script = (
        "import sys; sys.modules[sys.argv[1]] = None\nimport nilregret\n"
        "try:\n    import nilregret.integrations.sklearn; print('imported')\nexcept nilregret.errors.MissingExtra as "
        "error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script, missing], capture_output=True, text=True, check=True)
    assert said in done.stdout
