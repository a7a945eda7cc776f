"""Studies of every kind that a dashboard may be shown, and requests to its pages without a server."""

import asyncio
import atexit
import functools
import itertools
import json
import warnings
from urllib.parse import unquote, urlsplit

import numpy as np
from starlette.middleware import Middleware

import nilregret as nr
from nilregret.algorithms.baselines import bandit_oco
from nilregret.serve.api.app import create_app
from nilregret.serve.auth.tokens import Caller
from nilregret.serve.dashboard import ROUTES, error_page
from nilregret.storage import MemoryStorage
from nilregret.storage.base import Change

TABS = ("", "/explore", "/trials", "/worth", "/health", "/settings")
LOADED = (
    "head", "progress", "worth", "beliefs", "standing", "grid", "health", "evaluation", "signals", "importance",
    "parallel", "front", "front-now", "curves",
)  # fmt: skip
PARTS = (*TABS, *(f"/part/{name}" for name in LOADED))  # pages of a study, and what they load
MARKUP = "<script>alert(1)<img src=x onerror=alert(2)>"
KERNEL = nr.SquaredExponential(0.2)


class Clock:
    """An hour of waiting in no time."""

    def __init__(self):
        self.now = 1_750_000_000.0

    def __call__(self):
        self.now += 7.0
        return self.now


def noise(seed=0):
    return functools.partial(np.random.default_rng(seed).normal, 0.0, 0.1)


def play(study, rounds, reward, *, context=None, constraints=None):
    for i in range(rounds):
        trial = study.ask() if context is None else study.ask(context(i))
        told = {} if constraints is None else {"constraints": constraints(trial)}
        study.tell(trial, reward(trial), **told)
    return study


def arms(count=20, **more):
    return nr.gp_ucb(nr.Arms.grid(0, 1, count), KERNEL, noise=0.1, **more)


def hill(trial):
    return -((trial.point[0] - 0.3) ** 2)


def of_arms(make):
    error = noise()
    return play(make(arms()), 40, lambda trial: hill(trial) + error())


def of_no_trial(make):
    return make(arms())


def of_one_trial(make):
    return play(make(arms()), 1, hill)


def of_failures(make):
    study = make(nr.auto(nr.Box([0, 0], [1, 1])))
    for _ in range(4):
        study.fail(study.ask(), f"no disk {MARKUP}")
    return study


def of_a_box(make):
    return play(make(nr.gp_ucb(nr.Box([0, 0], [1, 2]), KERNEL, noise=0.1)), 12, hill)


def of_a_line(make):
    return play(make(nr.gp_ucb(nr.Box([0], [1]), KERNEL, noise=0.1)), 8, hill)


def of_a_space(make):
    space = nr.Space(
        rate=nr.Float(1e-4, 1, log=True), depth=nr.Int(2, 8, step=2), kind=nr.Choice("plain", "gated"),
        share=nr.when("kind", "gated", nr.Float(0, 1)),
    )  # fmt: skip
    return play(make(nr.auto(space)), 12, lambda trial: trial.parameters["depth"] / 8 + trial.parameters["rate"])


def of_a_grid(make):
    space = nr.Space(price=nr.Float(5, 30), kind=nr.Choice("a", "b"))
    return play(make(nr.gp_ucb(space.grid(6), KERNEL, noise=0.1)), 15, lambda trial: -trial.parameters["price"] / 30)


def of_unordered_arms(make):
    points = np.random.default_rng(3).normal(size=(30, 4))
    return play(make(nr.gp_ucb(nr.Arms(points), nr.SquaredExponential(2.0), noise=0.1)), 20, hill)


def of_contexts(make):
    seen = np.random.default_rng(1)
    contexts = nr.Space(load=nr.Float(0, 1, unknown=True), day=nr.Choice("weekday", "weekend", unknown=True))
    policy = arms(context=contexts)
    days = ("weekday", "weekend", "<b>bridge")  # The last one was never declared.
    context = lambda i: {"load": None if i % 9 == 8 else seen.random(), "day": days[i % 3]}  # noqa: E731
    return play(make(policy), 30, lambda trial: -((trial.point[0] - trial.context[0]) ** 2), context=context)


def of_constraints(make):
    policy = arms(constraints=nr.EveryRound(count=2))
    limits = lambda trial: [trial.point[0] - 0.6, 0.2 - trial.point[0]]  # noqa: E731
    return play(make(policy), 25, lambda trial: trial.point[0], constraints=limits)


def of_a_budget(make):
    policy = nr.gp_ucb_noisy_constraints(nr.Arms.grid(0, 1, 15), KERNEL, noise=0.1, norm_bound=1.0, epoch=5, epochs=5)
    return play(make(policy), 25, lambda trial: trial.point[0], constraints=lambda trial: [trial.point[0] - 0.5])


def of_losses(make):
    error = noise(2)
    return play(make(arms(), goal="minimize"), 30, lambda trial: 5.0 - hill(trial) + error())


def of_changes(make):
    error = noise(4)
    study = make(arms(12, memory="adaptive"))
    return play(study, 160, lambda trial: hill(trial) * (1 if trial.number < 80 else -8) + error())


def of_late_answers(make):
    study = make(arms(pending=nr.slots.Censored(window=3, minimum=-1.0)))
    trials = study.ask(count=8)
    for trial in trials[:6]:
        study.tell(trial, float(hill(trial)))
    study.abandon(trials[6], MARKUP)
    study.tell(trials[6], -0.2)
    study.tell(trials[0], 0.1, revise=True)
    study.ask(lease=3600)
    return study


def of_markup(make):
    space = nr.Space(**{"<i>x": nr.Float(0, 1), "\"y'": nr.Choice("<b>a</b>", "&amp;")})
    return play(make(nr.auto(space), name=MARKUP, about={"who": MARKUP}), 6, hill)


def of_a_script(make):
    limits = lambda trial: [trial.point[0] - 0.9]  # noqa: E731
    return play(make(bandit_oco(nr.Box([0, 0], [1, 1]), step=0.1)), 12, hill, constraints=limits)


def of_added_points(make):
    study = make(arms())
    for x in np.linspace(0, 1, 20)[::4]:
        study.add([x], float(x))
    return study


def both(trial):
    """One objective to be minimised and one to be maximised."""
    x, y = trial.point[:2]
    return (x - 0.2) ** 2 + (y - 0.5) ** 2, 1.0 - (x - 0.8) ** 2 - (y - 0.5) ** 2


def of_a_front(make):
    policy = nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)), objectives=("loss", "recall"), constraints=1)
    study = make(policy, goal=("minimize", "maximize"))
    play(study, 9, both, constraints=lambda trial: [trial.point[0] - 0.8])
    study.tell(0, (0.3, 0.4), std=(0.1, None), constraints=[-0.1], metrics={"epochs": 3.0}, revise=True)
    study.fail(study.ask(), "no disk")
    study.abandon(study.ask(), "gone")
    study.ask()
    return study


def of_five_objectives(make):
    names = (MARKUP, 'loss\'s "own" {x} %s', "x", "n" * 90, "<b>a</b> & b")
    policy = nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)), objectives=names)
    five = lambda trial: tuple(float(trial.point @ np.roll([1.0, -0.5], j)) + j for j in range(5))  # noqa: E731
    return play(make(policy, goal="minimize"), 6, five)


def of_one_front(make):
    return play(make(nr.auto(nr.Arms.grid(0, 1, 9), objectives=3)), 1, lambda trial: (0.0, trial.point[0], 1.0))


def of_no_front(make):
    study = make(nr.auto(nr.Box([0, 0], [1, 1]), objectives=2, constraints=1))
    return play(study, 2, both, constraints=lambda trial: [1.0])


def of_stopped_trials(make):
    study = make(nr.auto(nr.Space(x=nr.Float(0, 1)), pruning=nr.slots.Median(steps=6, finished=2)), goal="minimize")
    for i in range(7):
        trial = study.ask()
        for step in range(1, 7 if i < 3 else 4):
            going = study.report(trial, step, trial.point[0] + i + 1 / step)
        if i == 4:
            study.stop(trial, MARKUP)
        elif i < 3:
            study.tell(trial, trial.point[0] + i)
        elif i < 6 and not going:
            study.stop(trial)
    return study


KINDS = {name: make for name, make in list(globals().items()) if name.startswith("of_")}


def study_of(kind, storage=None):
    """A new study of one kind."""

    def make(policy, *, name=kind, **more):
        return nr.Study(policy, storage=storage, name=name, clock=Clock(), **more)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a toy's scales are wrong is not what is tested
        return KINDS[kind](make)


def studies(storage=None):
    """A study of each kind by the name of its kind."""
    return {kind: study_of(kind, storage) for kind in KINDS}


def copied(made, storage):
    """The same studies in another place, each in one transaction."""
    for study in made.values():
        about = json.dumps(study.about, sort_keys=True)
        stored = storage.find_or_make(
            study.name, policy=study.policy.to_json(), goal=study.goals[0], seed=study.seed, about=about
        )
        with storage.writing(stored) as writer:
            writer.news(since=0, stamp="")
            writer.save([Change(None, trial) for trial in study.trials], order=study.trials.order)
            if reports := [report for trial in study.trials for report in trial.curve]:
                writer.save_steps(sorted(reports))


def marks(picture, label="", kind="", panel=0):
    """The marks of a panel of a picture of a page, of those whose label begins like this."""
    drawn = picture["scene"]["panels"][panel]["marks"]
    return [each for each in drawn if each.get("label", "").startswith(label) and kind in ("", each["kind"])]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()


@functools.cache
def loop():
    """One loop for all requests of a process."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


class Pages:
    """`Pages(storage).get(path)`: what the application answers to one caller."""

    def __init__(self, storage=None, caller=None):
        self.storage = MemoryStorage() if storage is None else storage
        self.app = create_app(self.storage, access=Middleware(lambda app: app), routes=ROUTES, error_page=error_page)
        self.caller = Caller("default", "reader", None) if caller is None else caller

    def get(self, path, *, method="GET", body=b"", **headers):
        return loop().run(self._get(path, method, body, headers))

    async def _get(self, path, method, body, headers):
        parts, said = urlsplit(path), []
        scope = {
            "type": "http", "asgi": {"spec_version": "2.4"},
            "method": method, "path": unquote(parts.path), "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "", "scheme": "http", "server": ("test", 80),
            "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
            "state": {"caller": self.caller},
        }  # fmt: skip
        bodies = itertools.chain(
            [{"type": "http.request", "body": body}], itertools.repeat({"type": "http.disconnect"})
        )

        async def receive():
            return next(bodies)

        async def send(message):
            said.append(message)

        await self.app(scope, receive, send)
        start = next(message for message in said if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in said if message["type"] == "http.response.body")
        self.parts = [len(message["body"]) for message in said if message["type"] == "http.response.body"]
        return Answer(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body)
