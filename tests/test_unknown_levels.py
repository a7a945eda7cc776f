"""Unknown and missing levels of contexts: `unknown=True`, and levels that are declared later."""

import json
import math
import tomllib

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.schema import parameter, table_of
from nilregret.client import Client as Remote
from nilregret.domains.parameters import CHOSEN
from nilregret.errors import InvalidInput, TrialError
from nilregret.serialize import from_plain, to_plain
from nilregret.storage import MemoryStorage
from nilregret.storage.visit import Visit
from nilregret.study.cautions import unknown_levels
from nilregret.study.spaces import Spaces
from nilregret.study.trial_json import trial_json
from nilregret.testing.serving import Serving

from .service import AT, Client
from .test_operate import run

pytestmark = pytest.mark.filterwarnings("ignore:.* decisions had an unknown")
DEVICE = nr.Choice("phone", "desk", unknown=True)
CONTEXT = nr.Space(hour=nr.Float(0, 24, unknown=True), visits=nr.Int(0, 5, unknown=True), device=DEVICE)


# -- domains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"device": "tablet"}, {"device": None}, {}, {"device": math.nan}])
def test_what_was_never_declared_null_and_missing_are_one_level(given):
    space = nr.Space(device=DEVICE)
    assert space.encode(given).tolist() == [0.0, 0.0, CHOSEN]
    assert space.decode(space.encode(given)) == {"device": None}
    assert space.unknown_in(given) == (("device", "tablet" if given.get("device") == "tablet" else None),)
    assert space.unknown_in({"device": "desk"}) == ()


@pytest.mark.parametrize("kind", [nr.Float(0, 10, unknown=True), nr.Int(0, 10, unknown=True)])
@pytest.mark.parametrize("missing", [{"x": None}, {"x": math.nan}, {"x": np.float64("nan")}, {}])
def test_a_missing_number_is_at_the_middle_and_says_so(kind, missing):
    space = nr.Space(x=kind)
    assert space.encode(missing).tolist() == [0.5, 1.0]
    assert space.decode(space.encode(missing)) == {"x": None}
    assert space.unknown_in(missing) == (("x", None),)
    assert space.encode({"x": 4}).tolist() == [0.4, 0.0]
    assert space.decode(space.encode({"x": 4})) == {"x": 4}
    assert space.unknown_in({"x": 4}) == ()
    with pytest.raises(InvalidInput, match="must lie in"):
        space.encode({"x": 11})


def test_points_of_missing_values_are_points():
    rows = np.array([CONTEXT.encode(each) for each in ({}, {"hour": 6, "visits": 2, "device": "desk"})])
    np.testing.assert_array_equal(CONTEXT.inside("context", rows), rows)
    between = CONTEXT.snap(np.array([[0.3, 0.9, 0.31, 0.2, 0.1, 0.2, 0.3]]))
    assert CONTEXT.decode(between[0]) == {"hour": None, "visits": 2, "device": None}


def test_without_unknown_all_is_as_it_was():
    plain = nr.Space(hour=nr.Float(0, 24), visits=nr.Int(0, 5), device=nr.Choice("phone", "desk"))
    assert "unknown" not in json.dumps(to_plain(plain)) + repr(plain)
    assert plain.dimension == 4
    assert plain.unknown == ()
    with pytest.raises(InvalidInput, match="'tablet' is not among the options"):
        plain.encode({"hour": 1, "visits": 1, "device": "tablet"})
    with pytest.raises(InvalidInput, match="missing"):
        plain.encode({"hour": 1, "device": "desk"})


@pytest.mark.parametrize("each", CONTEXT.parameters.values(), ids=str)
def test_the_fact_is_in_descriptions(each):
    again = from_plain(json.loads(json.dumps(to_plain(each))))
    assert (again, hash(again), repr(again)) == (each, hash(each), repr(each))
    assert parameter(table_of(each)) == each
    assert table_of(each)["unknown"] is True
    assert repr(each).endswith("unknown=True)")
    known = parameter({name: value for name, value in table_of(each).items() if name != "unknown"})
    assert known != each
    assert parameter({**table_of(each), "unknown": False}) == known


def test_none_is_the_level_of_the_unknown_wherever_it_is_declared():
    assert nr.Choice("a", None, "b", unknown=True) == nr.Choice("a", "b", unknown=True)
    assert nr.Choice("a", "b", unknown=True).options == ("a", "b", None)


def test_a_grid_of_contexts_has_the_unknown():
    grid = nr.Space(device=DEVICE, hour=nr.Float(0, 24, unknown=True)).grid(3)
    assert len(grid) == 3 * 4
    assert grid.parameters(11) == {"device": None, "hour": None}
    assert grid.index([{"device": "tablet", "hour": 12.0}, {}]).tolist() == [9, 11]
    assert from_plain(to_plain(grid)) == grid


def test_a_parameter_counts_under_declared_values_only():
    space = nr.Space(device=DEVICE, app=nr.when("device", "phone", nr.Choice("a", "b", unknown=True)))
    assert space.decode(space.encode({"device": "fridge"})) == {"device": None}
    assert space.unknown_in({"device": "fridge"}) == (("device", "fridge"),)
    assert space.unknown_in({"device": "phone"}) == (("app", None),)
    with pytest.raises(InvalidInput, match="counts only for some values of 'device': 'tablet' is not among"):
        nr.Space(device=DEVICE, app=nr.when("device", "tablet", nr.Int(0, 1)))


@pytest.mark.parametrize("level", [["tablet"], {"a": 1}, "x" * 201, "a\0b", math.inf, nr.Float, 10**20])
def test_a_value_that_cannot_be_a_level_is_refused(level):
    with pytest.raises(InvalidInput, match=r"Parameter `device`: .* is no option, and too much"):
        nr.Space(device=DEVICE).encode({"device": level})


@pytest.mark.parametrize("domain", [nr.Space(device=DEVICE), nr.Space(device=DEVICE).grid(), CONTEXT])
def test_the_unknown_cannot_be_chosen(domain):
    with pytest.raises(InvalidInput, match="what is unknown cannot be chosen: leave `unknown` out"):
        nr.auto(domain)


def test_unknown_is_true_or_false():
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Choice("a", unknown="b")
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Float(0, 1, unknown=1)
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Int(0, 1, unknown=None)


# -- studies ---------------------------------------------------------------------------------------------------------

DEVICES = ("desk", "phone", "tablet", None)
ARMS = nr.Arms(range(4))
SHOP = nr.Space(hour=nr.Float(0, 24), device=DEVICE)
WIDER = {"device": nr.Choice("tablet", "phone", "desk", unknown=True)}
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.nightly)


@pytest.fixture(params=["memory", "sqlite", POSTGRESQL])
def url(request, places):
    return places(request.param)()


def context(i):
    found = {"hour": i % 24, "device": DEVICES[i % 4]}
    return found if i % 8 != 7 else {"hour": i % 24}


def played(rounds=24, domain=ARMS, under=SHOP, begin=0, study=None, **given):
    study = study or nr.Study(nr.auto(domain, context=under), seed=0, propensities=domain is ARMS, **given)
    for i in range(begin, begin + rounds):
        study.tell(study.ask(context(i)), float(i % 3 == 0))
    return study


def test_a_context_is_recorded_as_it_came(url):
    study = played(storage=url)
    for known in (study, nr.Study.open(storage=url)):
        assert [trial.context_parameters for trial in known.trials] == [
            {"hour": float(i % 24), "device": DEVICES[i % 4]} for i in range(24)
        ]
        assert known.trials[2].visit.given == (("device", "tablet"),)
        assert known.trials[3].visit.given == (("device", None),)
        assert known.trials[0].visit is None
    assert study.trials[2].context.tolist() == [2 / 24, 0.0, 0.0, CHOSEN]
    assert trial_json(study.trials[2])["context"] == {"hour": 2.0, "device": "tablet"}
    assert "given" not in trial_json(study.trials[2])
    assert "'tablet'" in repr(study.trials[2])
    assert all(study.explain(number).repeated for number in range(24))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_context_goes_through_files_as_it_came(ending, tmp_path):
    study = played()
    path = study.export(tmp_path / f"trials.{ending}")
    again = nr.Study(study.policy, propensities=True)
    again.add_from(path)
    assert [trial.context_parameters for trial in again.trials] == [t.context_parameters for t in study.trials]
    np.testing.assert_array_equal([trial.context for trial in again.trials], [t.context for t in study.trials])
    assert [trial.propensity for trial in again.trials] == [trial.propensity for trial in study.trials]
    again.widen(context=WIDER)
    assert again.trials[2].context.tolist() == [2 / 24, CHOSEN, 0.0, 0.0, 0.0]


def test_a_frame_has_contexts_as_they_came_and_may_miss_some():
    pandas = pytest.importorskip("pandas")
    frame = played().to_pandas()
    assert frame["context.device"].tolist()[:3] == ["desk", "phone", "tablet"]
    rows = pandas.DataFrame({"hour": [1.0, math.nan], "device": ["tablet", math.nan], "arm": [0, 1], "reward": [1, 0]})
    study = nr.Study(nr.auto(ARMS, context=CONTEXT))
    study.add_from(rows)  # without a column `visits`
    assert [trial.context_parameters for trial in study.trials] == [
        {"hour": 1.0, "visits": None, "device": "tablet"}, {"hour": None, "visits": None, "device": None},
    ]  # fmt: skip
    study.ask(frame.assign(visits=2)[["visits"]].iloc[0])
    assert study.trials[-1].context_parameters == {"hour": None, "visits": 2, "device": None}


def test_a_point_that_is_added_has_its_context_as_it_came():
    study = nr.Study(nr.auto(ARMS, context=SHOP))
    trial = study.add([2.0], 0.5, context={"hour": 3, "device": "tablet"})
    assert trial.context_parameters == study.trials[0].context_parameters == {"hour": 3.0, "device": "tablet"}


def test_an_event_under_another_unknown_level_is_another_decision():
    study = nr.Study(nr.auto(ARMS, context=SHOP))
    first = study.ask({"hour": 3, "device": "tablet"}, event="a")
    assert study.ask({"hour": 3, "device": "tablet"}, event="a") == first
    with pytest.raises(TrialError, match="is trial 0 already, under another context"):
        study.ask({"hour": 3, "device": "fridge"}, event="a")
    study.widen(context=WIDER)
    assert study.ask({"hour": 3, "device": "tablet"}, event="a").number == 0


def test_contexts_on_a_grid_may_be_unknown():
    study = nr.Study(nr.auto(ARMS, context=nr.Space(device=DEVICE).grid(), reward="bernoulli"), seed=1)
    for i in range(60):
        trial = study.ask({"device": DEVICES[i % 4]})
        study.tell(trial, float(trial.arm == i % 2))
    assert study.trials[-2].context_parameters == {"device": "tablet"}
    assert study.best(context={"device": "fridge"}).arm == study.best(context={"device": None}).arm
    with pytest.raises(InvalidInput, match="Only contexts of a `Space` of named parameters can change, and this study"):
        study.widen(context=WIDER)


# -- levels that are declared later ----------------------------------------------------------------------------------

DOMAINS = {"arms": ARMS, "box": nr.Box(0, 1), "space": nr.Space(x=nr.Float(0, 1))}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_decisions_count_for_a_level_that_is_declared_later(domain, url):
    study = played(domain=domain, rounds=64 if isinstance(domain, nr.Arms) else 12, storage=url)
    other, before = nr.Study.open(storage=url), [*study.trials]
    assert study.widen(context=WIDER) == study.policy.context == nr.Space(hour=SHOP.parameters["hour"], **WIDER)
    for known in (study, other, nr.Study.open(storage=url)):
        moved = [known.policy.context.decode(trial.context) for trial in known.trials]
        assert [each["device"] for each in moved] == [DEVICES[i % 4] for i in range(len(before))]
        assert [t.propensity for t in known.trials] == [t.propensity for t in before]
        assert [t.point.tolist() for t in known.trials] == [t.point.tolist() for t in before]
    fresh = nr.Study(study.policy, seed=0)
    for trial in before:
        fresh.add(trial.point, trial.reward, context=trial.context_parameters)
    at = ARMS.points if domain is ARMS else np.array([[0.1], [0.7]])
    under = {"hour": 5, "device": "tablet"}
    np.testing.assert_allclose(study.predict(at, context=under), fresh.predict(at, context=under), rtol=1e-9)
    played(6, study=other, begin=len(before))
    assert list(study.trials) == list(other.trials) == list(nr.Study.open(storage=url).trials)
    for number in (3, len(before) - 1, len(before), len(before) + 5):
        assert study.explain(number).repeated
    assert [change.kind for change in study.changes] == ["widened"]
    assert study.widen(context=WIDER) == study.policy.context  # nothing is recorded
    assert len(study.changes) == 1


def test_a_context_that_is_new_was_unknown():
    study = played()
    study.widen(context={"source": nr.Choice("mail", unknown=True), "age": nr.Int(0, 99, unknown=True)})
    assert study.trials[2].context.tolist() == [2 / 24, 0.0, 0.0, CHOSEN, 0.0, CHOSEN, 0.5, 1.0]
    assert study.trials[2].context_parameters == {"hour": 2.0, "device": "tablet"}
    trial = study.ask({"hour": 3, "device": "desk", "source": "mail"})
    assert trial.context_parameters == {"hour": 3.0, "device": "desk", "source": "mail", "age": None}
    study.widen(context={"channel": nr.Float(0, 1)}, was={"channel": 0.25})
    assert study.trials[2].context[-1] == 0.25
    assert study.trials[-1].context[-1] == 0.25
    assert study.explain(len(study.trials) - 1).repeated


def test_ranges_of_contexts_change_and_declared_levels_stay():
    study = played()
    study.widen(context={"hour": nr.Float(0, 48, unknown=True), "device": nr.Choice("desk", unknown=True)})
    assert study.trials[1].context.tolist() == [1 / 48, 0.0, 0.0, CHOSEN]  # "phone" is no level any more
    study.widen(context=WIDER)
    assert study.trials[1].context.tolist() == [1 / 48, 0.0, 0.0, CHOSEN, 0.0, 0.0]
    assert study.ask({}).context_parameters == {"hour": None, "device": None}


def test_arms_come_and_go_between_changes_of_contexts(url):
    study = played(60, storage=url)
    study.add_arms([[7.0]])
    study.widen(context=WIDER)
    played(4, study=study, begin=60)
    study.retire_arm(0)
    study.add_arms([[8.0]])
    study.widen(context={"hour": nr.Float(0, 48)})
    played(4, study=study, begin=64)
    assert len(study.policy.domain) == 6
    again = nr.Study.open(storage=url)
    assert list(again.trials) == list(study.trials)
    assert again.policy == study.policy
    assert all(study.explain(number).repeated for number in (58, 59, 60, 63, 64, 67))
    assert again.ask(context(1)).point == nr.Study.open(storage=url).trials[-1].point


def test_a_program_goes_on_with_contexts_of_then_or_of_now(url):
    played(8, storage=url).widen(context=WIDER)
    for under in (SHOP, nr.Space(hour=SHOP.parameters["hour"], **WIDER)):
        study = nr.Study(nr.auto(ARMS, context=under), seed=0, propensities=True, storage=url)
        assert study.policy.context.parameters["device"] == WIDER["device"]
    with pytest.raises(InvalidInput, match="was made with other values: context"):
        nr.Study(nr.auto(ARMS, context=CONTEXT), seed=0, propensities=True, storage=url)


def test_another_process_reads_contexts_and_points_in_the_spaces_of_now(places):
    url = places("sqlite")()
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1)), context=SHOP), storage=url)
    other, third = nr.Study.open(storage=url), nr.Study.open(storage=url)
    study.widen(context={"hour": nr.Float(0, 48), **WIDER})
    study.widen(x=nr.Float(0, 4))
    assert other.ask({"hour": 12, "device": "tablet"}).context.tolist() == [0.25, CHOSEN, 0.0, 0.0, 0.0]
    added = third.add({"x": 0.5}, 1.0, context={"hour": 12, "device": "tablet"})
    assert (added.context_parameters, added.parameters) == ({"hour": 12.0, "device": "tablet"}, {"x": 0.5})
    assert list(nr.Study.open(storage=url).trials) == list(study.trials)


def test_changes_of_contexts_that_cannot_be_are_refused():
    study = played(4)
    for changed, words in [
        ({"device": nr.Choice("desk")}, "cannot lose `unknown`"),
        ({"hour": nr.Choice(1, 2)}, "options have no place in a range"),
        ({"source": nr.Choice("mail")}, "`was` says which"),
        ({"hour": None}, "cannot be taken out"),
        ({"hour": 3}, "must be a Float, Int or Choice"),
        ({}, "Nothing was given to change"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            study.widen(context=changed)
    with pytest.raises(InvalidInput, match="one after the other"):
        study.widen(context=WIDER, x=nr.Float(0, 1))
    with pytest.raises(InvalidInput, match="and this study takes none"):
        nr.Study(nr.auto(nr.Arms(range(3)))).widen(context=WIDER)
    with pytest.raises(InvalidInput, match="and this study has Box"):
        nr.Study(nr.auto(nr.Arms(range(3)), context=nr.Box(0, 1))).widen(context=WIDER)
    with pytest.raises(InvalidInput, match="what is unknown cannot be chosen"):
        nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1)))).widen(x=nr.Float(0, 1, unknown=True))
    assert not study.changes


def test_a_parameter_of_the_space_may_be_called_context():
    study = nr.Study(nr.auto(nr.Space(context=nr.Float(0, 1))))
    assert study.widen(context=nr.Float(0, 2)) == nr.Space(context=nr.Float(0, 2))


def test_a_damaged_change_of_contexts_is_refused(places):
    url = places("sqlite")()
    study = played(8, storage=url)
    study.widen(context=WIDER)
    (change,) = study.changes
    for body in ({**change.body, "of": "points"}, {**change.body, "before": to_plain(CONTEXT)}):
        with pytest.raises(InvalidInput, match="Event"):
            Spaces(study.replica.made, [change._replace(body=body)])


# -- what is said ----------------------------------------------------------------------------------------------------


def test_a_caution_says_how_many_decisions_were_unknown():
    study = nr.Study(nr.auto(ARMS, context=SHOP))
    study.quiet = True
    for i in range(16):
        device = "tablet" if i < 5 else "tv" if i == 6 else None if i == 7 else "desk"
        study.tell(study.ask({"hour": i, "device": device}), 1.0)
    (said,) = study.held_warnings.values()
    assert said.startswith("44% of 16 decisions had an unknown device: tablet 5, tv 1, none given 1. They were decided")
    (found,) = unknown_levels(study.policy, study.trials)
    assert (found.name, found.times, found.trials) == ("device", 7, 16)
    study.widen(context=WIDER)
    (found,) = unknown_levels(study.policy, study.trials)
    assert found.sentence == "12% of 16 decisions had an unknown device: tv 1, none given 1."
    assert unknown_levels(nr.auto(ARMS), study.trials) == []
    few = [
        trial._replace(visit=Visit(given=(("device", each),)))
        for trial, each in zip(study.trials[:5], "abcde", strict=True)
    ]
    (found,) = unknown_levels(study.policy, few)
    assert found.sentence.endswith("device: a 1, b 1, c 1, 2 further levels 2.")


def test_few_unknown_decisions_are_no_caution():
    study = nr.Study(nr.auto(ARMS, context=SHOP))
    study.quiet = True
    for i in range(64):
        study.tell(study.ask({"hour": i % 24, "device": "tablet" if i in (3, 20) else "desk"}), float(i % 3))
    assert study.held_warnings == {}


# -- from outside ----------------------------------------------------------------------------------------------------

TABLES = {"device": {"type": "choice", "options": ["phone", "desk"], "unknown": True}}
LATER = {"device": {"type": "choice", "options": ["phone", "desk", "tablet"], "unknown": True}}


def test_unknown_levels_over_http():
    with Client(MemoryStorage()) as client:
        made = {"arms": [[0.0], [1.0]], "context": {"hour": {"type": "float", "low": 0, "high": 24}, **TABLES}}
        assert client.put(AT, {**made, "propensities": True})[0] == 201
        for device in ({"device": "tablet"}, {"device": None}, {}, {"device": "desk"}):
            status, said = client.post(f"{AT}/decisions", {"context": {"hour": 3, **device}})
            found = client.get(f"{AT}/decisions/{said['decisions'][0]['id']}")[1]
            assert (status, found["context"]) == (201, {"hour": 3.0, "device": None} | device)
        assert client.post(f"{AT}/decisions", {"context": {"hour": None, "device": "desk"}})[0] == 422
        assert client.post(f"{AT}/decisions", {"context": {"hour": 3, "device": ["a"]}})[0] == 422
        status, said = client.post(f"{AT}/widen", {"context": LATER}, key="one")
        assert (status, from_plain(said["space"]).parameters["device"].declared) == (200, ("phone", "desk", "tablet"))
        assert client.post(f"{AT}/widen", {"context": LATER}, key="one")[1] == said
        assert client.get(AT)[1]["policy"]["context"] == said["space"]
        assert [each["kind"] for each in client.get(f"{AT}/events")[1]["events"]][-1] == "widened"
        for wrong in ({}, {"context": {}}, {"context": LATER, "parameters": LATER}, {"context": {"device": 3}}):
            assert client.post(f"{AT}/widen", wrong)[0] == 422
        assert client.post(f"{AT}/widen", {"parameters": LATER})[0] == 422
        observed = {"arm": 1, "reward": 1.0, "context": {"hour": 2, "device": "fridge"}}
        status, said = client.post(f"{AT}/observations", observed)
        assert (status, said["number"]) == (201, 4)


def test_unknown_levels_of_the_client():
    with Serving() as service:
        study = Remote(service.url).create("shop", nr.auto(ARMS, context=SHOP))
        decision = study.ask({"hour": 3, "device": "tablet"})
        assert decision.context == {"hour": 3.0, "device": "tablet"}
        assert study.widen(context=WIDER).parameters["device"] == WIDER["device"]
        assert study.ask({"hour": 3, "device": "tablet"}).context == {"hour": 3.0, "device": "tablet"}
        with pytest.raises(nr.NoRegretError, match="cannot lose `unknown`"):
            study.widen(context={"device": nr.Choice("desk")})


def test_contexts_change_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    played(4, storage="sqlite:///a.db").close()
    run("ask", "a.db", "study", "--context", '{"hour": 3, "device": "fridge"}')
    said = run("widen", "a.db", "study", json.dumps(LATER), "--context")
    assert "device: Choice(options=('phone', 'desk', 'tablet'), unknown=True)" in said
    study = nr.Study.open(storage="sqlite:///a.db")
    assert study.policy.context.decode(study.trials[2].context)["device"] == "tablet"
    assert study.trials[4].context_parameters["device"] == "fridge"
    run("widen", "a.db", "study", json.dumps(LATER), code=1)


def test_a_file_declares_unknown_levels():
    table = '{ type = "choice", options = ["phone"], unknown = true }'
    assert parameter(tomllib.loads(f"device = {table}")["device"]) == nr.Choice("phone", unknown=True)
    with pytest.raises(InvalidInput, match="`unknown` must be true or false, and is a text"):
        parameter({"type": "choice", "options": ["phone"], "unknown": "yes"})


def test_a_space_of_contexts_may_be_given_whole():
    study = nr.Study(nr.auto(nr.Arms(range(2)), context=nr.Space(d=nr.Choice("p", "q", unknown=True))))
    study.widen(context=nr.Space(d=nr.Choice("p", "q", "z", unknown=True)))
    assert study.ask({"d": "z"}).context_parameters == {"d": "z"}
