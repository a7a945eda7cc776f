"""Cached states that were damaged or made up: the record is replayed as if there were none; nothing of them runs."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import numpy as np
import pytest

import noregret as nr
from noregret import image
from noregret.image.writing import MAGIC
from noregret.storage import MemoryStorage
from noregret.study import cached
from noregret.study.goal import begun

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.2), noise=0.3, refit=nr.Refit(every=8, restarts=0))
EVENTS = 24
WATCHED = ("os.", "subprocess.", "socket.", "shutil.", "exec", "compile", "open", "sqlite3", "ctypes", "pickle", "code")
watching, seen = [False], []


def watch(event, args):
    if watching[0] and event.startswith(WATCHED):
        seen.append((event, str(args)[:80]))


sys.addaudithook(watch)


def play(study, rounds=EVENTS // 2):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, float(np.sin(7.0 * trial.point[0])))
    return study


@pytest.fixture(scope="module")
def kept():
    """A study, with its state in its storage."""
    study = play(nr.Study(POLICY, seed=3, storage=MemoryStorage()))
    assert study._kept.keep_state().kept
    assert reopened(study)._kept.replayed == 0  # which also loads all that reading needs
    return study


def reopened(study):
    return nr.Study.open(storage=study._kept.place.storage)


def stored(study):
    place = study._kept.place
    return place.storage.state(place.study, key=study._kept.cache._key, most=cached.MOST)


def in_place_of(study, **changes):
    """The study opened with another row than was written; the digest is right unless it is among the changes."""
    place, good = study._kept.place, stored(study)
    if "content" in changes:
        changes = {"digest": hashlib.sha256(changes["content"]).hexdigest()} | changes
    place.storage.drop_state(place.study)
    place.storage.keep_state(place.study, good._replace(**changes))
    seen.clear()
    watching[0] = True
    try:
        other = reopened(study)
    finally:
        watching[0] = False
        place.storage.drop_state(place.study)
        place.storage.keep_state(place.study, good)
    return other


def check_replayed(study, other):
    assert (other._kept.cache.found_at, other._kept.replayed) == (0, EVENTS)
    assert other._kept.cache.unused
    assert seen == []
    one, two = (each._kept.state.decide() for each in (study, other))
    assert one.arm == two.arm
    assert np.array_equal(study.predict(), other.predict())


def parts(content):
    """The header of an image as values, and its memory."""
    length = int.from_bytes(content[8:16], "big")
    return msgspec.msgpack.decode(content[24 : 24 + length]), content[24 + length :]


def joined(header, memory):
    packed = msgspec.msgpack.encode(header)
    return MAGIC + len(packed).to_bytes(8, "big") + len(memory).to_bytes(8, "big") + packed + memory


def read(study, content):
    return image.read(content, anchors=image.Anchors(study.policy).at, trials=study._kept.record, most=cached.MOST)


# -- damage ------------------------------------------------------------------------------------------------------------


def test_a_byte_is_enough(kept):
    content = stored(kept).content
    for at in random.Random(0).sample(range(len(content)), 12):
        damaged = bytearray(content)
        damaged[at] ^= 1
        check_replayed(kept, in_place_of(kept, content=bytes(damaged), digest=stored(kept).digest))


@pytest.mark.parametrize(
    "change",
    [{"content": b""}, {"content": MAGIC}, {"digest": "0" * 64}, {"record": "0" * 64}, {"order": EVENTS + 1},
     {"order": EVENTS - 1}, {"order": 0}, {"order": -5}],
)  # fmt: skip
def test_rows_that_do_not_fit(kept, change):
    check_replayed(kept, in_place_of(kept, **change))


def test_a_damaged_row_is_thrown_away(kept):
    place = kept._kept.place
    good = stored(kept)
    place.storage.drop_state(place.study)
    place.storage.keep_state(place.study, good._replace(digest="0" * 64))
    reopened(kept)
    assert stored(kept) is None
    assert kept._kept.keep_state().kept


def test_whatever_bytes_it_is_given_the_reader_has_one_error(kept):
    """Damage that a digest would have shown: one who writes rows can write digests."""
    content, luck = stored(kept).content, random.Random(1)
    header = int.from_bytes(content[8:16], "big")
    read_well = 0
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(luck.randint(1, 3)):
            damaged[luck.randrange(24, 24 + header)] = luck.randrange(256)
        try:
            read(kept, bytes(damaged))
        except image.BadImage:
            continue
        read_well += 1
    assert read_well < 400
    for length in (0, 7, 8, 23, 24, 100, len(content) - 1):
        with pytest.raises(image.BadImage):
            read(kept, content[:length])


# -- made up -----------------------------------------------------------------------------------------------------------

NAMES = [
    "os:system", "subprocess:Popen", "builtins:eval", "storage.sql:SqlStorage", "noregret.storage.sql:SqlStorage",
    "study.study:Study", "tuning.shell:Shell", "..os:system", "policy.state:np", "policy.state:State.decide",
    "policy.state:math", "checks:shown", "policy:import_module", "slots:import_module", "domain:Path", "", ":",
    "policy", "policy.nowhere:State", "kernels.stationary:Kernel", "policy.state:State.__init__.__globals__",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_classes_that_no_state_is_made_of(kept, name):
    (classes, nodes, root), memory = parts(stored(kept).content)
    made_up = joined([[[name, fields] for _, fields in classes], nodes, root], memory)
    check_replayed(kept, in_place_of(kept, content=made_up))


STATE = "policy.state:State"


@pytest.mark.parametrize(
    "field", ["decide", "copy", "__class__", "__dict__", "__reduce__", "round", "saturated", "a b", "", "a.b", "é"]
)
def test_fields_that_would_hide_a_method(kept, field):
    with pytest.raises(image.BadImage):
        read(kept, joined([[[STATE, [field]]], [["x", 0, 1]], [0]], b""))


WHOLE = [0, 1, 2, 3]
NODES = {
    "an array larger than its memory": [["a", "<f8", [2**40], [0], True, 0, 16]],
    "an array larger than any": [["a", "<f8", [2**62, 2**62], [0, 1], True, 0, 16]],
    "an array of a negative length": [["a", "<f8", [-1], [0], True, 0, 16]],
    "an array of objects": [["a", "|O", [1], [0], True, 0, 8]],
    "an array of texts": [["a", "<U9999", [1], [0], True, 0, 16]],
    "a place between two": [["a", "<f8", [1], [0], True, 3, 8]],
    "an array of more than there may be": [["a", "<f8", [2**28], [0], True, 0, 16]],
    "an array of less than it has": [["a", "<f8", [1], [0], True, 0, 16]],
    "a view beyond its array": [["a", "<f8", [2], [0], True, 0, 16], ["v", [0], "<f8", [2], [8], True, 8]],
    "a view before its array": [["a", "<f8", [2], [0], True, 0, 16], ["v", [0], "<f8", [2], [-8], True, 0]],
    "a view that is larger": [["a", "<f8", [2], [0], True, 0, 16], ["v", [0], "<f8", [2**40], [0], True, 0]],
    "a view of a list": [["l"], ["v", [0], "<f8", [1], [8], True, 0]],
    "a node that is not there": [["l", [7]]],
    "a node before the first": [["l", [-1]]],
    "a tuple of itself": [["t", [0]]],
    "two tuples of each other": [["t", [1]], ["t", [0]]],
    "a method of a kind that has none": [["x", 0], ["b", [0], "__init_subclass__"]],
    "a method that is none": [["x", 0], ["b", [0], "round"]],
    "a part of a class": [["k", ""], ["p", [0], [], []]],
    "a member of no enumeration": [["e", 0, "name"]],
    "a trial that is not there": [["r", 10**9]],
    "a field of a trial that is not there": [["g", 0, 99]],
    "a way to nowhere": [["k", ".__class__"]],
    "an unknown kind": [["z", 1]],
    "no kind": [[]],
    "no list": [7],
    "a list as a key": [["l"], ["d", [0], 1]],
    "a key without a value": [["d", 1]],
    "a deque of a negative length": [["q", -1]],
    "a whole number of many digits": [["i", "f" * 2 + "g"]],
    "a number of no type": [["n", "|V9", b"123456789"]],
    "a tuple with names of another length": [["m", 1, 1, 2]],
    "an object that is a tuple": [["x", 1, 1]],
}


def test_nodes_that_can_be(kept):
    """What the ones below are to be told from; and zeros at the end of an array are not written."""
    nodes = [
        ["a", "<f8", [3], [0], True, 0, 16],
        ["v", [0], "<f8", [2], [8], False, 8],
        ["q", 2, 1, 2],
        ["t", [1], [2]],
    ]
    view, queue = read(kept, joined([[], nodes, [3]], np.array([1.0, 2.0]).tobytes()))
    assert (view.tolist(), view.base.tolist(), list(queue)) == ([2.0, 0.0], [1.0, 2.0, 0.0], [1, 2])
    assert (view.flags.writeable, view.base.flags.writeable, view.flags.owndata) == (False, True, False)


@pytest.mark.parametrize("name", NODES)
def test_nodes_that_cannot_be(kept, name):
    content = joined([[[STATE, []], ["trial:Trial", ["number"]]], NODES[name], [len(NODES[name]) - 1]], b"\0" * 16)
    check_replayed(kept, in_place_of(kept, content=content))


def test_keys_without_end(kept):
    """Each tuple holds the one before it twice, or once: hashes would take for ever, or all of the stack."""
    twice = [["t", 1], *(["t", [i], [i]] for i in range(60)), ["d", [60], 1]]
    deep = [["t", 1], *(["t", [i]] for i in range(5_000))]
    for nodes in (twice, deep):
        with pytest.raises(image.BadImage, match="without end"):
            read(kept, joined([[], nodes, [len(nodes) - 1]], b""))


@pytest.mark.parametrize("root", [None, 1, "x", [0]])
def test_what_is_no_state(kept, root):
    check_replayed(kept, in_place_of(kept, content=joined([[], [["l"]], root], b"")))


def test_a_state_whose_parts_are_of_the_wrong_kind_is_replayed_when_it_fails(kept):
    """An object of the right class with nothing in it: it fails at the first event that comes later."""
    hollow = joined([[[STATE, ["policy"]]], [["x", 0, [1]], ["k", ""]], [0]], b"")
    content = stored(kept)
    short = kept._kept.record.as_of(EVENTS - 2)
    other = in_place_of(kept, content=hollow, order=EVENTS - 2, record=cached.digest_of(short))
    assert content.order == EVENTS
    check_replayed(kept, other)


def test_where_it_cannot_be_thrown_away_the_record_is_replayed_all_the_same(kept, monkeypatch):
    """A database that can only be read, with a state in it that fails."""

    def refused(*_):
        raise nr.StorageError("read-only")

    hollow = joined([[[STATE, ["policy"]]], [["x", 0, [1]], ["k", ""]], [0]], b"")
    short = cached.digest_of(kept._kept.record.as_of(EVENTS - 2))
    place, good = kept._kept.place, stored(kept)
    place.storage.drop_state(place.study)
    bad = good._replace(content=hollow, digest=hashlib.sha256(hollow).hexdigest(), record=short, order=EVENTS - 2)
    place.storage.keep_state(place.study, bad)
    with monkeypatch.context() as patched:
        patched.setattr(place.storage, "drop_state", refused)
        assert reopened(kept)._kept.replayed == EVENTS
    place.storage.keep_state(place.study, good)


def test_the_policy_and_the_trials_cannot_be_written_to(kept):
    """What an image shares with the study stays as it is: views of its arrays can be looked at and no more."""
    nodes = [["k", ".domain.points"], ["v", [0], "<f8", [1], [8], True, 0]]
    with pytest.raises(image.BadImage):
        read(kept, joined([[], nodes, [1]], b""))
    nodes = [["g", 0, 1], ["v", [0], "<f8", [1], [8], True, 0]]
    with pytest.raises(image.BadImage):
        read(kept, joined([[], nodes, [1]], b""))


# -- ends in the middle ------------------------------------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    import noregret as nr
    from noregret.storage.states import StateRows
    from tests.attacks.test_cached_states import POLICY, play
    study = play(nr.Study(POLICY, seed=3, storage=sys.argv[1]))
    there = StateRows._is_there
    def killed(rows, connection):
        there(rows, connection)
        rows._table.metadata.create_all(connection)
        os.kill(os.getpid(), signal.SIGKILL)
    StateRows._is_there = killed
    study._kept.keep_state()
"""


@pytest.mark.skipif(not hasattr(os, "kill"), reason="kill -9 needs a POSIX system")
def test_a_process_killed_while_it_keeps_a_state_has_lost_no_trial(tmp_path, kept):
    url = f"sqlite:///{tmp_path}/s.db"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), url]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == -signal.SIGKILL
    study = nr.Study.open(storage=url)
    assert (study._kept.cache.found_at, study._kept.replayed) == (0, EVENTS)
    assert np.array_equal(study.predict(), kept.predict())
    assert study._kept.keep_state().kept


def test_what_is_kept_is_of_this_study_alone(kept):
    """The row of another study, under this one's name: its policy, seed and events are others."""
    other = play(nr.Study(POLICY, seed=4, storage=MemoryStorage()))
    other._kept.keep_state()
    place, row = kept._kept.place, stored(other)
    cache = kept._kept.cache
    storage = MemoryStorage()
    storage.find_or_make("study", policy=place.study.policy, goal="maximize", seed=3, about="{}")
    storage.keep_state(storage.find("study"), row)
    alone = cached.Cache(POLICY, "maximize", 3, storage, storage.find("study"), cache._program)
    assert alone.found(kept._kept.record, begun(POLICY, "maximize", seed=3)) is None
