"""Pictures of several objectives: the front, the volume over trials, and every objective in every picture."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.plots.front_picture import ARROWS, ON, OTHERS, front_panels, front_title
from nilregret.plots.history_picture import volume_panel
from nilregret.plots.page import page_picture
from nilregret.plots.scene import Boxes, Line, Picture, Points, Words
from nilregret.plots.source import centre_of, standing
from nilregret.study import importance as shares
from nilregret.study.best import is_noisy
from nilregret.study.front import believed_values, own_volumes, volumes
from nilregret.study.quantities import objectives, quantities, quantity
from nilregret.theory.fronts import hypervolume

PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
BOTH = ("minimize", "maximize")
PICTURES = ("front", "history", "slices", "contour", "importance", "overview", "parallel")


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals of few draws, which cost most of the time."""
    monkeypatch.setattr(shares, "DRAWS", 4)
    monkeypatch.setattr(shares, "POINTS", 512)
    monkeypatch.setattr(shares, "POINTS_OF_DRAWS", 64)


def played(count=12, goals=BOTH, *, names=("loss", "recall", "size", "cost"), constraints=0):
    """A study that told objectives at random points: x^2 + y, x and 1 - y, up to the goals. Trial 3 failed."""
    policy = nr.auto(PLANE, objectives=names[: len(goals)], constraints=constraints)
    study, rng = nr.Study(policy, goal=goals, seed=0, name="kind"), np.random.default_rng(1)
    for number in range(count):
        if number == 3:
            study.fail(study.ask(), "no power")
            continue
        x, y = rng.uniform(size=2)
        values = [-(x**2 + y), x, 1.0 - y, x * y][: len(goals)]
        told = [value if goal == "maximize" else -value for value, goal in zip(values, goals, strict=True)]
        more = {"constraints": [x - 0.9]} if constraints else {}
        study.add({"x": x, "y": y}, told, metrics={"ms": 40 * x}, **more)
    return study


@pytest.fixture(scope="module")
def study():
    return played()


@pytest.fixture(scope="module")
def three():
    return played(14, (*BOTH, "minimize"), constraints=1)


def named(panel, kind, label):
    """The mark of a kind whose label begins with a word."""
    return next(mark for mark in panel.marks if isinstance(mark, kind) and mark.label.startswith(label))


def test_objectives_are_numbers_before_constraints_and_metrics(three):
    found = [(each.name, each.channel, each.upward, each.limited) for each in quantities(three)]
    assert found == [
        ("loss", 0, False, False), ("recall", 1, True, False), ("size", 2, False, False),
        ("constraint 1", 3, False, True), ("ms", None, True, False),
    ]  # fmt: skip
    trial = three.trials[0]
    assert [each.told(trial) for each in quantities(three)] == [*trial.values, *trial.constraints, trial.metrics["ms"]]
    assert [quantity(three, of).name for of in (None, 1, "size", 3)] == ["loss", "recall", "size", "constraint 1"]
    with pytest.raises(nr.errors.InvalidInput, match=r"There are 'loss', 'recall' \(1\), 'size' \(2\), 'constraint 1'"):
        quantity(three, "reward")
    points = np.array([[0.2, 0.5], [0.7, 0.1]])
    for channel, each in enumerate(quantities(three)[:4]):
        mean, std = three.predict(points, channel=channel)
        np.testing.assert_allclose(each.function.median(points), mean, atol=0.3 * std.max() + 1e-9)
        assert each.band(points).band == ("policy" if each.limited else three.band(points).band)


@pytest.mark.parametrize("goals", [(a, b) for a in ("minimize", "maximize") for b in ("minimize", "maximize")])
def test_two_objectives_are_a_staircase_with_the_corner_that_is_better(goals):
    study = played(10, goals)
    found, (panel,) = study.front_values(), front_panels(study, study.front_values())
    signs = np.array([1.0 if goal == "maximize" else -1.0 for goal in goals])
    line = named(panel, Line, "what they reach")
    corners = signs * np.column_stack([line.x, line.y])
    means = signs * found.mean
    assert {tuple(row) for row in means} <= {tuple(row) for row in corners}
    assert np.count_nonzero(np.diff(corners, axis=0), axis=1).max() == 1  # Each stretch is level or upright.
    inner = corners[1:-1]  # No corner of the staircase is beyond the front, and none is inside of it.
    for corner in inner:
        assert (means >= corner - 1e-12).all(axis=1).any()
        assert not ((means > corner + 1e-12).all(axis=1)).any()
    dots = named(panel, Points, ON)
    np.testing.assert_array_equal(np.column_stack([dots.x, dots.y]), found.mean)
    others = [trial for trial in study.trials if trial.values and trial not in found.trials]
    assert len(named(panel, Points, OTHERS).x) == len(others)
    word = next(mark for mark in panel.marks if isinstance(mark, Words) and "better" in mark.text)
    ends = [axis.limits[goal == "maximize"] for axis, goal in zip((panel.x, panel.y), goals, strict=True)]
    assert [word.x, word.y] == ends
    assert ARROWS[goals[0] == "maximize", goals[1] == "maximize"] in word.text
    better = {"maximize": "higher is better", "minimize": "lower is better"}
    assert (panel.x.label, panel.y.label) == (f"loss ({better[goals[0]]})", f"recall ({better[goals[1]]})")


def test_bounds_leaders_and_the_recommended_trial_are_marked(study):
    found = study.front_values()
    chosen = study.best(weights=(1, 1))
    (panel,) = front_panels(study, found, chosen=chosen)
    words = [mark.text for mark in panel.marks if isinstance(mark, Words)]
    assert any(text.startswith("best loss: ") for text in words)
    assert any("best recall: " in text for text in words)
    assert any(f"recommended: trial {chosen.number}" in text for text in words)
    star = named(panel, Points, "recommended")
    assert [star.x[0], star.y[0]] == found.mean[[t.number for t in found.trials].index(chosen.number)].tolist()
    bounds = named(panel, Line, "bounds of the policy")
    np.testing.assert_array_equal(
        np.asarray(bounds.x).reshape(-1, 6)[:, :2], np.stack([found.lower, found.upper], -1)[:, 0]
    )
    assert front_title(study, found).startswith(f"{len(found.trials)} of 11 trials on the front, 1 failed; volume ")


def test_a_given_reference_is_drawn_with_the_volume(study):
    found = study.front_values((3.0, -0.5))
    (panel,) = front_panels(study, found, corner=found.reference)
    boxes = named(panel, Boxes, "volume")
    area = ((np.asarray(boxes.x1) - boxes.x0) * (np.asarray(boxes.y1) - boxes.y0)).sum()
    assert area == pytest.approx(found.hypervolume, rel=1e-3)  # Warped means are not medians.
    square = named(panel, Points, "reference")
    assert (square.x, square.y) == ([3.0], [-0.5])
    assert panel.x.limits[1] > 3.0
    assert panel.y.limits[0] < -0.5
    far = study.front_values((-9.0, 9.0))  # Nothing beats it.
    assert far.hypervolume == 0.0
    assert named(front_panels(study, far, corner=far.reference)[0], Points, "reference")
    (without,) = front_panels(study, study.front_values())
    assert not any(isinstance(mark, Boxes) for mark in without.marks)


def test_three_objectives_have_each_pair_and_axes_where_up_is_better(three):
    found = three.front_values()
    panels = front_panels(three, found)
    assert [(p.x.label.split()[0], p.y.label.split()[0]) for p in panels[:3]] == [
        ("loss", "recall"), ("loss", "size"), ("recall", "size"),
    ]  # fmt: skip
    assert len(panels) == 4
    assert panels[-1].title == "up is better on every axis"
    top = [mark for mark in panels[-1].marks if isinstance(mark, Line) and mark.color == "model"]
    heights = np.array([mark.y for mark in top])
    best = [trial.number for trial in found.trials[:1]]  # The first trial of a front is best in the first objective.
    assert top[int(heights[:, 0].argmax())].hover.startswith(f"trial {best[0]}:")
    five = played(6, ("minimize",) * 4)
    assert len(front_panels(five, five.front_values())) == 7


def test_what_violates_is_a_cross_and_never_on_the_front(three):
    study = played(14, BOTH, constraints=1)
    found = study.front_values()
    (panel,) = front_panels(study, found)
    crosses = named(panel, Points, "not feasible")
    assert crosses.shape == "x"
    assert len(crosses.x) == sum(trial.feasible is False for trial in study.trials) > 0
    nothing = played(6, BOTH, constraints=1)
    for trial in nothing.trials:
        if trial.values:
            nothing.tell(trial, trial.values, constraints=[1.0], metrics=trial.metrics, revise=True)
    figure = nr.plots.front(nothing)
    assert "nothing feasible in 5 trials, 1 failed" in figure.get_suptitle()


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_of_several_objectives(study, name, tmp_path):
    draw = getattr(nr.plots, name)
    figure = draw(study, tmp_path / "a.png")
    said = [
        text
        for ax in figure.axes
        for text in (
            ax.get_ylabel(),
            ax.get_xlabel(),
            ax.get_title(loc="left"),
            *(t.get_text() for t in ax.get_xticklabels()),
        )
    ]
    for each in ("loss", "recall"):
        assert any(each in text for text in said), said
    assert draw(study, tmp_path / "a.html", interactive=True).data
    if name in ("front", "parallel"):
        return
    one = draw(study, of="recall")
    assert len(one.axes) < len(figure.axes) or name in ("overview", "history")
    if name != "importance":
        with pytest.raises(nr.errors.InvalidInput, match="`label` is for one number, and this picture draws 'loss', "):
            draw(study, label="accuracy")


def test_sections_go_through_the_best_of_an_objective_or_a_named_trial(study):
    found = study.front_values()
    for objective, best in ((0, found.mean[:, 0].argmin()), (1, found.mean[:, 1].argmax())):
        number = quantity(study, objective)
        trial = centre_of(study, number)
        assert trial.number == found.trials[best].number
        assert f"best {number.name}" in standing(study, trial)
        assert f"through trial {trial.number} (best" in nr.plots.slices(study, of=objective).get_suptitle()
    other = next(t for t in study.trials if t.values and t.number not in [each.number for each in found.trials])
    assert f"through trial {other.number} (not on the front)" in nr.plots.slices(study, through=other).get_suptitle()
    assert f"through trial {other.number} " in nr.plots.contour(study, through=other.number).get_suptitle()
    with pytest.raises(nr.errors.InvalidInput, match="`through` is 12"):
        nr.plots.slices(study, through=12)
    one = nr.minimize(lambda x, y: x + y, PLANE, trials=6, progress=False)
    assert "through trial 0 (chosen)" in nr.plots.slices(one, through=0).get_suptitle()


def test_trials_before_a_restart_are_marked():
    arms = nr.Arms.grid(0, 1, 5)
    policy = nr.algorithms.hypervolume_ucb(
        arms, nr.SquaredExponential(0.3), noise=0.1, objectives=2, reference=(-9, -9), memory="adaptive"
    )
    study = nr.Study(policy, goal=BOTH)
    while not study.restarts:
        trial = study.ask()
        move = 0.0 if trial.number < 8 else 6.0
        study.tell(trial, (float(trial.point[0]) + move, float(trial.point[0]) - move))
        assert trial.number < 40
    found, since = study.front_values(), study.restarts[-1]
    (panel,) = front_panels(study, found)
    assert len(named(panel, Points, "forgotten by now").x) == since
    assert min((trial.number for trial in found.trials), default=since) >= since


def test_the_volume_after_each_trial_is_that_of_the_first_trials():
    rng, corner = np.random.default_rng(0), np.array([0.1, 0.1, 0.2])
    for k in (2, 3):
        values = rng.uniform(size=(25, k))
        values[4] = np.nan
        found = volumes(values, corner[:k])
        each = [hypervolume(v[np.isfinite(v).all(axis=1)], corner[:k]) for v in (values[: n + 1] for n in range(25))]
        np.testing.assert_allclose(found, each, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(own_volumes(values, corner[:k])[0], hypervolume(values[:1], corner[:k]))


def test_the_picture_of_the_volume_ends_at_that_of_the_front(study):
    found = study.front_values()
    panel = volume_panel(study, found)
    line = named(panel, Line, "volume of the front")
    assert line.y[-1] == pytest.approx(found.hypervolume)
    assert np.diff(line.y).min() >= 0.0
    believed = believed_values(study)
    assert np.isnan(believed[3]).all()  # It failed.
    means = np.array([study.predict(study.trials[0].point[None], channel=j)[0][0] for j in range(2)])
    np.testing.assert_allclose(believed[0], [-means[0], means[1]], rtol=0.05)


def test_an_objective_may_have_a_logarithmic_axis(three):
    found = three.front_values((3.0, 0.01, 2.0))
    for marked in ((), (1,)):
        for panel in front_panels(three, found, corner=found.reference, log=marked)[:3]:
            for axis in (panel.x, panel.y):
                assert axis.log == (quantity(three, axis.label.split()[0]).channel in marked)
                assert axis.limits[0] > 0.0 or not axis.log
    figure = nr.plots.front(three, reference=(3.0, 0.01, 2.0), log="recall")
    assert [ax.get_yscale() for ax in figure.axes[:3]] == ["log", "linear", "linear"]
    assert figure.axes[2].get_xscale() == "log"
    with pytest.raises(nr.errors.InvalidInput, match="`log` has 'recall', whose values reach -"):
        nr.plots.front(played(6, ("maximize", "minimize")), log="recall")
    with pytest.raises(nr.errors.InvalidInput, match="`log` has 'size', whose values reach -"):
        nr.plots.front(three, log=("recall", "size"))
    with pytest.raises(nr.errors.InvalidInput, match="`log` is 'sise', and no trial of this study told such a number"):
        nr.plots.front(three, log="sise")
    with pytest.raises(nr.errors.InvalidInput, match="`log` has 'ms', which is no objective"):
        nr.plots.front(three, log=["ms"])


def test_studies_are_compared_by_the_volume_from_one_point(study):
    other = played(9)
    for reference in (None, (3.0, -0.5)):
        figure = nr.plots.compare({"a": study, "b": other}, reference=reference)
        assert figure.axes[0].get_ylabel() == "volume so far"
        curves = [np.asarray(line.get_ydata()) for line in figure.axes[0].lines]
        assert [len(curve) for curve in curves] == [12, 9]
        assert min(np.diff(curve).min() for curve in curves) >= 0.0
    for curve, each in zip(curves, (study, other), strict=True):
        assert curve[-1] == pytest.approx(each.hypervolume((3.0, -0.5)))
    line = nr.plots.compare([study, other], of="recall").axes[0].lines[0]
    told = [np.nan if trial.values is None else trial.values[1] for trial in study.trials]
    np.testing.assert_array_equal(line.get_ydata(), np.fmax.accumulate(told))
    x = nr.plots.edf([study], reference=(3.0, -0.5)).axes[0].lines[0].get_xdata()
    alone = own_volumes(believed_values(study), np.array([-3.0, -0.5]))
    np.testing.assert_allclose(x[1:-1], np.sort(alone[np.isfinite(alone)]))
    assert nr.plots.edf([study], of=1).axes[0].get_xlabel() == "recall"


def test_studies_that_cannot_be_compared():
    study, one = played(3), nr.minimize(lambda x, y: x + y, PLANE, trials=3, progress=False)
    for other, message in (
        (one, "Some studies have other objectives"),
        (played(3, names=("loss", "size")), "Some studies have other objectives"),
        (played(3, ("minimize", "minimize")), "Some studies maximise and others minimise"),
    ):
        with pytest.raises(nr.errors.InvalidInput, match=message):
            nr.plots.compare([study, other])
    with pytest.raises(nr.errors.InvalidInput, match="studies are compared by an objective"):
        nr.plots.edf([study], of="ms")
    with pytest.raises(nr.errors.InvalidInput, match="`reference` is for the volume of several objectives"):
        nr.plots.compare([one, one], reference=(1.0,))


def test_noise_is_seen_in_every_objective():
    study, point = played(5), {"x": 0.5, "y": 0.5}
    assert not is_noisy(study.trials)
    study.add(point, (0.1, 0.2))
    study.add(point, (0.1, 0.3))
    assert is_noisy(study.trials)
    told = played(5)
    told.add(point, (0.1, 0.2), std=(None, 0.1))
    assert is_noisy(told.trials)


def test_a_timeline_marks_the_front(study):
    names = [text.get_text() for text in nr.plots.timeline(study).legends[0].get_texts()]
    assert names == ["answered", "failed", "on the front"]


def test_the_dashboard_gets_the_same_marks(study):
    panels = front_panels(study, study.front_values())
    drawn = page_picture(Picture(panels=panels))["panels"][0]
    assert [mark["kind"] for mark in drawn["marks"]] == [type(mark).__name__.lower() for mark in panels[0].marks]


def test_a_front_needs_several_objectives_and_an_answer():
    one = nr.minimize(lambda x, y: x + y, PLANE, trials=3, progress=False)
    with pytest.raises(nr.errors.InvalidInput, match="A front has several objectives, and this study has one"):
        nr.plots.front(one)
    for name in PICTURES[:-1]:
        with pytest.raises(nr.errors.InvalidInput, match=r"No trial has been answered yet|needs at least two answered"):
            getattr(nr.plots, name)(nr.Study(nr.auto(PLANE, objectives=2)))
    assert [each.name for each in objectives(nr.Study(nr.auto(PLANE, objectives=2)))] == ["objective 1", "objective 2"]
