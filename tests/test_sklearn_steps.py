"""The search for scikit-learn that trains step by step: what it trains, what it records, and what it stops."""

import pickle
import warnings
from dataclasses import dataclass

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.integrations.sklearn import NoRegretSearchCV
from nilregret.integrations.step_search import Training
from nilregret.serialize import described

X, y = make_classification(120, 6, n_informative=3, flip_y=0.1, random_state=0)
RATES = {"eta0": (1e-3, 10.0, "log-uniform")}
SGD = SGDClassifier(learning_rate="constant", eta0=0.01, random_state=0)


def search(estimator=SGD, space=RATES, **more):
    settings = {"n_iter": 4, "cv": 3, "random_state": 0, "steps": 5} | more
    return NoRegretSearchCV(estimator, space, **settings)


@described
@dataclass(frozen=True, kw_only=True)
class Behind(nr.slots.Pruning):
    """Stops, or pauses, a trial that is behind the best finished one at its step."""

    pause: bool = False

    def verdict(self, courses):
        others = [course.at(courses.step) for course in courses.finished]
        behind = courses.value < max((value for value in others if value is not None), default=-np.inf)
        return ("wait" if self.pause else "stop") if behind else "go"


class Slope(ClassifierMixin, BaseEstimator):
    """A classifier whose score is a * steps + b, or fails in a fold."""

    def __init__(self, a=1.0, b=0.0, fails=None):
        self.a, self.b, self.fails = a, b, fails

    def partial_fit(self, X, y, classes=None):
        self.steps_ = getattr(self, "steps_", 0) + 1
        if self.fails is not None and self.a < 0.5 and self.steps_ >= 2 and (self.fails == "all" or X[0, 0] != X_0):
            raise ValueError("it diverges")
        if classes is not None:
            self.classes_ = classes
        return self

    def fit(self, X, y):
        raise AssertionError("a search with steps does not call it")

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return self.a * self.steps_ + self.b


X_0 = X[0, 0]
SLOPES = {"a": (0.0, 1.0)}


class TestTraining:
    @pytest.mark.parametrize(
        "estimator",
        [
            GradientBoostingClassifier(n_estimators=7, random_state=0),
            RandomForestClassifier(n_estimators=7, random_state=0),
            HistGradientBoostingClassifier(max_iter=7, random_state=0, early_stopping=False),
            HistGradientBoostingRegressor(max_iter=7, random_state=0, early_stopping=False),
        ],
        ids=lambda each: type(each).__name__,
    )
    def test_steps_of_an_ensemble_are_its_fit(self, estimator):
        stepwise, whole = Training(clone(estimator), 4), clone(estimator).fit(X, y)
        sizes = []
        for _ in range(4):
            stepwise.advance(X, y, {})
            model = stepwise.estimator
            sizes.append(len(model.estimators_) if hasattr(model, "estimators_") else model.n_iter_)
        assert sizes == [2, 4, 6, 7]
        assert np.array_equal(stepwise.estimator.predict(X), whole.predict(X))
        assert stepwise.estimator.get_params() == estimator.get_params()

    def test_a_step_of_partial_fit_is_one_pass(self):
        stepwise, by_hand = Training(clone(SGD), 3), clone(SGD)
        for _ in range(3):
            stepwise.advance(X, y, {})
            by_hand.partial_fit(X, y, classes=np.unique(y))
        assert np.array_equal(stepwise.estimator.coef_, by_hand.coef_)

    def test_warm_start_shares_the_iterations(self):
        seen = []

        class Seen(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                seen.append((self.max_iter, self.warm_start))
                return super().fit(X, y, sample_weight)

        stepwise = Training(Seen(max_iter=200), 3)
        for _ in range(3):
            stepwise.advance(X, y, {})
        assert seen == [(67, True), (67, True), (66, True)]
        assert stepwise.estimator.get_params() == Seen(max_iter=200).get_params()
        assert stepwise.estimator.coef_ == pytest.approx(LogisticRegression(max_iter=200).fit(X, y).coef_, rel=0.05)

    def test_fewer_iterations_than_steps(self):
        stepwise = Training(GradientBoostingClassifier(n_estimators=2), 5)
        sizes = []
        for _ in range(5):
            stepwise.advance(X, y, {})
            sizes.append(len(stepwise.estimator.estimators_))
        assert sizes == [1, 1, 2, 2, 2]

    def test_in_a_pipeline_the_last_estimator_has_the_steps(self):
        stepwise, scaled = Training(make_pipeline(StandardScaler(), MinMaxScaler(), clone(SGD)), 3), clone(SGD)
        inner = make_pipeline(StandardScaler(), MinMaxScaler()).fit_transform(X)
        for _ in range(3):
            stepwise.advance(X, y, {"sgdclassifier__sample_weight": np.ones(len(X))})
            scaled.partial_fit(inner, y, classes=np.unique(y))
        assert np.array_equal(stepwise.estimator.predict(X), scaled.predict(inner))
        with pytest.raises(InvalidInput, match="the last estimator of the pipeline alone"):
            stepwise.advance(X, y, {"standardscaler__sample_weight": np.ones(len(X))})


class TestSearch:
    def test_curves_are_on_record_and_results_are_those_of_the_last_step(self):
        found = search(Slope(b=0.5), SLOPES, return_train_score=True).fit(X, y)
        results = found.cv_results_
        for trial, parameters, score in zip(found.trials_, results["params"], results["mean_test_score"], strict=True):
            assert trial.steps == [(s, pytest.approx(parameters["a"] * s + 0.5)) for s in range(1, 6)]
            assert trial.reward == score == trial.steps[-1][1]
            assert trial.metrics["mean_test_score"] == score
        assert results["steps"].tolist() == [5] * 4
        assert not results["stopped"].any()
        assert found.best_params_["a"] == max(each["a"] for each in results["params"])
        assert found.best_estimator_.steps_ == 5
        assert found.policy_.pruning == nr.slots.Never(steps=5)
        assert results["mean_train_score"].tolist() == results["mean_test_score"].tolist()

    def test_it_has_the_attributes_of_a_search_in_one_go(self):
        own, plain = search(scoring=["accuracy", "roc_auc"], refit="roc_auc"), search(SGD, steps=None)
        plain.set_params(scoring=["accuracy", "roc_auc"], refit="roc_auc")
        own.fit(X, y), plain.fit(X, y)
        assert set(vars(own)) | {"_checked_cv_orig"} >= {name for name in vars(plain) if name.endswith("_")}
        assert set(own.cv_results_) == set(plain.cv_results_) | {"steps", "stopped"}
        assert own.multimetric_
        assert set(own.scorer_) == set(plain.scorer_)
        assert own.best_score_ == own.cv_results_["mean_test_roc_auc"][own.best_index_]
        assert own.score(X, y) == plain.scorer_["roc_auc"](own.best_estimator_, X, y)

    def test_the_best_estimator_is_the_one_that_was_scored(self):
        found = search(cv=KFold(3)).fit(X, y)
        by_hand = []
        for train, test in KFold(3).split(X):
            stepwise = Training(clone(SGD).set_params(**found.best_params_), 5)
            for _ in range(5):
                stepwise.advance(X[train], y[train], {})
            by_hand.append(stepwise.estimator.score(X[test], y[test]))
        assert found.best_score_ == np.mean(by_hand)
        whole = Training(clone(SGD).set_params(**found.best_params_), 5)
        for _ in range(5):
            whole.advance(X, y, {})
        assert np.array_equal(found.best_estimator_.coef_, whole.estimator.coef_)

    def test_jobs_and_processes_change_nothing(self):
        pruning = Behind()
        with joblib.parallel_backend("threading"):
            runs = [search(n_jobs=jobs, batch_size=2, pruning=pruning).fit(X, y) for jobs in (1, 2)]
        results = [
            {name: str(runs[i].cv_results_[name]) for name in runs[i].cv_results_ if "time" not in name} for i in (0, 1)
        ]
        assert results[0] == results[1]

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_settings_of_others(self):
        assert len(cross_val_score(search(n_iter=2, cv=2), X, y, cv=2)) == 2
        assert clone(search(pruning=Behind())).get_params()["pruning"] == Behind()
        fitted = pickle.loads(pickle.dumps(search().fit(X, y)))
        assert fitted.predict(X).shape == y.shape
        weighted = search().fit(X, y, sample_weight=np.ones(len(X)))
        assert (
            weighted.cv_results_["mean_test_score"].tolist()
            == search().fit(X, y).cv_results_["mean_test_score"].tolist()
        )
        grouped = make_pipeline(StandardScaler(), SGD)
        assert search(grouped, {"sgdclassifier__eta0": (1e-3, 10.0, "log-uniform")}).fit(X, y).best_score_ > 0.5
        assert (
            search(MiniBatchKMeans(n_clusters=2), {"n_clusters": (2, 4)}).set_params(n_iter=3).fit(X).best_score_ < 0.0
        )
        network = MLPClassifier((3,), max_iter=4, random_state=0)  # `partial_fit` depends on the solver.
        assert search(network, {"solver": ["adam", "lbfgs"]}, n_iter=2, steps=2).fit(X, y).best_score_ > 0.0

    def test_a_fold_that_fails_and_a_candidate_that_fails(self):
        with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 3"):
            found = search(Slope(fails="one"), SLOPES, n_iter=6, error_score=0.0).fit(X, y)
        assert {trial.state for trial in found.trials_} == {"observed"}
        low = [i for i, each in enumerate(found.cv_results_["params"]) if each["a"] < 0.5]
        assert all(sorted(found.cv_results_[f"split{k}_test_score"][i] for k in range(3))[0] == 0.0 for i in low)
        found = search(Slope(fails="all"), SLOPES, n_iter=6).fit(X, y)
        failed = [trial for trial in found.trials_ if trial.state == "failed"]
        assert failed
        assert all("it diverges" in trial.reason and len(trial.steps) == 1 for trial in failed)
        assert len(found.cv_results_["params"]) == 6 - len(failed)
        with pytest.raises(ValueError, match="it diverges"):
            search(Slope(fails="all"), SLOPES, n_iter=6, error_score="raise").fit(X, y)

    def test_scores_that_are_no_numbers_fail_and_keep_their_curves(self):
        def score(estimator, X, y):
            return np.nan if estimator.a < 0.5 and estimator.steps_ == 3 else estimator.a

        with pytest.warns(UserWarning, match="One or more of the test scores are non-finite") as caught:
            found = search(Slope(), SLOPES, scoring=score, n_iter=8).fit(X, y)
        assert len(caught) == 1
        failed = [trial for trial in found.trials_ if trial.state == "failed"]
        assert failed
        assert all(len(trial.steps) == 2 and trial.reason == "its score is nan" for trial in failed)
        assert found.best_params_["a"] >= 0.5

    def test_hopeless_searches_end_with_the_error_of_scikit_learn(self):
        with pytest.raises(ValueError, match=r"All the 3 fits failed"):
            search(space={"eta0": (-2.0, -1.0)}, n_iter=40).fit(X, y)


class TestStopping:
    def test_stopped_candidates_rank_behind_the_finished_ones(self):
        def falling(estimator, X, y):  # All scores before the last step are higher than those after it.
            return estimator.a + 20.0 * (estimator.steps_ < 5)

        found = search(Slope(), SLOPES, scoring=falling, n_iter=12, pruning=Behind()).fit(X, y)
        results, states = found.cv_results_, [trial.state for trial in found.trials_]
        assert set(states) == {"observed", "stopped"}
        assert results["stopped"].tolist() == [state == "stopped" for state in states]
        assert results["steps"].tolist() == [trial.steps[-1][0] for trial in found.trials_]
        assert results["mean_test_score"].tolist() == [trial.steps[-1][1] for trial in found.trials_]
        assert results["mean_test_score"][results["stopped"]].max() > found.best_score_
        finished = results["rank_test_score"][~results["stopped"]]
        assert sorted(finished) == list(range(1, len(finished) + 1))
        assert results["rank_test_score"][results["stopped"]].min() == len(finished) + 1
        assert found.best_score_ == max(results["mean_test_score"][~results["stopped"]])
        assert found.best_estimator_.steps_ == 5
        stopped = next(trial for trial in found.trials_ if trial.state == "stopped")
        assert "Behind" in stopped.reason
        assert found.policy_.pruning == Behind(steps=5)

    def test_paused_candidates_go_on_later_or_are_stopped_at_the_end(self):
        found = search(Slope(), {"a": (-1.0, 1.0), "b": (0.0, 1.0)}, n_iter=8, pruning=Behind(pause=True)).fit(X, y)
        assert {trial.state for trial in found.trials_} == {"observed", "stopped"}
        assert all(trial.curve[-1].verdict == "wait" for trial in found.trials_ if trial.state == "stopped")
        assert len(found.cv_results_["params"]) == 8

    def test_the_best_step_counts_if_the_rule_says_so(self):
        found = search(Slope(), {"a": (-1.0, 1.0)}, n_iter=6, pruning=nr.slots.Never(of="best")).fit(X, y)
        for trial, steps in zip(found.trials_, found.cv_results_["steps"], strict=True):
            assert trial.reward == max(value for _, value in trial.steps)
            assert steps == (5 if trial.parameters["a"] > 0 else 1)

    def test_an_interrupted_search_leaves_a_stopped_trial(self, tmp_path):
        url = f"sqlite:///{tmp_path}/search.db"

        def interrupted(estimator, X, y):
            if estimator.steps_ == 3 and calls.append(None) is None and len(calls) > 4:
                raise KeyboardInterrupt
            return estimator.a

        calls = []
        with pytest.raises(KeyboardInterrupt):
            search(Slope(), SLOPES, storage=url, scoring=interrupted).fit(X, y)
        found = search(Slope(), SLOPES, storage=url).fit(X, y)
        assert [trial.state for trial in found.trials_] == ["observed", "stopped"] + ["observed"] * 4
        assert found.trials_[1].reason == "the search was interrupted"
        assert found.trials_[1].steps == [
            (1, pytest.approx(found.trials_[1].parameters["a"])),
            (2, pytest.approx(found.trials_[1].parameters["a"])),
        ]

    def test_where_all_are_stopped_the_search_says_so(self, tmp_path):
        url = f"sqlite:///{tmp_path}/search.db"
        more = {"storage": url, "pruning": Behind()}
        search(Slope(b=9.0), SLOPES, n_iter=1, **more).fit(X, y)
        with pytest.warns(nr.errors.NoRegretWarning, match="All candidates were stopped"):
            found = search(Slope(), SLOPES, **more).fit(X, y)
        assert found.best_estimator_.steps_ == 1


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"steps": 0}, "`steps`"),
        ({"steps": 2.5}, "`steps`"),
        ({"steps": None, "pruning": Behind()}, "say by `steps`"),
        ({"pruning": "fastest"}, "fastest"),
        ({"pruning": 3}, "`pruning` is 3"),
        ({"pruning": Behind(steps=7)}, "leave it out of the rule"),
        ({"estimator": SVC(), "space": {"C": (0.1, 1.0)}}, "SVC cannot be trained step by step"),
        ({"estimator": LogisticRegression(max_iter=None), "space": {"C": (0.1, 1.0)}}, "`max_iter` is None"),
    ],
)
def test_settings_that_make_no_sense(more, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        search(**more).fit(X, y)


def checks_of_scikit_learn():
    for estimator in (SGD, SGDRegressor(random_state=0)):
        made = search(estimator, {"alpha": (1e-6, 0.1, "log-uniform")}, n_iter=2, cv=2, steps=2, error_score="raise")
        for each, check in estimator_checks_generator(made):
            name = f"{type(estimator).__name__}-{getattr(check, 'func', check).__name__}"
            if name != "SGDRegressor-check_supervised_y_2d":  # The estimator within does not warn of a column y.
                yield pytest.param(each, check, id=name)


@pytest.mark.nightly
@pytest.mark.parametrize(("estimator", "check"), list(checks_of_scikit_learn()))
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
