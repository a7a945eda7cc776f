"""The slots that all algorithms share, widths that are parts, and policies with other parts."""

import dataclasses
import inspect
import pickle
import pydoc
import re
from typing import final

import numpy as np
import pytest

import nilregret as nr
from nilregret import algorithms
from nilregret.algorithms import Slots
from nilregret.slots import described
from nilregret.slots.by_name import SLOTS
from nilregret.slots.envelope import ConstantWidth, ScheduledWidth, Width
from nilregret.slots.explore import NoExploration, UncertaintySampling, UniformExploration
from nilregret.slots.memory import Forever
from nilregret.slots.objective import AdditivePenalty
from nilregret.slots.scores import PosteriorMean, ThompsonSample
from tests.conformance.test_policies import ARMS, KERNEL, POLICIES, answer

GIVEN = {
    "context": nr.Arms([0.0, 1.0]),
    "prior_mean": 0.25,
    "memory": nr.slots.SlidingWindow(20),
    "explore": UncertaintySampling(3),
    "pending": nr.slots.NearestMeans(neighbours=2),
    "search": nr.slots.PointSearch(candidates=64),
    "refit": nr.slots.Refit(every=7),
    "constraints": nr.EveryRound(confidence=2.0),
    "switching": nr.slots.Lazy(1.2),
}
FILLED = {
    "lb_gp_ucb": {"context", "refit", "constraints", "switching"},
    "gp_ucb_cpd": {"memory", "explore", "switching"},
    "gp_ucb_sdf": {"pending", "switching"},
    "gp_ts_sdf": {"pending", "switching"},
    "hypervolume_thompson": {"context", "constraints", "switching"},
    "hypervolume_ucb": {"context", "constraints", "switching"},
    "gp_bucb": {"pending"},
    "gp_bts": {"pending"},
    "asy_ts": {"pending"},
    "gp_ucb_noiseless_constraints": {"refit", "constraints", "switching"},
    "gp_ucb_noisy_constraints": {"refit", "constraints", "switching"},
}
NO_WIDTH = {"irgp_ucb", "kernel_ucb"}  # eta is its width


def has(policy, slot):
    return getattr(policy, slot)


def test_every_slot_is_tried_here_and_is_one_of_the_policy():
    assert set(GIVEN) == set(Slots.__annotations__) - {"reward"}  # which fills `objective`: tests/test_clicks.py
    assert set(GIVEN) <= {field.name for field in dataclasses.fields(nr.Policy)}
    alone = {"pruning", "fidelity", "slate"}  # Only `auto` takes them by name.
    assert set(SLOTS) - set(GIVEN) == {"confidence", "score", "objective"} | alone  # The others are what it is.


@pytest.mark.parametrize("slot", GIVEN)
@pytest.mark.parametrize("name", POLICIES)
def test_an_algorithm_takes_every_slot_that_it_does_not_fill_itself(name, slot):
    more = {"detector": "never"} if name == "gp_ucb_cpd" and slot == "context" else {}
    if slot in FILLED.get(name, ()):
        sentence = f"`{name}` fills the slot `{slot}` itself: .*policy.using\\({slot}=...\\)"
        with pytest.raises(nr.errors.InvalidInput, match=sentence):
            POLICIES[name](**{slot: GIVEN[slot]})
    else:
        policy = POLICIES[name](**{slot: GIVEN[slot]}, **more)
        assert has(policy, slot) == GIVEN[slot]
        without = POLICIES[name](**{slot: None}, **more)  # None is as good as nothing
        if slot != "prior_mean":
            assert without == POLICIES[name](**more)


@pytest.mark.parametrize("name", POLICIES)
def test_a_misspelt_keyword_is_refused_before_other_values_are_read(name):
    with pytest.raises(
        TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'serach'. Did you mean 'search'"
    ):
        POLICIES[name](delta=-1.0, serach=1)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'\.$"):
        POLICIES[name](zzz=1)


@pytest.mark.parametrize("name", POLICIES)
def test_help_shows_what_slots_there_are(name):
    shown = pydoc.plain(pydoc.render_doc(getattr(algorithms, name)))
    signature = shown.partition(") -> ")[0]
    for slot in GIVEN:
        kind = "Constraints" if slot == "constraints" else ""  # others have an argument of that name, a number
        assert bool(re.search(f"{slot}: ['\"]?{kind}", signature)) == (slot not in FILLED.get(name, ()))
    assert "slots: " in shown  # where to read what they are
    assert not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(getattr(algorithms, name)).parameters.values())


def test_each_slot_is_explained_where_they_are_declared_and_at_gp_ucb():
    for text in (Slots.__doc__, nr.gp_ucb.__doc__):
        assert [slot for slot in GIVEN if f" {slot}: " not in text] == []


def test_a_name_that_is_only_for_the_constrained_is_no_memory_of_others():
    with pytest.raises(nr.errors.InvalidInput, match=r"`memory` is 'kept'"):
        nr.gp_ucb(ARMS, KERNEL, noise=0.1, memory="kept")
    kept = POLICIES["gp_ucb_noisy_constraints"]
    assert kept(memory="kept") == kept()
    assert kept(memory="fresh").objective.fresh
    with pytest.raises(nr.errors.InvalidInput, match=r"`memory` is 'old': it must be one of 'kept', 'fresh'"):
        kept(memory="old")


def test_initial_rounds_are_said_once():
    assert nr.gp_bucb(ARMS, KERNEL, noise=0.1, initial=4).explore == UncertaintySampling(4)
    with pytest.raises(nr.errors.InvalidInput, match="`initial` and `explore`"):
        nr.gp_bucb(ARMS, KERNEL, noise=0.1, initial=4, explore=UncertaintySampling(4))


@final
@described
@dataclasses.dataclass(frozen=True)
class Waning(Width):
    """A width from outside."""

    start: float
    delta: float = 0.2

    @property
    def valid_for(self):
        return "none"

    def width(self, t, progress):
        return self.start / t


def with_width(name, width, **more):
    """A policy of this algorithm with this width, without the arguments that name another."""
    void = () if name == "lb_gp_ucb" else ("norm_bound", "beta")  # there it balances regrets whatever the width
    needed = {k: v for k, v in POLICIES[name].keywords.items() if k not in void}
    return getattr(algorithms, name)(ARMS, KERNEL, noise=0.1, width=width, **{**needed, **more})


@pytest.mark.parametrize("name", sorted(set(POLICIES) - NO_WIDTH))
@pytest.mark.parametrize("width", [ConstantWidth(value=1.5), Waning(3.0)], ids=["of ours", "of one's own"])
def test_a_width_may_be_a_part(name, width):
    policy = with_width(name, width)
    assert policy.confidence == width
    assert policy.algorithm == name
    assert nr.Policy.from_json(policy.to_json()) == policy
    study = nr.Study(policy, seed=1)
    for _ in range(4):
        answer(study, study.ask())
    assert study.width == (1.5 if isinstance(width, ConstantWidth) else pytest.approx(3.0 / 5))
    with pytest.raises(nr.errors.InvalidInput, match=r"`width` is a part, .*`delta` would be ignored"):
        with_width(name, width, delta=0.05)
    with pytest.raises(nr.errors.InvalidInput, match=r"`width` is 3"):
        with_width(name, 3)


def test_the_algorithms_without_a_width_are_known():
    without = {name for name in POLICIES if "width" not in inspect.signature(getattr(algorithms, name)).parameters}
    assert without == NO_WIDTH


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gp_ucb", {"scale": 0.2}),
        ("gp_ucb", {"series": 3.0}),
        ("gp_ucb", {"norm_bound": 1.0}),
        ("gp_ucb", {"information_gain": "realised"}),
        ("igp_ucb", {"norm_bound": 1.0}),
        ("igp_ucb", {"guess_norm": True}),
        ("gp_ts", {"v": 1.0}),
        ("gp_bucb", {"beta": 2.0}),
        ("asy_ts", {"beta": 2.0}),
        ("gp_ucb_sdf", {"beta": 2.0}),
        ("gp_ucb_cpd", {"constant": 1.0}),
        ("gp_ucb_noisy_constraints", {"norm_bound": 1.0}),
    ],
)
def test_what_a_part_would_make_void_is_refused(name, more):
    with pytest.raises(nr.errors.InvalidInput, match=rf"says all of the bounds: `{next(iter(more))}` would be ignored"):
        with_width(name, ConstantWidth(value=1.5), **more)


def test_names_of_widths():
    assert nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, width="igp") == POLICIES["igp_ucb"]()
    assert nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, width="igp") == POLICIES["gp_ts"]()
    assert nr.gp_bucb(ARMS, KERNEL, noise=0.1, width="finite") == POLICIES["gp_bucb"]()
    assert nr.algorithms.greedy_mean(ARMS, KERNEL, noise=0.1, width="finite") == POLICIES["greedy_mean"]()
    assert nr.algorithms.greedy_mean(ARMS, KERNEL, noise=0.1, width="pointwise").valid_for == "none"
    assert nr.algorithms.asy_ts(ARMS, KERNEL, noise=0.1, width="finite").confidence == POLICIES["gp_bucb"]().confidence
    with pytest.raises(nr.errors.InvalidInput, match=r"'igp'.*Or give a part"):
        nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, width="ipg")
    with pytest.raises(nr.errors.InvalidInput, match="`beta` is a constant in place of"):
        nr.gp_bucb(ARMS, KERNEL, noise=0.1, width="finite", beta=1.0)
    with pytest.raises(nr.errors.InvalidInput, match="finitely many arms"):
        nr.algorithms.greedy_mean(nr.Box([0.0], [1.0]), KERNEL, noise=0.1, width="finite")
    with pytest.raises(nr.errors.InvalidInput, match="`norm_bound` is missing"):
        nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, epoch=5, epochs=5)


def test_the_decision_sets_of_thompson_sampling_keep_their_norm_with_another_width():
    box = nr.Box([0.0], [1.0])
    more = {"noise": 0.1, "norm_bound": 2.0, "lipschitz": 3.0}
    policy = nr.gp_ts(box, KERNEL, width=ConstantWidth(value=1.0), **more)
    assert policy.score == nr.gp_ts(box, KERNEL, **more).score


def test_a_warning_points_to_the_caller():
    with pytest.warns(nr.errors.NoRegretWarning, match="Theorem 2") as caught:
        nr.gp_ucb(nr.Box([0.0], [1.0]), nr.Matern(1.5, 0.2), noise=0.1)
    assert caught[0].filename == __file__


PARTS = {
    "score": ThompsonSample(),
    "explore": UniformExploration(1.0),
    "objective": AdditivePenalty(epoch=4, epochs=5, constraints=1, step=0.5),
    "confidence": ScheduledWidth(schedule=nr.theory.PowerLaw(1.0, 0.5)),
    "memory": nr.slots.RestartEvery(7),
    "pending": nr.slots.Hallucinated(),
    "search": nr.slots.PointSearch(starts=2),
    "refit": nr.slots.Refit(every=5),
    "constraints": nr.OnAverage(),
    "switching": nr.slots.Lazy(1.5),
    "pruning": nr.slots.Median(steps=9),
    "slate": nr.slots.Positions((1.0, 0.5)),
}


@pytest.mark.parametrize("slot", PARTS)  # `fidelity` brings contexts of its own: tests/test_fidelity.py.
def test_a_policy_using_another_part(slot):
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
    text = policy.to_json()
    other = policy.using(**{slot: PARTS[slot]})
    assert has(other, slot) == PARTS[slot] != has(policy, slot)
    assert policy.to_json() == text  # as it was
    assert {f.name for f in dataclasses.fields(policy) if has(policy, f.name) != has(other, f.name)} == {slot}
    again = nr.Policy.from_json(other.to_json())
    assert again == other
    plays = []
    for made in (other, again):
        study = nr.Study(made, seed=3)
        for _ in range(8):
            answer(study, study.ask())
        plays.append([trial.arm for trial in study.trials])
    assert plays[0] == plays[1]


def test_a_policy_using_several_parts_that_need_each_other():
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
    changed = policy.using(memory=nr.slots.RestartOnChange(), explore=UniformExploration(3**0.5))
    assert changed == policy.detecting_changes()
    assert changed.using(memory=Forever(), explore=NoExploration()) == policy
    with pytest.raises(nr.errors.InvalidInput, match="forced uniform rounds"):
        policy.using(memory=nr.slots.RestartOnChange())
    with pytest.raises(nr.errors.InvalidInput, match="forced uniform rounds"):
        changed.using(explore=NoExploration())
    with pytest.raises(nr.errors.InvalidInput, match="under `Discount` f is another one in each round"):
        policy.using(memory=nr.slots.Discount(0.1), refit=nr.slots.Refit())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"scroe": PosteriorMean()}, "A policy has no slot 'scroe'.* its slots are domain, context, kernel, noise"),
        ({"algorithm": "mine"}, "A policy has no slot 'algorithm'"),
        ({"score": "ucb"}, "`score` is 'ucb': it must be a part of `nilregret.slots.scores`"),
        ({"explore": 3}, "`explore` is 3"),
        ({"objective": PosteriorMean()}, "`objective` is PosteriorMean"),
        ({"confidence": 3}, "`confidence` is 3"),
        ({"noise": -1.0}, "`noise` is -1"),
    ],
)
def test_a_policy_refuses_what_fills_no_slot(parts, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(**parts)


def test_algorithms_are_functions_that_can_be_sent_to_other_processes():
    for name in algorithms.__all__:
        assert pickle.loads(pickle.dumps(getattr(algorithms, name))) is getattr(algorithms, name)


@pytest.mark.parametrize("nonsense", [np.array([]), np.zeros((2, 2))])
def test_what_a_width_would_make_void_may_be_nonsense_too(nonsense):
    """An array has no truth value."""
    for make, name in ((nr.algorithms.asy_ts, "beta"), (nr.gp_ucb, "delta"), (nr.igp_ucb, "information_gain")):
        for width in ({}, {"width": ConstantWidth(value=1.0)}):
            with pytest.raises(nr.errors.InvalidInput):
                make(nr.Arms.grid(0, 1, 4), nr.SquaredExponential(0.2), noise=0.1, **{name: nonsense}, **width)


def test_a_norm_is_guessed_for_a_kernel_that_is_given():
    """Also where the fits come later: what contradicts a guess depends on the kernel that was fitted then."""
    guessing = nr.igp_ucb(nr.Box([0.0], [1.0]), nr.SquaredExponential(0.2), noise=0.1, guess_norm=True)
    with pytest.raises(nr.errors.InvalidInput, match="for a kernel that is given"):
        guessing.using(refit=nr.slots.Refit(every=3))
