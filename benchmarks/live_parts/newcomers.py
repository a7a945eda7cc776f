"""Row newcomers: an arm of 2% or 20% joins four of 10 to 12% while clicks come late and noes at a deadline.

The regret is that after the arm joined, and the share is that of the new arm in the first waiting window. "At once" is
told every answer at once, "when told" a click when it comes and a no at the deadline, with trials that count when they
are told, "at W" both at the deadline, and "exposed" as "when told", with `nr.slots.Exposed`. "HTTP" is the service with
`"on_deadline": "reward"`, which tells the noes by itself.

Row told: the same worlds without contexts, played by `Exact`, a Thompson sampler that is told the law of delays. What
late answers cost it is the part of the regret that no better estimate of exposure saves.
"""

import asyncio
import json
import warnings

import numpy as np
from bench import quiet, ratio

import nilregret as nr

RATES = [0.10, 0.12, 0.10, 0.12]
WAITS = {100: (400, 400), 500: (800, 700)}  # W: decisions before and after the arm joins
LAWS = {"early": lambda u: -np.log(1.0 - u * (1.0 - np.exp(-5.0))) / 5.0, "uniform": lambda u: u}
CONTEXT = nr.Space(device=nr.Choice("phone", "desk", "tablet"), hour=nr.Float(0, 24), returning=nr.Choice(True, False))
METHODS = ("at once", "when told", "at W", "exposed", "HTTP")
GOAL = "1.5, share .35"
PRIORS = {"Beta(1, 1)": (1.0, 1.0), "Beta(2.2, 17.8)": (2.2, 17.8)}  # of `Exact`: none, and like the other arms


def policy_of(contexts):
    return nr.auto(nr.Arms(range(len(RATES))), context=CONTEXT if contexts else None, reward="bernoulli")


class Python:
    """A study that is told of each answer, as the method has it."""

    def __init__(self, method, contexts, wait, seed):
        policy = policy_of(contexts)
        pending = {"pending": nr.slots.Exposed(wait=wait)} if method == "exposed" else {}
        self._study = quiet(policy.using(**pending), seed=seed)

    def ask(self, _, context):
        trial = self._study.ask(context)
        return trial, trial.arm

    def tell(self, trial, reward):
        self._study.tell(trial, reward)

    def join(self):
        self._study.add_arms([[len(RATES)]])


class Http:
    """The service in this process, whose clock ticks once a decision. It tells noes at the deadline by itself."""

    def __init__(self, contexts, wait, seed):
        import httpx

        from nilregret.serve.api.app import create_app
        from nilregret.storage import MemoryStorage

        self._now = 0.0
        self._app = create_app(MemoryStorage(), clock=lambda: 1000.0 + self._now)
        self._runner = asyncio.Runner()
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://127.0.0.1")
        policy = policy_of(contexts)
        rule = {"deadline": wait, "on_deadline": "reward", "default_reward": 0}
        self._send("PUT", "", {"policy": json.loads(policy.to_json()), "seed": seed, **rule})

    def _send(self, method, path, body):
        answer = self._runner.run(self._http.request(method, f"/v1/studies/live{path}", json=body))
        answer.raise_for_status()
        return answer.json()

    def ask(self, step, context):
        self._now = float(step)
        made = self._send("POST", "/decisions", {} if context is None else {"context": context})["decisions"][0]
        return made["id"], made["arm"]

    def tell(self, name, reward):
        if reward:
            self._send("PUT", f"/decisions/{name}/reward", {"reward": 1})

    def join(self):
        self._send("POST", "/arms", {"arms": [{"point": [len(RATES)]}]})

    def close(self):
        self._runner.run(self._http.aclose())
        self._runner.close()
        self._app.state.service.workers.close()


class Exact:
    """Thompson sampling by the exact posterior of independent arms under a Beta prior, with the law of delays told.

    A silent trial of age a has the likelihood 1 - q F(a), and a yes q. Rates q are points of a grid.
    """

    GRID = np.linspace(0.0025, 0.6, 240)

    def __init__(self, prior, wait, law, seed):
        self._rng, self._wait, self._now, self._arms = np.random.default_rng([seed, 1]), wait, 0, len(RATES)
        share = np.linspace(0.0, 1.0, 2001)
        come = np.interp(np.arange(wait + 1) / wait, LAWS[law](share), share)  # F by age
        self._silence = np.log1p(-np.outer(come, self.GRID))
        self._prior = (prior[0] - 1.0) * np.log(self.GRID) + (prior[1] - 1.0) * np.log1p(-self.GRID)
        self._silent, self._yes = np.zeros((len(RATES) + 1, wait + 1)), np.zeros(len(RATES) + 1)  # by arm and age

    def ask(self, step, _):
        self._now, silent = step, self._silent
        silent[:, -1] += silent[:, -2]
        silent[:, 1:-1] = silent[:, :-2].copy()
        silent[:, 0] = 0.0
        log = self._prior + silent @ self._silence + self._yes[:, None] * np.log(self.GRID)
        within = np.exp(log - log.max(axis=1, keepdims=True)).cumsum(axis=1)
        below = self._rng.random(len(within)) * within[:, -1]
        drawn = [np.interp(u, each, self.GRID) for u, each in zip(below, within, strict=True)]
        arm = int(np.argmax(drawn[: self._arms]))
        silent[arm, 0] += 1.0
        return (arm, step), arm

    def tell(self, token, reward):
        arm, asked = token
        self._silent[arm, min(self._now - asked, self._wait)] -= 1.0
        self._silent[arm, -1] += 1.0 - reward
        self._yes[arm] += reward

    def join(self):
        self._arms += 1


def learner_of(method, contexts, wait, law, seed):
    """The learner of a method."""
    if method in PRIORS:
        return Exact(PRIORS[method], wait, law, seed)
    return Http(contexts, wait, seed) if method == "HTTP" else Python(method, contexts, wait, seed)


def played(method, contexts, wait, law, rate, seed, rounds, *, at_once=False):
    """Share of the new arm in the window after it joined, and regret from then on."""
    before, after = rounds
    rates, rng, due, arms = np.array([*RATES, rate]), np.random.default_rng(seed), {}, []
    learner = learner_of(method, contexts, wait, law, seed)
    for step in range(before + after):
        if step == before:
            learner.join()
        seen = rng.random(4)
        context = None
        if contexts:
            device = ("phone", "desk", "tablet")[int(3 * seen[0])]
            context = {"device": device, "hour": 24 * seen[1], "returning": bool(seen[2] < 0.4)}
        token, arm = learner.ask(step, context)
        yes, delay = rng.random() < rates[arm], min(int(wait * LAWS[law](seen[3])), wait - 1)
        at = 0 if at_once else {"at once": 0, "at W": wait}.get(method, delay if yes else wait)
        due.setdefault(step + at, []).append((token, float(yes)))
        arms.append(arm)
        for answer in due.pop(step, []):
            learner.tell(*answer)
    if method == "HTTP":
        learner.close()
    chosen = np.array(arms[before:])
    return float((chosen[:wait] == len(RATES)).mean()), float(rates.max() * after - rates[chosen].sum())


def cells(report):
    """W, rounds, the law of delays and the rate of the new arm."""
    waits = WAITS if report.rounds is None else {report.rounds: (report.rounds, report.rounds)}
    return [(wait, rounds, law, rate) for wait, rounds in waits.items() for law in LAWS for rate in (0.02, 0.2)]


def shown(found):
    """Regret, and in brackets the share."""
    return f"{found[:, 1].mean():.1f} ({found[:, 0].mean():.2f})"


def newcomers(report):
    """Row newcomers, with four times as many seeds, since a run has some hundred clicks alone."""
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    seeds, rows, methods = report.seeds(4), [], METHODS[:-1] if report.alone else METHODS
    for contexts in (False, True):
        for wait, rounds, law, rate in cells(report):
            name, each = f"{'contexts' if contexts else 'arms'}, W {wait}, {law}, {rate:.0%}", {}
            for method in methods:
                each[method] = np.array([played(method, contexts, wait, law, rate, seed, rounds) for seed in seeds])
                report.keep("newcomers", name, method, seeds, share=each[method][:, 0], regret=each[method][:, 1])
            over = [ratio(each[method][:, 1], each["at once"][:, 1]) for method in methods[3:]]
            rows.append([name, *map(shown, each.values()), *over])
    head = ["regret (share) of a new arm", *methods, *(f"{method} over at once" for method in methods[3:])]
    report.show(f"New arms, {len(seeds)} seeds (goal: regret {GOAL} of a bad one)", head, rows)


def told(report):
    """Row told, with eight times as many seeds."""
    seeds, rows = report.seeds(8), []
    for wait, rounds, law, rate in cells(report):
        row = [f"W {wait}, {law}, {rate:.0%}"]
        for method in PRIORS:
            given = (method, False, wait, law, rate)
            once, late = (
                np.array([played(*given, seed, rounds, at_once=at_once) for seed in seeds]) for at_once in (True, False)
            )
            report.keep("told", row[0], method, seeds, once=once[:, 1], late=late[:, 1])
            row += [shown(once), shown(late), ratio(late[:, 1], once[:, 1])]
        rows.append(row)
    head = [f"{method}, {part}" for method in PRIORS for part in ("at once", "law told", "over at once")]
    report.show(f"New arms, exact Thompson sampling told the law of delays, {len(seeds)} seeds", ["", *head], rows)
