"""Logs in files: tables (`nilregret._utils.tables`), and files of Vowpal Wabbit, Azure Personalizer and gittins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import shown
from .._utils.files import bytes_of, text_in
from .._utils.tables import Row, Table, is_text, records_of_text, table_in, table_of_records
from ..errors import InvalidInput
from .log import Log, log_of_table, refuse_repeated


class Decision(NamedTuple):
    """A decision of a file.

    Attributes:
        context: as a policy is given it, or None.
        action: name of the action taken.
        propensity: probability with which it was chosen.
        reward: None while there is none.
        among: names of the actions that could be chosen, or None if the file does not say.
        id: of the decision, or None.
    """

    context: Any
    action: Any
    propensity: float | None
    reward: float | None
    among: Sequence[Any] | None = None
    id: Any = None


def read(path: str | Path, actions: Sequence[Any] | None = None) -> Log:
    """Returns the log in a file, whose contents say of which kind it is.

    Args:
        path: of the file.
        actions: names of all actions, or None for those found.

    Raises:
        InvalidInput: the file cannot be read, or a line of it.
    """
    data, called = bytes_of(path), shown(str(path))
    if is_text(data):
        text = text_in(data, called)
        first = text.lstrip()[:1]
        if first == "{":
            return _log_of_records(records_of_text(text, called), called, actions)
        if first and "|" in text.lstrip().partition("\n")[0] and first != "[":
            return log_of_decisions(_of_vw_text(text.split("\n")), actions)
    return log_of_table(table_in(data, called), actions)


def _log_of_records(records: list[Row], called: str, actions: Sequence[Any] | None) -> Log:
    """Returns the log in JSON lines, whose first objects say of which kind they are."""
    if any("_label_cost" in record or "_label_Cost" in record for record in records[:100]):
        return log_of_decisions(_of_dsjson(records), actions)
    if any("_outcomes" in record for record in records[:100]):
        raise InvalidInput("The log has decisions for several slots, and only decisions for one can be evaluated.")
    if records[0].get("event") in ("decision", "resolution"):
        return log_of_decisions(_of_gittins(records), actions)
    return log_of_table(table_of_records(records, called), actions)


def log_of_decisions(decisions: Iterable[Decision], actions: Sequence[Any] | None = None) -> Log:
    """Returns decisions as a log.

    Args:
        decisions: in their order.
        actions: names of all actions, or None for those that were taken or could be.
    """
    rows = list(decisions)
    if any(row.id is not None for row in rows):
        refuse_repeated("id", [row.id for row in rows])
    named = actions
    if named is None and any(row.among is not None for row in rows):
        named = list(dict.fromkeys(name for row in rows for name in (row.among or (row.action,))))
        if all(isinstance(name, int) for name in named):
            named.sort()
    columns = {
        "action": [row.action for row in rows], "propensity": [row.propensity for row in rows],
        "reward": [row.reward for row in rows], "context": [row.context for row in rows],
    }  # fmt: skip
    log = log_of_table(Table("the log", columns), named)
    known = [row for row in rows if row.propensity == row.propensity and row.propensity is not None]
    if all(row.among is None or len(set(row.among)) == len(log.actions) for row in known):
        return log
    available = np.zeros((len(known), len(log.actions)), dtype=bool)
    for i, row in enumerate(known):
        available[i, [log.code[name] for name in row.among or log.actions if name in log.code]] = True
    return replace(log, available=available)


# -- Vowpal Wabbit, text --------------------------------------------------------------------------------------------


def _of_vw_text(lines: Iterable[str]) -> Iterator[Decision]:
    """Yields the decisions of a text file: a line each, or blocks of a line for each action between blank lines."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            yield from _of_block(block)
            block = []
        elif block or text.startswith("shared"):
            block.append((number, text))
        else:
            label, _, features = text.partition("|")
            action, reward, propensity = _label(label, number)
            yield Decision(_features(features), action, propensity, reward)
    yield from _of_block(block)


def _of_block(block: Sequence[tuple[int, str]]) -> Iterator[Decision]:
    """Yields the decision of a block: the line with a label is the action taken, counted from 1."""
    if not block:
        return
    shared = [text for _, text in block if text.startswith("shared")]
    lines = [(number, text) for number, text in block if not text.startswith("shared")]
    labels = [text.partition("|")[0].strip() for _, text in lines]
    taken = [i for i, label in enumerate(labels) if label.count(":") == 2]
    if len(taken) != 1:
        raise InvalidInput(
            f"The decision from line {block[0][0]} has {len(taken)} actions with a label, and one was taken: its line "
            "begins with action:cost:probability."
        )
    _, reward, propensity = _label(labels[taken[0]], lines[taken[0]][0])
    context = _features(shared[0].partition("|")[2]) if shared else None
    yield Decision(context, taken[0] + 1, propensity, reward, range(1, len(lines) + 1))


def _label(label: str, number: int) -> tuple[int, float, float]:
    """Returns action, reward and propensity of a label action:cost:probability. The reward is minus the cost."""
    parts = next((word.split(":") for word in label.split() if word.count(":") == 2), None)
    try:
        action, cost, propensity = parts or ("", "", "")
        return int(action), 0.0 - float(cost), float(propensity)
    except ValueError:
        raise InvalidInput(
            f"Line {number} begins with {shown(label.strip())}: it must be action:cost:probability, and then | and "
            "the features of the context."
        ) from None


def _features(text: str) -> dict[str, Any]:
    """Returns the features of a line by name, such as {"age": 3.0, "user.city": 1.0}."""
    found: dict[str, Any] = {}
    for part in text.split("|"):
        words = part.split()
        space = words.pop(0).partition(":")[0] + "." if words and not part[0].isspace() else ""
        for word in words:
            name, _, value = word.partition(":")
            try:
                found[space + name] = float(value) if value else 1.0
            except ValueError:
                found[space + name] = value
    return found


# -- Azure Personalizer and Vowpal Wabbit, dsjson -------------------------------------------------------------------


def _of_dsjson(records: Iterable[Mapping[str, Any]]) -> Iterator[Decision]:
    """Yields the decisions of dsjson lines. Events that were never activated, and rewards that came alone, are none."""
    for number, record in enumerate(records, start=1):
        cost = record.get("_label_cost", record.get("_label_Cost"))
        if cost is None or record.get("_skipLearn"):
            continue
        context = dict(record.get("c") or {})
        candidates = context.pop("_multi", None) or ()
        names = [each.get("_tag") if isinstance(each, dict) else None for each in candidates]
        if None in names or len(set(names)) < len(names):
            names = list(range(1, len(candidates) + 1))
        try:
            place = int(record["_label_Action"] if "_label_Action" in record else record["a"][0])
            propensity = float(record.get("_label_probability", record.get("_label_Probability")))
            if place < 1:
                raise ValueError("actions are counted from 1")
            action = names[place - 1] if names else place
            yield Decision(context, action, propensity, 0.0 - float(cost), names or None, record.get("EventId"))
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidInput(
                f"Event {number} of the log has no usable _label_Action and _label_probability: "
                f"{shown(dict(record), length=120)}."
            ) from None


# -- gittins --------------------------------------------------------------------------------------------------------


def _of_gittins(records: Iterable[Mapping[str, Any]]) -> Iterator[Decision]:
    """Yields the decisions of gittins' experience log, with the rewards of their resolutions, also of expired ones."""
    rewards, decisions = {}, []
    for number, record in enumerate(records, start=1):
        try:
            if record["event"] == "resolution":
                rewards[record["decision_id"]] = record["reward"]
            else:
                decided = record["record"]
                among = [str(name) for name, *_ in record["candidates"]]
                decisions.append(
                    Decision(
                        record.get("context"),
                        among[decided["chosen"]],
                        float(decided["propensity"]),
                        None,
                        among,
                        decided["decision_id"],
                    )
                )
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidInput(
                f"Line {number} of the log is neither a decision nor a resolution of gittins: "
                f"{shown(dict(record), length=120)}."
            ) from None
    for each in decisions:
        yield each._replace(reward=rewards.get(each.id))
