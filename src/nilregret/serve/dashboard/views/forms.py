"""Forms of actions on a study: their fields, and the call of the API that a sent form stands for."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ...._utils.checks import shown, whole_in, written
from ...._utils.numerals import exact
from ....domains.domain import Arms, Domain, Space, space_of
from ....domains.options import readable, worded
from ....domains.parameters import Choice, Int
from ....errors import InvalidInput
from ....study.formatting import metrics_text
from ....study.study import Study
from ...wire.problems import about
from ...work.deadlines import Rule
from .pictures import has_front, names_of, reward_text, said_with, short

SHOWN = 20  # characters of a typed text in a sentence


def number(what: str, text: str) -> float:
    """Returns a typed number.

    Args:
        what: name of the field, which begins a sentence.
        text: as typed.

    Raises:
        InvalidInput: the text is no finite number.
    """
    value = written(text)
    if value is None or not math.isfinite(value):
        hint = " Write a decimal point, as in 12.5." if "," in text else ""
        raise InvalidInput(f"{what} is {text.strip()[:SHOWN]!r}: it must be a number, such as 0.5.{hint}")
    return value


def whole(what: str, text: str, *, negative: bool = True, digits: int = 15) -> int:
    """Returns a typed whole number.

    Args:
        what: name of the field, which begins a sentence.
        text: as typed.
        negative: whether it may be below 0.
        digits: that it may have.

    Raises:
        InvalidInput: the text is no such number.
    """
    typed = text.strip()
    found = whole_in(typed, digits=digits)
    if found is None or (typed.startswith("-") and not negative):
        raise InvalidInput(f"{what} is {typed[:SHOWN]!r}: it must be a whole number.")
    return found


def page_number(text: str) -> int:
    """Returns the number of a page in an address, from 1.

    Raises:
        InvalidInput: the text is no such number.
    """
    found = whole_in(text, digits=9)
    if found is None or found < 1:
        raise InvalidInput(f"There is no page {text[:SHOWN]!r}: pages are numbered from 1.")
    return found


def field_of(entry: str) -> str:
    """Returns the key of the field of an entry of a request, such as "reward-1" of "reward[1]"."""
    return entry.replace("[", "-").removesuffix("]")


LONGEST = 10_000  # characters of a value


class Action(NamedTuple):
    """An action of the dashboard.

    Attributes:
        title: on the page.
        verb: of the button.
        about: explanation for people.
        entries: entries of its form, besides the point and the context.
        point: whether the form asks for a point.
        context: whether the form asks for a context, if the study has contexts.
        trial: whether the form asks for the number of a trial.
    """

    title: str
    verb: str
    about: str
    entries: tuple[str, ...] = ()
    point: bool = False
    context: bool = False
    trial: bool = False


KEY = "reward-key"  # of one of several rewards; a form has a key of its own
ANSWER = ("reward", "std", "constraints", "metrics")
ACTIONS: dict[str, Action] = {
    "tell": Action(
        "Tell a reward", "Tell", "Records what came of a trial.", (KEY, *ANSWER), trial=True
    ),
    "correct": Action(
        "Correct a reward", "Correct", "Replaces the answer of a trial. The earlier one stays on record.",
        (KEY, *ANSWER), trial=True,
    ),
    "fail": Action(
        "Say that a trial failed", "Record the failure",
        "The point does not work. The policy avoids it, so after an accident give the trial up instead.", ("reason",),
        trial=True,
    ),
    "abandon": Action(
        "Give a trial up", "Give up", "Nobody works on the trial any more. It says nothing of its point.", ("reason",),
        trial=True,
    ),
    "report": Action(
        "Report a step", "Report", "Records the value of a running trial after a step.", ("step", "value"), trial=True
    ),
    "stop": Action(
        "Stop a trial", "Stop", "Ends a trial before its last step. It may teach the model, and is never the best.",
        ("why",), trial=True,
    ),
    "add": Action(
        "Add a point", "Add", "Records a reward at a point that was not asked for.", ANSWER,
        point=True, context=True,
    ),
    "ask": Action("Ask by hand", "Ask", "Lets the policy decide once.", context=True),
    "enqueue": Action("Try a point first", "Enqueue", "The next trials are of such points, each once.", point=True),
    "note": Action("Write a note", "Save", "A note on the study. The policy does not see it.", ("note",)),
    "trial-note": Action("Write a note on a trial", "Save", "The policy does not see it.", ("note",), trial=True),
    "tags": Action("Set tags", "Save", "Words to find the study by, with commas.", ("tags",)),
    "pause": Action("Pause", "Pause", "The service decides nothing more. Rewards are taken all the same."),
    "resume": Action("Go on", "Go on", "The service decides again."),
    "retire-arm": Action("Retire an arm", "Retire", "No later decision plays it. It keeps its number.", ("arm",)),
    "archive": Action("Archive", "Archive", "Lists leave the study out. Nothing is removed."),
    "unarchive": Action("Take out of the archive", "Take out", "Lists show the study again."),
    "rename": Action("Rename", "Rename", "Programs must use the new name from now on.", ("name",)),
}  # fmt: skip
LABELS = {
    "reward": "Reward", "std": "Standard deviation of its noise, if known", "reason": "Reason", "note": "Note",
    "constraints": "Constraint values, with commas", "tags": "Tags, with commas", "arm": "Number of the arm",
    "metrics": "Metrics, such as accuracy=0.9, epochs=12", "name": "New name", "trial": "Number of the trial",
    "step": "Step", "value": "Value after this step", "why": "Reason, or empty for that of the rule",
    KEY: "Key of the reward, such as click",
}  # fmt: skip
SHOWING = ("correct", "trial-note")  # actions whose form shows what is on record, so their trial comes first
VALUES = {"reward": "{}", "std": "Noise of {} (standard deviation)"}  # labels of what each of several objectives has
NEEDED = (KEY, "reward", "reason", "arm", "name", "trial", "step", "value")


class Call(NamedTuple):
    """A call of the API.

    Attributes:
        method: of HTTP.
        path: behind the address of the study. "{id}" stands for the id of the trial.
        body: JSON.
        said: the action in words, to be confirmed.
        trial: number of the trial, or None.
    """

    method: str
    path: str
    body: dict[str, Any]
    said: str
    trial: int | None = None


def seal(identity: tuple[Any, ...], action: str, shown: object) -> str:
    """Returns a text that binds a form to one study, one action and what it shows, so that no other form is taken."""
    return hashlib.sha256(repr((identity, action, shown)).encode("utf-8", "replace")).hexdigest()[:24]


def fields(study: Study, action: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the fields of a form: name, label, value, and options if there are some.

    Args:
        study: with any policy.
        action: a key of `ACTIONS`.
        given: values by name of the field.
    """
    which = ACTIONS[action]
    found = [_plain("trial", given)] * (which.trial and action not in SHOWING)
    if which.context and study.policy.context is not None and not _chooses(study, action):
        found += _of_domain(study.policy.context, "c", given)
    if which.point:
        found += _of_domain(study.policy.domain, "p", given, some=action == "enqueue")
    without = set() if study.policy.constraint_count else {"constraints"}
    without |= set() if Rule.of(dict(study.about)).reward is not None else {KEY}
    entries = [name for name in which.entries if name not in without]
    return found + [field for name in entries for field in _of_entry(study, name, given)]


def _chooses(study: Study, action: str) -> bool:
    """Returns whether the policy chooses the context of an action itself, by a fidelity."""
    return action == "ask" and study.inputs.full is not None


def _of_entry(study: Study, name: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns the field of an entry, or one for each objective by its name, beside which its error stands."""
    more = {"help": "empty if unknown" * (name == "std"), "beside": True} if has_front(study) and name in VALUES else {}
    return [
        _plain(name, given) | {"key": key, "label": label, "value": given.get(key, "")} | more
        for key, label in _keys(study, name)
    ]


def _keys(study: Study, name: str) -> list[tuple[str, str]]:
    """Returns the keys and labels of the fields of an entry: "reward", or "reward-0", ... of several objectives."""
    if name not in VALUES or not has_front(study):
        return [(name, LABELS[name])]
    return [(f"{name}-{j}", VALUES[name].format(of)) for j, of in enumerate(names_of(study))]


def trial_field(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the field for the number of a trial."""
    return _plain("trial", given)


def number_of(study: Study, given: Mapping[str, str]) -> int:
    """Returns the number of the trial that a form names.

    Raises:
        InvalidInput: there is no such trial.
    """
    number = _whole("trial", given)
    if number >= len(study.trials):
        raise InvalidInput(f"There is no trial {number}: this study has {len(study.trials):,}, numbered from 0.")
    return number


def answer_of(study: Study, number: int) -> dict[str, str]:
    """Returns the answer of a trial as the fields of its correction, and the reason of a failure."""
    trial = study.trials[number]
    limits = [] if trial.constraints is None else trial.constraints.tolist()
    typed = [f"{name}={value!r}" for name, value in trial.measured]  # An empty field keeps those on record.
    told = {
        "reward": [trial.reward, *(each.value for each in trial.others)],
        "std": [trial.std, *(each.std for each in trial.others)],
    }
    return {
        key: "" if value is None else repr(value)
        for name, values in told.items() for (key, _), value in zip_longest(_keys(study, name), values)
    } | {
        "constraints": ", ".join(map(repr, limits)), "reason": trial.reason or "",
        "metrics": "" if "," in "".join(typed) else ", ".join(typed),
    }  # fmt: skip


def _plain(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    number = name in ("reward", "std", "arm", "trial", "step", "value")
    return {
        "key": name, "label": LABELS[name], "value": given.get(name, ""), "options": None, "long": name == "note",
        "needed": name in NEEDED, "mode": "decimal" if number else "text", "help": "", "beside": False,
    }  # fmt: skip


def _of_domain(domain: Domain, kind: str, given: Mapping[str, str], *, some: bool = False) -> list[dict[str, Any]]:
    """Returns a field for each parameter, each coordinate, or the number of an arm. `some` may be empty."""
    space = space_of(domain)
    if space is None and isinstance(domain, Arms):
        named = {"key": f"{kind}-arm", "label": "Arm" if kind == "p" else "Context", "options": None}
        return [_field(named, f"a number from 0 to {len(domain) - 1}", given)]
    if space is None:
        ends = zip(domain.lower.tolist(), domain.upper.tolist(), strict=True)  # type: ignore[union-attr]
        return [
            _field({"key": f"{kind}-{i}", "label": f"x[{i}]", "options": None}, f"{short(low)} to {short(high)}", given)
            for i, (low, high) in enumerate(ends)
        ]
    listed = []
    for i, (name, parameter) in enumerate(space.parameters.items()):
        if isinstance(parameter, Choice):
            options = [("", "as the policy chooses")] * some + [("", "unknown")] * parameter.unknown
            options += [(str(j), short(option)) for j, option in enumerate(parameter.declared)]
            listed.append(_field({"key": f"{kind}-{i}", "label": name, "options": options}, "", given))
        else:
            between = f"{short(parameter.low)} to {short(parameter.high)}" + ", or empty: as the policy chooses" * some
            between += ", or empty: unknown" * parameter.unknown
            listed.append(_field({"key": f"{kind}-{i}", "label": name, "options": None}, between, given))
    return listed


def _field(made: dict[str, Any], help_: str, given: Mapping[str, str]) -> dict[str, Any]:
    more = {"value": given.get(made["key"], ""), "help": help_, "long": False, "needed": False, "mode": "decimal"}
    more["beside"] = False
    return made | more


# -- what a form stands for --------------------------------------------------------------------------------------


def call(study: Study, action: str, given: Mapping[str, str]) -> Call:
    """Returns the call that a form stands for.

    Args:
        study: with any policy.
        action: a key of `ACTIONS`.
        given: values by name of the field.

    Raises:
        InvalidInput: a field cannot be used.
        Problem: likewise, with the key of the field.
    """
    which = ACTIONS[action]
    number = number_of(study, given) if which.trial else None
    if action in ("tell", "correct"):
        body = _answer(study, given) | ({"revise": True} if action == "correct" else {})
        return Call("PUT", "/decisions/{id}/reward", body, _telling(study, action, number or 0, body), number)
    if action in ("fail", "abandon"):
        body = {"reason": _text("reason", given)}
        what = "failed" if action == "fail" else "is given up"
        path = "/decisions/{id}/" + ("failure" if action == "fail" else "abandonment")
        return Call("POST", path, body, f"Trial {number} {what}: {body['reason']}.", number)
    if action in ("report", "stop"):
        return _of_course(action, number, given)
    if action == "add":
        body = _answer(study, given) | _place(study, given) | _context(study, given)
        said = _said(study, body)
        what = said if has_front(study) else f"The reward {said}"
        return Call("POST", "/observations", body, f"{what} is added at {point_text(body)}.")
    if action == "enqueue":
        place = _place(study, given, some=True)
        if place.get("parameters") == {}:
            raise InvalidInput("No parameter is filled in: a point to try first says one at least.")
        return Call("POST", "/enqueue", {"entries": [place]}, f"The next trial that may be is of {point_text(place)}.")
    if action == "ask":
        under = {} if _chooses(study, action) else _context(study, given)
        return Call("POST", "/decisions", under, "The policy decides once.")
    if action == "trial-note":
        note = _short("note", given)
        return Call("PUT", f"/trials/{number}/note", {"note": note}, f"The note of trial {number} becomes: {note}")
    if action == "retire-arm":
        arm = _whole("arm", given)
        return Call("DELETE", f"/arms/{arm}", {}, f"Arm {arm} is not played any more.")
    return Call("PATCH", "", *_of_study(action, given))


def _of_course(action: str, trial: int | None, given: Mapping[str, str]) -> Call:
    """Returns the call that reports a step of a trial, or stops the trial."""
    if action == "report":
        step, value = _whole("step", given), number(LABELS["value"], given.get("value", ""))
        said = f"Trial {trial} has the value {short(value)} after step {step:,}."
        return Call("PUT", f"/decisions/{{id}}/steps/{step}", {"value": value}, said, trial)
    why = _short("why", given).strip()
    said = f"Trial {trial} is stopped{f': {why}' * bool(why)}."
    return Call("POST", "/decisions/{id}/stop", {"reason": why} if why else {}, said, trial)


def _of_study(action: str, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Returns the body and the sentence of an action on the study itself."""
    if action == "note":
        note = _short("note", given)
        return {"note": note}, f"The note of the study becomes: {note}"
    if action == "tags":
        line = " ".join(given.get("tags", "").splitlines())
        row = next(csv.reader([line], skipinitialspace=True), [])
        tags = [tag.strip() for tag in row if tag.strip()]
        return {"tags": tags}, f"The tags become {', '.join(tags) or 'none'}."
    if action == "rename":
        name = _text("name", given)
        return {"name": name}, f"The study is called {name} from now on. Programs that use the old name stop."
    about = ACTIONS[action].about
    entry, value = {"pause": ("paused", True), "resume": ("paused", False), "archive": ("archived", True)}.get(
        action, ("archived", False)
    )
    return {entry: value}, about


def _telling(study: Study, action: str, number: int, body: Mapping[str, Any]) -> str:
    trial = study.trials[number]
    old = reward_text(trial, said_with(study)) or (f"failed: {trial.reason}" if trial.reason else "no answer")
    said = _said(study, body)
    if action == "correct":
        return f"The answer of trial {number} was {old} and becomes {said}."
    return f"Trial {number} gets {'' if has_front(study) else 'the reward '}{said}."


def _said(study: Study, body: Mapping[str, Any]) -> str:
    """Returns an answer in words."""
    one = not has_front(study)
    values, stds = ([each] if one else each or [] for each in (body["reward"], body.get("std")))
    names = [""] if one else [f"{name} = " for name in names_of(study)]
    told = ", ".join(
        f"{name}{exact(value)}" + ("" if std is None else f" with a standard deviation of {exact(std)}")
        for name, value, std in zip_longest(names, values, stds)
    )
    limits = f" and constraint values {', '.join(map(short, body['constraints']))}" if "constraints" in body else ""
    metrics = f" and {metrics_text(tuple(body['metrics'].items()))}" if body.get("metrics") else ""
    return f"{told}{limits}{metrics}"


def _answer(study: Study, given: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"key": given[KEY].strip()} if given.get(KEY, "").strip() else {}
    for name in VALUES:
        keys = _keys(study, name)
        if name == "reward" or any(given.get(key, "").strip() for key, _ in keys):
            read = [_value(key, label, given, needed=name == "reward" or len(keys) == 1) for key, label in keys]
            found[name] = read if has_front(study) else read[0]
    if given.get("constraints", "").strip():
        found["constraints"] = [number("constraints", part) for part in given["constraints"].split(",")]
    if given.get("metrics", "").strip():
        found["metrics"] = dict(_metric(part.strip()) for part in given["metrics"].split(","))
    return found


def _value(key: str, label: str, given: Mapping[str, str], *, needed: bool) -> float | None:
    """Returns a typed number of an answer, or None if nothing was typed that is needed."""
    text = given.get(key, "")
    return about(key, number, label, text, always=True) if needed or text.strip() else None


def _metric(text: str) -> tuple[str, float]:
    """Returns name and number of a metric from a text such as "accuracy=0.9"."""
    name, equals, value = text.rpartition("=")
    if not equals or not name.strip():
        raise InvalidInput(
            f"A metric is {shown(text)}: write its name, an equals sign and a number, with commas between several."
        )
    return name.strip(), number(name.strip(), value)


def _place(study: Study, given: Mapping[str, str], *, some: bool = False) -> dict[str, Any]:
    domain = study.policy.domain
    if space_of(domain) is None and isinstance(domain, Arms):
        return {"arm": _whole("p-arm", given)}
    named = _values(domain, "p", given, some=some)
    return {"parameters": named} if isinstance(named, dict) else {"point": named}


def _context(study: Study, given: Mapping[str, str]) -> dict[str, Any]:
    contexts = study.policy.context
    if contexts is None:
        return {}
    if space_of(contexts) is None and isinstance(contexts, Arms):
        index = _whole("c-arm", given)
        if index >= len(contexts):
            raise InvalidInput(f"There is no context {index}: there are {len(contexts)}, numbered from 0.")
        return {"context": contexts.points[index].tolist()}
    return {"context": _values(contexts, "c", given)}


def _values(domain: Domain, kind: str, given: Mapping[str, str], *, some: bool = False) -> dict[str, Any] | list[float]:
    """Returns named values of a space, or the coordinates of a box. Parameters may be left out if `some`."""
    space: Space | None = space_of(domain)
    if space is None:
        return [number(f"x[{i}]", given.get(f"{kind}-{i}", "")) for i in range(domain.dimension)]
    found: dict[str, Any] = {}
    for i, (name, parameter) in enumerate(space.parameters.items()):
        text = given.get(f"{kind}-{i}", "")
        if not text.strip() if some else not (space.conditions is None or space.conditions.is_active(name, found)):
            continue
        if parameter.unknown and not text.strip():
            continue
        if isinstance(parameter, Choice):
            place = whole(name, text, negative=False)
            if place >= len(parameter.options):
                raise InvalidInput(f"{name} has no option {place}: there are {len(parameter.options)}, from 0.")
            found[name] = parameter.options[place]
            _check_json(name, parameter, place)
        else:
            found[name] = whole(name, text) if isinstance(parameter, Int) else number(name, text)
    said: dict[str, Any] = readable(found)
    return said


def _check_json(name: str, parameter: Choice, place: int) -> None:
    """Raises an error if the JSON of an option is that of another one, such as of a tuple and a list."""
    option = parameter.options[place]
    if parameter.find(readable(option)) != place:
        raise InvalidInput(
            f"{name} has another option that looks like {worded(option)} in JSON, which the form sends: add the point "
            "in Python."
        )


def point_text(body: Mapping[str, Any]) -> str:
    """Returns the point and the context of a request or of a decision in words."""
    context = f" under {_values_text(body['context'])}" if body.get("context") else ""
    if body.get("parameters") is not None:
        return _values_text(body["parameters"]) + context
    point = _values_text(body["point"]) if "point" in body else ""
    return (point if body.get("arm") is None else f"arm {body['arm']}" + f" ({point})" * bool(point)) + context


def _values_text(values: Mapping[str, Any] | Sequence[float]) -> str:
    if isinstance(values, Mapping):
        return ", ".join(f"{name} = {short(value)}" for name, value in values.items())
    return ", ".join(map(short, values))


def _text(name: str, given: Mapping[str, str]) -> str:
    text = _short(name, given).strip()
    if not text:
        raise InvalidInput(f"{LABELS.get(name, name)} is missing.")
    return text


def _short(name: str, given: Mapping[str, str]) -> str:
    text = given.get(name, "")
    if len(text) > LONGEST:
        raise InvalidInput(f"{LABELS[name]} has {len(text):,} characters: at most {LONGEST:,} are kept.")
    return text


def tags_text(tags: Sequence[str]) -> str:
    """Returns tags as the form takes them: with commas, and in quotes where a tag has one."""
    quoted = ['"' + tag.replace('"', '""') + '"' if {",", '"'} & set(tag) else tag for tag in tags]
    return ", ".join(quoted)


def _whole(name: str, given: Mapping[str, str]) -> int:
    return whole(LABELS.get(name, "Arm"), given.get(name, ""), negative=False)
