"""What the pictures of a study show: the data of their panels, and that both renderers draw them."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import nilregret as nr
from nilregret._utils.numerals import numeral
from nilregret.plots.along import edges, seen_along
from nilregret.plots.base import BEST
from nilregret.plots.contour_picture import contour_panels
from nilregret.plots.history_picture import History, history_panels, said
from nilregret.plots.overview_picture import importance_panels
from nilregret.plots.parallel_picture import OFF, best_tenth
from nilregret.plots.scene import Band, Boxes, Heat, Line, Picture, Points, Words
from nilregret.plots.slices_picture import slice_panels, slices_of
from nilregret.plots.source import centre_of, function_of, introduced, standing
from nilregret.plots.ticks import fenced, linear_ticks, log_ticks
from nilregret.study import importance as shares
from nilregret.study.function import active_axes, line_through
from nilregret.study.quantities import quantity

NAMES = ("history", "importance", "slices", "contour", "parallel", "overview")
PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0.001, 1000.0, log=True))


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals of few draws, which cost most of the time."""
    monkeypatch.setattr(shares, "DRAWS", 4)
    monkeypatch.setattr(shares, "POINTS", 256)
    monkeypatch.setattr(shares, "POINTS_OF_DRAWS", 64)


def tuned(rewards, space=PLANE, *, goal="maximize", **options):
    """A study on a grid whose trials end with these rewards, None where one failed."""
    policy = nr.gp_ucb(space.grid(6), nr.SquaredExponential(0.4), noise=0.1, **options)
    study = nr.Study(policy, seed=0, goal=goal)
    for reward in rewards:
        trial = study.ask()
        study.fail(trial, "it crashed") if reward is None else study.tell(trial, reward)
    return study


def told(domain, f, count=8, *, goal="minimize", context=None, **options):
    """A study of `auto` that was told a function at random points."""
    rng = np.random.default_rng(1)
    study = nr.Study(nr.auto(domain, context=context, **options), seed=0, goal=goal)
    for _ in range(count):
        at = None if context is None else rng.uniform(context.lower, context.upper)
        point = rng.uniform(domain.lower, domain.upper)
        point = domain.snap(point[None])[0] if isinstance(domain, nr.Space) else point
        study.add(point, float(f(point)), context=at)
    return study


def marks(panel, kind, label=None):
    return [mark for mark in panel.marks if isinstance(mark, kind) and (label is None or mark.label.startswith(label))]


# -- ticks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((0.01, 1e4), ["0.01", "1", "100", "10000"]),
        ((1e-6, 10.0), ["1e-6", "0.0001", "0.01", "1"]),
        ((1.0, 8.0), ["1", "2", "5"]),
        ((3.0, 4.0), ["3", "4"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_those_that_a_person_writes(ends, words):
    assert [word for _, word in log_ticks(*ends)] == words


def test_ticks_have_the_digits_that_tell_them_apart():
    assert numeral(0.980671, 2, step=0.0001) == "0.9807"
    assert [word for _, word in linear_ticks(1e6, 1e6 + 1.0)][:2] == ["1000000", "1000000.2"]
    assert [word for _, word in linear_ticks(0.0, 1.0)] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [word for _, word in linear_ticks(1.0, 3.0, whole=True)] == ["1", "2", "3"]


def test_a_fence_leaves_far_values_out_but_never_the_best():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e6, -1e6])
    assert fenced(values, upward=True) == (1.0, 1e6)
    assert fenced(values, upward=False) == (-1e6, 5.0)
    assert fenced(np.array([2.0, 2.0]), upward=True) == (2.0, 2.0)


# -- history -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_history_says_what_is_best_and_when_it_improved(goal):
    sign = 1.0 if goal == "maximize" else -1.0
    study = tuned([sign * v if v is not None else None for v in (1.0, 3.0, None, 2.0, 2.5)], goal=goal)
    found = History(study)
    assert found.best.number == 1
    assert (found.since, found.ended, found.failed) == (3, 5, [2])
    assert found.best_so_far.tolist() == [sign, 3 * sign, 3 * sign, 3 * sign]
    assert found.gaps.tolist() == [2.0, 0.0, 1.0, 0.5]
    assert found.gain > 0.0
    word = "highest told" if goal == "maximize" else "lowest told"
    assert f"{word}: trial 1 with {numeral(3.0 * sign)}\nlast improved 3 trials ago; expected further gain" in said(
        found
    )
    worse = tuned([sign * v for v in (3.0, 1.0, 2.0)], goal=goal)
    assert "\nno later trial was better than the first; expected" in said(History(worse))
    values, gaps = history_panels(found, None, "reward")
    assert gaps.y.log
    (failed,) = marks(values, Points, "failed")
    assert list(failed.x) == [2]
    (line,) = marks(values, Line)
    assert line.x[-1] == 4.5  # It is drawn to the end, so that a last value is visible.


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.parametrize("make", ["given", "warped", "clicks"])
def test_the_gain_is_the_mean_of_what_another_point_brings_more(make, goal):
    """It is within five standard errors of the mean over joint draws: a failure has a chance below 1e-6."""
    arms = nr.Arms.grid(0, 1, 6)
    policy = {
        "given": lambda: nr.gp_ucb(arms, nr.SquaredExponential(0.3), noise=1.0),
        "warped": lambda: nr.auto(arms),
        "clicks": lambda: nr.auto(arms, reward="bernoulli"),
    }[make]()
    rng, study = np.random.default_rng(3), nr.Study(policy, seed=0, goal=goal)
    for x in np.tile(arms.points[:, 0], 3):
        value = {"given": x + rng.normal(), "warped": np.exp(3 * x + rng.normal()), "clicks": rng.random() < 0.4}[make]
        study.add([x], float(value))
    drawn = function_of(study).draws(arms.points, size=4000)
    more = np.maximum((drawn - drawn[:, [study.best().arm]]) * (1 if goal == "maximize" else -1), 0.0)
    at = more.mean(axis=0).argmax()
    error = more[:, at].std() / np.sqrt(len(more))
    assert History(study).gain == pytest.approx(more[:, at].mean(), abs=5.0 * error)
    assert error < 0.2 * more[:, at].mean()


def test_nothing_is_gained_where_the_recommended_arm_is_alone():
    study = nr.Study(nr.gp_ucb(nr.Arms([[0.0], [10.0]]), nr.SquaredExponential(0.2), noise=0.3))
    for i in range(20):
        study.add([10.0 * (i > 2)], 3.0 * (i > 2))
    assert study.predict()[1][1] > 0.05
    assert History(study).gain < 1e-6


def test_the_gain_of_exact_answers_is_expected_improvement():
    space = nr.Space(x=nr.Float(0, 1))
    study = nr.Study(nr.gp_ucb(space, nr.SquaredExponential(0.4), noise=1e-4))
    for x in (0.1, 0.5, 0.8):
        study.add({"x": x}, x - x**2)
    from scipy.stats import norm

    mean, std = study.predict(np.linspace(0.0, 1.0, 2001)[:, None])
    z = (mean - study.predict([study.best().point])[0]) / np.maximum(std, 1e-9)
    assert History(study).gain == pytest.approx((std * (z * norm.cdf(z) + norm.pdf(z))).max(), rel=1e-2)


def test_outliers_are_arrows_at_the_edge():
    study = tuned([1.0, 2.0, 3.0, 2.5, -1e6, 1.5])
    values, _ = history_panels(History(study), None, "reward")
    (outside,) = marks(values, Points, "1 outside, down to -1000000")
    assert outside.shape == "v"
    assert outside.y.tolist() == [values.y.limits[0]]
    assert values.y.limits[0] > 0.0
    values, _ = history_panels(History(study), (0.0, 2.0), "reward")
    assert marks(values, Points, "2 outside, up to 3")


def clicked(context=None, goal="maximize"):
    """A study of clicks on named banners, each shown three times."""
    space = nr.Space(banner=nr.Choice("spring", "sale"), colour=nr.Choice("red", "blue")).grid()
    study = nr.Study(nr.auto(space, reward="bernoulli", context=context), seed=0, name="banners", goal=goal)
    for i in range(12):
        known = None if context is None else {"device": "phone" if i % 2 else "desktop", "hour": 6.0 * (i % 4)}
        study.add(space.points[i % 4], float(i % 4 == 3), context=known)
    return study


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_clicks_have_a_running_mean_and_no_gap(goal):
    found = History(clicked(goal=goal))
    (panel,) = history_panels(found, (0.0, 1.0), "reward")
    (line,) = marks(panel, Line)
    np.testing.assert_allclose(line.y, np.cumsum(found.values) / np.arange(1, 13))
    assert not marks(panel, Points, "best")
    assert "*" not in [mark.shape for mark in marks(panel, Points)]
    assert said(found).startswith(f"recommended: trial {found.best.number}\nmean 0.25, of the last 12: 0.25; ")
    figure = nr.plots.posterior(clicked(goal=goal))
    (bars,) = [
        each
        for each in figure.axes[0].collections
        if each.get_label() == "mean ± 2 std" or "bounds" in str(each.get_label())
    ]
    ends = np.concatenate([path.vertices for path in bars.get_paths()])[:, 1]
    assert ends.min() >= 0.0
    assert ends.max() <= 1.0
    assert figure.axes[0].get_xticklabels()[0].get_text() in ("sale\nblue", "sale\nred", "spring\nred", "spring\nblue")


def test_under_contexts_no_single_trial_is_best_and_titles_name_the_context():
    study = clicked(nr.Space(device=nr.Choice("phone", "desktop"), hour=nr.Float(0, 24)))
    through = centre_of(study)
    assert " under device=desktop, hour=" in introduced(study, through) or " under device=phone" in introduced(
        study, through
    )
    for picture in (nr.plots.overview(study), nr.plots.slices(study)):
        assert "Each context has a best of its own" in picture._suptitle.get_text().replace("\n", " ")
    assert said(History(study)).startswith("Each context has a best of its own\nmean 0.25")
    assert nr.plots.posterior(study).axes[0].get_title(loc="left") == "under device=phone, hour=18"
    timeline = nr.plots.timeline(study)
    assert [text.get_text() for text in timeline.legends[0].get_texts()] == ["answered"]


def test_slices_of_one_parameter_have_their_legend_and_title_inside():
    space = nr.Space(a_long_name_of_a_parameter=nr.Float(0, 1))
    figure = nr.plots.slices(told(space, lambda p: (p[0] - 0.3) ** 2))
    figure.draw_without_rendering()
    for part in (figure.legends[0], figure._suptitle):
        box = part.get_window_extent()
        assert box.x0 >= 0.0
        assert box.x1 <= figure.bbox.width


def test_one_success_among_failures_is_seen():
    found = History(tuned([None] * 9 + [2.0] + [None] * 4))
    (panel,) = history_panels(found, None, "reward")  # There is no gap to draw.
    (line,) = marks(panel, Line)
    assert (line.x[0], line.x[-1]) == (9, 13.5)
    (failed,) = marks(panel, Points, "failed")
    assert list(failed.x) == [*range(9), *range(10, 14)]


def test_values_that_violate_are_never_best_and_budgets_on_average_are_counted():
    for world in (nr.OnAverage(), nr.EveryRound()):
        average = isinstance(world, nr.OnAverage)
        policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=world)
        study = nr.Study(policy, seed=0)
        for x in (0.0, 0.5, 1.0):
            study.add([x], x, constraints=[x - 0.6])
        found = History(study)
        assert found.best.number == 1
        assert (found.gain is None) == average
        values, below = history_panels(found, None, "reward")
        assert bool(marks(values, Points, "not feasible")) == (not average)
        assert bool(marks(values, Line, "best so far")) == (not average)
        if average:  # The budget has a panel in place of the gap to a value that breaks it.
            (spent,) = marks(below, Line, "mean constraint value so far")
            np.testing.assert_allclose(spent.y, [-0.6, -0.35, -0.1])


def test_what_is_not_known_is_said_plainly():
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=nr.EveryRound())
    study = nr.Study(policy, seed=0)
    study.add([0.5], 1.0, constraints=[1.0])
    assert said(History(study)) == "nothing feasible in 1 trial\nexpected further gain: unknown"
    for name in ("history", "slices", "overview", "parallel"):
        getattr(nr.plots, name)(study)
    script = nr.Study(nr.algorithms.admmbo(nr.Box([0.0], [1.0]), constraints=1))
    script.tell(script.ask(), 1.0, constraints=[-1.0])
    assert said(History(script)).endswith("expected further gain: unknown")
    nr.plots.overview(script)
    with pytest.raises(nr.NoRegretError, match="has no posterior"):
        nr.plots.slices(script)


# -- slices ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_slices_are_quantiles_in_the_units_told_and_show_all_trials(goal):
    study = told(PLANE, lambda p: 2.0 + p[0] ** 2, goal=goal)
    through = centre_of(study)
    found = slices_of(study, through, None)
    assert [one.axis.name for one in found] == ["x", "y"]
    x = found[0]
    points = [{"x": v, "y": through.parameters["y"]} for v in x.values]
    assert (np.diff(x.quantiles, axis=0) >= 0.0).all()
    lower, upper = study.bounds(points)
    assert ((x.quantiles[3] >= lower) & (x.quantiles[3] <= upper)).all()
    assert len(x.seen.trials) == 8
    assert 0.0 <= x.seen.close.min() < x.seen.close.max() == 1.0
    panels = slice_panels(found, study, through, (2.0, 2.5), "loss")
    assert panels[0].y.limits == panels[1].y.limits
    for line in marks(panels[0], Line):
        assert line.y.min() >= 2.0
        assert line.y.max() <= 2.5
    assert panels[1].x.log


def test_bands_doubt_the_kernel_of_a_fit_where_the_best_trial_lies_on_a_limit():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1")
    study = nr.Study(nr.auto(space), goal="minimize", seed=3)
    for _ in range(25):
        trial = study.ask()
        study.tell(trial, (trial.parameters["a"] - 0.6) ** 2 + (trial.parameters["b"] - 0.7) ** 2)
    points = np.random.default_rng(0).uniform(size=(200, 2)) / 2.0
    lower, upper = study.bounds(points)  # two deviations of the fit alone
    low, high = function_of(study).quantiles([0.0228, 0.9772], points)
    assert np.mean(high - low) > 1.02 * np.mean(upper - lower)
    truth = np.square(points - [0.6, 0.7]).sum(axis=1)
    held = [np.mean((a <= truth) & (truth <= b)) for a, b in ((low, high), (lower, upper))]
    assert held[0] > held[1]
    np.testing.assert_array_equal(function_of(study).quantiles([0.0228, 0.9772], points), [low, high])


@pytest.mark.parametrize("noise", ["fitted", "given"])
def test_bands_are_in_the_units_of_all_answers_and_not_of_those_that_the_last_fit_saw(noise):
    refit = nr.slots.Refit(every=5, noise=noise)
    study = nr.Study(nr.gp_ucb(nr.Box(0, 1), 1e6 * nr.SquaredExponential(0.3), noise=50.0, refit=refit), seed=1)
    for value in (1000.0, 1010.0, 1020.0, 1030.0, 1040.0):  # One point, so the fit learns no unit and keeps the kernel.
        study.add([0.5], value)
    told = {0.0: -2000.0, 0.25: 0.0, 0.75: 3000.0, 1.0: 2000.0}
    for at, value in told.items():
        study.add([at], value)
    low, middle, high = function_of(study).quantiles([0.0228, 0.5, 0.9772], np.array(list(told))[:, None])
    assert middle == pytest.approx(np.array(list(told.values())), abs=500.0)  # It was flat, and all answers noise.
    assert (high - low > 50.0).all()


def test_bands_of_a_fit_to_own_outputs_are_of_the_kernels_plausible_for_these():
    refit, points = nr.slots.Refit(every=4, outputs="own"), PLANE.grid(5).points
    policy = nr.gp_ucb_sdf(PLANE.grid(5), nr.Matern(2.5, [0.3, 0.3]), window=4, noise=0.1, norm_bound=1.0, refit=refit)
    study = nr.Study(policy, seed=1)
    for number in range(22):
        trial = study.ask()
        if number % 4 != 1:  # The others stay without an answer, and count as 0.
            study.tell(trial, (trial.point[0] - 0.3) ** 2 + trial.point[1])
    function = function_of(study)
    low, high = function.quantiles([0.0228, 0.9772], points)
    median = function.median(points)
    assert ((low <= median) & (median <= high)).all()  # It was at 18 of 25.


def test_quantiles_without_a_warp_are_those_of_the_normal_law():
    study = tuned([1.0, 2.0, 0.5])
    points = study.policy.domain.points[:4]
    mean, std = study.predict(points)
    quantiles = function_of(study).quantiles([0.5, 0.975], points)
    np.testing.assert_allclose(quantiles, [mean, mean + 1.959964 * std], rtol=1e-6)


def test_trials_fade_with_their_distance():
    study = nr.Study(nr.gp_ucb(nr.Box([0.0, 0.0], [1.0, 1.0]), nr.SquaredExponential([0.3, 9.0]), noise=0.1), seed=0)
    for point in ([0.5, 0.5], [0.5, 0.0], [0.0, 0.5]):
        study.add(point, 1.0 - point[0])
    function, through = function_of(study), study.trials[0]
    first, second = (one.axis for one in slices_of(study, through, None))
    along_first = seen_along(study, function, through, [first]).close
    along_second = seen_along(study, function, through, [second]).close
    np.testing.assert_allclose(along_first, [1.0, np.exp(-0.5 * (0.5 / 9.0) ** 2), 1.0])
    np.testing.assert_allclose(along_second, [1.0, 1.0, np.exp(-0.5 * (0.5 / 0.3) ** 2)])


def test_where_nothing_was_tried_is_hatched():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"), n=nr.Int(1, 4))), seed=0)
    for x in (0.0, 0.1, 0.2, 0.9, 1.0):
        study.add({"x": x, "kind": "a", "n": 2}, x)
    x, kind, n = slices_of(study, centre_of(study), None)
    np.testing.assert_allclose(x.untried, [(0.25, 0.85)])
    assert list(kind.untried) == [(0.5, 1.5)]
    assert list(n.untried) == [(0.5, 1.5), (2.5, 3.5), (3.5, 4.5)]


def test_what_failed_or_is_pending_was_tried():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), seed=0, goal="minimize")
    for x in (0.0, 0.1, 0.2):
        study.add({"x": x}, x)
    study.fail(study.ask(among=[{"x": 0.4}]), "no power")
    study.ask(among=[{"x": 0.6}])
    (one,) = slices_of(study, centre_of(study), None)
    np.testing.assert_allclose(one.untried, [(0.25, 0.35), (0.45, 0.55), (0.65, 1.0)])


def test_where_constraints_are_probably_violated_is_shaded():
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=nr.EveryRound())
    study = nr.Study(policy, seed=0)
    for x in (0.0, 0.5, 1.0):
        study.add([x], x, constraints=[3.0 * (x - 0.6)])
    found = slices_of(study, centre_of(study), None)
    assert found[0].infeasible == [(0.625, 1.125)]
    (panel,) = slice_panels(found, study, centre_of(study), None, "reward")
    assert marks(panel, Boxes, "probably not feasible")
    (cross,) = marks(panel, Points, "not feasible")
    assert (cross.shape, list(cross.x)) == ("x", [1.0])


def test_bands_do_not_overlap_so_that_the_legend_has_their_colours():
    study = told(nr.Space(x=nr.Float(0, 1)), lambda p: p[0])
    panels = slice_panels(slices_of(study, centre_of(study), None), study, centre_of(study), None, "loss")
    bands = sorted(marks(panels[0], Band), key=lambda band: band.low[0])
    for below, above in pairwise(bands):
        np.testing.assert_array_equal(below.high, above.low)


def test_a_long_name_is_shortened_and_a_long_title_wrapped():
    name = "a name that says all that was thought when the study was begun " * 2
    picture = Picture(panels=[], size=(7.2, 3.0), name=name, title="the trials determine 80% of the variation")
    assert picture.heading.endswith("…: the trials determine 80% of the variation")
    assert "\n" not in picture.heading
    long = Picture(panels=[], size=(7.2, 3.0), name=name, title=", ".join(f"x{i}=0.5" for i in range(30)))
    assert long.heading.replace("\n", " ").endswith(long.title)
    assert max(map(len, long.heading.split("\n"))) <= 86


def test_every_picture_calls_the_best_by_the_same_words():
    exact, noisy = tuned([1.0, 3.0, 2.0]), tuned([1.0, 3.0, 2.0])
    point = noisy.trials[0].point
    noisy.add(point, 1.2)
    for study, word in ((exact, "highest told"), (noisy, "recommended")):
        best = centre_of(study)
        assert standing(study, best) == word
        assert said(History(study)).startswith(f"{word}: trial {best.number} with")
        legend = nr.plots.timeline(study).legends[0]
        assert f"{word}: trial {best.number}" in [text.get_text() for text in legend.get_texts()]
    assert introduced(exact, centre_of(exact)).startswith("trial 1 (highest told), x=")


def test_forty_options_are_cut_to_the_best():
    space = nr.Space(word=nr.Choice(*(f"number-{i}" for i in range(40))), x=nr.Float(0, 1))
    study = told(space, lambda p: float(p[:40].argmax()), 30)
    word, _ = slices_of(study, centre_of(study), None)
    assert (len(word.values), word.left_out) == (12, 28)
    assert (np.diff(word.quantiles[3]) >= 0.0).all()
    assert "best 12 of 40" in [ax.get_title(loc="left") for ax in nr.plots.slices(study).axes]


def test_a_parameter_that_is_not_active_has_no_slice():
    space = nr.Space(kind=nr.Choice("a", "b"), depth=nr.when("kind", "b", nr.Float(0, 1)))
    study = nr.Study(nr.auto(space), seed=0, goal="minimize")
    for value in (0.1, 0.9):
        study.add({"kind": "b", "depth": value}, 1.0 + value)
    study.add({"kind": "a"}, 0.0)
    assert [one.axis.name for one in slices_of(study, centre_of(study), None)] == ["kind"]
    with pytest.raises(nr.NoRegretError, match="'depth', which does not vary at the best trial"):
        nr.plots.slices(study, parameters=["depth"])
    with pytest.raises(nr.NoRegretError, match="Did you mean 'depth'"):
        nr.plots.slices(study, parameters=["kind", "deth"])
    assert "depth=0.5 where active" in [ax.get_title(loc="left") for ax in nr.plots.slices(study).axes]
    heights = [line.get_ydata() for line in nr.plots.parallel(study).axes[0].get_lines()]
    assert any(OFF in np.asarray(each) for each in heights)


@pytest.mark.parametrize("arms", [False, True])
def test_a_contour_over_a_parameter_and_its_own_condition_leaves_out_where_it_is_not_active(arms):
    space = nr.Space(m=nr.Int(1, 4), depth=nr.when("m", [2, 3], nr.Float(0, 1)))
    study = nr.Study(nr.auto(space.grid(5) if arms else space), seed=0, goal="minimize")
    for m, depth in ((2, 0.25), (3, 0.75), (2, 1.0)):
        study.add({"m": m, "depth": depth}, m + depth)
    study.add({"m": 1}, 3.0)
    for pair in (("m", "depth"), ("depth", "m")):
        ax = nr.plots.contour(study, parameters=pair).axes[0]
        z = np.ma.filled(ax.collections[0].get_array(), np.nan)
        there = np.isfinite(z if pair[0] == "depth" else z.T).all(axis=1).tolist()
        assert there == ([True, True] if arms else [False, True, True, False])


def test_each_kind_of_model_has_slices():
    grid, rough = nr.Arms.grid(0, 1, 9), nr.Matern(2.5, 0.3)
    for policy in (
        nr.igp_ucb(grid, rough, reward="bernoulli", norm_bound=1.0, width="lr"),
        nr.gp_ucb_sdf(grid, rough, noise=0.1, window=9, width="tight"),
        nr.igp_ucb(grid, rough, noise=0.1, norm_bound=1.0, memory=nr.slots.SlidingWindow(9)),
        nr.gp_ucb(nr.Arms([3.0, 0.0, 1.0]), nr.kernels.Empirical(np.eye(3)), noise=0.1),
    ):
        study = nr.Study(policy, seed=0)
        for _ in range(4):
            study.tell(study.ask(), 1.0)
        (one,) = slices_of(study, centre_of(study), None)
        assert np.isfinite(one.quantiles).all()
        assert (np.diff(one.values) > 0.0).all()
        nr.plots.overview(study)


# -- contour and parallel ----------------------------------------------------------------------------------------------


def test_a_contour_is_the_median_and_its_uncertainty():
    study = tuned([1.0, 2.0, 1.5, 0.0])
    figure = nr.plots.contour(study, parameters=("x", "y"))
    assert [ax.get_title(loc="left") for ax in figure.axes[::2]] == ["posterior median", "uncertainty"]
    mean, std = study.predict()
    shown = figure.axes[0].collections[0].get_array()
    np.testing.assert_allclose(np.sort(np.ravel(shown)), np.sort(np.clip(mean, *fenced(mean, upward=True))))
    spread = figure.axes[2].collections[0].get_array()
    assert np.ravel(spread).max() <= std.max() * 1.0001
    with pytest.raises(nr.NoRegretError, match="two different names"):
        nr.plots.contour(study, parameters=("x", "x"))
    assert len(nr.plots.contour(study, pairs=5).axes) == 4  # There is one pair only.


def test_a_contour_hatches_what_is_probably_not_feasible_as_slices_shade_it():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)), constraints=1), seed=0)
    for i in range(16):
        x, y = 0.25 * (i % 4), 0.25 * (i // 4)
        study.add({"x": x, "y": y}, x + y, constraints=[x - 0.4])
    across = active_axes(study.policy.domain, study.trials[0].point)
    for panel in contour_panels(study, quantity(study, None), study.trials[0], (across[0], across[1]), ""):
        (hatched,) = marks(panel, Boxes)
        assert hatched.label == "probably not feasible"
        assert hatched.x0 == pytest.approx(0.4, abs=0.05)  # in each row, from the border to the end
        assert hatched.x1.min() >= 1.0
        good, bad = marks(panel, Points)[:2]
        assert (good.shape, bad.shape) == ("o", "x")
        assert good.x.max() == 0.25
        assert bad.x.min() == 0.5


def test_slices_end_at_limits_and_contours_leave_what_breaks_them_empty():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), n=nr.Int(0, 3)).where("a + b <= 1", "n + 4 * a <= 3")
    study = nr.Study(nr.auto(space), seed=0)
    for a, b, n in ((0.2, 0.3, 0), (0.1, 0.2, 1), (0.6, 0.1, 0), (0.0, 0.9, 3)):
        study.add({"a": a, "b": b, "n": n}, -abs(a - 0.2) - b - n)
    across = slices_of(study, study.trials[0], None)
    ends = {one.axis.name: (one.values[0], one.values[-1]) for one in across}
    assert ends["a"] == (0.0, pytest.approx(0.7, abs=2e-3))
    assert ends["b"] == (0.0, pytest.approx(0.8, abs=2e-3))
    assert ends["n"] == (0, 2)
    assert max(high for _, high in across[0].untried) <= ends["a"][1]
    (heat,) = marks(
        contour_panels(study, quantity(study, None), study.trials[0], (across[0].axis, across[1].axis), "")[0], Heat
    )
    rows, columns = np.indices(heat.z.shape) / 40
    np.testing.assert_array_equal(np.isnan(heat.z), (rows + columns > 1 + 1e-9) | (columns > 0.75))


def test_ingredients_of_a_mixture_are_drawn_over_their_simplex():
    space = nr.Space(recipe=nr.Mixture("a", "b", "c", d=(0.1, 0.2)), t=nr.Float(0, 1))
    study = nr.Study(nr.auto(space), seed=0)
    for a, b, c, d in ((0.2, 0.4, 0.3, 0.1), (0.5, 0.2, 0.15, 0.15), (0.1, 0.1, 0.6, 0.2)):
        study.add({"a": a, "b": b, "c": c, "d": d, "t": 0.5}, a)
    first, second, *_ = each = active_axes(space, study.trials[0].point)
    values, points = line_through(space, study.trials[0].point, first, count=11)
    rest = space.decoded(points)[4]
    assert (values[0], values[-1]) == (0.0, pytest.approx(0.9))
    assert [rest[name] for name in "abcd"] == pytest.approx([0.36, 0.54 * 4 / 7, 0.54 * 3 / 7, 0.1])
    assert len(slices_of(study, study.trials[0], None)) == len(each)
    capped = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 0.3)).where("a + b + c == 1")
    at = np.array([0.5, 0.2, 1.0])
    values, points = line_through(capped, at, active_axes(capped, at)[0], count=5)
    assert (values[0], values[-1], capped.decoded(points)[1]["b"]) == (0.0, 1.0, pytest.approx(0.45))
    (heat,) = marks(contour_panels(study, quantity(study, None), study.trials[0], (first, second), "")[0], Heat)
    assert np.isfinite(heat.z).sum() == 41 * 42 // 2


def test_cells_meet_in_the_middle():
    study = tuned([1.0])
    x, y = (one.axis for one in slices_of(study, study.trials[0], None))
    np.testing.assert_allclose(edges(x, [0.0, 0.5, 1.0]), [-0.25, 0.25, 0.75, 1.25])
    np.testing.assert_allclose(edges(y, [1.0, 100.0]), [0.1, 10.0, 1000.0])


def test_the_best_tenth_is_highlighted():
    study = tuned((0.1 * np.arange(20.0)).tolist(), goal="minimize")
    assert best_tenth(study, list(study.trials)) == [0, 1]
    ax = nr.plots.parallel(study).axes[0]
    assert ax.get_title(loc="left") == "best tenth: 2 of 20 trials"
    assert len([line for line in ax.get_lines() if to_rgba(line.get_color())[:3] == to_rgba(BEST)[:3]]) == 2


def test_values_that_are_all_equal_have_no_best_tenth_and_no_intervals():
    study = told(PLANE, lambda p: 5.0, count=12)
    assert nr.plots.parallel(study).axes[0].get_title(loc="left") == "best tenth with ties: 12 of 12 trials"
    panel, _ = importance_panels(study.importance(), quantity(study, None))
    assert not marks(panel, Line)


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_the_label_of_the_best_is_beyond_the_line_of_the_best_so_far(goal):
    found = History(tuned([1.0, 3.0, 2.0], goal=goal))
    (label,) = [mark for mark in history_panels(found, None, "reward")[0].marks if isinstance(mark, Words)]
    assert label.above == found.upward


def test_the_title_of_the_importance_in_an_overview_has_four_lines_at_most():
    space = nr.Space(**{name: nr.Float(0, 1) for name in ("learning_rate", "subsample", "max_depth_of_each_tree")})
    study = told(space, lambda p: np.sin(9 * p[0]) + np.cos(8 * p[1]) * np.sin(7 * p[2]), count=14)
    titles = [ax.get_title(loc="left") for ax in nr.plots.overview(study).axes]
    (title,) = [each for each in titles if each.startswith("What moves")]
    assert title.count("\n") <= 3


# -- all of them -------------------------------------------------------------------------------------------------------


def test_pictures_are_saved_in_the_format_of_their_path(tmp_path):
    study = tuned([1.0, 2.0])
    nr.plots.history(study, tmp_path / "a.svg")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    nr.plots.history(study, tmp_path / "a.html", interactive=True)
    assert "plotly" in (tmp_path / "a.html").read_text()
    nr.plots.history(study, tmp_path / "b.html")
    assert "plotly" in (tmp_path / "b.html").read_text()
    with pytest.raises(nr.NoRegretError, match=r"must end in one of \.png, \.pdf, \.svg, \.html"):
        nr.plots.history(study, tmp_path / "a.txt")
    with pytest.raises(nr.NoRegretError, match=r"must end in \.html"):
        nr.plots.history(study, tmp_path / "a.png", interactive=True)


def test_both_renderers_draw_the_same_numbers():
    study = tuned([1.0, 3.0, 2.0])
    still, live = nr.plots.history(study), nr.plots.history(study, interactive=True)
    seen = still.axes[0].collections[0].get_offsets()
    trace = live.data[0]
    np.testing.assert_array_equal(np.column_stack([trace.x, trace.y]), seen)
    assert live.layout.yaxis.title.text == still.axes[0].get_ylabel() == "reward"
    np.testing.assert_allclose(live.layout.yaxis.range, still.axes[0].get_ylim())


def test_a_style_colours_words_and_background_and_ends():
    study = tuned([1.0, 3.0])
    plain = nr.plots.history(study)
    with nr.plots.style("dark"):
        dark = nr.plots.history(study)
        assert nr.plots.history(study, interactive=True).layout.paper_bgcolor == "#131416"
    assert to_rgba(dark.get_facecolor()) == to_rgba("#131416")
    assert to_rgba(dark.axes[0].xaxis.label.get_color()) == to_rgba("#dfe3e8")
    assert nr.plots.history(study).get_facecolor() == plain.get_facecolor() == to_rgba("white")
    with pytest.raises(nr.NoRegretError, match="`name` is 'neon'"), nr.plots.style("neon"):
        pass


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failed", [False, True])
def test_a_study_without_an_answer_has_no_picture(name, failed):
    study = nr.Study(nr.auto(PLANE))
    trial = study.ask()
    if failed:
        study.fail(trial, "no power")
    with pytest.raises(nr.NoRegretError, match=r"No trial has been answered yet|at least two answered trials"):
        getattr(nr.plots, name)(study)


def test_bad_arguments_are_told_apart():
    study = tuned([1.0, 2.0])
    with pytest.raises(nr.NoRegretError, match="A picture needs a study or a result, not 3"):
        nr.plots.history(3)
    for given in ((1.0, 0.0), 3, (0.0, float("nan"))):
        with pytest.raises(nr.NoRegretError, match="`range` is"):
            nr.plots.history(study, range=given)
    with pytest.raises(nr.NoRegretError, match="`interactive`"):
        nr.plots.history(study, interactive="yes")
    with pytest.raises(nr.NoRegretError, match="`parameters` is 'q': it must be one of 'x', 'y'"):
        nr.plots.slices(study, parameters=["q"])


@pytest.mark.parametrize(("library", "extra"), [("matplotlib.figure", "plot"), ("plotly", "interactive")])
def test_a_missing_library_is_named_with_its_extra(library, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(nr.NoRegretError, match=rf"pip install 'nilregret\[{extra}\]'"):
        nr.plots.history(tuned([1.0]), interactive=extra == "interactive")


@pytest.mark.parametrize("name", ["overview", "importance"])
@pytest.mark.parametrize("letters", [4, 38])
def test_titles_of_panels_stay_within_the_picture(name, letters):
    space = nr.Space(**{("parameter" * 5)[: letters - 1] + str(i): nr.Float(0, 1) for i in range(3)})
    study = nr.Study(nr.auto(space), seed=0, name="titles")
    study.quiet = True
    for _ in range(12):
        trial = study.ask()
        a, b, c = trial.parameters.values()
        study.tell(trial, 3 * a + 2 * b * c)
    figure = getattr(nr.plots, name)(study)
    figure.canvas.draw()
    titles = [text for ax in figure.axes for text in (ax.title, ax._left_title) if text.get_text()]
    assert titles
    for text in titles:
        assert text.get_window_extent().x1 <= figure.bbox.width, text.get_text()


HOSTILE = ("$\\nosuch$", "cost_$", "_hidden", "\ud800", "\x00")


@pytest.mark.parametrize("interactive", [False, True])
def test_names_are_text_and_no_markup_of_the_renderer(interactive):
    space = nr.Space(**{HOSTILE[0]: nr.Float(0, 1), HOSTILE[3]: nr.Choice(*HOSTILE)})
    study = nr.Study(nr.auto(space), seed=0, name="$\\a$")
    study.quiet = True
    for value in range(6):
        study.tell(study.ask(), value % 4)
    for name in NAMES:
        figure = getattr(nr.plots, name)(study, interactive=interactive)
        figure.to_html() if interactive else figure.canvas.draw()


def test_names_of_policies_and_worlds_are_text_and_titles_fit(tmp_path):
    arms = nr.Arms.grid(0, 1, 8)
    policy = nr.gp_ucb(arms, nr.SquaredExponential(0.1), noise=0.2)
    world = nr.Environment(lambda x: x[:, 0], domain=arms, noise=0.2)
    worlds = dict.fromkeys([HOSTILE[0], HOSTILE[3], "a long name of a world"], world)
    runs = nr.compare(dict.fromkeys(HOSTILE, policy), worlds, rounds=3, seeds=range(2))
    figure = runs.plot(tmp_path / "a.svg")
    figure.canvas.draw()
    assert len(figure.legends[0].get_texts()) == len(HOSTILE)
    for ax in figure.axes:
        assert ax.title.get_window_extent().x1 <= figure.bbox.width, ax.get_title()


def test_a_figure_shows_itself_in_a_notebook():
    assert nr.plots.history(tuned([1.0, 2.0]))._repr_png_().startswith(b"\x89PNG")
