"""What fills a slot stays there: through every algorithm, `using`, and what is made of a policy."""

import inspect

import pytest

import nilregret as nr
from nilregret import algorithms
from nilregret.slots.explore import UncertaintySampling, UniformExploration
from nilregret.slots.widths.delayed import Inflated
from tests.conformance.test_policies import POLICIES

from .fillings import FILLINGS, base
from .test_pairs import where_of

GIVEN = {
    "prior_mean": 0.25,
    "memory": nr.slots.AllOf((nr.slots.SlidingWindow(30), nr.slots.EDetector())),
    "explore": nr.slots.InTurn((nr.slots.InitialDesign(4), UniformExploration(0.5))),
    "pending": nr.slots.NearestMeans(neighbours=2),
    "search": nr.slots.PointSearch(candidates=64),
    "refit": nr.slots.Refit(every=7),
    "switching": nr.slots.Lazy(factor=1.3),
    "constraints": nr.EveryRound(count=2, confidence=1.5),
}


@pytest.mark.parametrize("name", POLICIES)
def test_an_algorithm_keeps_what_it_is_given_or_says_that_it_fills_the_slot(name):
    make, plain = POLICIES[name], POLICIES[name]()
    takes = inspect.signature(getattr(algorithms, name)).parameters
    for slot, part in GIVEN.items():
        if slot in takes and takes[slot].annotation != "int":  # a number of constraints is no slot
            given = make(**{slot: part})
            assert getattr(given, slot) == part, slot
            front = plain.objective_count > 1  # Its rule holds the parts of all objectives but the first.
            others = {
                other: getattr(plain, other)
                for other in (*GIVEN, "objective", "confidence", "score")
                if other != slot and not (front and other == "constraints")
            }
            assert {other: getattr(given, other) for other in others} == others, slot
        else:
            with pytest.raises(nr.errors.InvalidInput, match=f"`{name}` fills the slot `{slot}` itself"):
                make(**{slot: part})
    wide, context = nr.Matern(2.5, [0.2, 0.2]), nr.Arms.grid(0, 1, 3)
    if "context" in takes:
        assert make(kernel=wide, context=context).context == context
    else:
        with pytest.raises(nr.errors.InvalidInput, match=f"`{name}` fills the slot `context` itself"):
            make(kernel=wide, context=context)


def test_what_would_fill_a_slot_twice_is_refused():
    make = POLICIES["gp_bucb"]
    assert make(initial=3).explore == UncertaintySampling(3)
    with pytest.raises(nr.errors.InvalidInput, match="both say which rounds are forced"):
        make(initial=3, explore=nr.slots.InitialDesign(4))
    assert isinstance(make(inflation=0.1, memory=nr.slots.SlidingWindow(9)).confidence, Inflated)
    assert make(inflation=0.1, memory=nr.slots.SlidingWindow(9)).memory == nr.slots.SlidingWindow(9)
    with pytest.raises(nr.errors.InvalidInput, match="leave `memory`"):
        POLICIES["gp_ucb_sdf"](horizon="doubling", memory=nr.slots.SlidingWindow(9))


def test_a_filling_is_kept_by_the_policy_its_json_and_its_constraints():
    for filling in FILLINGS:
        if filling.slot in ("objective", "constraints"):  # which say themselves what is learned of constraints
            continue
        policy = filling.put(base(where_of(filling)), "")
        again = nr.Policy.from_json(policy.to_json())
        assert again == policy, filling.name
        refused = filling.name.startswith(("`Censored", "`LikelihoodRatio`")) and filling.slot == "confidence"
        if filling.slot in ("switching", "slate") or refused or filling.name in ("`Exposed`", "`Tide`"):
            continue
        one = policy.objective_count == 1
        channel = (policy.using(constraints=nr.EveryRound()) if one else policy).of_channel(1)
        for slot in ("domain", "context", "memory", "explore", "confidence", "search"):
            assert getattr(channel, slot) == getattr(policy, slot), filling.name
        assert (channel.refit is None) == (policy.refit is None), filling.name


def test_a_period_says_the_lambda_of_the_reward_and_not_that_a_constraint_has_of_its_own():
    doubling = nr.slots.RestartDoubling(4, ridge=True)
    for memory in (doubling, nr.slots.AllOf((nr.slots.SlidingWindow(50), doubling))):
        for more, wanted in (({}, 1.0 + 2.0 / 8), ({"noise": 0.2}, 0.04), ({"regularization": 0.3}, 0.3)):
            study = nr.Study(base().using(memory=memory, constraints=nr.EveryRound(**more)), seed=0)
            for _ in range(9):
                study.tell(study.ask(), 1.0, constraints=[-1.0])
            state = study.replica.current()
            assert state.reward.posterior.ridge == 1.0 + 2.0 / 8
            assert state.outputs.constraints[0].posterior.ridge == pytest.approx(wanted)
