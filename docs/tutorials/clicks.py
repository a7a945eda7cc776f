"""
Clicks on banners
=================

A shop shows one of several banners to each visitor. A click is worth 1, no click 0. Some banners work on phones,
others on desktops. New banners arrive and old ones are sold out while the shop is open. And at the end somebody asks:
what would another rule have earned? This page answers that without another experiment.
"""

# %%
# The visitors
# ------------
#
# Each banner is described by two numbers between 0 and 1: how many words it has, and how warm its colours are.
# Similar banners have similar click rates, which the policy does not know but may discover. Only this block knows the
# true rates.

import matplotlib.pyplot as plt
import numpy as np

import nilregret as nr

BANNERS = [[0.1, 0.2], [0.2, 0.8], [0.5, 0.5], [0.8, 0.2], [0.9, 0.9], [0.35, 0.35]]  # words, warmth
VISITORS = 3000


def click_rate(device, banner):
    """Returns the probability that a visitor with this device clicks."""
    loved = (0.85, 0.25) if device == "phone" else (0.2, 0.8)
    distance = (banner[0] - loved[0]) ** 2 + (banner[1] - loved[1]) ** 2
    return 0.05 + 0.25 * np.exp(-distance / 0.2)


rng = np.random.default_rng(0)
devices = rng.choice(["phone", "desktop"], VISITORS)
moods = rng.random(VISITORS)

# %%
# The policy
# ----------
#
# ``nr.auto`` with ``reward="bernoulli"`` takes rewards for clicks: 0 or 1, with the noise that clicks have. With a
# ``context=`` it learns which banner suits which device. Every click counts on the way, so it shows what is probably
# good, and tries the rest less and less.
#
# Two things are for the question at the end. One visitor in ten sees a random banner (``Uniform(0.1)``), so that no
# banner is ever forgotten. And ``propensities=True`` records with each decision how probable it was.

arms = nr.Arms(BANNERS)
context = nr.Space(device=nr.Choice("phone", "desktop"))
policy = nr.auto(arms, context=context, reward="bernoulli").using(explore=nr.slots.Uniform(0.1))
study = nr.Study(policy, seed=0, propensities=True)

# %%
# Three thousand visitors
# -----------------------
#
# After 1,000 visitors a new banner arrives. It is like banner 3, so its rate is not a mystery from the start. After
# 2,000 visitors banner 1 is sold out: no later visitor sees it, and what it has taught stays.
#
# For the table we note the click rate of what was shown, of the best banner there was, and of a random one. A shop
# knows none of these rates. It sees clicks.

shown, best, random = np.zeros((3, VISITORS))
for n in range(VISITORS):
    if n == 1000:
        study.add_arms([[0.85, 0.3]], names=["new"], about=[{"campaign": "spring"}])
    if n == 2000:
        study.retire_arm(1)
    trial = study.ask({"device": devices[n]})
    rates = [click_rate(devices[n], arm.point) for arm in study.arms]
    study.tell(trial, bool(moods[n] < rates[trial.arm]))
    there = [rate for rate, arm in zip(rates, study.arms, strict=True) if not arm.retired]
    shown[n], best[n], random[n] = rates[trial.arm], max(there), np.mean(there)

print("visitors         shown   the best   at random")
for start in range(0, VISITORS, 1000):
    part = slice(start, start + 1000)
    rates = " ".join(f"{100 * values[part].mean():9.1f}%" for values in (shown, best, random))
    print(f"{start + 1:5d} to {start + 1000:5d} {rates}")

first = study.trials[0]
print(f"The first visitor had a {devices[0]}: banner {first.arm} was shown, with probability {first.propensity:.2f}.")

# %%
# A tenth of the visitors see a random banner by our own choice, so the first column cannot reach the second. Which
# banners were shown, in the last thousand visits?

visitor_saw = np.array([trial.arm for trial in study.trials])
for device in ("phone", "desktop"):
    counts = np.bincount(visitor_saw[2000:][devices[2000:] == device], minlength=len(study.arms))
    print(device.ljust(8), "  ".join(f"{arm}: {share:.0f}%" for arm, share in enumerate(100 * counts / counts.sum())))

# %%
# The share of each banner over time shows the same, and the two days on which the shelf changed.

fig, axes = plt.subplots(2, 1, figsize=(7.2, 5.0), sharex=True, layout="constrained")
edges = np.arange(0, VISITORS + 1, 150)
for ax, device in zip(axes, ("phone", "desktop"), strict=True):
    shares = np.array(
        [np.histogram(np.flatnonzero((visitor_saw == arm) & (devices == device)), edges)[0] for arm in range(7)]
    )
    names = [f"banner {arm}" for arm in range(6)] + ["the new one"]
    ax.stackplot(edges[:-1] + 75, shares / shares.sum(axis=0), labels=names, colors=plt.get_cmap("tab10").colors)
    for x in (1000, 2000):
        ax.axvline(x, color="black", lw=1, ls="--")
    ax.set(title=device, ylabel="share of visitors", ylim=(0, 1), xlim=(75, VISITORS - 75))
axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.0))
axes[1].set(xlabel="visitor")

# %%
# What would another rule have earned?
# ------------------------------------
#
# A colleague has three rules in mind. ``nr.evaluate`` takes the decisions of the log that a rule would have made as
# well, and weighs each by one over its recorded probability. So a decision that was rare in the log, but is common
# under the rule, counts for many. The interval holds the rule's click rate with probability 0.95, whatever rule made
# the log.


def by_device(phone, desktop):
    return lambda context: phone if context["device"] == "phone" else desktop


rules = {"at random": None, "3 on phones, 5 on desktops": (3, 5), "2 on phones, 4 on desktops": (2, 4)}
print("rule                        value   interval      counts for   truth")
for name, pair in rules.items():
    answer = nr.evaluate(study, by_device(*pair) if pair else "uniform")
    shown_by_rule = dict(zip(("phone", "desktop"), pair, strict=True)) if pair else {}
    truth = (
        np.mean([click_rate(device, BANNERS[shown_by_rule[device]]) for device in devices]) if pair else random.mean()
    )
    numbers = (100 * number for number in (answer.value, answer.lower, answer.upper))
    print(name.ljust(27), "{:5.0f}%   {:2.0f}% to {:2.0f}%".format(*numbers), end="")
    print(f" {answer.effective_sample_size:11.0f} {100 * truth:9.0f}%")
print(f"The log itself earned {100 * answer.logged:.0f}%.")

# %%
# "Counts for" is how many decisions of the rule's own would say as much as the log does. The last column is what only
# a simulation can know.
#
# A wide interval is an honest answer. The log has few decisions of a rule that likes what the policy had given up.
# The tenth at random is all that there is. A larger share narrows it, and costs clicks on the way.
#
# What you learned
# ----------------
#
# - ``reward="bernoulli"`` and a ``context=`` are all that banners need.
# - ``add_arms`` and ``retire_arm`` change the shelf while the study runs, and nothing learned is lost.
# - ``propensities=True`` and a share at random make a log that answers questions about other rules.
#
# Next: :doc:`/clicks` has counts and bounded rewards, :doc:`/propensities` the law of each decision,
# :doc:`/evaluation` what may go wrong with a log. Clicks that arrive late are in :doc:`changing_prices`, a shop over
# HTTP in :doc:`/client`.
