"""Points that fill a domain, points next to a good one, and the forced rounds that play them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Randomness
from nilregret.domains.search.boxes import SAME, AcquisitionFunction, real_columns
from nilregret.domains.search.designs import (
    LARGEST,
    MOST_OPTIONS,
    SMALLEST,
    coordinates,
    design,
    from_cube,
    leading_options,
    mutated,
    neighbours,
    one_changed,
    sobol,
    uniform,
)
from nilregret.slots import described
from nilregret.slots.explore import (
    CoordinateSearch,
    Explore,
    InitialDesign,
    InTurn,
    NoExploration,
    Situation,
    TimedDesign,
    UncertaintySampling,
    UniformExploration,
    within_time,
)
from nilregret.storage.base import News
from nilregret.testing import check_policy

from .marks import nightly

BOX = nr.Box([0.0, -1.0], [1.0, 3.0])
MIXED = nr.Space(
    x=nr.Float(1e-3, 1e3, log=True), n=nr.Int(0, 40, step=4), m=nr.Int(1, 100, log=True), k=nr.Choice("a", "b", "c")
)
TREE = nr.Space(
    kernel=nr.Choice("linear", "rbf", "poly"),
    gamma=nr.when("kernel", ["rbf", "poly"], nr.Float(1e-4, 1.0, log=True)),
    degree=nr.when("kernel", "poly", nr.Int(2, 5)),
    C=nr.Float(0.0, 1.0),
)
CHOICES = nr.Space(a=nr.Choice("a", "b", "c"), b=nr.Choice(1, 2), n=nr.Int(1, 4))
CHOICE_AND_LINE = nr.Space(x=nr.Float(0, 1), k=nr.Choice("a", "b"))
SPACES = {"mixed": MIXED, "tree": TREE, "choices": CHOICES, "one": nr.Space(n=nr.Int(3, 3), x=nr.Float(0, 1))}
QUICK = nr.slots.PointSearch(candidates=64, around=4, starts=1, evaluations=4)


def rng(seed=0):
    return np.random.default_rng(seed)


# -- designs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_values_come_up_equally_often(seed):
    """Of 2^m scrambled Sobol points each interval of length 2^-j has 2^(m-j): others have at most one more or less.

    An interval that is no such one is made of at most 2 m of them, cut off within one point at either end.
    """
    space = nr.Space(
        **{f"c{k}": nr.Choice(*range(k)) for k in (1, 2, 3, 5, 7, 8)}, n=nr.Int(-3, 3), s=nr.Int(0, 100, step=10)
    )
    n = 64
    points = sobol(space, n, rng(seed))
    assert len(points) == n
    decoded = [space.decode(point) for point in points]
    for name, parameter in space.parameters.items():
        count = len(parameter.options) if isinstance(parameter, nr.Choice) else parameter.count
        values = [row[name] for row in decoded]
        often = [values.count(value) for value in set(values)]
        assert len(often) == count
        assert all(abs(each - n / count) < (1e-9 if n % count == 0 else 2.0) for each in often), (name, often)


def test_ends_of_a_logarithmic_whole_number_have_whole_cells():
    """In the logarithm a cell reaches as far beyond its number at an end of the range as within the range."""
    for low, high in ((1, 4), (1, 8), (3, 40)):
        points = sobol(nr.Space(m=nr.Int(low, high, log=True)), 1024, rng())[:, 0]
        inside = np.log(np.arange(low, high) + 0.5)
        ends = 2.0 * np.log([low, high]) - inside[[0, -1]]
        cells = np.diff([ends[0], *inside, ends[1]]) / (ends[1] - ends[0])
        often = np.unique(points, return_counts=True)[1] / 1024
        assert np.abs(often - cells).max() < 2 / 1024


def test_uniform_points_give_every_whole_number_the_same_chance():
    """Failure probability below 2e-6 each: a count deviates by less than 5 standard deviations."""
    space = nr.Space(n=nr.Int(1, 3))
    policy = nr.gp_ucb(space, nr.kernel_for(space), noise=0.1).using(explore=nr.slots.Uniform(1.0))
    forced = np.array([trial.point[0] for trial in nr.Study(policy, seed=0).ask(count=300)])
    contexts = nr.Environment(lambda x, z: x[:, 0], domain=nr.Arms.grid(0, 1, 2), contexts=space)
    drawn = np.array([contexts.draw_context(rng(number))[0] for number in range(300)])
    for values in (forced, drawn, uniform(space, 300, rng())[:, 0]):
        assert np.abs(np.unique(values, return_counts=True)[1] - 100).max() < 5.0 * math.sqrt(300 * 2 / 9)
    box = nr.Box([-1.3, 2.0], [4.1, 1e5])
    assert np.array_equal(uniform(box, 5, rng(3)), rng(3).uniform(box.lower, box.upper, (5, 2)))


def test_a_logarithmic_whole_number_is_spread_over_its_logarithm():
    space = nr.Space(m=nr.Int(1, 1000, log=True))
    values = np.array([space.decode(point)["m"] for point in sobol(space, 256, rng())])
    for low, high in ((1, 10), (10, 100), (100, 1001)):
        assert abs(np.sum((values >= low) & (values < high)) / 256 - 1 / 3) < 0.06


@pytest.mark.parametrize("name", SPACES)
def test_designs_are_valid_distinct_and_a_function_of_the_seed(name):
    space = SPACES[name]
    for count in (1, 2, 3, 10, 33):
        points = design(space, count, rng(count))
        assert len(np.unique(points, axis=0)) == len(points) <= count
        assert np.array_equal(space.snap(points), points)
        assert np.array_equal(design(space, count, rng(count)), points)
        if name != "choices":
            assert len(points) == count
    assert coordinates(space) == len(space.parameters)


def test_no_given_points_are_refused():
    with pytest.raises(nr.errors.InvalidInput, match="is empty"):  # their description would lose the dimension
        nr.slots.GivenPoints(np.zeros((0, 2)))


def test_a_design_begins_in_the_middle_where_that_is_wanted():
    plain, begun = design(MIXED, 8, rng()), design(MIXED, 8, rng(), middle=True)
    assert np.array_equal(begun[1:], plain[1:])
    values = MIXED.decode(begun[0])
    assert values == {"x": pytest.approx(1.0), "n": 20, "m": 10, "k": MIXED.decode(plain[0])["k"]}
    inactive = design(TREE, 8, rng(), middle=True)
    assert TREE.decode(inactive[0])["C"] == 0.5
    assert np.array_equal(TREE.snap(inactive), inactive)
    assert np.array_equal(design(BOX, 8, rng(), middle=True)[0], [0.5, 1.0])
    one = nr.Space(n=nr.Int(3, 3), k=nr.Choice("a", "b"))
    assert len(design(one, 5, rng(), middle=True)) == 2  # still all of them, each once
    policy = nr.auto(BOX).using(explore=nr.slots.InitialDesign(3, middle=True))
    assert np.array_equal(nr.Study(policy, seed=1).ask().point, [0.5, 1.0])


def test_designs_of_boxes_and_arms():
    points = design(BOX, 8, rng())
    unit = (points - BOX.lower) / (BOX.upper - BOX.lower)
    for column in unit.T:  # one in each eighth
        assert sorted(np.floor(8 * column).astype(int)) == list(range(8))
    assert coordinates(BOX) == 2
    arms = nr.Arms.grid(0, 1, 16)
    chosen = np.sort(design(arms, 4, rng())[:, 0])  # the nearest to one in each quarter
    assert (np.abs(chosen - [0.125, 0.375, 0.625, 0.875]) <= 0.125 + 0.5 / 15 + 1e-12).all()
    lonely = nr.Arms(np.append(np.linspace(0.0, 0.01, 20), 1.0)[:, None])  # most Sobol points have the last arm
    assert len(np.unique(design(lonely, 15, rng()), axis=0)) == 15
    flat = nr.Arms([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    assert len(design(flat, 2, rng())) == 2
    for count in (1, 3, 7):
        assert len(design(nr.Arms([[2.0]]), count, rng())) == 1
        assert sorted(design(flat, 3 + count, rng(count))[:, 0]) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (nr.Space(a=nr.Choice(*range(7))), 7),
        (nr.Space(a=nr.Choice(*range(12)), b=nr.Choice(*range(10))), 120),
        (CHOICES, 24),
        (nr.Space(n=nr.Int(1, 1000, log=True)), 1000),  # of 4096 Sobol points, 828 distinct ones
        (nr.Space(n=nr.Int(3, 3)), 1),
        (nr.Space(a=nr.Choice("x", "y"), n=nr.when("a", "x", nr.Int(1, 50, log=True))), 51),
    ],
)
def test_small_spaces_are_exhausted(space, size):
    for count in (size, size + 1, 2 * size):
        points = design(space, count, rng(count))
        assert len(np.unique(points, axis=0)) == len(points) == size
    assert len(design(space, max(size // 2, 1), rng())) == max(size // 2, 1)


def test_spaces_with_too_many_points_to_list_have_designs():
    many = nr.Space(**{f"c{i}": nr.Choice(*range(4)) for i in range(12)})
    assert len(design(many, 20, rng())) == 20
    assert len(design(nr.Space(a=nr.Choice(*range(3000))), 20, rng())) == 20
    assert len(design(nr.Space(a=nr.Int(-(10**9), 10**9)), 20, rng())) == 20
    nearly = nr.Space(n=nr.Int(10**6, 10**6 + 1, log=True), k=nr.Choice("a", "b"))
    assert len(design(nearly, 20, rng())) == 4


def test_the_ends_of_the_cube_are_inside():
    for space in (*SPACES.values(), BOX):
        for end in (0.0, np.nextafter(1.0, 0.0)):
            points = from_cube(space, np.full((1, coordinates(space)), end))
            assert (points >= space.lower).all()
            assert (points <= space.upper).all()


# -- what differs in some parameters -----------------------------------------------------------------------------------


def differs(domain, point, other):
    """In which parameters two points differ."""
    return {i for i, (_, columns) in enumerate(domain.columns()) if not np.allclose(point[columns], other[columns])}


@pytest.mark.parametrize("name", [*SPACES, "box"])
def test_mutations_are_valid_and_change_some_parameters(name):
    domain = BOX if name == "box" else SPACES[name]
    centres = design(domain, 3, rng(1))
    points = mutated(domain, centres, 300, rng(2))
    assert points.shape == (300, domain.dimension)
    assert (points >= domain.lower).all()
    assert (points <= domain.upper).all()
    if name != "box":
        assert np.array_equal(domain.snap(points), points)
    if name in ("mixed", "box"):
        changed = [differs(domain, point, centres[i % len(centres)]) for i, point in enumerate(points)]
        assert {len(each) for each in changed} >= {1, 2}
        assert set().union(*changed) == set(range(coordinates(domain)))
        if name == "mixed":
            assert np.mean([len(each) for each in changed]) < 3.0
    assert np.array_equal(mutated(domain, centres, 300, rng(2)), points)


@pytest.mark.parametrize("name", [*SPACES, "box"])
def test_one_parameter_alone_changes(name):
    domain = BOX if name == "box" else SPACES[name]
    for seed, which in itertools.product(range(3), range(coordinates(domain))):
        centre = design(domain, 4, rng(seed))[seed]
        points = one_changed(domain, centre, which, 50, rng(seed))
        assert (points >= domain.lower).all()
        assert (points <= domain.upper).all()
        parameter, columns = domain.columns()[which]
        if name != "box":
            assert np.array_equal(domain.snap(points), points)
        if name != "tree":  # there another kernel has parameters of its own
            for point in points:
                assert differs(domain, point, centre) <= {which}
        if isinstance(parameter, nr.Choice):
            assert len(np.unique(points[:, columns], axis=0)) == len(points) == len(parameter.options)
        elif name != "tree":
            steps = np.abs(points[:50, columns.start] - centre[columns.start])
            steps = steps / (domain.upper - domain.lower)[columns.start]
            assert steps.max() <= 5.0 * LARGEST
            if isinstance(parameter, nr.Float):
                assert np.median(steps) < 10.0 * SMALLEST * math.sqrt(LARGEST / SMALLEST)


def test_neighbours_of_a_whole_number_are_among_those_changed():
    centre = MIXED.encode({"x": 1.0, "n": 20, "m": 10, "k": "b"})
    found = {MIXED.decode(point)["n"] for point in one_changed(MIXED, centre, 1, 1, rng())}
    assert {12, 16, 24, 28} <= found
    edge = MIXED.encode({"x": 1.0, "n": 0, "m": 1, "k": "b"})
    assert {4, 8} <= {MIXED.decode(point)["n"] for point in one_changed(MIXED, edge, 1, 1, rng())}
    assert {2, 3} <= {MIXED.decode(point)["m"] for point in one_changed(MIXED, edge, 2, 1, rng())}


# -- forced rounds -----------------------------------------------------------------------------------------------------


def reward(trial):
    return -float(np.square(trial.point - 0.3).sum())


def policy_of(domain, explore=None, **more):
    """A cheap policy."""
    dimension = domain.dimension + (0 if more.get("context") is None else more["context"].dimension)
    policy = nr.gp_bucb(domain, nr.Matern(2.5, [0.4] * dimension), noise=0.1, beta=1.0, search=QUICK, **more)
    return policy if explore is None else policy.using(explore=explore)


def play(study, rounds, context=None, fails=()):
    for number in range(rounds):
        trial = study.ask() if context is None else study.ask(context(number))
        if number in fails:
            study.fail(trial, "it broke")
        else:
            study.tell(trial, reward(trial))
    return study


def rows(study):
    return [tuple(trial.point) for trial in study.trials]


@pytest.mark.parametrize("domain", [BOX, MIXED, TREE, nr.Arms.grid(0, 1, 30)])
def test_a_design_is_played_first_whatever_is_answered(domain):
    policy = policy_of(domain, InitialDesign(8))
    study = play(nr.Study(policy, seed=3), 12)
    batch = nr.Study(policy, seed=3)
    asked = [tuple(trial.point) for trial in batch.ask(count=8)]
    assert rows(study)[:8] == asked
    assert len(set(asked)) == 8
    assert rows(nr.Study(policy, seed=4)) == []
    assert [tuple(trial.point) for trial in nr.Study(policy, seed=4).ask(count=8)] != asked
    assert not any(trial.explored for trial in study.trials)
    failing = play(nr.Study(policy, seed=3), 8, fails=range(0, 8, 2))
    if isinstance(domain, nr.Arms):
        assert rows(failing) == asked
    contextual = policy_of(domain, InitialDesign(8), context=nr.Box([0.0], [1.0]))
    assert rows(play(nr.Study(contextual, seed=3), 8, lambda number: [number / 8])) == asked


def test_a_design_of_a_small_domain_ends_early():
    for domain, size in ((CHOICES, 24), (nr.Arms.grid(0, 1, 5), 5), (nr.Arms([[1.0]]), 1)):
        study = play(nr.Study(policy_of(domain, InitialDesign(40)), seed=0), size + 3)
        assert len(set(rows(study)[:size])) == size


def test_a_design_begins_anew_after_a_restart():
    study = play(nr.Study(policy_of(BOX, InitialDesign(4), memory=nr.slots.RestartEvery(9)), seed=0), 20)
    assert rows(study)[:4] == rows(study)[9:13]
    assert rows(study)[4:9] != rows(study)[13:18]


def test_points_told_before_are_no_part_of_a_design_and_shorten_it():
    study = nr.Study(policy_of(BOX, InitialDesign(4)), seed=0)
    whole = [tuple(trial.point) for trial in study.ask(count=4)]
    other = nr.Study(policy_of(BOX, InitialDesign(4)), seed=0)
    for x in (0.1, 0.2):
        other.add([x, 0.0], 1.0)
    assert [tuple(trial.point) for trial in other.ask(count=2)] == whole[2:]
    again = nr.Study(policy_of(BOX, InitialDesign(4)), seed=0)
    again.add(whole[1], 1.0)
    again.add(whole[2], 1.0)
    assert tuple(again.ask().point) == whole[3]


def timed(each, **more):
    """The points of a study whose answers take a time each."""
    now = [0.0]
    explore = TimedDesign(design=InitialDesign(10), seconds=60.0, **more)
    study = nr.Study(policy_of(BOX, explore), seed=0, clock=lambda: now[0])
    for _ in range(12):
        trial = study.ask()
        now[0] += each
        study.tell(trial, float(trial.point.sum()))
    assert not [n for n in range(12) if not study.explain(n).repeated]  # The times are on record.
    return rows(study)


def test_a_timed_design_ends_after_its_share_of_the_time():
    plain = rows(play(nr.Study(policy_of(BOX, InitialDesign(10)), seed=0), 10))
    for each, more, length in (
        (1.0, {}, 10), (5.0, {}, 4), (20.0, {}, 1), (1000.0, {}, 1), (0.0, {}, 10),
        (20.0, {"parallel": 3}, 3), (10.0, {"share": 1.0}, 6),
    ):  # fmt: skip
        points = timed(each, **more)
        assert [a == b for a, b in zip(points, plain, strict=False)] == [True] * length + [False] * (10 - length)
    check_policy(policy_of(BOX, TimedDesign(design=InitialDesign(3), seconds=1)), rounds=10)


def test_only_the_design_of_other_parts_is_timed():
    explore = nr.auto(BOX).explore
    found = within_time(explore, 9, parallel=2)
    assert found.parts[0] == TimedDesign(design=explore.parts[0], seconds=9.0, parallel=2)
    assert found.parts[1:] == explore.parts[1:]
    assert within_time(InitialDesign(3), 9, parallel=1) == TimedDesign(design=InitialDesign(3), seconds=9.0)
    assert within_time(CoordinateSearch(), 9, parallel=1) == CoordinateSearch()


@pytest.mark.parametrize(
    ("explore", "memory", "words"),
    [
        (TimedDesign(design=InitialDesign(8), seconds=9), nr.slots.SlidingWindow(8), "would be of the design"),
        (InitialDesign(8), nr.slots.SlidingWindow(8), "every round would be of the design"),
        (InitialDesign(8), nr.slots.RestartEvery(8), "every round would be of the design"),
        (
            InTurn((InitialDesign(8), CoordinateSearch())),
            nr.slots.SlidingWindow(5),
            "every round would be of the design",
        ),
        (CoordinateSearch(after=12), nr.slots.SlidingWindow(11), "so it never would"),
        (CoordinateSearch(after=12), nr.slots.RestartEvery(11), "so it never would"),
        (UncertaintySampling(5), nr.slots.RestartEvery(5), "would be one of uncertainty sampling"),
    ],
)
def test_memories_that_never_get_beyond_are_refused(explore, memory, words):
    with pytest.raises(nr.errors.InvalidInput, match=words):
        policy_of(BOX, explore, memory=memory)
    assert policy_of(BOX, explore, memory=nr.slots.SlidingWindow(13)).explore == explore
    assert policy_of(BOX, explore, memory=nr.slots.RestartEvery(13)).explore == explore


def test_arms_and_points_that_have_failed_are_left_out_of_a_design():
    arms = nr.Arms.grid(0, 1, 4)
    study = play(nr.Study(policy_of(arms, InitialDesign(4)), seed=1), 1)
    following = nr.Study(policy_of(arms, InitialDesign(4)), seed=1)
    second = [trial.arm for trial in following.ask(count=2)][1]
    assert study.ask(exclude=[second]).arm != second
    assert study.ask(among=[second]).arm == second
    offered = nr.Study(policy_of(BOX, InitialDesign(4)), seed=1)
    assert tuple(offered.ask(among=[[0.5, 0.5], [0.1, 0.1]]).point) in {(0.5, 0.5), (0.1, 0.1)}


def changes(study, number, domain):
    """In which parameters a trial differs from the best point that counted before it, as the posterior had it then."""
    before, memory = nr.Study(study.policy, seed=study.seed), study.policy.memory
    before.replica.apply(News(list(study.trials[:number]), ""))
    points = np.array([trial.point for trial in study.trials[memory.first_counted(0, number) : number]])
    given = [domain.decode(point) for point in points] if isinstance(domain, nr.Space) else points
    return differs(domain, study.trials[number].point, points[before.predict(given)[0].argmax()])


@pytest.mark.parametrize(
    ("domain", "memory"),
    [
        (MIXED, None),
        (BOX, nr.slots.SlidingWindow(9)),
        *nightly((BOX, None), (MIXED, nr.slots.SlidingWindow(9))),
        *nightly(*((each, nr.slots.RestartEvery(50)) for each in (BOX, MIXED))),
    ],
)
def test_one_parameter_of_the_best_point_changes_now_and_then(domain, memory):
    more = {} if memory is None else {"memory": memory}
    study = play(nr.Study(policy_of(domain, CoordinateSearch(every=3, after=6, steps=20), **more), seed=2), 37)
    seen = []
    for number in range(6, 37, 3):
        changed = changes(study, number, domain)
        assert len(changed) == 1
        seen += changed
        earlier = rows(study)[:number] if memory is None else rows(study)[number - 9 : number]
        assert tuple(study.trials[number].point) not in earlier
    # Each parameter once in each cycle; with a window, whose length stands still, too.
    d = coordinates(domain)
    cycles = [set() for _ in range(20)]
    for number, which in zip(range(6, 37, 3), seen, strict=True):
        assert which not in cycles[number // 3 // d]
        cycles[number // 3 // d].add(which)
    assert set(seen) == set(range(d))
    between = [number for number in range(10, 37) if number % 3]
    assert sum(len(changes(study, number, domain)) > 1 for number in between) > 5  # others are free


def test_nothing_to_change_is_no_forced_round():
    arms = nr.Arms.grid(0, 1, 12)
    plain, searched = (nr.Study(policy_of(arms, each), seed=0) for each in (None, CoordinateSearch(every=2, after=0)))
    assert rows(play(plain, 12)) == rows(play(searched, 12))
    study = nr.Study(policy_of(nr.Space(n=nr.Int(3, 3)), CoordinateSearch(every=2, after=0)), seed=0)
    assert len(set(rows(play(study, 8)))) == 1  # all of it has been tried
    none_answered = nr.Study(policy_of(BOX, CoordinateSearch(every=2, after=0)), seed=0)
    assert len(none_answered.ask(count=6)) == 6
    all_failed = nr.Study(policy_of(BOX, CoordinateSearch(every=2, after=0)), seed=0)
    assert len(play(all_failed, 8, fails=range(8)).trials) == 8


def test_best_points_are_of_the_context():
    space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    policy = policy_of(space, CoordinateSearch(every=2, after=0), context=nr.Box([0.0], [1.0]))
    study = nr.Study(policy, seed=0)
    for x, value in ((0.2, 0.0), (0.8, 1.0)):  # each good in a context of its own
        for context in (0.0, 1.0):
            study.add({"x": x, "y": x}, value if context else 1.0 - value, context=[context])
    found = {context: study.ask([context]) for context in (0.0, 1.0)}
    assert study.trials[4] is found[0.0]
    assert 0.2 in found[0.0].point


def test_parts_take_turns():
    both = InTurn((InitialDesign(5), CoordinateSearch(every=2, after=6)))
    alone = policy_of(BOX, InitialDesign(5))
    study, first = play(nr.Study(policy_of(BOX, both), seed=1), 9), play(nr.Study(alone, seed=1), 9)
    assert rows(study)[:6] == rows(first)[:6]
    assert rows(study)[6] != rows(first)[6]
    forcing = [both.forcing(0, history, Randomness(0, history)) for history in range(9)]
    names = [None if part is None else type(part).__name__ for part in forcing]
    assert names == ["InitialDesign"] * 5 + [None, "CoordinateSearch", None, "CoordinateSearch"]
    assert not both.uniform
    assert InTurn([UniformExploration(), NoExploration()]).uniform
    assert not InTurn((NoExploration(),)).due(0, 0, Randomness(0, 0))
    uniform = policy_of(BOX, InTurn((InitialDesign(3), UniformExploration(0.5))))
    explored = [trial.explored for trial in play(nr.Study(uniform, seed=0), 20).trials]
    assert not any(explored[:3])
    assert any(explored[3:])
    for wrong in ((), None, (InitialDesign(3), "uniform"), InitialDesign(3)):
        with pytest.raises(nr.errors.InvalidInput, match="`parts`"):
            InTurn(wrong)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: TimedDesign(design=3, seconds=1), "design"),
        (lambda: TimedDesign(design=InitialDesign(), seconds=0), "seconds"),
        (lambda: TimedDesign(design=InitialDesign(), seconds=1, share=2), "share"),
        (lambda: InitialDesign(0), "rounds"), (lambda: InitialDesign(20_000), "rounds"),
        (lambda: InitialDesign(1.5), "rounds"), (lambda: CoordinateSearch(every=1), "every"),
        (lambda: CoordinateSearch(after=-1), "after"), (lambda: CoordinateSearch(steps=0), "steps"),
    ],
)  # fmt: skip
def test_counts_are_checked(make, name):
    with pytest.raises(nr.errors.InvalidInput, match=f"`{name}`"):
        make()


@pytest.mark.parametrize("domain", [nr.Box([0.0], [1.0]), CHOICE_AND_LINE, nr.Arms.grid(0, 1, 12)])
def test_forced_places_keep_the_promises_of_a_policy(domain):
    explore = InTurn((InitialDesign(4), CoordinateSearch(every=2, after=5, steps=5)))
    check_policy(policy_of(domain, explore, memory=nr.slots.SlidingWindow(12)), rounds=14)


# -- parts of others ---------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class First(Explore):
    """Plays a fixed list of points first."""

    points: tuple[tuple[float, ...], ...]

    def due(self, uniform, history, randomness):
        return history < len(self.points)

    def places(self, situation):
        return np.array(self.points)[situation.history : situation.history + 1]


def test_a_list_of_points_is_played_first():
    study = play(nr.Study(policy_of(BOX, First(((0.5, 0.5), (0.25, 2.0), (0.5, 0.5)))), seed=0), 5)
    assert rows(study)[:3] == [(0.5, 0.5), (0.25, 2.0), (0.5, 0.5)]
    check_policy(study.policy, rounds=10)


def broken(**methods):
    """A part with a mistake."""
    cls = type("Broken", (Explore,), {"due": lambda *_: True, "__doc__": "Broken.", **methods})
    return described(dataclass(frozen=True)(cls))()


COUNTER = itertools.count()
BROKEN = {
    "other points each time": (
        {"places": lambda part, situation: np.random.default_rng().uniform(size=(3, 2))},
        "places` answers otherwise",
    ),
    "outside": ({"places": lambda part, situation: np.array([[0.5, 99.0]])}, "must be points of the domain"),
    "one row": ({"places": lambda part, situation: np.array([0.5, 0.5])}, r"an array `\(n, 2\)`"),
    "a list": ({"places": lambda part, situation: [[0.5, 0.5]]}, r"an array `\(n, 2\)`"),
    "no part": ({"forcing": lambda *_: True}, "`Broken.forcing` gives True"),
    "another part each time": (
        {"forcing": lambda part, *_: InitialDesign(1 + next(COUNTER)), "places": InitialDesign.places},
        "forcing` answers otherwise",
    ),
    "forces and is not due": ({"due": lambda *_: False, "forcing": lambda part, *_: part}, "and `Broken.due` False"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_places_are_found(case):
    methods, words = BROKEN[case]
    with pytest.raises(AssertionError, match=words):
        check_policy(policy_of(BOX, broken(**methods)), rounds=10)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([[0.5, 0.5]], r"`Broken.places` gave \[\[0.5, 0.5\]\]: it must be an array `\(n, 2\)`"),
        (np.array([0.5, 0.5]), r"`Broken.places` gave .* it must be an array"),
        (np.zeros((0, 3)), r"`Broken.places` gave .* it must be an array"),
        (np.array([[0.5, 99.0]]), r"`Broken.places` \[0.5, 99.0\] lies outside the box"),
        (np.array([[0.5, math.nan]]), r"`Broken.places`"),
    ],
    ids=str,
)
def test_places_that_nobody_can_play_are_said_so(places, words):
    study = nr.Study(policy_of(BOX, broken(places=lambda part, situation: places)))
    with pytest.raises(nr.errors.InvalidInput, match=words):
        study.ask()
    assert len(study.trials) == 0


def test_places_next_to_valid_points_are_these():
    near = np.array([[0.5 + 1e-13, 2.0]]), MIXED.encode({"x": 1.0, "n": 20, "m": 10, "k": "b"})[None] + 1e-13
    for domain, places in zip((BOX, MIXED), near, strict=True):
        study = nr.Study(policy_of(domain, broken(places=lambda part, situation, places=places: places)))
        assert np.array_equal(study.ask().point, domain.inside("point", places)[0])


# -- a search that does not repeat itself ------------------------------------------------------------------------------


def nearest(points, tried, domain):
    """For each point, how far it is from those tried in the parameter in which it is farthest, shares of the range."""
    unit = (domain.upper - domain.lower) * np.where(real_columns(domain), 1.0, SAME)
    return np.abs((points[:, None] - tried) / unit).max(axis=2).min(axis=1)


def apart(domain, apart, **more):
    policy = nr.expected_improvement(domain, nr.kernel_for(domain, lengthscale=0.5), noise=0.01, **more)
    return policy.using(search=nr.slots.PointSearch(candidates=64, around=4, starts=1, evaluations=6, apart=apart))


@pytest.mark.parametrize("domain", [nr.Box([0.0], [2.0]), BOX, CHOICE_AND_LINE], ids=["line", "box", "mixed"])
def test_nothing_is_played_close_to_what_was(domain):
    close = []
    for share in (0.0, 0.02):
        study = play(nr.Study(apart(domain, share), seed=0), 30)
        points = np.array([trial.point for trial in study.trials])
        gaps = np.array([nearest(points[i : i + 1], points[:i], domain)[0] for i in range(1, 30)])
        close.append(int((gaps < 0.02 * (1.0 - 1e-9)).sum()))
    assert close[0] > 0  # it would have come close
    assert close[1] == 0


def test_where_nothing_is_real_repeats_end_with_the_first_equal_pair():
    study = play(nr.Study(apart(CHOICES, 0.01), seed=0), 40)  # without noise
    known, again = set(), None
    for number, row in enumerate(rows(study)):
        if row in known:
            again = number if again is None else again
        elif again is not None:
            assert number > again
        known.add(row)
    assert again is not None
    assert len(known) == 24  # everything
    after = rows(study)[again + 1 :]
    first = next(i for i in range(len(after)) if len(set(rows(study)[: again + 1 + i])) == 24)
    assert len(set(after[:first])) == first  # no repeats until there was nothing else
    noisy = nr.Study(apart(CHOICES, 0.01), seed=0)
    for number in range(60):
        trial = noisy.ask()
        noisy.tell(trial, reward(trial) + 0.3 * math.sin(number))
    assert len(set(rows(noisy))) < 60 - 24  # with noise good ones come again and again


def test_the_only_point_is_played_again():
    for domain in (nr.Space(n=nr.Int(3, 3)), nr.Space(k=nr.Choice("a"))):
        assert len(set(rows(play(nr.Study(apart(domain, 0.5), seed=0), 6)))) == 1
    study = play(nr.Study(apart(nr.Box([0.0], [1.0]), 1.0), seed=0), 6)  # nothing is so far apart
    assert len(study.trials) == 6


def test_where_all_around_is_impossible_the_point_stays():
    search = nr.slots.PointSearch(candidates=16, apart=0.1)
    nowhere = AcquisitionFunction(lambda points: np.full(len(points), -np.inf), lambda points: (points[:, 0], points))
    point = np.array([0.5, 0.5])
    standing = search.candidate_points(BOX, 0)
    scores = np.zeros(len(standing))
    found = search.moved_apart(point, nowhere, BOX, candidates=standing, scores=scores, tried=point[None], rng=rng)
    assert found is point


def test_of_many_candidates_the_leading_ones_that_were_not_tried_are_valued():
    search, looked = nr.slots.PointSearch(candidates=1024, apart=0.01), []

    def values(points):
        looked.append(len(points))
        return -np.abs(points - 0.5).sum(axis=1)

    standing = search.candidate_points(BOX, 0)
    ranked = standing[np.argsort(np.abs(standing - 0.5).sum(axis=1))]
    tried = np.concatenate([[[0.5, 0.5]], ranked[:200]])
    found = search.moved_apart(
        tried[0], AcquisitionFunction(values, lambda points: (points[:, 0], points)), BOX, candidates=standing,
        scores=-np.abs(standing - 0.5).sum(axis=1), tried=tried, rng=rng,
    )  # fmt: skip
    assert max(looked) <= 64 + 64  # not all 1,024: a value costs O(n^2)
    assert (np.abs(found - tried) >= 0.01).any(axis=1).all()
    assert np.abs(found - 0.5).sum() <= np.abs(ranked[201:] - 0.5).sum(axis=1).min() + 0.02


def test_of_many_options_a_search_steps_to_those_of_the_best_points():
    space = nr.Space(k=nr.Choice(*range(100)), few=nr.Choice(*range(MOST_OPTIONS)), n=nr.Int(0, 1))
    ranked = np.array([space.encode({"k": k % 100, "few": 0, "n": 0}) for k in range(7, 200, 3)])
    worth = leading_options(space, ranked)
    assert np.flatnonzero(worth[:100]).tolist() == sorted((7 + 3 * i) % 100 for i in range(MOST_OPTIONS))
    assert worth[100:].all()
    around = [space.decode(row) for row in neighbours(space, ranked[0], worth)]
    assert len(around) == 2 * (MOST_OPTIONS - 1) + 1
    assert {row["k"] for row in around} == set(np.flatnonzero(worth[:100]))


def test_many_options_take_hardly_more_evaluations_than_few():
    found = {}
    for options in (5, 500):
        space = nr.Space(k=nr.Choice(*range(options)), x=nr.Float(0, 1))
        value = rng(1).random(options)

        def values(points, options=options, value=value):
            return value[points[:, :options].argmax(axis=1)] - np.square(points[:, -1] - 0.3)

        def slopes(points, values=values):
            gradients = np.zeros(points.shape)
            gradients[:, -1] = -2.0 * (points[:, -1] - 0.3)
            return values(points), gradients

        search = nr.slots.PointSearch(mutations=256, incumbents=5)
        points = search.candidate_points(space, 0)
        found[options] = search.maximize(
            AcquisitionFunction(values, slopes), space, candidates=points, scores=values(points),
            incumbents=points[:1], rng=lambda: rng(2),
        )  # fmt: skip
        assert found[options].value > value.max() - 1e-6
    assert found[500].evaluations < 3 * found[5].evaluations


def test_a_small_space_is_compared_completely():
    search = nr.slots.PointSearch(candidates=32)
    assert len(search.candidate_points(CHOICES, 0)) == len(np.unique(search.candidate_points(CHOICES, 0), axis=0)) == 24
    assert len(nr.slots.PointSearch(candidates=16).candidate_points(CHOICES, 0)) == 16


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan, "far"])
def test_the_share_is_checked(wrong):
    with pytest.raises(nr.errors.InvalidInput, match="`apart`"):
        nr.slots.PointSearch(apart=wrong)


def test_a_situation_says_what_a_part_may_look_at():
    seen = []

    @described
    @dataclass(frozen=True)
    class Looks(Explore):
        def due(self, uniform, history, randomness):
            return True

        def places(self, situation):
            seen.append((situation, situation.best(), situation.tried()))
            return np.zeros((0, 2))

    study = play(nr.Study(policy_of(BOX, Looks()), seed=0), 6)
    situation, best, tried = seen[-1]
    assert isinstance(situation, Situation)
    assert (situation.history, situation.seed, situation.randomness.number, situation.context) == (5, 0, 5, None)
    assert sorted(map(tuple, tried)) == sorted(rows(study)[:5])
    before = nr.Study(study.policy, seed=0)
    before.replica.apply(News(list(study.trials[:5]), ""))
    assert np.array_equal(best, before.best().point)
    assert seen[0][1] is None
    assert seen[0][2].shape == (0, 2)
