"""Logs of decisions that other programs wrote, as rows of a table: Vowpal Wabbit, Azure Personalizer and gittins.

`nilregret._utils.tables` calls this, so whoever reads tables reads these files.

| column | meaning |
|---|---|
| context | features by name, or None |
| action | taken: a name, or a number |
| counted_from | the number of the first action, in each row of such a log: Vowpal Wabbit counts from 1 |
| propensity, reward | None while there is none. A reward is minus the cost |
| among | actions that could be chosen, where the file says it |
| event | id of the decision, where the file has one |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from .checks import shown

Row = dict[str, Any]
COUNTED, AMONG = "counted_from", "among"


def rows_of_text(text: str) -> list[Row] | None:
    """Returns the decisions in a text of Vowpal Wabbit, or None if the text is another one."""
    first = text.lstrip()
    if first[:1] in ("", "{", "[") or "|" not in first.partition("\n")[0]:
        return None
    return list(_of_vw_text(text.split("\n")))


def rows_of_records(records: Sequence[Row]) -> list[Row] | None:
    """Returns the decisions in JSON lines, or None if their first objects are of no known program."""
    if any("_label_cost" in record or "_label_Cost" in record for record in records[:100]):
        return list(_of_dsjson(records))
    if any("_outcomes" in record for record in records[:100]):
        raise InvalidInput("The log has decisions for several slots, and only decisions for one can be read.")
    if records[0].get("event") in ("decision", "resolution"):
        return list(_of_gittins(records))
    return None


def _row(context: Any, action: Any, propensity: float | None, reward: float | None, *, counted: int = 1) -> Row:
    return {"context": context, "action": action, COUNTED: counted, "propensity": propensity, "reward": reward}


# -- Vowpal Wabbit, text --------------------------------------------------------------------------------------------


def _of_vw_text(lines: Iterable[str]) -> Iterator[Row]:
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
            yield _of_label(label, number, features)
    yield from _of_block(block)


def _of_block(block: Sequence[tuple[int, str]]) -> Iterator[Row]:
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
    found = _of_label(labels[taken[0]], lines[taken[0]][0], shared[0].partition("|")[2] if shared else None)
    yield found | {"action": taken[0] + 1, AMONG: list(range(1, len(lines) + 1))}


def _of_label(label: str, number: int, features: str | None) -> Row:
    """Returns the decision of a line: action:cost:probability, and perhaps the numbers of further possible actions."""
    words = label.split()
    costs = [word for word in words if ":" in word]
    if len(costs) > 1:
        raise InvalidInput(
            f"Line {number} has {len(costs)} costs, {shown(' '.join(costs))}, and one action was taken: keep the "
            "action:cost:probability of that one. The other actions that were possible are named by their numbers "
            "alone."
        )
    try:
        action, cost, propensity = costs[0].split(":") if costs else ("", "", "")
        context = None if features is None else _features(features)
        found = _row(context, int(action), float(propensity), 0.0 - float(cost))
    except ValueError:
        raise InvalidInput(
            f"Line {number} begins with {shown(label.strip())}: it must be action:cost:probability, and then | and "
            "the features of the context."
        ) from None
    others = [int(word) for word in words if word.isdecimal()]
    return found | {AMONG: sorted({*others, found["action"]})} if others else found


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


def _of_dsjson(records: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
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
            found = _row(context, action, propensity, 0.0 - float(cost))
            yield found | {AMONG: names or None, "event": record.get("EventId")}
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidInput(
                f"Event {number} of the log has no usable _label_Action and _label_probability: "
                f"{shown(dict(record), length=120)}."
            ) from None


# -- gittins --------------------------------------------------------------------------------------------------------


def _of_gittins(records: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Yields the decisions of gittins' experience log, with the rewards of their resolutions, also of expired ones."""
    rewards, decisions = {}, []
    for number, record in enumerate(records, start=1):
        try:
            if record["event"] == "resolution":
                rewards[record["decision_id"]] = record["reward"]
            else:
                decided = record["record"]
                among = [str(name) for name, *_ in record["candidates"]]
                chosen, id_ = among[decided["chosen"]], decided["decision_id"]
                found = _row(record.get("context"), chosen, float(decided["propensity"]), None, counted=0)
                decisions.append(found | {AMONG: among, "event": id_})
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidInput(
                f"Line {number} of the log is neither a decision nor a resolution of gittins: "
                f"{shown(dict(record), length=120)}."
            ) from None
    for each in decisions:
        yield each | {"reward": rewards.get(each["event"])}
