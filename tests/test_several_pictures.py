"""Pictures of several studies, of time, and of a posterior of one dimension."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.plots.several import best_so_far
from nilregret.plots.timeline_picture import lanes_of

SPACE = nr.Space(x=nr.Float(0, 1))


def minimized(seed, trials=5):
    return nr.minimize(
        lambda x: (x - 0.3) ** 2, SPACE, trials=trials, seed=seed, progress=False,
        policy=nr.algorithms.greedy_variance(SPACE, nr.Matern(2.5, 0.3), noise=0.1),
    )  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return {"a": [minimized(0), minimized(1)], "b": [minimized(0, 4), minimized(1, 6)]}


def told(values, *, goal="minimize", constraints=None):
    """Returns a study with these values in order, None for a failure."""
    policy = nr.gp_ucb(SPACE, nr.Matern(2.5, 0.3), noise=0.1)
    if constraints is not None:
        policy = nr.gp_ucb(SPACE, nr.Matern(2.5, 0.3), noise=0.1, constraints=nr.EveryRound(count=1))
    study = nr.Study(policy, goal=goal)
    study.quiet = True
    for i, value in enumerate(values):
        trial = study.ask()
        if value is None:
            study.fail(trial, "broken")
        else:
            study.tell(trial, value, constraints=None if constraints is None else [constraints[i]])
    return study


def test_the_best_value_skips_failures_and_violations():
    np.testing.assert_array_equal(best_so_far(told([3.0, None, 1.0, 2.0])), [3.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(best_so_far(told([3.0, 4.0, 1.0], goal="maximize")), [3.0, 4.0, 4.0])
    limited = told([3.0, 1.0, 2.0], constraints=[-1.0, 1.0, -1.0])
    np.testing.assert_array_equal(best_so_far(limited), [3.0, 3.0, 2.0])


def test_lines_of_studies_are_means_and_paired_differences(results):
    top, below = nr.plots.compare(results).axes
    a, b = [np.stack([best_so_far(each.study)[:4] for each in results[name]]) for name in "ab"]
    np.testing.assert_allclose(top.lines[1].get_ydata(), b.mean(axis=0))
    np.testing.assert_allclose(below.lines[0].get_ydata(), (b - a).mean(axis=0))
    assert below.get_ylabel() == "minus a"


def test_one_trial_is_a_point_without_a_warning():
    (line,) = nr.plots.compare(told([3.0])).axes[0].lines
    assert line.get_marker() == "o"


def test_studies_with_other_seeds_are_not_paired(results):
    figure = nr.plots.compare([results["a"][0], results["b"][1].study])
    assert len(figure.axes) == 1
    assert [line.get_label() for line in figure.axes[0].lines] == ["study 1", "study 2"]


def test_the_distribution_counts_failures():
    figure = nr.plots.edf({"up": told([3.0, None, 1.0, 2.0])})
    line = figure.axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [1.0, 1.0, 2.0, 3.0, 3.0])
    np.testing.assert_array_equal(line.get_ydata(), [0.0, 0.25, 0.5, 0.75, 0.75])
    figure = nr.plots.edf(told([3.0, None, 1.0, 2.0], goal="maximize"))
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), [0.25, 0.5, 0.75, 1.0, 1.0])


@pytest.mark.parametrize(
    ("studies", "message"),
    [
        ({}, "one to 8 studies"),
        (3, "one to 8 studies"),
        ({"a": 3}, "has 3 under 'a'"),
        ({"a": []}, r"has \[\] under 'a'"),
        ({"a": told([])}, "'a' has a study without an answer"),
        ([told([1.0]), told([1.0], goal="maximize")], "Some studies maximise"),
    ],
)
def test_wrong_studies(studies, message):
    for draw in (nr.plots.compare, nr.plots.edf):
        with pytest.raises(InvalidInput, match=message):
            draw(studies)


def test_overlapping_spans_are_in_different_lanes():
    spans = np.array([[0.0, 4.0], [1.0, 2.0], [2.0, 5.0], [3.0, 6.0], [4.0, 7.0]])
    assert lanes_of(spans) == [0, 1, 1, 2, 0]


def test_a_timeline_shows_each_state(tmp_path):
    now = [0.0]
    study = nr.Study(nr.gp_ucb(SPACE, nr.Matern(2.5, 0.3), noise=0.1), clock=lambda: now[0])
    trials = study.ask(count=5)
    for answer, trial in zip(["tell", "tell", "fail", "abandon"], trials, strict=False):
        now[0] += 3600.0
        getattr(study, answer)(trial, *([float(trial.number)] if answer == "tell" else ["why"]))
    ax = nr.plots.timeline(study, tmp_path / "time.svg").axes[0]
    labels = [each.get_label() for each in ax.collections]
    assert labels == ["answered", "failed", "abandoned", "pending", "highest told: trial 1"]
    assert ax.get_xlabel() == "hours"
    ends = {each.get_label(): each.get_segments()[0][:, 0].max() for each in ax.collections}
    assert ends["failed"] == pytest.approx(3.0, abs=0.02)
    assert ends["pending"] == pytest.approx(4.0, abs=0.02)
    assert "up to 5 at once" in ax.get_title(loc="left")
    with pytest.raises(InvalidInput, match="at least one trial"):
        nr.plots.timeline(told([]))


def points(ax, label):
    """The heights of the points of a label."""
    (drawn,) = [each for each in ax.collections if each.get_label() == label]
    return np.asarray(drawn.get_offsets())[:, 1]


def test_the_posterior_on_a_line_is_that_of_the_study(results):
    study = results["a"][0].study
    ax = nr.plots.posterior(study).axes[0]
    xs = ax.lines[0].get_xdata()
    mean, _ = study.predict(np.asarray(xs)[:, None])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), mean)


def test_the_posterior_of_arms_is_in_the_order_of_the_means():
    arms = nr.Arms(np.random.default_rng(0).normal(size=(70, 2)))
    study = nr.Study(nr.gp_ucb(arms, nr.Matern(2.5, 2.0), noise=0.1))
    for reward in (1.0, -1.0, 0.5):
        study.tell(study.ask(), reward)
    ax = nr.plots.posterior(study).axes[0]
    means = points(ax, "posterior mean")
    np.testing.assert_allclose(means, np.sort(study.predict(arms.points)[0])[::-1][:60])


def test_the_posterior_under_a_context_shows_the_trials_of_that_context():
    contexts = nr.Arms([[0.0], [1.0]])
    arms = nr.Arms.grid(0, 1, 5)
    study = nr.Study(nr.gp_ucb(arms, nr.Matern(2.5, 0.5), noise=0.1, context=contexts))
    for context in (0.0, 1.0, 1.0):
        study.tell(study.ask([context]), context)
    np.testing.assert_array_equal(points(nr.plots.posterior(study, context=[0.0]).axes[0], "observed"), [0.0])


def test_the_posterior_of_a_constraint_has_its_values_and_its_limit():
    study = told([3.0, 1.0, 2.0], constraints=[-1.0, 1.0, -0.5])
    ax = nr.plots.posterior(study, channel=1).axes[0]
    np.testing.assert_array_equal(points(ax, "observed"), [-1.0, 1.0, -0.5])


def test_the_posterior_of_a_plane_is_refused():
    study = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), nr.Matern(2.5, 0.3), noise=0.1))
    with pytest.raises(InvalidInput, match=r"plots\.slices"):
        nr.plots.posterior(study)
