"""
Prices that change
==================

A charging station for cars sets a new price every three hours. What a good price is depends on the hour. Payments
arrive a day late. The station gets busier week by week, and one day a rival opens next door without telling anybody.
The grid operator allows 110 kWh per three hours, on average. Each of these has a word in nilregret. This page uses
all of them in one policy, and then takes them away one by one, to see what each is worth.
"""

# %%
# The station
# -----------
#
# Only this block knows the customers. In your case there is a street in its place. ``demand`` is the energy sold in
# three hours, in kWh, at a price in € per kWh. In the morning and in the evening more cars come, and in the evening
# they pay more. The rival is open from 3 p.m. on, and cheap. It brings people to the street, who charge in the
# morning.

import heapq

import matplotlib.pyplot as plt
import numpy as np

import nilregret as nr
from nilregret.slots.envelope import ConstantWidth

ROUNDS, OPENS = 448, 224  # eight weeks of eight prices a day; the round in which the rival opens
COST, LIMIT = 0.25, 110.0  # € per kWh; kWh per three hours
MEMORY = "adaptive"


def demand(hour, price, t):
    """Returns the expected energy sold, kWh, in round t."""
    cars = (0.9 + 0.2 * t / ROUNDS) * (
        150 + 100 * np.exp(-(((hour - 9) / 3) ** 2)) + 180 * np.exp(-(((hour - 18) / 3) ** 2))
    )
    worth = 0.45 + 0.25 * np.exp(-(((hour - 18) / 4) ** 2))
    if t >= OPENS:
        cars, worth = (0.9 * cars, worth - 0.20) if hour >= 15 else (1.2 * cars, worth + 0.15)
    return cars / (1.0 + np.exp((price - worth) / 0.06))


# %%
# The policy
# ----------
#
# Each difficulty is one argument:
#
# - ``context=``: the hour is known before each decision. What is learned at 9 a.m. says something about noon.
# - ``pending="hallucinate"``: answers come late. What was asked and not answered yet makes the policy less curious
#   there.
# - ``memory="adaptive"``: a detector compares recent answers with older ones, and cuts the memory when the world has
#   changed.
# - ``constraints=nr.OnAverage(...)``: the limit holds on average. A price per kWh is learned with it: it rises while
#   more is sold than allowed, and falls again. ``step`` is that rise, in € for each kWh too much.
#
# The rest are plausible sizes, in €: profits of 25, give or take 25 from price to price and 6 by chance.

HOURS = nr.Space(hour=nr.Float(0, 21)).grid(8)
PRICES = nr.Space(price=nr.Float(0.30, 0.90)).grid(13)


def policy(*, context=HOURS, pending="hallucinate", memory=MEMORY, budget=True):
    lengthscales = [0.25] if context is None else [0.2, 0.25]  # shares of the ranges: of hour, price
    energy = nr.SquaredExponential(lengthscales, scale=60.0**2)  # kWh
    return nr.gp_ucb(
        PRICES,
        nr.SquaredExponential(lengthscales, scale=25.0**2),
        noise=6.0,
        prior_mean=25.0,
        width=ConstantWidth(value=1.5),
        context=context,
        pending=pending,
        memory=memory,
        constraints=nr.OnAverage(step=0.0005, kernel=energy, noise=10.0) if budget else None,
    )


# %%
# Eight weeks
# -----------
#
# The loop is what a live system does: ask, act, and tell what is known when it is known. The meter is read at once,
# so ``tell(trial, constraints=[...])`` comes first. The payment comes about a day later: ``tell(number, profit)``.


def station(rule, seed):
    """Returns the expected profit and the energy of each round, and the study."""
    study = nr.Study(rule, seed=seed)
    study.quiet = True  # no warnings about policies that are meant to be wrong below
    luck = np.random.default_rng([seed, 1])  # the same for every policy
    paid, read = 4.0 * luck.standard_normal(ROUNDS), 8.0 * luck.standard_normal(ROUNDS)
    days_late = luck.geometric(1 / 9, ROUNDS)
    profit, energy, due = np.zeros(ROUNDS), np.zeros(ROUNDS), []
    for t in range(ROUNDS):
        hour = 3.0 * (t % 8)
        trial = study.ask() if rule.context is None else study.ask({"hour": hour})
        price = trial.parameters["price"]
        energy[t] = demand(hour, price, t)
        profit[t] = (price - COST) * energy[t]
        if rule.constraint_count:
            study.tell(trial, constraints=[energy[t] + read[t] - LIMIT])
        heapq.heappush(due, (t + int(days_late[t]), trial.number, profit[t] + paid[t]))
        while due and due[0][0] <= t:
            _, number, amount = heapq.heappop(due)
            study.tell(number, amount)
    return profit, energy, study


profit, energy, study = station(policy(), seed=0)
print(f"average energy: {energy.mean():.0f} kWh of {LIMIT:.0f}, a kWh is worth {study.multipliers[0]:.2f} € more")
for start, reason in zip(study.restarts, study.restart_reasons, strict=True):
    print(f"round {start}: {reason}. The rival opened in round {OPENS}.")

# %%
# What each part is worth
# -----------------------
#
# Now the same weeks with one part left out at a time. The yardstick is a *told oracle*: the same policy, told in
# advance when the rival opens. What a rule earns less than it, over all eight weeks, is its regret. The means of two
# runs show what is large, and no more: :doc:`/together` has figures of many.

variants = {
    "told oracle": {"memory": nr.slots.RestartAt((OPENS,))},
    "all parts": {},
    "no detector": {"memory": None},
    "a window of two weeks": {"memory": nr.slots.SlidingWindow(112)},
    "pending ignored": {"pending": "ignore"},
    "no contexts": {"context": None},
    "no limit": {"budget": False},
}
runs = {name: [station(policy(**parts), seed) for seed in range(2)] for name, parts in variants.items()}


print("                       profit, €/day          regret,   energy, kWh")
print("                       4 weeks before, after  €/day     per three hours")
for name in variants:
    earned, used = np.mean([run[:2] for run in runs[name]], axis=0)  # each (448,)
    before, after = 8.0 * earned[:OPENS].mean(), 8.0 * earned[OPENS:].mean()
    if name == "told oracle":
        told = (before + after) / 2
    print(f"{name:22s} {before:14.0f} {after:6.0f} {round(told - (before + after) / 2) + 0:8d} {used.mean():9.0f}")

# %%
# Read the last row first. Without the limit the profit is higher, and the energy is far above what is allowed: that
# is the price of the contract and no regret. Among the rules that keep the limit, compare the rows with "all parts".
# A negative regret means that the rule had more than the oracle: two runs have that much luck.
#
# The window is the usual answer to a world that *drifts*: it forgets steadily. It needs no detector, and it pays in
# quiet times, since it forgets what is still true. If only some of this happens to you, leave the other arguments
# out.
#
# The picture of the run with all parts: profits day by day, and the energy that has been sold on average so far.

days = np.arange(1, ROUNDS // 8 + 1)
fig, (top, bottom) = plt.subplots(2, 1, figsize=(7.2, 5.0), sharex=True, layout="constrained")
for name, color in (("told oracle", "tab:gray"), ("no detector", "tab:orange"), ("all parts", "tab:blue")):
    earned = runs[name][0][0].reshape(-1, 8).sum(axis=1)
    top.plot(days[4:], np.convolve(earned, np.ones(5) / 5, mode="valid"), color=color, label=name)
top.set(ylabel="profit, €/day (last 5 days)", ylim=(0, None), title="A rival opens after four weeks")
bottom.plot(days, np.cumsum(energy)[7::8] / (8 * days), color="tab:blue", label="average so far")
bottom.axhline(LIMIT, color="black", ls=":", label="limit")
bottom.set(xlabel="day", ylabel="kWh per three hours", ylim=(0, 150))
for ax in (top, bottom):
    ax.axvline(OPENS / 8, color="tab:red", lw=1, ls="--", label="the rival opens")
    ax.legend(loc="lower left", ncols=2)

# %%
# What you learned
# ----------------
#
# - Contexts, late answers, changes and an average limit are arguments of one policy, and go together.
# - Rewards and constraint values may be told at different times.
# - Compare with a told oracle: what is left is the price of not knowing.
#
# Next: :doc:`/late-answers`, :doc:`/changing` and :doc:`/constraints` have each part alone, with what is proved.
# :doc:`/together` measures them together. :doc:`/service` does this over HTTP, for a shop in another language.
