"""A control that is kept (`nr.NoWorse`): how often the promise is broken, and what it costs.

    python benchmarks/no_worse.py --only bounds clicks contexts metric open tide alike --worlds 400
        --rounds 20000 --first 1000 [--markdown]
    python benchmarks/no_worse.py --worlds 40 --rounds 2000  # a look

All worlds advance together. The rule is that of `nilregret.slots.no_worse`, for many worlds at once; row `alike` plays
the library itself in some worlds and compares every decision.

| row | what is measured |
|---|---|
| bounds | how often the bounds of sums are ever left |
| clicks | worlds with the control the best, arms just below the limit, and better ones |
| contexts | the control's rate is linear in three numbers, and other arms are better in half of the contexts |
| metric | a latency in [0, 1] is guarded beside clicks |
| open | answers come 300 decisions late, or the fifth of them never |
| tide | all rates treble half-way, which the rule does not know of: the assumption is broken |
| alike | decisions of a `Study` are those of the rule here |

A violation: at some time, the sum of the expected rewards of a world's decisions is below 1 - by times that of the
control. `worst` always wants the worst arm, so that its budget is always spent to the last. `ab` gives 5% to the other
arms for ever. `weekly` is Thompson sampling as A/B tools run it: equal shares in the first twentieth, then the
probability of each arm to be the best, renewed ten times in all, and at least 1%.
"""

import bench
import numpy as np
from tqdm import tqdm

import nilregret as nr
from nilregret.slots.no_worse import boundary

DELTA = 0.05
LATE = 300


class Sums:
    """Sums of answers in each world (`nilregret.slots.no_worse.Answers`)."""

    def __init__(self, worlds, worst):
        self.worst, self.count, self.told = worst, np.zeros(worlds), np.zeros(worlds)
        self.total, self.squares, self.open, self.open_squares = (np.zeros(worlds) for _ in range(4))

    def ask(self, mine):
        """Takes in a decision of some worlds, and returns what is predicted of it."""
        h = (self.total + 0.5) / (self.told + 1.0)
        self.count += mine
        self.open += mine
        self.open_squares += mine * (self.worst - h) ** 2
        return h

    def tell(self, mine, h, y):
        self.open -= mine
        self.open_squares -= mine * (self.worst - h) ** 2
        self.told += mine
        self.total += mine * y
        self.squares += mine * (y - h) ** 2

    def bound(self):
        spread = boundary(np.maximum(self.squares + self.open_squares, 0.0), DELTA / 2.0)
        total = self.total + self.worst * self.open
        return np.maximum(total - spread, 0.0) if self.worst == 0.0 else np.minimum(total + spread, self.count)


class Rule:
    """`NoWorse` of numbers in [0, 1] in many worlds, without contexts or with a linear control."""

    def __init__(self, worlds, by, *, less=False, columns=0):
        self.share, self.less = (-by if less else by), less
        self.by, self.others, self.control = by, Sums(worlds, 0.0), Sums(worlds, 1.0)
        self.V, self.b = np.tile(np.eye(columns + 1), (worlds, 1, 1)), np.zeros((worlds, columns + 1))
        self.z, self.columns, self.inverse = np.zeros((worlds, columns + 1)), columns, None

    def bears(self, phi):
        n, c = self.others.count + 1.0, self.control.count
        weight, most = (1.0 - self.share) * n - self.share * c, (1.0 - self.share) * n + max(-self.share, 0.0) * c
        if self.columns:
            z = self.z + (1.0 - self.share) * phi
            inverse = np.linalg.inv(self.V)
            across = np.einsum("wij,wj->wi", inverse, z)
            log_determinant = np.linalg.slogdet(self.V)[1]
            width = 0.5 * np.sqrt(2.0 * np.log(2.0 / DELTA) + log_determinant) + 0.5
            owed = 0.5 * weight + (across * self.b).sum(1) + width * np.sqrt((across * z).sum(1))
            owed = np.minimum(owed, most)
        else:
            known = self.control.bound() / np.maximum(self.control.count, 1.0)
            owed = np.where((weight > 0.0) & (c > 0), weight * known, np.maximum(weight, 0.0))
        return self.others.bound() >= owed - self.by * (self.less * (n + c))

    def ask(self, control, phi):
        if self.columns:
            self.z += np.where(control[:, None], -self.share, 1.0 - self.share) * phi
            self.V += control[:, None, None] * phi[:, :, None] * phi[:, None, :]
        return self.control.ask(control), self.others.ask(~control)

    def tell(self, control, h, y, phi):
        y = 1.0 - y if self.less else y
        self.control.tell(control, h[0], y)
        self.others.tell(~control, h[1], y)
        if self.columns:
            self.b += control[:, None] * phi * (y - 0.5)[:, None]


class Thompson:
    """Draws of independent beta distributions, by cells of the context."""

    def __init__(self, worlds, arms, cells=1):
        self.yes, self.no = np.ones((2, worlds, cells, arms))
        self.rows = np.arange(worlds)

    def want(self, _, rng, cell):
        return rng.beta(self.yes[self.rows, cell], self.no[self.rows, cell]).argmax(1)

    def tell(self, arm, y, cell, mine=True):
        self.yes[self.rows, cell, arm] += mine * y
        self.no[self.rows, cell, arm] += mine * (1.0 - y)


class Weekly(Thompson):
    """Thompson sampling with shares that are renewed now and then."""

    def __init__(self, worlds, arms, rounds, cells=1):
        super().__init__(worlds, arms, cells)
        self.shares, self.every, self.arms = np.full((worlds, arms), 1.0 / arms), rounds // 10, arms
        self.first = rounds // 20

    def want(self, t, rng, _):
        if t == self.first or (t > self.first and t % self.every == 0):
            yes, no = self.yes.sum(1), self.no.sum(1)
            drawn = rng.beta(yes, no, (400, *yes.shape)).argmax(2)
            best = np.stack([(drawn == arm).mean(0) for arm in range(self.arms)], 1)
            self.shares = np.maximum(best, 0.01)
            self.shares /= self.shares.sum(1, keepdims=True)
        return (rng.random((len(self.shares), 1)) > self.shares.cumsum(1)).sum(1).clip(max=self.arms - 1)


class Always(Thompson):
    """The same arm in all rounds."""

    def __init__(self, worlds, arms, arm, cells):
        super().__init__(worlds, arms, cells)
        self.arm = arm

    def want(self, *_):
        return np.full(len(self.rows), self.arm)


class Split(Thompson):
    """95% for the control, and the rest for the other arms alike."""

    def want(self, _, rng, __):
        other = 1 + rng.integers(self.yes.shape[2] - 1, size=len(self.rows))
        return np.where(rng.random(len(self.rows)) < 0.05, other, 0)


def policy_of(name, worlds, means, rounds, cells=1):
    arms = means.shape[-1]
    if name == "worst":
        return Always(worlds, arms, int(means.reshape(-1, arms).mean(0).argmin()), cells)
    if name == "weekly":
        return Weekly(worlds, arms, rounds, cells)
    return (Split if name == "ab" else Thompson)(worlds, arms, cells)


def play(world, name, by, seed, worlds, rounds, *, rule=True, late=0, silent=0.0):
    """Returns the share of worlds with a violation, mean regret and share of the control, and the share held."""
    rng = np.random.default_rng([seed, 44])
    guards = world.rules(worlds, by) if rule else []
    policy, rows = policy_of(name, worlds, world.typical, rounds, world.cells), np.arange(worlds)
    ever, budgets, regret = np.zeros(worlds, bool), np.zeros((1 + len(world.metrics), worlds)), np.zeros(worlds)
    at_control = held = 0.0
    waiting = []
    for t in range(rounds):
        phi, cell, means = world.context(rng, worlds, t, rounds)
        bears = np.all([guard.bears(phi) for guard in guards], axis=0) if guards else np.ones(worlds, bool)
        arm = np.where(bears, policy.want(t, rng, cell), 0)
        control = arm == 0
        hs = [guard.ask(control, phi) for guard in guards]
        y = (rng.random(worlds) < means[rows, arm]).astype(float)
        extra = [metric(rng, arm) for metric in world.metrics]
        comes = rng.random(worlds) >= silent
        waiting.append((arm, control, hs, y, extra, phi, cell, comes))
        if t >= late:
            arm_, control_, hs_, y_, extra_, phi_, cell_, comes_ = waiting.pop(0)
            for guard, h, value in zip(guards, hs_, [y_, *extra_], strict=False):
                seen = control_ & comes_
                guard.control.tell(seen, h[0], 1.0 - value if guard.less else value)
                guard.others.tell(~control_ & comes_, h[1], 1.0 - value if guard.less else value)
                if guard.columns:
                    guard.b += seen[:, None] * phi_ * (value - 0.5)[:, None]
            policy.tell(arm_, y_, cell_, comes_)
        mine = means[rows, arm]
        budgets[0] += mine - (1.0 - by) * means[:, 0]
        for row, metric in enumerate(world.metrics, start=1):
            budgets[row] += (1.0 + by) * metric.means[0] - metric.means[arm]
        ever |= (budgets[: 1 + len(world.metrics)] < -1e-9).any(0)
        regret += means.max(1) - mine
        at_control, held = at_control + control.mean() / rounds, held + (~bears).mean() / rounds
    return ever.mean(), regret.mean(), at_control, held


class Rates:
    """Rates of clicks without contexts."""

    cells, metrics = 1, ()

    def __init__(self, *rates, tide=1.0):
        self.typical, self.tide = np.array(rates), tide

    def rules(self, worlds, by):
        return [Rule(worlds, by)]

    def context(self, _, worlds, t, rounds):
        rates = self.typical * (1.0 if t < rounds // 2 else self.tide)
        return None, np.zeros(worlds, int), np.broadcast_to(rates, (worlds, len(rates)))


class Linear:
    """The control is linear in three numbers, and other arms are better for one half of visitors."""

    cells, metrics = 2, ()
    typical = np.array([[0.3, 0.42, 0.27], [0.3, 0.18, 0.27]])

    def rules(self, worlds, by):
        return [Rule(worlds, by, columns=3)]

    def context(self, rng, worlds, *_):
        x = rng.random((worlds, 3))
        cell = (x[:, 0] > 0.5).astype(int)
        means = np.stack([0.1 + 0.4 * x[:, 1], 0.42 - 0.24 * cell, np.full(worlds, 0.27)], 1)
        return np.column_stack([np.ones(worlds), 2.0 * x - 1.0]), cell, means


class Metric:
    """A latency in [0, 1] of each arm."""

    def __init__(self, *means):
        self.means = np.array(means)

    def __call__(self, rng, arm):
        mean = self.means[arm]
        return rng.beta(20.0 * mean, 20.0 * (1.0 - mean))


class Guarded(Rates):
    """Clicks, beside which a latency is guarded. The arm with the most clicks is slow."""

    metrics = (Metric(0.3, 0.27, 0.36),)

    def rules(self, worlds, by):
        return [Rule(worlds, by), Rule(worlds, by, less=True)]


NAMES = ["thompson", "worst", "weekly", "ab"]
HEAD = ["world", "by", "policy", "violated, no rule", "violated", "regret, no rule", "regret", "control", "held"]


def rows_of(report, world, named, by, names=NAMES, **more):
    found = []
    for name in tqdm(names, leave=False):
        without = play(world, name, by, report.first, report.worlds, report.rounds, rule=False, **more)
        ours = play(world, name, by, report.first, report.worlds, report.rounds, **more)
        found.append(
            [named, f"{by:.0%}", name, f"{without[0]:.1%}", f"{ours[0]:.1%}", f"{without[1]:.0f}", f"{ours[1]:.0f}",
             f"{ours[2]:.0%}", f"{ours[3]:.0%}"]
        )  # fmt: skip
    return found


def clicks(report):
    rows = []
    rows += rows_of(report, Rates(0.3, 0.269, 0.25), "control is best, .3; .269, .25", 0.1)
    rows += rows_of(report, Rates(0.3, 0.1, 0.05), "control is best, .3; .1, .05", 0.1)
    rows += rows_of(report, Rates(0.3, 0.36, 0.2), "a better arm, .3; .36, .2", 0.1)
    rows += rows_of(report, Rates(0.05, 0.06, 0.03), "few clicks, .05; .06, .03", 0.1, ["thompson", "worst"])
    report.show("Clicks", HEAD, rows)


def contexts(report):
    report.show("Contexts", HEAD, rows_of(report, Linear(), "linear control", 0.1, ["thompson", "worst"]))


def metric(report):
    world = Guarded(0.3, 0.33, 0.39)
    report.show(
        "A latency beside clicks", HEAD, rows_of(report, world, "the best arm is slow", 0.1, ["thompson", "worst"])
    )


def bounds(report):
    """Counts the worlds in which a bound is ever left, which `DELTA / 2` of them may."""
    rows = []
    for mean in (0.02, 0.3, 0.5, 0.98):
        rng, broken, worlds = (
            np.random.default_rng([report.first, 45]),
            np.zeros((2, report.worlds), bool),
            report.worlds,
        )
        sums = Sums(worlds, 0.0), Sums(worlds, 1.0)
        for t in range(1, report.rounds + 1):
            y = (rng.random(worlds) < mean).astype(float)
            for one in sums:
                one.tell(1.0, one.ask(1.0), y)
            if t < 1000 or t % 10 == 0:
                broken[0] |= sums[0].bound() > t * mean
                broken[1] |= sums[1].bound() < t * mean
        rows.append([f"{mean:g}", *(f"{each.mean():.1%}" for each in broken)])
    report.show("Bounds left, of 2.5% allowed each", ["mean", "lower", "upper"], rows)


def waiting(report):
    rows = rows_of(report, Rates(0.3, 0.36, 0.2), f"{LATE} late", 0.1, ["thompson", "worst"], late=LATE)
    rows += rows_of(report, Rates(0.3, 0.36, 0.2), "a fifth never", 0.1, ["thompson", "worst"], silent=0.2)
    report.show("Open decisions", HEAD, rows)


def tide(report):
    rows = rows_of(report, Rates(0.1, 0.085, 0.08, tide=3.0), "rates treble half-way", 0.1, ["thompson", "worst"])
    report.show("A broken assumption", HEAD, rows)


def alike(report):
    """Plays the library and the rule here on the same rewards."""
    same = total = 0
    for seed in range(3):
        rates, rng = np.array([0.3, 0.36, 0.2]), np.random.default_rng(seed)
        policy = nr.auto(nr.Arms(range(3)), reward="bernoulli", constraints=nr.NoWorse(0, by=0.1))
        study, rule = nr.Study(policy, seed=seed), Rule(1, 0.1)
        for _ in range(min(report.rounds, 2500)):
            bears = bool(rule.bears(None)[0])
            found = study.replica.state.rounds.budgets[0].standing(None).bears
            same, total = same + (bears == found), total + 1
            trial = study.ask()
            control, y = np.array([trial.arm == 0]), np.array([float(rng.random() < rates[trial.arm])])
            rule.tell(control, rule.ask(control, None), y, None)
            study.tell(trial, float(y[0]))
    report.show("The library and the rule here", ["decisions", "alike"], [[f"{total:,}", f"{same / total:.2%}"]])


ROWS = {
    "bounds": bounds, "clicks": clicks, "contexts": contexts, "metric": metric, "open": waiting, "tide": tide,
    "alike": alike,
}  # fmt: skip


class Report:
    def __init__(self, options):
        self.worlds, self.rounds, self.first, self._markdown = (
            options.worlds, options.rounds, options.first, options.markdown
        )  # fmt: skip

    def show(self, title, head, rows):
        bench.table(
            f"{title}: {self.worlds} worlds of {self.rounds:,} decisions, delta {DELTA}",
            head,
            rows,
            markdown=self._markdown,
        )


@bench.command(__doc__)
def main(options):
    report = Report(options)
    for row in options.only:
        ROWS[row](report)
