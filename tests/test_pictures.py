"""What pictures show: of papers' figures, and of changes."""

import itertools
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest

import nilregret as nr
from nilregret import papers, plots
from nilregret.errors import InvalidInput
from nilregret.papers import chowdhury
from nilregret.papers.figure import Job
from nilregret.plots import base, figures, restarts
from nilregret.plots.scene import Line
from nilregret.study.curves import Curves


def drawn(monkeypatch, make):
    """The matplotlib figure that a function of `plots` saves."""
    made, new = [], base.new_figure

    def keep(width, height):
        made.append(new(width, height))
        return made[-1]

    monkeypatch.setattr(figures, "new_figure", keep)
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


@pytest.mark.parametrize("width", [None, "page", "column"])
@pytest.mark.parametrize("of_contenders", [False, True])
def test_no_words_collide_or_leave_the_picture(tmp_path, monkeypatch, width, of_contenders):
    """Three panels with large numbers, long titles and long labels."""
    x, path = np.linspace(1.0, 30_000.0, 300), tmp_path / "x.png"
    titles = ["", "one more panel, in words that take two lines", "the last panel, in words that take two lines"]
    if of_contenders:
        runs = {name: SimpleNamespace(cumulative_regret=x[None]) for name in ("UCB", "expected improvement")}
        figure = plots.regret(dict.fromkeys(titles, runs), width=width or 12.0, y_label="an answer, in long words")
    else:
        shown = [
            Curves(
                x=x, lines={f"contender {i}": x[None]}, title=title, x_label="rounds", y_label="regret, in long words"
            )
            for i, title in enumerate(titles)
        ]
        figure = drawn(monkeypatch, lambda: plots.panels(shown, path, width=width))
    figure.draw_without_rendering()
    words = figure.get_tightbbox()  # Inches.
    assert min(words.x0, words.y0, figure.get_figwidth() - words.x1, figure.get_figheight() - words.y1) > -0.01
    for ax in figure.axes:
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        inside = [box for box, tick in zip(boxes, ax.get_xticks(), strict=True) if 1.0 <= tick <= 30_000.0]
        assert len(inside) >= 3
        assert all(b.x0 - a.x1 > 8 for a, b in itertools.pairwise(inside))  # pixels


def test_changes_are_drawn_of_a_result_and_of_nothing_else(tmp_path):
    result = nr.maximize(lambda x: -x, nr.Space(x=nr.Float(0, 1)), trials=2, progress=False)
    plots.changes(result, tmp_path / "x.png")
    for draw in (plots.changes, plots.evidence):
        with pytest.raises(InvalidInput, match="A picture needs a study or a result, not 3"):
            draw(3, tmp_path / "x.png")


def test_evidence_is_drawn_with_what_was_enough_and_where_it_began_anew(tmp_path):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, 0.3), noise=0.1, memory="adaptive")
    study = nr.Study(policy, seed=0)
    with pytest.raises(InvalidInput, match="There is no evidence to draw"):
        plots.evidence(study, tmp_path / "x.png")
    for n in range(40):
        study.tell(study.ask(), 1.0 if n < 20 else 4.0)
    plots.evidence(study, tmp_path / "x.png", known=[20])
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    lines = {mark.label: mark for mark in restarts.evidence_panel(study, known=[20]).marks if isinstance(mark, Line)}
    np.testing.assert_array_equal(lines["evidence for a change"].y, study.evidence.values)
    assert [lines["started anew"].x[0] + 0.5] == study.restarts != []
    assert lines["enough to start anew: 1 / delta"].y[0] == study.evidence.threshold
    assert lines["the world changed"].x == [20, 20]
    with pytest.raises(InvalidInput, match="There is no evidence to draw"):
        plots.evidence(nr.Study(policy.using(memory=nr.slots.SlidingWindow(5))), tmp_path / "y.png")


@pytest.mark.parametrize("name", nr.plots.__all__)
@pytest.mark.parametrize(("path", "said"), [("no/a.png", "which does not exist: make it"), ("a.txt", "must end in")])
def test_where_a_picture_goes_is_checked_before_anything_is_drawn(name, path, said):
    if "path" in signature(getattr(nr.plots, name)).parameters:
        with pytest.raises(nr.NoRegretError, match=said):
            getattr(nr.plots, name)(None, path)  # There is nothing to draw, and that would be said later.
