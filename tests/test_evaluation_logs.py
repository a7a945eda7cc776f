"""Logs in files, of this package and of others."""

import gzip
import json

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.tables import read_table
from nilregret.evaluation.log import log_of_table

CSV = "id,context.hour,context.device,action,propensity,reward\na,9,mobile,x,0.5,1\nb,,web,y,0.25,\nc,3,web,x,.5,0\n"
VW = """1:2:0.4 | a c:2
3:0.5:0.2 |user age:30 city=rome |item b d

4:1.2:0.5 tag| a b c
"""
ADF = """shared | hour=9
| kind=news
0:-1:0.25 | kind=sports

shared | hour=10
1:0:0.75 | kind=news
| kind=sports
"""


def dsjson(number, action, cost, p, **more):
    tags = more.pop("tags", ["news", "sports"])
    return {
        "_label_cost": cost, "_label_probability": p, "_label_Action": action, "_labelIndex": action - 1,
        "EventId": f"e{number}", "a": [action, 3 - action], "p": [p, 1 - p],
        "c": {"User": {"tier": "pro"}, "_multi": [{"_tag": tag} if tag else {"x": 1} for tag in tags]},
    } | more  # fmt: skip


GITTINS = [
    {"event": "decision", "bits": 8, "context": {"hour": 9}, "candidates": [["a", {}], ["b", {"d": 0.1}]],
     "record": {"decision_id": "w:0", "t": 0.0, "chosen": 1, "propensity": 0.25, "salt": "w"}},
    {"event": "resolution", "decision_id": "w:0", "kind": "rewarded", "reward": 1.0},
    {"event": "decision", "bits": 8, "context": {}, "candidates": [["a", {}], ["b", {}], ["c", {}]],
     "record": {"decision_id": "w:1", "t": 0.0, "chosen": 0, "propensity": 0.5, "salt": "w"}},
    {"event": "decision", "bits": 8, "context": {}, "candidates": [["a", {}], ["b", {}]],
     "record": {"decision_id": "w:2", "t": 0.0, "chosen": 0, "propensity": 0.75, "salt": "w"}},
    {"event": "resolution", "decision_id": "w:2", "kind": "expired", "reward": 0.0},
]  # fmt: skip


def read(path):
    return log_of_table(read_table(path))


def written(folder, text, name="log.txt"):
    path = folder / name
    path.write_text(text if isinstance(text, str) else "".join(json.dumps(each) + "\n" for each in text))
    return path


def facts(log):
    return [log.actions[i] for i in log.taken], log.propensities.tolist(), log.rewards.tolist()


def test_a_table_in_a_file(tmp_path):
    log = read(written(tmp_path, CSV))
    assert log.actions == ("x", "y")
    assert facts(log)[:2] == (["x", "y", "x"], [0.5, 0.25, 0.5])
    np.testing.assert_array_equal(log.rewards, [1, np.nan, 0])
    assert log.contexts[1] == {"hour": None, "device": "web"}


def test_whole_numbers_of_a_table_are_numbers(tmp_path):
    log = read(written(tmp_path, "context.0,context.1,arm,propensity,reward\n1,2.5,0,0.5,1\n3,4,2,0.5,1\n"))
    assert log.actions == (0, 2)
    np.testing.assert_array_equal(log.contexts, [[1, 2.5], [3, 4]])


def test_json_lines_and_compressed_files(tmp_path):
    rows = [{"context": [1, 2], "action": "a", "propensity": 0.5, "reward": True}, {"action": "b", "propensity": 0.5}]
    log = read(written(tmp_path, rows))
    np.testing.assert_array_equal(log.rewards, [1, np.nan])
    assert log.contexts == [[1, 2], None]
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress((tmp_path / "log.txt").read_bytes()))
    assert facts(read(tmp_path / "log.jsonl.gz"))[:2] == facts(log)[:2]


def test_text_of_vowpal_wabbit(tmp_path):
    log = read(written(tmp_path, VW))
    assert facts(log) == ([1, 3, 4], [0.4, 0.2, 0.5], [-2.0, -0.5, -1.2])
    assert log.contexts[0] == {"a": 1.0, "c": 2.0}
    assert log.contexts[1] == {"user.age": 30.0, "user.city=rome": 1.0, "item.b": 1.0, "item.d": 1.0}
    result = nr.evaluate(written(tmp_path, VW * 40), {1: 0.5, 3: 0.5}, reward_range=(-2, 0))
    assert result.rows == 120


def test_blocks_of_vowpal_wabbit(tmp_path):
    log = read(written(tmp_path, ADF))
    assert facts(log) == ([2, 1], [0.25, 0.75], [1.0, 0.0])
    assert log.actions == (1, 2)
    assert log.contexts == [{"hour=9": 1.0}, {"hour=10": 1.0}]


def test_dsjson_of_personalizer(tmp_path):
    events = [
        dsjson(0, 1, -1, 0.8), dsjson(1, 2, 0, 0.2), dsjson(2, 2, -1, 0.2, _skipLearn=True),
        {"RewardValue": 1.0, "EventId": "e9"}, dsjson(3, 2, -0.5, 0.3),
    ]  # fmt: skip
    log = read(written(tmp_path, events))
    assert facts(log) == (["news", "sports", "sports"], [0.8, 0.2, 0.3], [1.0, 0.0, 0.5])
    assert log.contexts[0] == {"User": {"tier": "pro"}}
    unnamed = read(written(tmp_path, [dsjson(0, 2, -1, 0.8, tags=[None, None])]))
    assert facts(unnamed) == ([2], [0.8], [1.0])


def test_candidates_that_come_and_go(tmp_path):
    events = [dsjson(i, 1 + i % 2, -1, 0.5, tags=["a", "b"] if i < 50 else ["b", "c"]) for i in range(100)]
    path = written(tmp_path, events)
    log = read(path)
    assert log.actions == ("a", "b", "c")
    np.testing.assert_array_equal(log.offered, np.full(100, 2.0))
    result = nr.evaluate(path, "uniform")
    assert result.estimates["ips"] == pytest.approx(1.0)
    assert result.check.actions == {}


def test_the_log_of_gittins(tmp_path):
    log = read(written(tmp_path, GITTINS))
    assert facts(log)[:2] == (["b", "a", "a"], [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(log.rewards, [1, np.nan, 0])
    np.testing.assert_array_equal(log.offered, [2, 3, 2])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("action,propensity,reward\n", "has no decisions"),
        ("action,propensity\n1,0.5\n", "one of them must be `reward`"),
        ('{"action": 1\n', "Line 1 of .* is no JSON object"),
        ("1:x:0.5 | a\n", "Line 1 begins with '1:x:0.5'"),
        ("1:1:0 | a\n", "propensity 0"),
        ("shared | a\n| b\n\n", "0 actions with a label"),
        ([dsjson(0, 0, -1, 0.5)], "Event 1 of the log has no usable _label_Action"),
        ([dsjson(0, 7, -1, 0.5)], "Event 1 of the log has no usable _label_Action"),
        ([dsjson(0, 1, -1, 0.5), dsjson(0, 1, -1, 0.5)], "the same event, 'e0'"),
        ([{"_outcomes": []}], "several slots"),
        (GITTINS[:1] * 2, "the same event, 'w:0'"),
        ([{"event": "decision"}], "neither a decision nor a resolution of gittins"),
    ],
)
def test_files_that_cannot_be_read(text, sentence, tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        read(written(tmp_path, text))


def test_files_that_are_no_text(tmp_path):
    (tmp_path / "log").write_bytes(b"\xff\xfe\x00PAR1")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(CSV.encode())[:-20])
    for path in (tmp_path / "log", tmp_path / "cut.gz", tmp_path / "none.csv", tmp_path):
        with pytest.raises(nr.errors.InvalidInput, match="cannot be read"):
            nr.evaluate(path, "uniform")
