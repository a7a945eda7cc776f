"""Live decisions: the figures of this library against bandit peers, all in one run.

    python benchmarks/live.py --only shares smooth clicks together newcomers told rare certainty slates visitors
        revisits tides scale unknown --seeds 5 --first 1000 [--rounds N] [--alone] [--json FILE] [--markdown]
    python benchmarks/live.py --seeds 1 --rounds 200   # a look

| row | what is measured |
|---|---|
| shares | share right on digits and mnist, `nr.auto` over the best of LinUCB, LinTS and Vowpal Wabbit |
| smooth | bananas, and digits in 20 principal components |
| clicks | clicks of 1% to 5%: regret over that of Thompson sampling with beta distributions |
| together | a budget, a switch and delays, each alone and all at once: shortfall and overspend |
| newcomers | an arm of 2% or 20% joins while clicks come late and noes at a deadline: its share, and regret |
| told | the same by an exact Thompson sampler that is told the law of delays: what lateness alone costs |
| rare | clicks and faults of .5% to 5% whose first 50 answers are equal: share of the best arm in the end |
| tides | a common level of all arms steps, waves or rises: regret, and runs that end on a worse arm |
| slates | three places among ten arms: regret against Vowpal Wabbit's conditional contextual bandit |
| certainty | how often one of equal arms is called the best (A/A), and a better one found; what bounds hold |
| scale | 1,000 arms, 50 columns, 10^6 decisions: what a decision costs, what a study holds, how soon it opens |
| visitors | coverage of 95% intervals of an evaluation where units visit 1 to 20 times and keep their arm |
| revisits | the same of the model's bounds, which take visits for independent |
| unknown | 12% of decisions for a device that was never declared: regret against mapping it, and against no decision |

A data set becomes a bandit: the contexts are its columns, an arm is a class, and the reward is 1 for the right one.
Peers have the best of their settings in hindsight, on the very seeds shown; `--alone` leaves them out. Seeds are
paired, intervals are 95% bootstraps; seeds below 1000 are for development. `--rounds` takes the place of the rounds of
each row, and `--json` writes a record of every run. MNIST's test images are read from the folder that NILREGRET_DATA
names; Vowpal Wabbit is in the extra `bench`. What is not at hand is named and left out.
"""

import json

import bench
from live_parts import budgets, certainty, classified, newcomers, rare, scale, slates, tides, unknown, visitors
from tqdm import tqdm

ROWS = {
    "shares": classified.shares,
    "smooth": classified.smooth,
    "clicks": rare.clicks,
    "together": budgets.together,
    "newcomers": newcomers.newcomers,
    "told": newcomers.told,
    "rare": rare.rare,
    "certainty": certainty.certainty,
    "slates": slates.slates,
    "visitors": visitors.visitors,
    "revisits": visitors.revisits,
    "tides": tides.tides,
    "scale": scale.scale,
    "unknown": unknown.unknown,
}


class Report:
    """Tables, and records of every run."""

    def __init__(self, options):
        self.alone, self.rounds, self._options, self._records = options.alone, options.rounds, options, []

    def seeds(self, times=1):
        """Returns the seeds of a row, which may have more of them."""
        return range(self._options.first, self._options.first + times * self._options.seeds)

    def show(self, title, head, rows):
        bench.table(title, head, rows, markdown=self._options.markdown)

    def keep(self, row, problem, method, seeds, **columns):
        """Keeps what a method had on each seed."""
        for i, seed in enumerate(seeds):
            values = {key: float(each[i]) for key, each in columns.items()}
            self._records.append({"row": row, "problem": problem, "method": method, "seed": seed, **values})
        if self._options.json:
            self._options.json.write_text(json.dumps(self._records, indent=1) + "\n")


@bench.command(__doc__)
def main(options):
    report = Report(options)
    for row in tqdm(options.only, leave=False):
        ROWS[row](report)
