"""Yeses at once, noes at a deadline: how far believed rates lie off while trials are open.

    python benchmarks/open_trials.py --seeds 6 --rounds 800 --wait 200 [--only NAME ...] [--markdown]

Four arms of 35%, 30%, 20% and 10%, a decision a second, a deadline after `--wait` seconds at which the service's rule
records a no. A yes comes early (a mean of a tenth of the wait) or at any time of the wait (uniform). Shown are the
share of open trials, the believed rate of the arm played most over the true one, and in how many runs
`study.remarks` warns. "budget" is `nr.auto(reward="bernoulli")` with a constraint on average, which is told at once.
"clicks" counts by exposure. "silent-no" is `answers="silent no"`, and "silence" the rule that records no noes.
At last a budget of which values come with a yes alone: the mean use that the study knows, and the true one.
"""

import warnings

import bench
import numpy as np
from tqdm import tqdm

import nilregret as nr
from nilregret.serve.work.deadlines import Deadlines, Rule
from nilregret.study.formatting import mean_uses
from nilregret.study.play_rewards import Told

RATES = np.array([0.35, 0.3, 0.2, 0.1])
ARMS = nr.Arms(range(4))
BUDGET = nr.OnAverage(count=1)
LAWS = {
    "early": lambda rng, wait: min(wait - 1, int(rng.geometric(min(1.0, 10 / wait)))),
    "uniform": lambda rng, wait: int(rng.integers(wait)),
}
KINDS = {  # by name: policy, and whether noes are never recorded
    "budget": (nr.auto(ARMS, reward="bernoulli", constraints=BUDGET), False),
    "budget-silent-no": (
        nr.auto(ARMS, reward="bernoulli", constraints=BUDGET, answers="silent no"), False,
    ),
    "budget-silence": (nr.auto(ARMS, reward="bernoulli", constraints=BUDGET), True),
    "drifting": (nr.auto(ARMS, reward="bernoulli", world="drifting"), False),
    "drifting-silent-no": (
        nr.auto(ARMS, reward="bernoulli", world="drifting", answers="silent no"), False,
    ),
    "clicks": (nr.auto(ARMS, reward="bernoulli"), False),
}  # fmt: skip
WITH_A_YES = nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5, prior_mean=0.3, constraints=BUDGET)


class World:
    """A study under a deadline rule, whose clock ticks once a decision."""

    def __init__(self, policy, *, silence, law, wait, seed, with_yes=False):
        self.now, self.rng, self.due, self.wait, self.law = 1000.0, np.random.default_rng(seed), {}, wait, LAWS[law]
        rule = Rule(None, "silence", 0.0) if silence else Rule(float(wait), "reward", 0.0)
        self.deadlines, self.with_yes, self.used = Deadlines(rule), with_yes, []
        policy = rule.policy(policy, "maximize")
        self.study = nr.Study(policy, seed=seed, about=rule.fact, clock=lambda: self.now)
        self.study.quiet = True

    def play(self):
        """One decision. What is due is told before it."""
        self.now += 1.0
        yeses = [Told(number, 1.0, g) for number, g in self.due.pop(self.now, [])]
        tells = [lambda transaction, told=told: transaction.tell(told) for told in yeses]
        asks = lambda transaction: transaction.ask(None, None, self.deadlines.lease(None))  # noqa: E731
        *_, trial = self.study.group_commit([self.deadlines.sweep, *tells, asks], seconds=60.0)
        self.deadlines.confirm()
        yes = self.rng.random() < RATES[trial.arm]
        self.used.append(0.3 - yes)
        if self.study.policy.constraint_count and not self.with_yes:
            self.study.tell(trial, constraints=[-0.1 + 0.1 * self.rng.standard_normal()])
        if yes:
            at = self.now + max(1, self.law(self.rng, self.wait))
            self.due.setdefault(at, []).append((trial.number, np.array([-0.7]) if self.with_yes else None))

    def figures(self):
        """The share of open trials, the believed rate over the true one, and whether the study warns."""
        trials = self.study.trials
        arm = np.bincount([trial.arm for trial in trials], minlength=4).argmax()
        waiting = np.mean([trial.state == "pending" for trial in trials])
        return waiting, self.study.predict()[0][arm] / RATES[arm], bool(self.study.remarks)


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore")
    rounds, wait, shown = options.rounds, options.wait, {"markdown": options.markdown}
    looks = [each for each in (wait // 2, wait, 5 * wait // 4, 3 * wait // 2, 2 * wait, 3 * wait) if each < rounds]
    looks.append(rounds)
    rows = []
    for name in tqdm(options.only or KINDS, leave=False):
        policy, silence = KINDS[name]
        for law in LAWS:
            found = []
            for seed in range(options.seeds):
                world = World(policy, silence=silence, law=law, wait=wait, seed=seed)
                found.append([])
                for number in range(1, rounds + 1):
                    world.play()
                    if number in looks:
                        found[-1].append(world.figures())
            means = np.mean(found, axis=0)
            rows.append([f"{name}, {law}", *(f"{b:.2f} ({w:.2f}), {said:.1f}" for w, b, said in means)])
    bench.table("Believed rate over the true one (share open), share warned", ["", *map(str, looks)], rows, **shown)
    rows = []
    for law in LAWS:
        world = World(WITH_A_YES, silence=False, law=law, wait=wait, seed=0, with_yes=True)
        for _ in range(rounds):
            world.play()
        (known,) = mean_uses(world.study.policy, {}, world.study.trials) or [{"mean": np.nan}]
        rows.append([law, f"{known['mean']:.2f}", f"{np.mean(world.used):.2f}", ", ".join(world.study.remarks)])
    bench.table("A budget told with a yes alone: mean use", ["", "known", "true", "remarks"], rows, **shown)
