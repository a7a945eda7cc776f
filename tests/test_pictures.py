"""What pictures show: of papers' figures, and of a tuned study."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import nilregret as nr
from nilregret import papers
from nilregret._utils.errors import InvalidInput
from nilregret.papers import chowdhury
from nilregret.papers.figure import Job
from nilregret.study import plots
from nilregret.study.curves import Curves
from nilregret.study.plots import base, figures, restarts, studies


def drawn(monkeypatch, make):
    """The matplotlib figure that a function of `plots` saves."""
    made, new = [], base.new_figure

    def keep(width, height):
        made.append(new(width, height))
        return made[-1]

    for module in (figures, restarts, studies):
        monkeypatch.setattr(module, "new_figure", keep)
    make()
    return made[0]


def test_two_trials_have_no_band(tmp_path, monkeypatch):
    for count, bands in ((2, 0), (3, 2)):
        lines = {"a": np.ones((count, 4)) * np.arange(count)[:, None], "b": np.eye(count, 4)}
        shown = Curves(x=np.arange(4.0), lines=lines, x_label="rounds", y_label="regret")
        figure = drawn(monkeypatch, lambda shown=shown: plots.panels([shown], tmp_path / "x.png", note="small"))
        assert len(figure.axes[0].collections) == bands
        assert figure.legends[0].get_title().get_text() == ("shaded: ±2 standard errors" if bands else "")
        assert figure.get_supxlabel() == "small"


def test_lines_that_coincide_differ_in_style():
    runs = {f"{name}, {chowdhury.NORM}": np.ones((3, 8)) for name in chowdhury.OF_BOUND}
    panel = chowdhury.regret_panel(runs | {name: np.ones((3, 8)) for name in chowdhury.IMPROVEMENTS}, chowdhury.NORM, 8)
    at = [list(panel.lines).index(name) for name in chowdhury.IMPROVEMENTS]
    below, above = ((figures.COLORS[i], figures.STYLES[i], figures.WIDTHS[i]) for i in at)
    assert below[0] != above[0]
    assert below[1] == "-"
    assert above[1] != "-"  # dashes on a broad line
    assert below[2] > 1.5 * above[2]


def test_synthetic_figures_have_a_logarithmic_axis(tmp_path, monkeypatch):
    result = papers.find("chowdhury-1a").make(Job(trials=3, rounds=8))
    assert [panel.log for panel in result.panels] == ["y", "y"]
    figure = drawn(monkeypatch, lambda: plots.panels(result.panels, tmp_path / "x.png"))
    lowest = min(panel.mean(name).min() for panel in result.panels for name in panel.lines)
    assert min(ax.get_ylim()[0] for ax in figure.axes) == pytest.approx(0.8 * lowest)


def test_labels_of_large_numbers_do_not_touch(tmp_path, monkeypatch):
    x = np.linspace(1.0, 30_000.0, 300)
    shown = [Curves(x=x, lines={"a": x[None]}, x_label="rounds", y_label="regret") for _ in range(2)]
    figure = drawn(monkeypatch, lambda: plots.panels(shown, tmp_path / "x.png"))
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        inside = [box for box, tick in zip(boxes, ax.get_xticks(), strict=True) if 1.0 <= tick <= 30_000.0]
        assert len(inside) >= 3
        assert all(b.x0 - a.x1 > 8 for a, b in itertools.pairwise(inside))  # pixels


# -- tuning ------------------------------------------------------------------------------------------------------------


def tuned(space, rewards):
    """A study on a grid whose trials end with these rewards, None where one failed."""
    policy = nr.gp_ucb(space.grid(6), nr.SquaredExponential(0.4), noise=0.1)
    study = nr.Study(policy, seed=0)
    for reward in rewards:
        trial = study.ask()
        study.fail(trial, "it crashed") if reward is None else study.tell(trial, reward)
    return study


def of_color(ax, color):
    return [line for line in ax.get_lines() if to_rgba(line.get_color()) == to_rgba(color)]


def test_one_success_among_failures_is_seen(tmp_path, monkeypatch):
    study = tuned(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)), [None] * 9 + [2.0] + [None] * 4)
    ax = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes[0]
    (best,) = of_color(ax, base.BEST)
    x, y = best.get_data()
    assert (x[0], x[-1]) == (9, 13.5)  # from the success to the last trial
    assert set(y) == {2.0}
    (failed,) = of_color(ax, base.FAILED)  # one row of ticks, not a line from bottom to top each
    numbers, heights = failed.get_data()
    np.testing.assert_array_equal(numbers, [*range(9), *range(10, 14)])
    assert set(heights) == {0.0}
    assert failed.get_transform() == ax.get_xaxis_transform()
    assert failed.get_marker() == "|"


def test_best_so_far_of_the_last_trial_alone(tmp_path, monkeypatch):
    study = tuned(nr.Space(x=nr.Float(0, 1)), [None, 2.0])
    ax = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes[0]
    (best,) = of_color(ax, base.BEST)
    assert np.ptp(best.get_xdata()) > 0.0


def test_losses_are_drawn_as_they_are(tmp_path, monkeypatch):
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, 0.3), noise=0.1, prior_mean=2.0), goal="minimize")
    for x, loss in ((0.0, 2.5), (0.5, 1.5), (1.0, 2.0)):
        study.add([x], loss)
    axes = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes
    assert axes[0].get_ylabel() == "loss"
    (best,) = of_color(axes[0], base.BEST)
    assert best.get_ydata().tolist() == [2.5, 1.5, 1.5, 1.5]
    observed, *_ = of_color(axes[0], base.OBSERVED)
    assert observed.get_ydata().tolist() == [2.5, 1.5, 2.0]
    (mean,) = of_color(axes[1], base.MODEL)
    np.testing.assert_array_equal(mean.get_ydata(), study.predict()[0])
    rewarded = drawn(monkeypatch, lambda: plots.changes(study, tmp_path / "y.png")).axes[1]
    assert rewarded.get_ylabel() == "loss"


def test_evidence_is_drawn_with_what_was_enough_and_where_it_began_anew(tmp_path, monkeypatch):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, 0.3), noise=0.1, memory="adaptive")
    study = nr.Study(policy, seed=0)
    with pytest.raises(InvalidInput, match="There is no evidence to draw"):
        plots.evidence(study, tmp_path / "x.png")
    for n in range(40):
        study.tell(study.ask(), 1.0 if n < 20 else 4.0)
    ax = drawn(monkeypatch, lambda: plots.evidence(study, tmp_path / "x.png", known=[20])).axes[0]
    (line,) = of_color(ax, base.MODEL)
    np.testing.assert_array_equal(line.get_ydata(), study.evidence.values)
    assert [cut.get_xdata()[0] for cut in of_color(ax, base.BEST)] == study.restarts != []
    (enough,) = of_color(ax, base.FAILED)
    assert enough.get_ydata()[0] == study.evidence.threshold
    with pytest.raises(InvalidInput, match="There is no evidence to draw"):
        plots.evidence(nr.Study(policy.using(memory=nr.slots.SlidingWindow(5))), tmp_path / "y.png")


@pytest.mark.parametrize("log", [False, True])
def test_whole_numbers_have_whole_ticks_and_no_joined_line(log, tmp_path, monkeypatch):
    study = tuned(nr.Space(depth=nr.Int(1, 4, log=log)), [1.0, 2.0, 1.5])
    figure = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png"))
    ax = figure.axes[1]
    figure.draw_without_rendering()
    low, high = ax.get_xlim()
    ticks = [tick for tick in (*ax.get_xticks(), *ax.get_xticks(minor=True)) if low <= tick <= high]
    assert len(ticks) >= 2
    assert all(float(tick).is_integer() for tick in ticks)
    assert all(line.get_linestyle() == "None" for line in ax.get_lines())
    assert not any(type(drawing).__name__ == "FillBetweenPolyCollection" for drawing in ax.collections)


def test_real_numbers_keep_their_line(tmp_path, monkeypatch):
    study = tuned(nr.Space(x=nr.Float(0, 1)), [1.0, 2.0, 1.5])
    ax = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes[1]
    assert any(line.get_linestyle() == "-" for line in of_color(ax, base.MODEL))


def played(policy, rounds=6, contexts=None):
    """A study of a smooth reward of the point and, if there is one, the context."""
    study = nr.Study(policy, seed=0)
    for t in range(rounds):
        trial = study.ask(None if contexts is None else contexts[t % len(contexts)])
        shift = 0.0 if trial.context is None else trial.context[0]
        study.tell(trial, float(np.cos(trial.point - shift).sum()))
    return study


GRID, ROUGH = nr.Arms.grid(0, 1, 17), nr.Matern(2.5, 0.3)
POLICIES = {
    "auto": (lambda: nr.auto(nr.Box([0.0], [1.0])), "bounds of the policy"),
    "dmm": (lambda: nr.igp_ucb(GRID, ROUGH, noise=0.1, norm_bound=9.0, width="dmm"), "confidence bounds"),
    "lr": (lambda: nr.igp_ucb(GRID, ROUGH, reward="bernoulli", norm_bound=1.0, width="lr"), "confidence bounds"),
    "tight": (lambda: nr.gp_ucb_sdf(GRID, ROUGH, noise=0.1, window=9, width="tight"), "bounds of the policy"),
    "forgets": (
        lambda: nr.igp_ucb(GRID, ROUGH, noise=0.1, norm_bound=1.0, width="dmm", memory=nr.slots.SlidingWindow(9)),
        "bounds of the policy",
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_band_that_is_no_multiple_is_that_of_the_bounds(name, tmp_path, monkeypatch):
    make, label = POLICIES[name]
    study = nr.Study(make(), seed=0)
    for i in range(9):
        study.add([i / 8.0], float(i % 2) if name == "lr" else 0.9 + 0.01 * i - 1e3 * (i > 5 and name == "auto"))
    ax = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes[1]
    (band,) = ax.collections
    (mean,) = of_color(ax, base.MODEL)
    assert (band.get_label(), mean.get_label()) == (label, "posterior mean")
    points = np.asarray(mean.get_xdata())[:, None]
    np.testing.assert_array_equal(mean.get_ydata(), study.predict(points)[0])
    edge = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
    for end in study.bounds(points):
        assert {tuple(corner) for corner in np.column_stack([points[:, 0], end]).round(9)} <= edge
    if name == "auto":
        assert max(y for _, y in edge) < 2.0  # half of what is believed is a thousand below it


def test_options_are_drawn_with_their_bounds_whatever_the_mean(tmp_path, monkeypatch):
    study = nr.Study(nr.auto(nr.Space(kind=nr.Choice("a", "b", "c"), n=nr.Int(1, 3))), seed=0, goal="minimize")
    for _ in range(9):
        trial = study.ask()
        study.tell(trial, trial.parameters["n"] + 1e4 * (trial.parameters["kind"] == "b"))
    figure = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png"))
    assert "recommended" in figure.get_suptitle()
    assert "lowest told" in figure.axes[0].get_legend_handles_labels()[1]
    (bars,) = figure.axes[1].containers
    found = bars[2][0].get_segments()
    along = [{"kind": kind, "n": study.best().parameters["n"]} for kind in "abc"]
    np.testing.assert_allclose([[low[1], high[1]] for low, high in found], np.transpose(study.bounds(along)), rtol=1e-9)
    assert "posterior mean" in figure.axes[1].get_legend_handles_labels()[1]


def test_rounds_over_a_budget_that_holds_on_average_are_no_violations(tmp_path, monkeypatch):
    for world, labels in ((nr.OnAverage(), set()), (nr.EveryRound(), {"not feasible"})):
        policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1, constraints=world)
        study = nr.Study(policy, seed=0)
        for x in (0.0, 0.5, 1.0):
            study.add([x], x, constraints=[x - 0.6])
        ax = drawn(monkeypatch, lambda study=study: plots.tuning(study, tmp_path / "x.png")).axes[0]
        assert {"not feasible"} & set(ax.get_legend_handles_labels()[1]) == labels


def test_a_box_is_drawn_along_each_coordinate(tmp_path, monkeypatch):
    box = nr.Box([-2.0, 1e4], [3.0, 1.1e4])
    study = played(nr.gp_ucb(box, nr.SquaredExponential([1.0, 300.0]), noise=0.1))
    figure = drawn(monkeypatch, lambda: plots.tuning(study, str(tmp_path / "x.png")))
    best = study.best().point
    assert [ax.get_xlabel() for ax in figure.axes] == ["trial", "point[0]", "point[1]"]
    assert f"point [{best[0]:.4g}, {best[1]:.4g}]" in figure.get_suptitle()
    for i, ax in enumerate(figure.axes[1:]):
        line = next(line for line in of_color(ax, base.MODEL) if len(line.get_xdata()) > 2)
        x, mean = line.get_data()
        assert (x[0], x[-1]) == (box.lower[i], box.upper[i])
        points = np.repeat(best[None], len(x), axis=0)
        points[:, i] = x
        np.testing.assert_allclose(mean, study.predict(points)[0], atol=1e-9)
        (seen,) = of_color(ax, base.OBSERVED)
        assert best[i] in seen.get_xdata()


def test_arms_in_any_order_are_one_line(tmp_path, monkeypatch):
    study = played(nr.gp_ucb(nr.Arms([3.0, 0.0, 1.0, 2.0]), nr.SquaredExponential(1.0), noise=0.1))
    ax = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png")).axes[1]
    line = next(line for line in of_color(ax, base.MODEL) if line.get_linestyle() == "-")
    np.testing.assert_array_equal(line.get_xdata(), [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(line.get_ydata(), study.predict([0.0, 1.0, 2.0, 3.0])[0])


def test_the_context_of_the_best_trial_is_the_one_drawn(tmp_path, monkeypatch):
    kernel = nr.SquaredExponential([1.0, 1.0])
    policy = nr.gp_ucb(nr.Box([0.0], [2.0]), kernel, noise=0.1, context=nr.Box([0.0], [1.0]), a=1.0, b=1.0)
    study = played(policy, contexts=[[0.0], [1.0]])
    figure = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png"))
    context = study.best().context
    assert f"under context [{context[0]:.4g}]" in figure.get_suptitle()
    (seen,) = of_color(figure.axes[1], base.OBSERVED)
    assert len(seen.get_xdata()) == 3  # half of the trials had the other context


def test_a_policy_without_a_posterior_is_drawn_without_one(tmp_path, monkeypatch):
    policy = nr.algorithms.admmbo(nr.Box([0.0], [1.0]), constraints=1)
    study = nr.Study(policy)
    study.tell(study.ask(), 1.0, constraints=[-1.0])
    figure = drawn(monkeypatch, lambda: plots.tuning(study, tmp_path / "x.png"))
    assert [ax.get_xlabel() for ax in figure.axes] == ["trial"]


@pytest.mark.parametrize("failed", [False, True])
def test_a_study_without_an_answer_has_no_picture(failed):
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))))
    trial = study.ask()
    if failed:
        study.fail(trial, "no power")
    with pytest.raises(InvalidInput, match="No trial has been answered yet, so there is nothing to draw"):
        plots.progress(study)
