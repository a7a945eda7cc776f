"""A shop in which everything happens at once.

    python examples/everything.py

Every visitor is shown a price and a discount. Who comes, at what hour and how often before, is known (a context). Some
buy, some time later, and most never do: nobody says no, the offer just expires. Half-way through, a competitor opens
and nobody says so either. And the marketing department has a budget: the discounts given may be 2 on average, over all
visitors; each is known at once, long before anybody knows whether it helped.

One policy does all of it: GP-UCB with contexts, late answers, a price for the budget (`nr.OnAverage`) and a detector
(`memory="adaptive"`). It is compared with the same policy that is told when the competitor opens, and with the best
price for everybody, as it was before. At the end: a table over several seeds, and everything.png for the first.
"""

import argparse
import heapq
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nilregret as nr
from nilregret.slots.envelope import ConstantWidth

VISITORS = nr.Space(hour=nr.Float(8, 20), loyalty=nr.Float(0, 1)).grid({"hour": 4, "loyalty": 3})
OFFERS = nr.Space(price=nr.Float(10, 22), discount=nr.Float(0, 6)).grid({"price": 7, "discount": 5})
COST, BUDGET = 6.0, 2.0  # of an article; of an average visitor
A_DAY, DAYS, AVERAGED = 50, 60, 3
EXPIRES, THINKS = 10, 3.0  # visitors after whom an offer is over; of those who buy, the average wait


def chance(visitor, offer, *, competitor):
    """The probability that an offer is taken: reality, in your case."""
    evening, loyal = (visitor["hour"] - 8) / 12, visitor["loyalty"]
    worth = 14.0 + 5.0 * evening + 2.0 * loyal
    charm = 0.5 + 1.8 * (1.0 - loyal)  # new customers like a discount more than a low price
    if competitor:  # opens in the evening, and is cheap
        worth, charm = 16.0 - 5.0 * evening + 1.0 * loyal, 0.5 + 1.8 * loyal
    return 1.0 / (1.0 + np.exp(-(worth - offer["price"] + charm * offer["discount"]) / 1.5))


def table():
    """What is left of a sale, `(35,)`, and the probability of one, before and after the competitor, `(2, 12, 35)`."""
    visitors = [VISITORS.parameters(i) for i in range(len(VISITORS))]
    offers = [OFFERS.parameters(i) for i in range(len(OFFERS))]
    margins = np.array([offer["price"] - offer["discount"] - COST for offer in offers])
    taken = [
        [[chance(visitor, offer, competitor=after) for offer in offers] for visitor in visitors] for after in (0, 1)
    ]
    return margins, np.array(taken)


def policy(memory):
    """The prior: profits of 6 a visitor, give or take 3 from offer to offer, and 5 by chance."""
    return nr.gp_ucb(
        OFFERS,
        nr.SquaredExponential([0.6, 0.8, 0.35, 0.5], scale=3.0**2),  # of hour, loyalty, price and discount
        noise=5.0,
        prior_mean=6.0,
        width=ConstantWidth(value=1.0),
        context=VISITORS,
        pending="hallucinate",
        memory=memory,
        constraints=nr.OnAverage(
            step=0.01, kernel=nr.SquaredExponential([9.0, 9.0, 9.0, 1.0], scale=9.0), noise=0.0, confidence=1.0
        ),
    )


class Outcome(NamedTuple):
    """What happened, visitor by visitor."""

    profits: np.ndarray  # expected ones, of the offers made
    discounts: np.ndarray
    noticed: list[int]  # the visitors before whom the memory was cut


def run(memory, days, *, seed):
    """Every visitor of so many days, under one policy."""
    (margins, chances), visitors = table(), days * A_DAY
    noticed = []

    def note(_):
        noticed.append(len(study.trials) - 1)

    study = nr.Study(policy(memory), seed=seed, on_change=note)
    study.quiet = True
    luck = np.random.default_rng([seed, 1])  # the same for every policy
    who, moods = luck.integers(len(VISITORS), size=visitors), luck.random(visitors)
    waits = np.minimum(luck.geometric(1.0 / (1.0 + THINKS), size=visitors) - 1, EXPIRES - 1)
    profits, discounts, due = np.zeros(visitors), np.zeros(visitors), []
    for t in range(visitors):
        trial = study.ask(VISITORS.points[who[t]])
        sale, taken = margins[trial.arm], chances[int(t >= visitors // 2), who[t], trial.arm]
        discounts[t], profits[t] = trial.parameters["discount"], sale * taken
        study.tell(trial, constraints=[discounts[t] - BUDGET])  # known at once
        heapq.heappush(due, (t + int(waits[t]), t, sale) if moods[t] < taken else (t + EXPIRES, t, 0.0))
        while due and due[0][0] <= t:
            _, number, profit = heapq.heappop(due)
            study.tell(number, profit)
    return Outcome(profits, discounts, noticed)


def fixed(visitors, *, seed):
    """Profits of the offer that was best for everybody before, within the budget."""
    margins, chances = table()
    allowed = [OFFERS.parameters(arm)["discount"] <= BUDGET for arm in range(len(OFFERS))]
    best = int(np.where(allowed, margins * chances[0].mean(axis=0), -np.inf).argmax())
    who = np.random.default_rng([seed, 1]).integers(len(VISITORS), size=visitors)
    return margins[best] * chances[(np.arange(visitors) >= visitors // 2).astype(int), who, best]


def daily(values):
    """Averages of the last three days, at the end of each day."""
    days = values.reshape(-1, A_DAY).mean(axis=1)
    return np.array([days[max(day - AVERAGED + 1, 0) : day + 1].mean() for day in range(len(days))])


def alarms(noticed, opens):
    """The first cut after the competitor has opened, if there is one, and all others, which are false alarms."""
    right = [cut for cut in noticed if cut >= opens][:1]
    return right, [cut for cut in noticed if cut not in right]


def picture(ours, told, fixed_price, path):
    """What a manager wants to see: what it earns, what it gives away, and when it noticed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    earned, given = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    days = np.arange(1, len(ours.profits) // A_DAY + 1)
    for values, color, style, name in (
        (told.profits, "#7a8793", "--", "the same, told of the competitor"),
        (ours.profits, "#00798c", "-", "nilregret, told nothing"),
        (fixed_price, "#e09f3e", "-.", "the best price for everybody, as it was"),
    ):
        earned.plot(days, A_DAY * daily(values), color=color, ls=style, lw=2.0, label=name)
    so_far = np.cumsum(ours.discounts)[A_DAY - 1 :: A_DAY] / (A_DAY * days)
    given.plot(days, daily(ours.discounts), color="#00798c", lw=1.0, alpha=0.6, label="the last three days")
    given.plot(days, so_far, color="#00798c", lw=2.0, label="since the beginning")
    given.axhline(BUDGET, color="#1b1b2f", lw=1.0, ls=":", label="budget")
    for ax in (earned, given):
        ax.axvline(
            len(days) / 2, color="#7a8793", lw=6, alpha=0.3, label="a competitor opens" if ax is earned else None
        )
        right, wrong = alarms(ours.noticed, len(ours.profits) // 2)
        for cuts, style, name in (
            (right, "--", "noticed: the days before count no more"),
            (wrong, ":", "a false alarm: the same"),
        ):
            for i, visitor in enumerate(cuts):
                ax.axvline(
                    visitor / A_DAY, color="#d1495b", lw=1.4, ls=style, label=name if ax is earned and not i else None
                )
        ax.grid(alpha=0.25, lw=0.6)
        ax.margins(x=0.01)
        ax.legend(fontsize=8, edgecolor="none", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    earned.set(
        ylabel=f"profit per day, average of {AVERAGED} days",
        ylim=(0.0, None),
        title="Prices and discounts for every visitor, learned while selling",
    )
    given.xaxis.get_major_locator().set_params(integer=True)
    given.set(xlabel="day", ylabel="discount per visitor", ylim=(0.0, 2.0 * BUDGET))
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=DAYS, help="how long, an even number")
    parser.add_argument("--seeds", type=int, default=5, help="how many shops")
    parser.add_argument("--out", type=Path, default=Path("everything.png"), help="the picture, of the first")
    options = parser.parse_args()
    visitors = options.days * A_DAY
    opens, last = visitors // 2, slice(2 * visitors // 3, visitors)
    print(f"{options.days} days of {A_DAY} visitors; the competitor opens after day {opens / A_DAY:g}")
    print("shop   profit per day in the last third            of the told   average    noticed after   false")
    print("       nilregret   told   the best price as it was      oracle's  discount   so many visitors  alarms")
    shares, discounts = [], []
    for seed in range(options.seeds):
        ours = run(nr.slots.EDetector(delta=0.01), options.days, seed=seed)
        told = run(nr.slots.RestartAt((opens,)), options.days, seed=seed)
        old = fixed(visitors, seed=seed)
        if seed == 0:
            picture(ours, told, old, options.out)
        shares.append(ours.profits[last].mean() / told.profits[last].mean())
        discounts.append(ours.discounts.mean())
        right, wrong = alarms(ours.noticed, opens)
        delay = right[0] - opens if right else "never"
        per_day = [A_DAY * profits[last].mean() for profits in (ours.profits, told.profits, old)]
        print(
            f"{seed + 1:4d} {per_day[0]:10.0f} {per_day[1]:6.0f} {per_day[2]:26.0f} {100 * shares[-1]:13.1f}% "
            f"{discounts[-1]:9.3f} {delay!s:>18} {len(wrong):7d}",
            flush=True,
        )
    off = max(abs(discount / BUDGET - 1.0) for discount in discounts)
    print(
        f"In all: {100 * np.mean(shares):.1f}% of the told oracle's profit over the last third (at least "
        f"{100 * min(shares):.1f}%); the average discount is within {100 * off:.1f}% of its budget of {BUDGET:g}."
    )
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    main()
