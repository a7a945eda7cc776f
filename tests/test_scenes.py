"""A picture is one scene: matplotlib, plotly and the dashboard draw the same marks, ticks and numbers of each study."""

import functools
import json

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import NoRegretError
from nilregret.plots import static
from nilregret.plots.interactive import interactive_figure
from nilregret.plots.page import page_picture
from nilregret.plots.scene import Band, Boxes, Heat, Line, Points, Words
from nilregret.serve.dashboard.views.explored import importance_view, parallel_view
from nilregret.serve.dashboard.views.health import changes
from nilregret.serve.dashboard.views.posterior import posterior_view
from nilregret.serve.dashboard.views.progress import progress
from nilregret.study import importance as shares

from .marks import thinned

KERNEL = nr.SquaredExponential(0.4)
PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0.001, 1000.0, log=True))
MIXED = nr.Space(kind=nr.Choice("a", "b", "c"), n=nr.Int(1, 4), z=nr.when("kind", "b", nr.Float(1, 9, log=True)))
TWELVE = nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(12)})
DEVICES = nr.Space(device=nr.Choice("phone", "desktop"), hour=nr.Float(0, 24))
STILL = static.static_figure


def told(policy, rewards, points=None, *, context=None, constraints=None):
    """A study that was told rewards at points drawn from its domain, None where a trial failed."""
    study, rng = nr.Study(policy, seed=0, name="kind"), np.random.default_rng(1)
    study.quiet = True
    domain = policy.domain
    for i, reward in enumerate(rewards):
        if points is not None:
            point = points(i)
        elif isinstance(domain, nr.Arms):
            point = domain.points[rng.integers(len(domain.points))]
        else:
            point = domain.snap(rng.uniform(domain.lower, domain.upper)[None])[0]
        if reward is None:
            study.fail(study.ask(), "no power")
            continue
        more = {} if constraints is None else {"constraints": constraints(i)}
        study.add(point, float(reward), context=None if context is None else context(i), **more)
    return study


def waves(count):
    return np.sin(1.7 * np.arange(count)).tolist()


def many():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 20), KERNEL, noise=0.1), seed=0, name="kind")
    study.quiet = True
    trials = study.ask(count=1200)
    rewards = np.random.default_rng(0).normal(0.0, 1.0, 1200) ** 3
    study.tell_many(list(zip(trials, rewards.tolist(), strict=True)))
    return study


def drift():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), KERNEL, noise=0.1, memory="adaptive"), seed=0, name="kind")
    for n in range(40):
        study.tell(study.ask(), 1.0 if n < 20 else 4.0)
    return study


def limited(rule):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), KERNEL, noise=0.1, constraints=rule)
    return told(policy, waves(12), lambda i: [(i % 9) / 8], constraints=lambda i: [(i % 9) / 8 - 0.6])


def stopped():
    """A study of trials that report: some were stopped, one failed, one is pending."""
    study = nr.Study(nr.gp_ucb(PLANE.grid(6), KERNEL, noise=0.1), seed=0, name="kind")
    for i in range(9):
        trial = study.ask()
        for step in (1, 2, 4, 8)[: 4 if i < 3 else 1 + i % 3]:
            study.report(trial, step, np.sin(1.7 * i) - 1.0 / step)
        if i < 3:
            study.tell(trial, np.sin(1.7 * i))
        elif i < 7:
            study.stop(trial)
        elif i < 8:
            study.fail(trial, "no power")
    return study


def front_of(count):
    goals = ("minimize", "maximize", "minimize")[:count]
    study = nr.Study(nr.auto(PLANE.grid(6), objectives=count), goal=goals, seed=0, name="kind")
    for i, arm in enumerate(np.random.default_rng(1).permutation(36)[:12].tolist()):
        study.add(study.policy.domain.points[arm], (np.sin(i), 10.0 * np.cos(i), float(i % 5))[:count])
    study.fail(study.ask(), "no power")
    return study


def of_clicks(context=None):
    policy = nr.auto(nr.Arms.grid(0, 1, 4), reward="bernoulli", context=context)
    at = None if context is None else lambda i: {"device": "phone" if i % 2 else "desktop", "hour": 6.0 * (i % 4)}
    return told(policy, [i % 4 == 3 for i in range(12)], lambda i: [(i % 4) / 3], context=at)


MAKE = {
    "real": lambda: told(nr.gp_ucb(PLANE.grid(6), KERNEL, noise=0.1), waves(12)),
    "clicks": of_clicks,
    "contexts": lambda: of_clicks(DEVICES),
    "budgets": lambda: limited(nr.OnAverage()),
    "constraints": lambda: limited(nr.EveryRound()),
    "conditional": lambda: told(nr.auto(MIXED), waves(12)),
    "twelve parameters": lambda: told(nr.gp_ucb(TWELVE, nr.SquaredExponential(1.0), noise=0.1), waves(14)),
    "failures": lambda: told(nr.gp_ucb(PLANE.grid(6), KERNEL, noise=0.1), [None, 1.0, None, 2.0, -1e6, 1.5, 1.2, 1.1]),
    "one trial": lambda: told(nr.gp_ucb(PLANE.grid(6), KERNEL, noise=0.1), [1.0]),
    "empty": lambda: told(nr.gp_ucb(PLANE.grid(6), KERNEL, noise=0.1), []),
    "drift": drift,
    "many": many,
    "stopped": stopped,
}
PICTURES = ("history", "importance", "slices", "contour", "parallel", "overview", "posterior", "evidence", "changes")
FRONTS = {"two objectives": lambda: front_of(2), "three objectives": lambda: front_of(3)}
OF_SOME = {"front": list(FRONTS), "curves": ["stopped"]}  # Kinds of studies that have these pictures.
ONE = ("importance", "contour", "evidence")  # pictures that a study of one parameter has not, and says why
LACKING = dict.fromkeys(MAKE, ONE) | dict.fromkeys(("real", "failures", "stopped"), ("evidence", "changes"))
LACKING |= dict.fromkeys(("conditional", "twelve parameters"), ("posterior", "evidence", "changes"))
LACKING |= {"one trial": (*ONE, "changes"), "drift": ONE[:2], "empty": [*PICTURES[:6], *PICTURES[7:]]}


LACKING |= dict.fromkeys(FRONTS, ("evidence", "changes"))


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals of few draws, which cost most of the time."""
    for name, count in (("DRAWS", 4), ("POINTS", 256), ("POINTS_OF_DRAWS", 64)):
        monkeypatch.setattr(shares, name, count)


@functools.cache
def study_of(kind):
    return (MAKE | FRONTS)[kind]()


@functools.cache
def scene(kind, name, parameters=None):
    """The scene of a picture of a kind of study, or why there is none."""
    saved, options = [], {"path": "x.png"} if name in ("evidence", "changes") else {}
    options |= {} if parameters is None else {"parameters": parameters}
    static.static_figure = lambda picture, path: saved.append(picture) or picture
    try:
        getattr(nr.plots, name)(study_of(kind), **options)
    except NoRegretError as error:
        return str(error)
    finally:
        static.static_figure = STILL
    return saved[0]


def numbers(values):
    return np.ravel(np.array(values, dtype=np.float64))


def same(one, other):
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-5, atol=1e-300)


def corners(mark, panel):
    low, high = panel.get_ylim() if mark.y0 is None else (mark.y0, mark.y1)
    return [np.broadcast_to(side, np.shape(mark.x0)) for side in (mark.x0, mark.x1, low, high)]


def drawn_by_matplotlib(ax, marks):
    """The artists of marks, in their order."""
    artists = {"points": [], "line": [], "areas": [], "heat": [], "words": list(ax.texts)}
    artists["line"] = list(ax.get_lines())
    for each in ax.collections:
        kind = type(each).__name__
        artists[{"PathCollection": "points", "QuadMesh": "heat"}.get(kind, "areas")].append(each)
    taken = {kind: iter(found) for kind, found in artists.items()}
    name = {Points: "points", Line: "line", Band: "areas", Boxes: "areas", Heat: "heat", Words: "words"}
    found = [next(taken[name[type(mark)]]) for mark in marks]
    assert all(next(rest, None) is None for rest in taken.values())
    return found


def check_matplotlib(mark, artist, ax):
    if isinstance(mark, Points):
        same(artist.get_offsets(), np.column_stack([numbers(mark.x), numbers(mark.y)]))
    elif isinstance(mark, Line):
        same(artist.get_xydata(), np.column_stack([numbers(mark.x), numbers(mark.y)]))
    elif isinstance(mark, Heat):
        same(np.ma.filled(artist.get_array(), np.nan), mark.z)
    elif isinstance(mark, Words):
        same(artist.xy, (mark.x, mark.y))
    else:
        ends = [path.vertices for path in artist.get_paths()]
        wanted = (mark.x, mark.low, mark.high) if isinstance(mark, Band) else corners(mark, ax)
        heights = numbers(np.concatenate([numbers(part) for part in wanted[1 if isinstance(mark, Band) else 2 :]]))
        same([np.concatenate(ends)[:, 1].min(), np.concatenate(ends)[:, 1].max()], [heights.min(), heights.max()])


def check_plotly(mark, traces):
    if isinstance(mark, Points | Line):
        same(traces[0].x, mark.x)
        same(traces[0].y, mark.y)
    elif isinstance(mark, Heat):
        same([[np.nan if z is None else z for z in row] for row in traces[0].z], mark.z)
    elif isinstance(mark, Band):
        same(traces[0].y, [*mark.high, *np.asarray(mark.low)[::-1]])


def check_page(mark, entry, panel):
    """Pages are sent the digits that are read: four, and more to tell thousandths of an axis apart."""
    assert (entry["kind"], entry.get("label", "")) == (type(mark).__name__.lower(), getattr(mark, "label", ""))
    sides = {Points: "xy", Line: "xy", Band: ("x", "low", "high"), Boxes: ("x0", "x1"), Heat: "xyz", Words: "xy"}
    for side in sides[type(mark)]:
        sent = [entry[side]] if isinstance(mark, Words) else entry[side]
        axis = panel["x" if side[0] == "x" else "y"]
        least = 0.0 if axis["log"] or isinstance(mark, Heat) else 1e-3 * (axis["limits"][1] - axis["limits"][0])
        sent = numbers([np.nan if value is None else value for value in sent])
        np.testing.assert_allclose(sent, numbers(getattr(mark, side)), rtol=6e-4, atol=least + 1e-300)


CASES = [(kind, name) for name in (*PICTURES, *OF_SOME) for kind in (*MAKE, *FRONTS)]
JOINED = {(kind, "overview") for kind in MAKE} - {(kind, "overview") for kind in ("real", "budgets", "empty")}


@pytest.mark.parametrize(("kind", "name"), thinned(CASES, *(case for case in CASES if case not in JOINED)))
def test_all_renderers_draw_the_same_marks_ticks_and_numbers(kind, name):
    picture = scene(kind, name)
    assert isinstance(picture, str) == (name in LACKING[kind] or kind not in OF_SOME.get(name, [kind])), picture
    if isinstance(picture, str):
        return
    still, live = STILL(picture, None), interactive_figure(picture, None)
    page = json.loads(json.dumps(page_picture(picture), allow_nan=False))
    traces = iter(live.data)
    axes = [ax for ax in still.axes if ax.get_label() != "<colorbar>"]
    for i, (panel, ax, sent) in enumerate(zip(picture.panels, axes, page["panels"], strict=True)):
        for side in "xy":
            axis = live.layout[f"{side}axis{i + 1 if i else ''}"]
            ticks = [(at, words) for at, words in sent[side]["ticks"]]
            of = ax.xaxis if side == "x" else ax.yaxis
            same(of.get_majorticklocs(), [at for at, _ in ticks])
            same(axis.tickvals, [at for at, _ in ticks])
            assert [text.get_text().replace("\\$", "$") for text in of.get_ticklabels()] == [
                words for _, words in ticks
            ]
            assert list(axis.ticktext) == [words for _, words in ticks]
            ends = of.get_view_interval()
            same(ends, sent[side]["limits"])
            same(axis.range, np.log10(ends) if sent[side]["log"] else ends)
        artists = drawn_by_matplotlib(ax, panel.marks)
        for mark, artist, entry in zip(panel.marks, artists, sent["marks"], strict=True):
            check_matplotlib(mark, artist, ax)
            check_page(mark, entry, sent)
            if not isinstance(mark, Words):
                count = np.size(mark.x0) if isinstance(mark, Boxes) else 1
                check_plotly(mark, [next(traces) for _ in range(count)])
    assert next(traces, None) is None


def of_page(picture):
    """The panels of a picture of a page, without the shares of their heights."""
    return [{key: part for key, part in panel.items() if key != "height"} for panel in picture["panels"]]


@pytest.mark.parametrize("kind", MAKE)
def test_the_dashboard_shows_the_scenes_of_the_pictures(kind):
    study = study_of(kind)
    shown, history = progress(study), scene(kind, "history")
    assert (shown["kind"] == "none") == isinstance(history, str)
    if not isinstance(history, str):
        assert of_page(shown["scene"]) == of_page(page_picture(history))
    found, importance = importance_view(study), scene(kind, "importance")
    assert [each["scene"]["panels"][0]["marks"] for each in found["pictures"]] == (
        [] if isinstance(importance, str) else [panel["marks"] for panel in page_picture(importance)["panels"]]
    )
    parallel = parallel_view(study)
    if not parallel["why_not"]:
        assert of_page(parallel["picture"]["scene"]) == of_page(page_picture(scene(kind, "parallel")))
    evidence = changes(study)["picture"]
    if evidence["kind"] != "none":
        assert of_page(evidence["scene"]) == of_page(page_picture(scene(kind, "evidence")))


@pytest.mark.parametrize("kind", [kind for kind in MAKE if kind not in ("contexts", "empty", "twelve parameters")])
def test_the_beliefs_of_the_dashboard_are_the_slices_and_the_contour(kind):
    """Under contexts the dashboard goes through the latest one, and of twelve parameters it draws eight."""
    found, slices = posterior_view(study_of(kind)), scene(kind, "slices")
    marks = [panel["marks"] for panel in page_picture(slices)["panels"]]
    drawn = [each["scene"]["panels"][0]["marks"] for each in found["slices"]]
    assert sorted(map(json.dumps, drawn)) == sorted(map(json.dumps, marks))
    if found["maps"]:
        axes = found["maps"][0]["scene"]["panels"][0]
        contour = page_picture(scene(kind, "contour", (axes["x"]["label"], axes["y"]["label"])))["panels"]
        assert [each["scene"]["panels"][0]["marks"] for each in found["maps"]] == [panel["marks"] for panel in contour]
