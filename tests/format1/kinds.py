"""The studies whose files are in this folder: how each was played, and how it goes on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np

import nilregret as nr
from nilregret.domains.domain import alike

START = 1_700_000_000.0  # Unix seconds of the first round; the next is a minute later.
FURTHER = 4  # Rounds after the file was written, whose decisions are in decisions.json.


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def value(trial):
    """An answer that follows from the trial alone."""
    x = np.atleast_1d(trial.point)
    of_context = 0.0 if trial.context is None else float(trial.context[0])
    return float(np.sin(5 * x[0]) - 0.3 * np.sum(x**2) + 0.2 * of_context * x[-1] + 0.05 * np.cos(7 * trial.number))


def click(trial):
    return float((trial.number * 7 + 3 * (trial.arm or 0)) % 5 < 2)


def one_round(study, _, *, answer=value, context=None, constraints=0, **given):
    """Asks and tells."""
    trial = study.ask(**given) if context is None else study.ask(context(len(study.trials)), **given)
    known = {"constraints": [float(trial.point[0]) - 0.4] * constraints} if constraints else {}
    study.tell(trial, answer(trial), **known)
    return trial


def late(study, at, *, answer=value):
    """Asks, and answers the question before the last one."""
    trial = study.ask()
    if at >= 2:
        study.tell(at - 2, answer(study.trials[at - 2]))
    return trial


def misfortunes(study, at):
    """Fails, gives up, leaves open, corrects, adds, and answers with what is known beside the reward."""
    trial = study.ask(lease=90.0) if at % 6 == 1 else study.ask()
    match at % 6:
        case 0:
            study.tell(trial, value(trial), metrics={"seconds": 1.5, "loss": -float(at)}, std=0.1)
        case 1:
            pass  # Its lease ends.
        case 2:
            study.fail(trial, "it broke")
        case 3:
            study.abandon(trial, "the machine was switched off")
        case 4:
            study.tell(trial, value(trial) + 0.4)
            study.tell(trial, value(trial), revise=True)
        case 5:
            study.tell(trial, value(trial))
            study.add(study.policy.domain.points[at % 9], 0.25)
    return trial


def changing_arms(study, at):
    if at == 4:
        study.add_arms([[0.3], [0.72]], names=["new", None], about=[{"colour": "red"}, None])
    elif at == 6:
        study.retire_arm(2)
        study.describe_arm(0, name="old")
    elif at == 8:
        study.restore_arm(2)
        study.retire_arm(9)
    return one_round(study, at)


def queueing(study, at):
    """Points to try first: of all parameters, of some, withdrawn, and some that wait in the file."""
    if at == 2:
        study.enqueue([{"rate": 1e-3, "layers": 8, "kind": "c"}, {"layers": 1, "kind": "b"}, {"layers": 8}])
        study.withdraw(2)
    elif at == 7:
        study.enqueue([{"rate": 1.0, "layers": 1, "kind": "a"}, {"rate": 1.0, "kind": "c"}])
        study.enqueue({"rate": 1e-3, "layers": 1, "kind": "a"})
    return one_round(study, at)


def on_paper(study, at):
    """Sheets: answered as asked, at another value, failed, and not yet."""
    if at % 2:
        return one_round(study, at)
    sheet = study.sheet(4, digits=2)
    rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
    for row, trial in zip(rows[:2], sheet.trials, strict=False):
        row["value"] = value(trial)
    rows[1]["share"] = 0.125
    rows[2]["value"], rows[2]["remarks"] = "failed", "dropped"
    study.add_from(rows)
    return sheet.trials[-1]


def several_objectives(study, at):
    """Fails, corrects, adds, leaves open, and answers in order or by name, with what is known beside the values."""
    trial = study.ask()
    values, limits = (value(trial), 10.0 * float(trial.point[0])), [float(trial.point[0]) - 0.9]
    match at % 6:
        case 1:
            study.fail(trial, "it broke")
        case 2:
            study.tell(trial, (9.0, 9.0), constraints=limits)
            study.tell(trial, values, constraints=limits, revise=True)
        case 3:
            study.add({"rate": 0.02, "layers": 3, "kind": "b"}, (0.25, 1e-9), constraints=[0.0])
        case _:
            named = dict(zip(study.policy.objective_names, values, strict=True))
            study.tell(trial, named, std=(0.1, None), constraints=limits, metrics={"seconds": 1.5})
    return trial


def several_plays(study, _):
    trial = study.ask()
    study.tell(trial, [value(trial)] * trial.repeats)
    return trial


@dataclass(frozen=True)
class Kind:
    """A study: its policy, and what happens in a round. `given` is passed to `nr.Study`."""

    policy: Callable[[], Any]
    play: Callable[[nr.Study, int], nr.Trial] = one_round
    rounds: int = 12
    given: dict[str, Any] = field(default_factory=dict)


ARMS, LINE = nr.Arms.grid(0, 1, 9), nr.Box([0.0, -1.0], [1.0, 1.0])
SPACE = nr.Space(rate=nr.Float(1e-3, 1, log=True), layers=nr.Int(1, 8), kind=nr.Choice("a", "b", "c"))
CONDITIONAL = nr.Space(kind=nr.Choice("a", "b"), x=nr.Float(0, 1), m=nr.when("kind", "a", nr.Float(0, 1)))
OPTIONS = nr.Space(
    layers=nr.Choice((64, 32), (64,), [1], {"a": (1, None)}), kind=nr.Choice(dict, list, None),
    drop=nr.Float(0, 0.5, step=0.1), share=nr.Float(0, 1), fixed=nr.Float(2, 2),
    more=nr.when("layers", [(64, 32), (64,)], nr.Int(1, 3)),
)  # fmt: skip
MATERN = nr.Matern(2.5, 0.2)
HOURS = nr.Arms.grid(0, 1, 3)
told = {"noise": 0.1, "norm_bound": 2}


def gp(**more):
    return nr.gp_ucb(ARMS, MATERN, noise=0.1, **more)


def earlier():
    study = nr.Study(nr.gp_ucb(LINE, nr.Matern(2.5, 0.5), noise=0.1), seed=1)
    for point, reward in (([0.1, 0.5], 0.4), ([0.3, 0.0], 1.0), ([0.5, -0.4], 0.6), ([0.9, 0.2], -1.2)):
        study.add(point, reward)
    return nr.auto(LINE, like=study)


def training(study, at):
    """Reports until it is not worth going on, fails once, and leaves the last trial running."""
    trial = study.ask()
    for step in range(1, 7):
        if not study.report(trial, step, value(trial) * (1.0 - 0.6**step)):
            return study.stop(trial)
        if at % 7 == 3:
            return study.fail(trial, "it broke")
    return study.tell(trial, value(trial)) if at % 7 != 5 else trial


limited = partial(one_round, constraints=1)

KINDS = {
    "real": Kind(gp),
    "minimised": Kind(gp, given={"goal": "minimize", "about": {"units": "kg", "of": ["bread", 3]}}),
    "thompson": Kind(lambda: nr.gp_ts(ARMS, MATERN, **told)),
    "noise_free": Kind(
        lambda: nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=3),
        partial(one_round, answer=lambda t: 1.0 - float(t.point[0] - 0.4) ** 2),
    ),
    "clicks": Kind(lambda: nr.auto(ARMS, reward="bernoulli"), partial(one_round, answer=click), 16),
    "counts": Kind(lambda: nr.auto(ARMS, reward="poisson"), partial(one_round, answer=lambda t: 2 * click(t))),
    "contexts": Kind(
        lambda: nr.auto(ARMS, context=nr.Box([0.0], [1.0])),
        partial(one_round, context=lambda n: [0.1 * (n * 3 % 10)]),
    ),
    "contexts_of_arms": Kind(
        lambda: nr.gp_ucb(ARMS, nr.Matern(2.5, [0.2, 0.5]), noise=0.1, context=HOURS),
        partial(one_round, context=lambda n: [0.5 * (n % 3)]),
    ),
    "every_round": Kind(lambda: nr.igp_ucb(ARMS, MATERN, **told, constraints=nr.EveryRound()), limited),
    "on_average": Kind(lambda: nr.gp_ts(ARMS, MATERN, **told, constraints=nr.OnAverage()), limited),
    "safe": Kind(lambda: gp(constraints=nr.Safe(start=[[0.0]], scale=1.0)), limited),
    "constraints_of_auto": Kind(lambda: nr.auto(SPACE, constraints=1), limited, 8),
    "conditional": Kind(lambda: nr.auto(CONDITIONAL)),
    "space": Kind(lambda: nr.auto(SPACE)),
    "grid": Kind(lambda: nr.auto(SPACE.grid(3))),
    "box": Kind(lambda: nr.auto(LINE)),
    "fits": Kind(lambda: gp(refit=nr.slots.Refit(every=4))),
    "arms_change": Kind(gp, changing_arms, 10),
    "delayed": Kind(lambda: gp(pending="hallucinate"), late),
    "silence": Kind(lambda: nr.auto(ARMS, answers="silent no"), partial(late, answer=click)),
    "detector": Kind(lambda: nr.auto(ARMS, world="switching"), rounds=20),
    "drift": Kind(lambda: nr.auto(ARMS, world="drifting")),
    "window": Kind(lambda: gp(memory=nr.slots.SlidingWindow(8))),
    "censored": Kind(lambda: gp(pending=nr.slots.Censored.within(timedelta(minutes=1.5), minimum=-1.5)), late),
    "bank": Kind(lambda: gp(refit=nr.slots.LengthscaleBank(factors=(0.5, 1.0)))),
    "balanced": Kind(lambda: nr.algorithms.lb_gp_ucb(ARMS, MATERN, **told)),
    "sketch": Kind(
        lambda: nr.igp_ucb(LINE, nr.Matern(2.5, 0.4), **told, width="ay").using(sketch=nr.slots.Sketch()),
    ),
    "earlier": Kind(earlier),
    "penalty": Kind(
        lambda: nr.gp_ucb_noisy_constraints(ARMS, MATERN, **told, epoch=4, epochs=4, step=2.0),
        limited,
    ),
    "restarts": Kind(lambda: gp(memory=nr.slots.RestartEvery(5))),
    "switching": Kind(lambda: nr.gp_ucb(ARMS, MATERN, noise=0.1, switching="lazy"), several_plays, 5),
    "misfortunes": Kind(lambda: nr.gp_ucb(ARMS, MATERN, noise=0.5), misfortunes, 14),
    "propensities": Kind(
        lambda: nr.gp_ts(ARMS, MATERN, reward="bernoulli", v=0.6), partial(one_round, answer=click), 16,
        {"propensities": True},
    ),
    "queue": Kind(lambda: nr.gp_ucb(SPACE.grid(3), nr.Matern(2.5, 0.5), noise=0.1), queueing, 8),
    "paper": Kind(lambda: nr.auto(OPTIONS), on_paper, 6),
    "steps": Kind(lambda: gp().using(pruning=nr.slots.Median(steps=6, finished=3, explore=0.3)), training, 20),
    "paused": Kind(
        lambda: gp().using(pruning=nr.slots.Halving(steps=6, first=0.3, pause=True, of="best")), training, 12,
        {"goal": "minimize"},
    ),
    "objectives": Kind(
        lambda: nr.auto(SPACE, objectives=("loss", "size"), constraints=1), several_objectives, 9,
        {"goal": ("minimize", "maximize")},
    ),
    "script": Kind(lambda: nr.algorithms.admmbo(LINE), limited, 6),
}  # fmt: skip


def begun(name, **given):
    """A study of a kind, played until its file is written, and its clock."""
    kind, clock = KINDS[name], Clock()
    study = nr.Study(kind.policy(), seed=3, name=name, clock=clock, **kind.given, **given)
    for at in range(kind.rounds):
        kind.play(study, at)
        clock.now += 60.0
    return study, clock


def gone_on(name, study, clock):
    """Decisions of further rounds, as JSON."""
    kind, found = KINDS[name], []
    for at in range(kind.rounds, kind.rounds + FURTHER):
        trial = kind.play(study, at)
        found.append(trial.point.tolist() if trial.arm is None else trial.arm)
        clock.now += 60.0
    return found


def parted(name, one, other):
    """The first round in which decisions differ by more than another machine's rounding."""
    domain = KINDS[name].policy().domain
    for t, (here, there) in enumerate(zip(one, other, strict=True)):
        if not (here == there or (isinstance(here, list) and alike(domain, np.array(here), np.array(there)))):
            return t, here, there
    return None
