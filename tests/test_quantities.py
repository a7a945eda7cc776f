"""Pictures and importance of every number that trials tell: the reward, constraint values and metrics."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.plots.scene import Line, Points
from nilregret.plots.slices_picture import slice_panels, slices_of
from nilregret.plots.source import centre_of
from nilregret.serve.dashboard.views.explored import importance_view, parallel_view
from nilregret.serve.dashboard.views.posterior import posterior_view
from nilregret.study import importance as shares
from nilregret.study.quantities import quantities, quantity

from .dashboard import Pages

PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
PICTURES = ("history", "slices", "contour", "importance", "overview")
LIMITS = "ms <= 50"


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals of few draws, which cost most of the time."""
    monkeypatch.setattr(shares, "DRAWS", 4)
    monkeypatch.setattr(shares, "POINTS", 512)
    monkeypatch.setattr(shares, "POINTS_OF_DRAWS", 64)


def measured(x, y):
    return {"reward": (x - 0.3) ** 2 + y, "ms": 40 + 20 * x, "accuracy": 3 * x + y, "size": 7.0}


@pytest.fixture(scope="module")
def result():
    return nr.minimize(measured, PLANE, trials=14, constraints=LIMITS, progress=False)


def of_points(panel):
    """The values at the points of a panel, by their places."""
    points = [mark for mark in panel.marks if isinstance(mark, Points) and mark.shape in "ox"]
    return sorted(np.concatenate([np.asarray(mark.y) for mark in points]).tolist())


def test_each_number_has_its_name(result):
    found = quantities(result.study)
    assert [(each.name, each.channel, each.key) for each in found] == [
        ("loss", 0, "0"), ("ms <= 50.0", 1, "1"), ("ms", None, "metrics.ms"), ("accuracy", None, "metrics.accuracy"),
        ("size", None, "metrics.size"),
    ]  # fmt: skip
    for given, name in (
        (None, "loss"), (0, "loss"), ("loss", "loss"), ("reward", "loss"), (1, "ms <= 50.0"),
        (np.int64(1), "ms <= 50.0"), ("ms <= 50.0", "ms <= 50.0"), ("ms<=50", "ms <= 50.0"),
        ("ms", "ms"), ("accuracy", "accuracy"),
    ):  # fmt: skip
        assert quantity(result.study, given).name == name


@pytest.mark.parametrize("of", ["acuracy", 2, -1, True, 1.0, "ms >= 50", "ms <= 5e", ["ms"]])
@pytest.mark.parametrize("name", ["slices", "importance"])
def test_an_unknown_name_is_answered_by_what_there_is(result, of, name):
    with pytest.raises(nr.errors.InvalidInput, match=r"`of` is .* There are 'loss', 'ms <= 50.0' \(1\), 'ms', 'acc"):
        getattr(nr.plots, name)(result, of=of)
    if of == "acuracy":
        with pytest.raises(nr.errors.InvalidInput, match="Did you mean 'accuracy'"):
            result.study.importance(of)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("of", [1, "accuracy", "size"])
def test_every_picture_of_every_number(result, name, of):
    figure = getattr(nr.plots, name)(result, of=of)
    words = quantity(result.study, of).name
    said = [text for ax in figure.axes for text in (ax.get_ylabel(), ax.get_title(loc="left"), ax.get_title())]
    assert any(words in text for text in said), said
    page = getattr(nr.plots, name)(result, of=of, interactive=True)
    assert page.data


def test_a_result_is_drawn_by_any_number(result, tmp_path):
    figure = result.plot(tmp_path / "a.png", of="accuracy", label="share right")
    assert "share right" in [ax.get_ylabel() for ax in figure.axes]


def test_slices_show_what_was_told_and_a_model_of_it(result):
    study, told = result.study, quantity(result.study, "accuracy")
    found = slices_of(study, centre_of(study), None, of=told)
    for panel, one in zip(slice_panels(found, study, centre_of(study), None, "a", of=told), found, strict=True):
        assert of_points(panel) == sorted(trial.metrics["accuracy"] for trial in study.trials)
        slope = np.polyfit(one.values, one.middle, 1)[0]
        assert slope == pytest.approx({"x": 3.0, "y": 1.0}[one.axis.name], abs=0.2)
    limits = slice_panels(slices_of(study, centre_of(study), None, of=quantity(study, 1)), study, centre_of(study),
                          None, "ms", of=quantity(study, 1))  # fmt: skip
    assert of_points(limits[0]) == sorted(trial.constraints[0] for trial in study.trials)
    assert next(mark.label for mark in limits[0].marks if isinstance(mark, Line)) == "the limit"


def test_a_constraint_has_the_posterior_of_the_policy(result):
    study, points = result.study, np.array([[0.2, 0.5], [0.7, 0.1]])
    told = quantity(study, 1)
    mean, std = study.predict(points, channel=1)
    np.testing.assert_allclose(told.band(points).mean, mean)
    draws = told.function.draws(points, size=9)
    assert draws.shape == (9, 2)
    np.testing.assert_allclose(told.function.median(points), mean, atol=0.2 * std.max() + 1e-9)


def test_importance_of_a_metric_and_of_a_constraint(result):
    found = result.study.importance("accuracy")
    np.testing.assert_allclose(found.value.total, [0.9, 0.1], atol=0.03)  # 9 : 1 are the variances of 3 x and y
    limits = result.study.importance(1)
    np.testing.assert_allclose(limits.value.total, [1.0, 0.0], atol=0.03)
    np.testing.assert_allclose(limits.best.total, [1.0, 0.0], atol=0.03)  # of satisfying it
    figure = nr.plots.importance(result, of=1)
    second = nr.plots.importance(result, of="ms").axes[1]
    assert "whether it is" in figure.axes[1].get_title(loc="left")
    assert second.get_title(loc="left").split("\n")[0] == "What decides the highest tenth:"
    flat = result.study.importance("size")
    assert flat.value.leaders == []


def test_no_decision_depends_on_a_model_of_a_metric():
    def played(look):
        study = nr.Study(nr.auto(PLANE), seed=3)
        for _ in range(14):
            trial = study.ask()
            study.tell(trial, float(trial.point.sum()), metrics={"a": float(trial.point[0])})
            if look and len(study.trials) > 1:
                study.importance("a")
        return study

    looked, alone = played(look=True), played(look=False)
    assert [trial.point.tolist() for trial in looked.trials] == [trial.point.tolist() for trial in alone.trials]
    assert looked.fits == alone.fits


def test_a_model_of_a_metric_follows_the_record():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), seed=0)
    for i in range(6):
        study.tell(study.ask(), 1.0 * i, metrics={"a": 1.0 * i})
    at = study.trials[3].point[None]
    before = quantity(study, "a").function.median(at)[0]
    study.tell(3, 3.0, metrics={"a": 30.0}, revise=True)
    assert quantity(study, "a").function.median(at)[0] > before + 1.0
    study.fail(3, "it was wrong", revise=True)
    assert len(quantity(study, "a").trials) == 5
    for i in range(6):  # A few models are kept, and an older one is fitted again.
        study.add({"x": 0.1 * i}, 1.0, metrics={f"b{j}": 1.0 * i for j in range(6)})
    models = [quantity(study, f"b{j}").function.median(at)[0] for j in range(6)]
    assert models == [quantity(study, f"b{j}").function.median(at)[0] for j in range(6)]


MAKE = {
    "arms": lambda: nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.SquaredExponential(0.3), noise=0.1),
    "contexts": lambda: nr.auto(nr.Arms.grid(0, 1, 5), context=nr.Space(hour=nr.Float(0, 24))),
    "a box": lambda: nr.auto(nr.Box([0, 0], [1, 1])),
    "a window": lambda: nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(0.3), noise=0.1, memory=nr.slots.SlidingWindow(4)),
    "prices": lambda: nr.auto(nr.Arms.grid(0, 1, 9), constraints=nr.OnAverage()),
    "clicks": lambda: nr.auto(nr.Arms.grid(0, 1, 9), reward="bernoulli"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKE)
def test_each_kind_of_policy_has_pictures_of_metrics(kind):
    study = nr.Study(MAKE[kind](), seed=0)
    study.quiet = True
    for i in range(8):
        trial = study.ask({"hour": 3.0 * i} if kind == "contexts" else None)
        more = {"constraints": [0.1]} if study.policy.constraint_count else {}
        study.tell(trial, float(i % 2), metrics={"a": float(trial.point.sum())}, **more)
    for name in ("history", "slices", "overview"):
        assert getattr(nr.plots, name)(study, of="a").axes


def test_pages_of_the_tab_explore_take_the_number_by_its_key():
    pages = Pages()
    study = nr.Study(nr.auto(PLANE), storage=pages.storage, name="s")
    for i in range(4):
        study.tell(study.ask(), float(i), metrics={"<b>": float(i * i)})
    for name in ("importance", "beliefs"):
        answer = pages.get(f"/studies/s/part/{name}?channel=metrics.%3Cb%3E")
        assert answer.status == 200
        assert '<option value="metrics.&lt;b&gt;" selected>&lt;b&gt;</option>' in answer.text
        assert pages.get(f"/studies/s/part/{name}?channel=metrics.c").status == 422
    assert "<b>" not in pages.get("/studies/s/part/parallel").text


def test_what_cannot_be_drawn_says_why():
    study = nr.Study(nr.auto(PLANE))
    with pytest.raises(nr.errors.InvalidInput, match="`of` is 'a'"):
        nr.plots.history(study, of="a")
    study.tell(study.ask(), 1.0, metrics={"a": 1.0})
    assert nr.plots.history(study, of="a").axes
    with pytest.raises(nr.errors.InvalidInput, match="A model needs two answers"):
        nr.plots.slices(study, of="a")
    with pytest.raises(nr.errors.InvalidInput, match="at least two answered trials"):
        study.importance("a")
    limited = nr.Study(nr.auto(PLANE, constraints=1))
    with pytest.raises(nr.errors.InvalidInput, match="No trial has told constraint 1"):
        nr.plots.history(limited, of=1)


def test_parallel_axes_of_metrics_and_constraints(result):
    names = [text.get_text() for text in nr.plots.parallel(result, of=["accuracy", 1]).axes[0].get_xticklabels()]
    assert names == ["x", "y", "accuracy", "ms <= 50.0", "loss"]
    assert nr.plots.parallel(result, of="ms").axes
    for wrong in (3.5, ["accuracy", "b"], None.__class__):
        with pytest.raises(nr.errors.InvalidInput, match="`of` is"):
            nr.plots.parallel(result, of=wrong)
    view = parallel_view(result.study)
    assert [side["key"] for side in view["sides"]] == [
        "x",
        "y",
        "metrics.ms",
        "metrics.accuracy",
        "metrics.size",
        "reward",
    ]


def test_what_the_model_takes_for_noise_is_said():
    rng = np.random.default_rng(0)
    study = nr.Study(nr.auto(PLANE), seed=0)
    for _ in range(30):
        trial = study.ask()
        study.tell(trial, float(trial.point[0] + rng.normal()), metrics={"exact": float(trial.point[0])})
    noisy, exact = study.importance(), study.importance("exact")
    assert noisy.noise > 0.3
    assert f", and take {noisy.noise:.0%} of what was told for noise" in noisy.certainty
    assert noisy.certainty[1:] in repr(noisy)
    assert exact.noise < 0.01
    assert "noise" not in exact.certainty


# -- on the dashboard ------------------------------------------------------------------------------------------------


def test_the_dashboard_offers_every_number(result):
    study = result.study
    found = posterior_view(study, {"channel": "metrics.accuracy"})
    wanted = ["0", "1", "metrics.ms", "metrics.accuracy", "metrics.size"]
    assert [each["value"] for each in found["channels"]] == wanted
    assert [each["text"] for each in found["channels"] if each["chosen"]] == ["accuracy"]
    assert found["slices"][0]["summary"].startswith("The posterior median of accuracy lies between")
    assert found["maps"]
    matters = importance_view(study, "metrics.accuracy")
    assert matters["sentence"].startswith("What moves accuracy: x most.")
    assert [each["title"] for each in matters["pictures"]] == ["For the value", "For being among the highest tenth"]
    assert [each["value"] for each in matters["channels"]] == wanted
    assert importance_view(study, "1")["pictures"][1]["title"] == "For satisfying it"
    assert importance_view(study)["channels"][0]["chosen"]
    for view in (lambda: posterior_view(study, {"channel": "9"}), lambda: importance_view(study, "metrics.b")):
        with pytest.raises(nr.errors.InvalidInput, match="There is no channel"):
            view()


# -- bad arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PICTURES, "parallel", "compare", "edf"])
def test_labels_and_folders_that_are_none(result, name, tmp_path):
    source = [result, result] if name in ("compare", "edf") else result
    draw = getattr(nr.plots, name)
    with pytest.raises(nr.errors.InvalidInput, match=r"goes to the folder .*nowhere', which does not exist"):
        draw(source, tmp_path / "nowhere" / "a.png")
    if name != "importance":
        with pytest.raises(nr.errors.InvalidInput, match="`label` is 3: it must be a text"):
            draw(source, label=3)
    if name in PICTURES:
        with pytest.raises(nr.errors.InvalidInput, match="which does not exist"):
            draw(source, tmp_path / "nowhere" / "a.html", interactive=True)
