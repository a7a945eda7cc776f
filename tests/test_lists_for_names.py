"""A list where parameters have names is refused with the dict to write. It would be read as shares of the ranges."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.client import Client
from nilregret.testing.serving import Serving

CONTEXT = nr.Space(hour=nr.Float(0, 24))
PRICES = nr.Space(price=nr.Float(1, 9), kind=nr.Choice("a", "b"))
SEEN = nr.auto(nr.Arms(range(3)), context=CONTEXT, reward="bernoulli")
PLACED, GRID = nr.auto(PRICES), nr.auto(PRICES.grid(9))
LISTS = [[1.0], (1.0,), [np.float64(1.0)], 1.0, range(1, 2), [[1.0]], [np.array(1.0)]]


@pytest.mark.parametrize("given", LISTS, ids=repr)
def test_a_list_for_a_context_is_refused(given):
    study = nr.Study(SEEN)
    with pytest.raises(nr.errors.InvalidInput, match=r'Write \{"hour": (1(\.0)?|\.\.\.)\}\.'):
        study.ask(given)
    with pytest.raises(nr.errors.InvalidInput, match='"hour": '):
        study.add([1.0], 1.0, context=given)
    assert len(study.trials) == 0


@pytest.mark.parametrize("policy", [PLACED, GRID], ids=["space", "grid"])
@pytest.mark.parametrize("given", [[0.5, 1.0, 0.0], [2.0, "a"], [[0.5, 1.0, 0.0]], (0.5,), 0.5], ids=repr)
def test_a_list_for_a_point_is_refused(policy, given):
    study = nr.Study(policy)
    with pytest.raises(nr.errors.InvalidInput):
        study.add(given, 1.0)
    with pytest.raises(nr.errors.InvalidInput):
        study.ask(among=given)
    assert len(study.trials) == 0


def test_the_sentence_has_the_dict_to_write():
    with pytest.raises(nr.errors.InvalidInput, match=r"""`point` is \[4, 2\].*Write \{"price": 4, "kind": 2\}."""):
        nr.Study(PLACED).add([4, 2], 1.0)
    with pytest.raises(nr.errors.InvalidInput, match=r"""Write \{"price": \.\.\., "kind": \.\.\.\}."""):
        nr.Study(PLACED).predict([[0.5, 1.0, 0.0]])


@pytest.mark.parametrize("policy", [PLACED, GRID], ids=["space", "grid"])
def test_what_a_study_gives_as_an_array_it_takes(policy):
    study = nr.Study(policy)
    trial = study.ask()
    added = study.add(trial.point, 1.0)
    assert added.parameters == trial.parameters
    assert study.ask(among=[trial.point, added.point]).parameters == trial.parameters
    assert study.ask(among=trial.point[None]).parameters == trial.parameters
    seen = nr.Study(SEEN)
    asked = seen.ask({"hour": 6.0})
    assert seen.ask(asked.context).context_parameters == {"hour": 6.0}
    assert nr.Study(nr.auto(nr.Box(0, 9))).add([4.0], 1.0).point.tolist() == [4.0]


def test_lists_over_http():
    with Serving() as service:
        client = Client(service.url)
        seen, placed = client.create("seen", SEEN), client.create("placed", PLACED)
        for ask in (
            lambda: seen.ask([1.0]),
            lambda: seen.ask(1.0),
            lambda: seen.add([1.0], 1.0, context=[1.0]),
            lambda: seen.predict(context=[1.0]),
        ):
            with pytest.raises(nr.errors.InvalidInput, match=r'`context` is \[1.0\].*Write \{"hour": 1.0\}\.$'):
                ask()
        with pytest.raises(nr.errors.InvalidInput, match=r"`point` is .*Write"):
            placed.add([0.5, 1.0, 0.0], 1.0)
        assert seen.trials() == placed.trials() == []
        assert seen.ask({"hour": 1}).context == {"hour": 1.0}
