"""Every pair of fillings of different slots plays, and is opened again as it was; or is refused for its reason."""

import re
import warnings
from functools import reduce
from itertools import combinations, groupby

import numpy as np
import pytest

import nilregret as nr
from nilregret.policy.policy import Policy
from nilregret.slots import by_name
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import NoExploration
from nilregret.slots.memory import Forever
from nilregret.slots.objective import RewardAlone
from nilregret.slots.scores import UpperConfidenceBound
from nilregret.testing.driver import Driver, same

from ..marks import nightly
from .fillings import DOMAINS, FILLINGS, ORDER, PAIRS, REASONS, SLOTS, base, made, play, reason_for
from .write import PAGE, written

PLAIN = {Forever, NoExploration, RewardAlone, UpperConfidenceBound, ConstantWidth}  # of the policy all pairs begin with
SEVERAL = (nr.slots.AllOf, nr.slots.InTurn)
ROUNDS, FEW = 9, 5  # few where a search costs more
SHORT, SHORTEST = 7, 4  # for many pairs: past the failure, and past the first restart of each memory
PLAYED = 3  # outside the nightly tests a filling plays with every third partner, and is refused by all it should be

CLASSES = {slot: of for slot, of in by_name.SLOTS.items() if slot != "fidelity"}  # It brings contexts of its own.


def problem(policy, where, rounds=ROUNDS, few=FEW):
    """What is wrong with a policy; None where it plays, and is what it was when it is opened again from its record."""
    if Policy.from_json(policy.to_json()) != policy:
        return "another policy comes back from JSON"
    rounds, driver = rounds if where == "arms" else few, Driver(policy, seed=0, reward=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        study = play(driver, rounds)
        seen = driver.seen(study, rounds)
        study.replica.rebuild()
        return None if same(seen, driver.seen(study, rounds)) else "it decides otherwise after it was opened again"


def where_of(*fillings):
    return next((filling.name for filling in fillings if filling.slot == "domain"), "arms")


@pytest.mark.parametrize("whole", [False, *nightly(True)])
@pytest.mark.parametrize(("first", "second"), list(combinations(SLOTS, 2)))
def test_every_pair_plays_or_is_refused_for_its_reason(first, second, whole):
    problems, rounds = [], (ROUNDS, FEW) if whole else (SHORT, SHORTEST)
    for one, other in PAIRS:
        if (one.slot, other.slot) != (first, second):
            continue
        reason, name = reason_for(one, other), f"{one.name} with {other.name}"
        try:
            policy = made(one, other)
            plays = whole or reason is not None or (FILLINGS.index(one) + FILLINGS.index(other)) % PLAYED == 0
            found = problem(policy, where_of(one, other), *rounds) if plays else None
        except nr.errors.InvalidInput as error:
            said = str(error)
            if reason is None or not re.search(reason.error, said) or not re.fullmatch(r"(?s)[`A-Z].*\.", said):
                problems.append(f"{name}: {said}")
            continue
        if reason is not None or found is not None:
            problems.append(f"{name}: {'it is not refused' if found is None else found}")
    assert problems == []


def test_what_is_refused_is_explained_by_a_pair():
    """A filling of every slot, or of all but some, at random: refused only where two of them are."""
    rng, problems, played = np.random.default_rng(11), [], 0
    each = [list(group) for _, group in groupby(FILLINGS, key=lambda filling: filling.slot)]
    for _ in range(200):
        some = rng.permutation(len(each))[: rng.integers(3, len(each) + 1)]
        fillings = [each[i][rng.integers(len(each[i]))] for i in sorted(some)]
        fillings.sort(key=lambda filling: ORDER.get(filling.slot, 2))
        reasons = [reason for pair in combinations(fillings, 2) if (reason := reason_for(*pair)) is not None]
        where = where_of(*fillings)
        others = {filling.slot for filling in fillings}
        try:
            policy = reduce(
                lambda policy, each: each.put(policy, next(iter({"score"} & others), "")), fillings, base(where)
            )
        except nr.errors.InvalidInput as error:
            if not any(re.search(reason.error, str(error)) for reason in reasons):
                problems.append(f"{[filling.name for filling in fillings]}: {error}")
            continue
        found = problem(policy, where) if where in ("arms", "arms under a table of contexts") else None
        played += 1
        if reasons or found is not None:
            problems.append(f"{[filling.name for filling in fillings]}: {found or 'it is not refused'}")
    assert problems == []
    assert played > 20


def test_every_class_is_among_the_fillings():
    def final(cls):
        return [cls] if not cls.__subclasses__() else [leaf for child in cls.__subclasses__() for leaf in final(child)]

    def inside(part):
        return [part, *(each for inner in (part.parts if isinstance(part, SEVERAL) else ()) for each in inside(inner))]

    found = set(PLAIN)
    for filling in FILLINGS:
        policy = filling.put(base(where_of(filling)), "")
        found |= {type(each) for slot in CLASSES for each in inside(getattr(policy, slot))}
    classes = {leaf for kind, _ in CLASSES.values() for leaf in final(kind)}
    public = {cls for cls in classes if not cls.__name__.startswith("_")}
    ours = {cls for cls in public if re.match(r"nilregret\.(?!testing)", cls.__module__)}
    assert {cls.__name__ for cls in ours - found} == set()
    assert len({filling.name for filling in FILLINGS}) == len(FILLINGS)
    assert {filling.name for filling in FILLINGS if filling.slot == "domain"} | {"arms"} == set(DOMAINS)


def test_every_reason_is_one():
    given = {id(reason_for(*pair)) for pair in PAIRS}
    for reason in REASONS:
        assert id(reason) in given, reason
        assert re.fullmatch(r"(?s)[`A-Zl].*\.", reason.reason)


def test_the_page_shows_the_table():
    """`python -m tests.composition.write` writes it."""
    page = PAGE.read_text()
    assert page == written(page)
