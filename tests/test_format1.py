"""Files of format 1 are read: each study opens, goes on as if it had never been closed, and explains itself.

`tests/format1/write.py` wrote the files. No later version changes them.
"""

import json

import pytest

import nilregret as nr
from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

from .format1 import service
from .format1.kinds import KINDS, Clock, gone_on, parted
from .format1.tables import FOLDER, restored
from .service import Client

DECISIONS = json.loads((FOLDER / "decisions.json").read_text())


def test_each_kind_has_a_file():
    assert {path.stem for path in FOLDER.glob("*.sql")} == {*KINDS, "service"}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_format_1_opens_goes_on_and_explains_itself(name, tmp_path):
    clock = Clock()
    clock.now += 60.0 * KINDS[name].rounds
    study = nr.Study.open(storage=restored(name, tmp_path), name=name, clock=clock)
    known = list(study.trials)
    assert parted(name, gone_on(name, study, clock), DECISIONS[name]) is None
    asked = [trial.number for trial in study.trials if trial.as_corrected().told_order != trial.asked_order]
    assert all(study.explain(number).repeated for number in (*asked[:2], *asked[-2:]))
    assert [trial.asked() for trial in study.trials[: len(known)]] == [trial.asked() for trial in known]


def test_what_was_told_is_in_a_file(tmp_path):
    url = restored("misfortunes", tmp_path)
    trials = nr.Study.open(storage=url, name="misfortunes", clock=Clock()).trials
    assert (dict(trials[0].metrics), trials[0].std) == ({"seconds": 1.5, "loss": 0.0}, 0.1)
    assert [trial.state for trial in trials[1:4]] == ["abandoned", "failed", "abandoned"]
    assert (trials[2].reason, trials[3].abandoned.reason) == ("it broke", "the machine was switched off")
    assert [answer.reward for answer in trials[4].corrected] == [pytest.approx(trials[4].reward + 0.4)]
    assert trials[6].reward == 0.25
    arms = nr.Study.open(storage=restored("arms_change", tmp_path), name="arms_change").arms
    assert (arms[0].name, arms[9].name, arms[9].about, arms[9].retired) == ("old", "new", {"colour": "red"}, True)
    front = nr.Study.open(storage=restored("objectives", tmp_path), name="objectives")
    assert front.goals == ("minimize", "maximize")
    assert (front.trials[0].values[1], front.trials[0].stds) == (10.0 * front.trials[0].point[0], (0.1, None))
    assert [answer.others for answer in front.trials[2].corrected] == [((9.0, None),)]
    assert [trial.state for trial in front.trials[1:5]] == ["failed", "observed", "pending", "observed"]
    assert (front.trials[4].values, front.trials[4].constraints.tolist()) == ((0.25, 1e-9), [0.0])
    curves = nr.Study.open(storage=restored("steps", tmp_path), name="steps").trials
    assert {trial.state for trial in curves} == {"observed", "stopped", "failed", "pending"}
    assert {report.verdict for trial in curves for report in trial.curve} == {"go", "stop", "spared"}
    facts = nr.Study.open(storage=restored("minimised", tmp_path), name="minimised")
    assert (facts.goal, facts.about) == ("minimize", {"units": "kg", "of": ["bread", 3]})


def test_a_log_in_a_file_is_evaluated(tmp_path):
    study = nr.Study.open(storage=restored("propensities", tmp_path), name="propensities")
    assert all(trial.propensity is not None for trial in study.trials)
    with pytest.warns(nr.errors.NoRegretWarning, match="few decisions"):
        found = nr.evaluate(study, "uniform")
    assert found.value == pytest.approx(DECISIONS["value of uniform"])


def test_the_service_goes_on_with_a_file(tmp_path):
    wanted = DECISIONS["service"]
    storage, clock = SqlStorage(restored("service", tmp_path)), Clock()
    clock.now += 60.0 * service.ROUNDS
    headers = {"Authorization": f"Bearer {wanted['secret']}"}
    tokens = Tokens(storage, clock=clock)
    tokens.refresh()
    assert tokens.check(wanted["secret"]) == tokens.check_session(wanted["cookie"]) is not None
    with Client(storage, clock=clock) as client:
        assert client.get(service.AT)[0] == 401
        said = client.run(client.send("PATCH", service.AT, {}, headers=headers))[1]
        assert (said["note"], said["tags"], said["paused"]) == ("of summer", ["a", "b"], False)
        for at, (id_, arm) in enumerate(wanted["first"]):
            again = service.decided(client, headers, f"visit-{at}")
            assert (again["id"], again["arm"]) == (id_, arm)
        told = client.run(service.answered(client, headers, wanted["first"][0][0], 1.0))
        assert (told[0], told[1]["late"], told[1]["counted"]) == (200, True, False)
        rounds = range(service.ROUNDS, service.ROUNDS + service.FURTHER)
        assert [service.round_(client, clock, headers, at)["arm"] for at in rounds] == wanted["further"]
    storage.close()
