"""Hostile texts and rows, as many as one likes, all from one seed; judged by what comes of reading them.

A text of a policy is read and, where it is accepted, worked with; a row of a study is changed in its file, which is
then opened and worked with. Anything but `InvalidInput` and `StorageError` is a foreign exception; a change that is
accepted although it could not have come about is a silent acceptance; a file made by a command hidden in a value is
an execution.
"""

import contextlib
import json
import random
import shutil
import sqlite3
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import nilregret as nr

COMMAND = "$(touch ran); `touch ran`; '; touch ran; '"
DEEP = "[" * 5000 + "]" * 5000
WHOLE = [-1, 0, 1, 2, 3, 7, 2**31, 2**53 + 1, 2**62, 10**400, -(10**400)]
REAL = [0.5, -0.5, 1e-320, 1e300, -1e308]
TEXTS = ["", " ", "x", "a" * 100_000, "\ud800", "\0", COMMAND, "__class__", "worst"]
PARTS = [
    None, True, False, *WHOLE, *REAL, *TEXTS, [], {}, [[]], [[], {}], [1, 2], [1, "x"], [None], [[0.5]],
    {"type": []}, {"type": {}}, {"type": None}, {"type": 3}, {"type": "os.system", "command": COMMAND},
    {"type": "infinity"}, {"type": "infinity", "sign": "x"}, {"type": "infinity", "sign": 1}, {"type": "Matern"},
    {"type": "Matern", "nu": "2.5", "lengthscale": 1, "scale": 1}, {"type": "Box", "lower": [0], "upper": [1]},
    {"type": "Box", "lower": [1], "upper": [0]}, {"type": "Choice", "options": "abc"}, {"type": "Forever", "rounds": 3},
    {"type": "Arms", "points": [[0.0]], "space": 1}, {"type": "Arms", "space": 1, "counts": []},
    {"type": "Space", "parameters": [["x"]]}, {"type": "Space", "parameters": {}}, {"type": "Ignored", "failed": []},
]  # fmt: skip
RAW = [
    "", "{", "nul", "[]", "1", '"x"', "null", "NaN", "Infinity", '{"type": "Policy"}', DEEP,
    '{"a":' * 3000 + "1" + "}" * 3000,
    b"\xff\xfe\xff", b"", None, 5, '{"type": "Policy", "type": "Policy"}', "1" * 5000, "\ud800", "[1,]",
]  # fmt: skip


def policies():
    """One of each kind of domain, with as many kinds of parts as fit."""
    arms, box = nr.Arms([[0.0], [0.5], [1.0]]), nr.Box([0.0], [1.0])
    space = nr.Space(x=nr.Float(0.1, 10.0, log=True), n=nr.Int(1, 3), kind=nr.Choice("a", COMMAND))
    kernel = nr.Matern(2.5, 0.5)
    return [
        nr.gp_ucb(arms, kernel, noise=0.1),
        nr.gp_ucb(space.grid(2), kernel, noise=0.1, pending="hallucinate"),
        nr.gp_ucb(box, nr.SquaredExponential(0.3).on(0) + kernel, noise=0.1, context=nr.Arms([0.0, 1.0]), a=1.0, b=1.0),
        nr.gp_ucb_cpd(arms, kernel, noise=0.1, horizon=100),
        nr.gp_ucb(
            arms,
            kernel,
            noise=0.1,
            pending=nr.slots.Censored(minimum=-9.0, window=2.0),
            memory=nr.slots.SlidingWindow(5),
        ),
        nr.expected_improvement(space, kernel, noise=0.1, refit=nr.slots.Refit(every=5)),
        nr.auto(arms, context=box),
        nr.auto(space.grid(2), context=box),
        nr.gp_bucb(arms, nr.kernels.RandomFeatures(kernel, 16), noise=0.1, beta=1.0, explore=nr.slots.Uniform(0.2)),
    ]


# -- texts -----------------------------------------------------------------------------------------------------------


def texts(count, seed):
    """Hostile texts for `Policy.from_json`."""
    luck, good = random.Random(seed), [json.loads(policy.to_json()) for policy in policies()]
    yield from RAW[:count]
    for _ in range(count - len(RAW)):
        data = json.loads(json.dumps(luck.choice(good)))
        for _ in range(luck.choice([1, 1, 2])):
            _spoil(data, luck)
        text = json.dumps(data)
        if luck.random() < 0.15:
            at = luck.randrange(len(text))
            text = (
                text[:at]
                + luck.choice(["", DEEP, "\0", '"', "}", "1e999", "9" * 5000])
                + text[at + luck.randint(0, 9) :]
            )
        yield text


def _spoil(data, luck):
    """Change one entry, anywhere in nested dicts and lists."""
    places = []

    def walk(node):
        for key, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            places.append((node, key))
            if isinstance(value, dict | list):
                walk(value)

    walk(data)
    if not places:
        return
    node, key = luck.choice(places)
    act = luck.random()
    if act < 0.15:
        del node[key]
    elif act < 0.25 and isinstance(node, dict):
        node[luck.choice(["", "__class__", "self", "type", "x"])] = luck.choice(PARTS)
    elif act < 0.35:
        other, place = luck.choice(places)
        node[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
    else:
        node[key] = luck.choice(PARTS)


def judge_text(text):
    """ "refused", "used" (it says again what it said, and can be worked with), "foreign: ..." or "silent: ..."."""
    try:
        policy = nr.Policy.from_json(text)
        again = policy.to_json()
        _work(nr.Study(policy), policy)
    except nr.NoRegretError:
        return "refused"
    except Exception as error:
        return f"foreign: {type(error).__name__}: {error}"[:300]
    if nr.Policy.from_json(again) != policy or not _covers(json.loads(text), json.loads(again)):
        return f"silent: {_first_difference(json.loads(text), json.loads(again))}"[:300]
    return "used"


def _work(study, policy, rounds=2):
    domain = policy.context
    context = None if domain is None else domain.points[0] if isinstance(domain, nr.Arms) else domain.lower
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is extreme but possible: lengthscales of 1e-320
        for _ in range(rounds):
            study.tell(study.ask(context), 0.5)


def _covers(given, kept):
    """Whether all that a text says is in what was made of it; what it leaves out has a default."""
    return _first_difference(given, kept) is None


def _first_difference(given, kept):
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept:
                return f"{key!r} is gone"
            found = _first_difference(value, kept[key])
            if found:
                return f"{key}: {found}"
        return None
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return next(filter(None, map(_first_difference, given, kept)), None)
    number = isinstance(given, int | float) and isinstance(kept, int | float)
    same = given == kept
    if number:  # a whole number for a float is that float
        same = (type(given) is type(kept) and same) or (isinstance(kept, float) and float(given) == kept)
    if isinstance(given, int | float) and not isinstance(given, bool) and isinstance(kept, list):
        same = kept in ([given], [[given]])  # a number for an array of one
    if isinstance(given, list) and isinstance(kept, list):
        same = same or np.array_equal(np.ravel(given), np.ravel(kept))  # (n,) is read as n points of one dimension
    return None if same else f"{given!r} became {kept!r}"


# -- rows ------------------------------------------------------------------------------------------------------------


def make_templates(folder):
    """A stored study of each policy, with observed, failed, added and pending trials."""
    result = []
    for number, policy in enumerate(policies()):
        path = Path(folder) / f"template-{number}.db"
        study = nr.Study(policy, seed=number, storage=f"sqlite:///{path}")
        domain = policy.context
        context = None if domain is None else domain.points[0] if isinstance(domain, nr.Arms) else domain.lower
        trials = [study.ask(context) for _ in range(5)]
        study.tell(trials[2], 0.25)
        study.tell(trials[0], -0.5)
        study.fail(trials[1], "broken")
        study.add(trials[0].point, 0.75, context=context)
        study.abandon(trials[3], "gone")
        study.tell(trials[3], 0.2)
        study.tell(trials[2], 0.3, revise=True)
        study.tell(study.ask(context, lease=60.0), 0.1, constraints=[0.5])
        study.close()
        result.append((path, study, list(study.trials)))
    return result


COLUMNS = [
    "number", "state", "arm", "point", "parameters", "context", "explored", "reward", "reason", "asked_order",
    "asked_at", "told_order", "told_at", "constraints", "constraints_order", "lease_until", "abandoned_order",
    "abandoned_at", "abandoned_reason", "corrected", "last_order",
]  # fmt: skip
STUDY_COLUMNS = ["name", "policy", "goal", "seed", "about", "format", "created_at", "events", "stamp"]
VALUES = [
    None, -1, 0, 1, 2, 3, 4, 99, 2**62, 0.5, -0.5, 1e101, 1e300, float("inf"), -float("inf"), "", "x", "[1]", "[]",
    "{}", "[{}]",
    '[{"order": 1, "time": 1.0, "reward": 0.5, "reason": null, "constraints": null}]',
    "[[0.5]]", "[0.5]", "[NaN]", "[1e999]", '["x"]', "null", "[" * 3000 + "]" * 3000, '{"x": "' + COMMAND + '"}',
    '{"x": 1, "x": 2}', "pending", "observed", "failed", COMMAND, b"\xff\xfe", b"", "9" * 5000, "2", "1.5", "[true]",
]  # fmt: skip
INVALID_TEXT = "CAST(x'fffe41' AS TEXT)"


def spoil_row(path, luck):
    """Change one study in its file; returns what was done, in words."""
    table, columns = ("trials", COLUMNS) if luck.random() < 0.85 else ("studies", STUDY_COLUMNS)
    column = luck.choice(columns)
    where = f"WHERE number = {luck.randrange(7)}" if table == "trials" else ""
    act = luck.random()
    connection = sqlite3.connect(path)
    try:
        if act < 0.05 and table == "trials":
            statement, values = f"DELETE FROM trials {where}", ()
        elif act < 0.12 and table == "trials":
            other = luck.randrange(7)
            statement, values = (
                f"UPDATE trials SET {column} = (SELECT {column} FROM trials WHERE number = {other}) {where}",
                (),
            )
        elif act < 0.16:
            statement, values = f"UPDATE {table} SET {column} = {INVALID_TEXT} {where}", ()
        elif act < 0.24 and table == "trials":
            statement, values = f"UPDATE trials SET {column} = {column} + {luck.choice([-1, 1, 5, 0.5])} {where}", ()
        else:
            statement, values = f"UPDATE {table} SET {column} = ? {where}", (luck.choice(VALUES),)
        with contextlib.suppress(sqlite3.IntegrityError):  # then nothing was changed
            connection.execute(statement, values)
        connection.commit()
    finally:
        connection.close()
    return f"{statement} {values!r}"[:200]


def dump(path):
    """Everything in the two tables."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in ("studies", "trials")
        ]
    finally:
        connection.close()


def judge_row(template, path, luck):
    """ "unchanged", "refused", "used" (another record, but one that could be), "foreign: ..." or "silent: ..."."""
    source, original, known = template
    for file in Path(path).parent.glob(f"{Path(path).name}*"):
        file.unlink()
    shutil.copy(source, path)
    before = dump(path)
    what = spoil_row(path, luck)
    changed = dump(path)
    if changed == before:
        return "unchanged"
    spoilt = Path(path).read_bytes()
    try:
        study = nr.Study.open(storage=f"sqlite:///{path}")
        trials = list(study.trials)
        _work(study, study.policy, rounds=1)
        study.predict(study.trials[0].point, context=study.trials[0].context)
        study.close()
    except nr.NoRegretError:
        if Path(path).read_bytes() != spoilt:
            return f"silent: a refused file was written to: {what}"
        return "refused"
    except Exception as error:
        return f"foreign: {type(error).__name__}: {error} after {what}"[:300]
    return judge_change(study, original, trials, known, what)


def judge_change(study, original, trials, known, what):
    """Whether an accepted record is one that could have come about.

    Without a checksum some changes leave no trace: another seed, the last event gone, another point of a box.
    """
    if study.policy != original.policy or len(trials) not in (len(known), len(known) - 1):
        return f"silent: another study or number of trials: {what}"
    fixed = ["number", "arm", "asked_order", "told_order", "state", "settings", "late"]
    for trial, old in zip(trials, known, strict=False):
        same = all(getattr(trial, name) == getattr(old, name) for name in fixed)
        moved = trial.point.tobytes() != old.point.tobytes() and not isinstance(study.policy.domain, nr.Box)
        if not same or moved or not abs(trial.reward or 0.0) <= 1e100:
            return f"silent: trial {trial.number}: {what}"
    return "used"


def attack_texts(count, seed=0):
    """How often each came about, and what was wrong."""
    result = _counted(judge_text(text) for text in texts(count, seed))
    result[0]["executions"] = int((Path.cwd() / "ran").exists())
    return result


def attack_rows(count, folder, seed=0):
    """Likewise."""
    luck, templates = random.Random(seed), make_templates(folder)
    path = Path(folder) / "spoilt.db"
    result = _counted(judge_row(luck.choice(templates), path, luck) for _ in range(count))
    result[0]["executions"] = int((Path.cwd() / "ran").exists())
    return result


def _counted(judgements):
    counts, faults = Counter(), []
    for judgement in judgements:
        kind = judgement.split(":")[0]
        counts[kind] += 1
        if kind in ("foreign", "silent"):
            faults.append(judgement)
    return counts, faults
