"""The record and the services are held against the ledgers: nothing lost, invented or twice, and every signal true."""

import json
import re

import nilregret as nr

from .watched import got, metrics

REPLAYED = 12  # decisions of a study that are made again
COUNTED = {"decisions": "asked", "answers": "answered", "late_answers": "late"}  # of a ledger


def record(url, name, ledger, exported, *, clock):
    """Yields what is wrong with a study on record. `exported` are its lines over HTTP."""
    with nr.Study.open(storage=url, name=name, clock=clock) as study:  # audits the record
        study.quiet = True
        trials = list(study.trials)
        numbers = sorted({round(i * (len(trials) - 1) / REPLAYED) for i in range(REPLAYED + 1)} if trials else ())
        for number in numbers:
            if not study.explain(number).repeated:
                yield f"decision {number} of {name} is not made again by a replay"
    if len(trials) != len(ledger.asked) or len(exported) != len(trials):
        yield f"{name} has {len(trials)} trials, {len(exported)} exported, and {len(ledger.asked)} were acknowledged"
    for trial, line in zip(trials, exported, strict=False):
        if trial.number not in ledger.asked:
            yield f"decision {trial.number} of {name} is on record, and nobody was given it"
        elif trial.number < ledger.inherited:
            continue
        for what, is_, due in _parts(trial, line, ledger):
            if is_ != due:
                yield f"{what} of decision {trial.number} of {name} is {is_} on record, and was {due}"
    yield from (f"{name}: {each}" for each in ledger.wrong)


def _parts(trial, line, ledger):
    """Yields parts of a trial: what, as it is on record, and as it was acknowledged."""
    number, reply = trial.number, ledger.asked[trial.number]
    yield "the point", trial.point.tolist(), reply["point"]
    yield "the context", line["context"], reply["context"]
    yield "the event", trial.event, reply.get("event")
    yield "the curve", [list(each) for each in trial.steps], [list(each) for each in ledger.curves.get(number, ())]
    told = ledger.told.get(number)
    if told is not None:
        reward = told["reward"]
        if number in ledger.dropped:
            yield "the late reward", line["late_reward"], reward
            yield "the default", line["defaulted"], True
        else:
            yield "the reward", list(trial.values) if isinstance(reward, list) else trial.reward, reward
            constraints = None if trial.constraints is None else trial.constraints.tolist()
            yield "the constraints", constraints, told.get("constraints")
        yield "the mark of late", line["late"] or number in ledger.dropped, number in ledger.late
    else:
        yield "the reason", trial.reason if trial.state == "failed" else None, ledger.failed.get(number)
        yield "the stop", trial.state == "stopped", number in ledger.stopped
        if number in ledger.abandoned:
            yield "the state", trial.state, "abandoned"
        elif not line["defaulted"] and reply["expires_at"] is None and number not in ledger.failed:
            yield "the state", trial.state, "stopped" if number in ledger.stopped else "pending"
        elif trial.state == "observed":
            yield "what nobody told", (line["defaulted"], trial.reward), (True, 0.0)


def exports(port, name, token=None):
    """Returns the exported trials of a study."""
    return [json.loads(line) for line in got(port, f"/v1/studies/{name}/export?format=jsonl", token).splitlines()]


def counts(ledgers, ports, token=None, *, name_of=str):
    """Yields what each service counts otherwise than the ledgers."""
    for port in ports:
        for study in ledgers:
            got(port, f"/v1/studies/{name_of(study)}", token)
            exports(port, name_of(study), token)  # opens it
        found = metrics(port, token)
        for study, ledger in ledgers.items():
            for metric, of in COUNTED.items():
                is_, due = found.get((f"nilregret_{metric}_total", name_of(study)), 0.0), len(getattr(ledger, of))
                if is_ != due:
                    yield f"{metric} of {study} are {is_:.0f} at port {port}, and {due} were acknowledged"
            yield from _states(found, study, name_of(study), ledger)


def _states(found, study, name, ledger):
    for state, due in (("failed", len(ledger.failed)), ("stopped", len(ledger.stopped))):
        is_ = found.get(("nilregret_trials", name, state), 0.0)
        if is_ != due:
            yield f"{is_:.0f} trials of {study} are {state}, and {due} were acknowledged"


def since(before, after):
    """Returns how much the counters of the processes have grown, by counter and study."""
    grown = {}
    for one, other in zip(before, after, strict=True):
        for key, value in other.items():
            if key[0] in ("nilregret_process_decisions_total", "nilregret_process_answers_total",
                          "nilregret_process_repeated_requests_total"):  # fmt: skip
                grown[key] = grown.get(key, 0.0) + value - one.get(key, 0.0)
    return {key: value for key, value in grown.items() if value}


def acknowledged(ledgers):
    """Returns the same counts as the ledgers have them."""
    return {
        (f"nilregret_process_{name}_total", study): float(count)
        for study, ledger in ledgers.items()
        for name, count in (("decisions", len(ledger.asked)), ("answers", len(ledger.answered)),
                            ("repeated_requests", ledger.repeated))
    }  # fmt: skip


def failing(trials):
    """Whether the last three trials with an outcome failed, or more than half of the last 20."""
    ended = [each for each in trials if each["state"] in ("observed", "failed")]
    ended.sort(key=lambda each: each["told_at"])
    failed = [each["state"] == "failed" for each in ended[-20:]]
    return (len(failed) >= 3 and all(failed[-3:])) or sum(failed) > 10


def signals(ports, study):
    """Yields services whose signal `failing` of a study is not what its trials say."""
    for port in ports:
        due = float(failing(exports(port, study)))
        if metrics(port).get(("nilregret_signal", study, "failing")) != due:
            yield f"the signal `failing` of {study} at port {port} is not {due:.0f}"


def cautions(house, study):
    """Yields services whose cautions of a study are not those of its record."""
    with nr.Study.open(storage=house.url, name=study, clock=house.day.now) as found:
        found.quiet = True
        due = set({**found.held_warnings, **found.remarks}.values())
    for port in house.ports:
        said = set(json.loads(got(port, f"/v1/studies/{study}"))["cautions"])
        if said != due:
            yield f"the cautions of {study} at port {port} are {said}, and not {due}"


def work(house):
    """Returns facts of the workers' study, and what is wrong with it."""
    wrong, told = [], set()
    for worker in house.workers:
        told |= set(map(int, re.findall(r"Trial\((\d+), observed", worker.output.read_text())))
    evaluated = [tuple(json.loads(line)) for line in (house.folder / "evaluated").read_text().splitlines()]
    with nr.Study.open(storage=house.url, name="hill", clock=house.day.now) as study:
        trials = list(study.trials)
    observed = {trial.number: trial for trial in trials if trial.state == "observed"}
    wrong += [f"trial {number} of the workers was told, and is not on record" for number in told - observed.keys()]
    known = set(evaluated)
    wrong += [
        f"trial {number} of the workers was not evaluated to {trial.reward}"
        for number, trial in observed.items()
        if (*(trial.parameters[name] for name in "xy"), trial.reward) not in known
    ]
    spare = len(evaluated) - len(observed)
    ends = [end for worker in house.workers for end in worker.ends]
    if not 0 <= spare <= len(ends) + len(house.workers):
        wrong.append(f"{len(evaluated)} trials were evaluated, {len(observed)} are on record, after {len(ends)} ends")
    return {"trials": len(trials), "observed": len(observed), "ends": len(ends)}, wrong
