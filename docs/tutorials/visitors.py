"""
A shop with visitors that come back
===================================

A real shop is untidy. Visitors come back and should see the banner that they saw before. Clicks come hours late, and
most never come. Some visitors are from a country that nobody listed. A new banner arrives in the middle. And the old
banner keeps a share of the visitors, so that somebody can say in the end what the change was worth. This page does all
of it.
"""

# %%
# The shop
# --------
#
# Six thousand visits by 2,400 visitors, one every ten minutes. Only this block knows the true click rates. Some
# visitors click more often than others, on any banner. If a click comes, it comes within 200 visits.

from datetime import timedelta

import matplotlib.pyplot as plt
import numpy as np

import nilregret as nr

VISITS, WAIT = 6000, 200
NAMES = ["control", "sale", "warm", "new"]
RATES = [0.15, 0.20, 0.12, 0.30]

rng = np.random.default_rng(3)
visitors = rng.integers(0, 2400, VISITS)
devices = rng.choice(["phone", "desktop"], 2400)
countries = rng.choice(["de", "fr", "nz"], 2400, p=[0.6, 0.37, 0.03])  # Nobody told the shop of "nz".
keen = rng.gamma(4.0, 0.25, 2400)
luck, delays = rng.random(VISITS), rng.integers(1, WAIT, VISITS)


def click_rate(visitor, banner):
    """Returns the probability that a visitor clicks on a banner."""
    liked = 1.3 if (banner == 1) == (devices[visitor] == "phone") else 0.8
    return min(RATES[banner] * liked * keen[visitor], 1.0)


# %%
# The study
# ---------
#
# Each line answers one of the shop's wishes:
#
# - ``unknown=True``: a country that is not listed, or is missing, is a level of its own.
# - ``Shares``: one visitor in five sees the control, whatever the policy thinks of it.
# - ``Exposed``: a visit without a click counts as a no, as far as its click would have come by now.
# - ``sticky``: a visitor keeps a banner for a week.
# - ``propensities=True``: each choice is recorded with its probability, for the question at the end.
#
# The clock is only here because a week must pass in seconds.

context = nr.Space(
    device=nr.Choice("phone", "desktop"),
    country=nr.Choice("de", "fr", unknown=True),
)
policy = nr.auto(nr.Arms(range(3)), context=context, reward="bernoulli").using(
    explore=nr.slots.Shares({0: 0.2}),
    pending=nr.slots.Exposed.within(WAIT),
)
now = 0.0
study = nr.Study(policy, propensities=True, sticky=timedelta(days=7), clock=lambda: now)

# %%
# A month of visits
# -----------------
#
# ``unit=`` says who visits. The record does not hold this text: it holds the number of the visitor's first trial. And
# ``event=`` is the shop's own id of the visit. A click is told by it, hours later, by another program.
#
# A visit that had no click within its 200 visits is told as a no. After 2,500 visits the new banner arrives.

clicks = {}
for n in range(VISITS):
    now = n * 600.0
    for event in clicks.pop(n, []):
        study.tell(event, 1.0)
    if n >= WAIT and study.trials[n - WAIT].open:
        study.tell(n - WAIT, 0.0)
    if n == 2500:
        study.add_arms([[3.0]], names=["new"])
    who = visitors[n]
    seen = {"device": devices[who], "country": countries[who]}
    trial = study.ask(seen, unit=f"visitor-{who}", event=f"visit-{n}")
    if luck[n] < click_rate(who, trial.arm):
        clicks.setdefault(n + delays[n], []).append(f"visit-{n}")

kept = np.array([trial.kept is not None for trial in study.trials])
unknown = np.mean([trial.context_parameters["country"] == "nz" for trial in study.trials])
print(f"{kept.mean():.0%} of the visits kept a banner, {unknown:.0%} came from a country that was not listed.")
print(study.trials[-1])

# %%
# Which banners were seen? The control never falls below its share. The new one begins from nothing, and visitors who
# keep a banner for a week make the change slower than a policy that chooses at each visit.

arms = np.array([trial.arm for trial in study.trials])
edges = np.arange(0, VISITS + 1, 300)
shares = np.array([np.histogram(np.flatnonzero(arms == arm), edges)[0] for arm in range(4)])
fig, ax = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
ax.stackplot(edges[:-1] + 150, shares / 300, labels=NAMES, colors=plt.get_cmap("tab10").colors)
ax.axvline(2500, color="black", lw=1, ls="--")
ax.set(xlabel="visit", ylabel="share of visits", ylim=(0, 1), xlim=(150, VISITS - 150))
ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

# %%
# What was the change worth?
# --------------------------
#
# ``nr.evaluate`` says what the control alone would have earned in the same visits, and what the log did earn. Visits
# of one visitor resemble each other, so an interval that takes them for independent would be too narrow. This one
# counts visitors.

answer = nr.evaluate(study, 0)
truth = np.mean([click_rate(who, 0) for who in visitors])
print(f"control alone: {answer.value:.1%} ({answer.lower:.1%} to {answer.upper:.1%}), in truth {truth:.1%}")
print(f"the log:       {answer.logged:.1%}, better by {-answer.gain.upper:.1%} to {-answer.gain.lower:.1%}")

# %%
# A country gets a name
# ---------------------
#
# Enough visitors came from New Zealand to list it. The visits so far then count for the new level, and no decision or
# probability on record changes.

study.widen(context={"country": nr.Choice("de", "fr", "nz", unknown=True)})
print(study.ask({"device": "phone", "country": "nz"}).context_parameters)

# %%
# A visitor who asks for it is forgotten: nothing on record says any more which visits were theirs.

print(study.forget(f"visitor-{visitors[0]}"))

# %%
# What you learned
# ----------------
#
# - ``unit=`` and ``sticky=`` keep a visitor's banner, and intervals count visitors.
# - ``event=`` lets a click find its visit.
# - ``unknown=True`` and ``Shares`` are two words each, and both are needed on the first day.
#
# Next: :doc:`/live` has all options and their limits, :doc:`/late-answers` other kinds of silence, :doc:`clicks` rules
# compared, :doc:`/service` the same over HTTP.
