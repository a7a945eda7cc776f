"""
Safe tuning of a machine
========================

A milling machine removes more metal the faster it runs, and it vibrates. Above 6 µm of vibration a tool breaks. So
you want the best settings, and you may not try a bad one to learn that it is bad. ``nr.Safe`` plays only settings
that it can certify with what it has measured so far. This page tunes the machine, shows what is certified and how it
expands, and then makes the assumptions wrong on purpose, to see what happens.
"""

# %%
# The machine
# -----------
#
# The machine on this page is a simulation that only this block knows. Vibration grows with speed and feed, and has a
# resonance at about 6,500 turns a minute. The removal rate is in cm³ a minute.

import matplotlib.pyplot as plt
import numpy as np

import nilregret as nr

LIMIT = 6.0  # µm


def vibration(speed, feed):
    x, y = (speed - 2000.0) / 10_000.0, (feed - 100.0) / 1100.0
    return 2.0 + 5.0 * y + 4.0 * np.exp(-(((x - 0.45) / 0.22) ** 2)) * (0.3 + y) + 3.0 * x * y + 2.5 * x**2


def removal(speed, feed):
    return feed / 100.0 * (0.6 + 0.6 * (speed - 2000.0) / 10_000.0)


machine = nr.Space(
    speed=nr.Float(2000, 12_000),  # turns a minute
    feed=nr.Float(100, 1200),  # mm a minute
).grid(17)

# %%
# What must be known
# ------------------
#
# Nothing can be certified from nothing. ``nr.Safe`` needs, in units of the machine:
#
# - ``start``: settings that are known to be safe. The machine has run at a gentle one for years.
# - ``scale``: a plausible standard deviation of the vibration over all settings. A quarter of the range that you
#   think possible is a fair guess: from 2 to 14 µm, so 3 µm.
# - ``noise``: the standard deviation of one measurement.
# - The lengthscale of the kernel, as a share of the range, says how far you must go until the vibration is another
#   one. 0.3 stands for 3,000 turns a minute.
#
# The constraint is told as measured minus limit: at most 0 is safe. ``delta=0.05`` is the probability that a whole
# run, however long, ever violates the limit, *if* these assumptions hold.

start = {"speed": 3250, "feed": 237.5}


def policy(*, scale=3.0, lengthscale=0.3):
    return nr.gp_ucb(
        machine,
        nr.SquaredExponential(lengthscale, scale=4.0**2),
        noise=0.3,  # cm³ a minute
        prior_mean=5.0,
        constraints=nr.Safe(start=[start], scale=scale, noise=0.2, delta=0.05),
    )


def measure(study, rng):
    """Plays one setting, tells what was measured, and returns the true vibration."""
    trial = study.ask()
    true = vibration(**trial.parameters)
    rate = removal(**trial.parameters) + 0.3 * rng.standard_normal()
    study.tell(trial, rate, constraints=[true + 0.2 * rng.standard_normal() - LIMIT])
    return true


# %%
# Sixty settings
# --------------
#
# ``study.feasible()`` is the certificate of each setting, 1 or 0. We count the certified ones on the way.

study, rng = nr.Study(policy(), seed=0), np.random.default_rng(0)
certified, worst = {0: study.feasible().astype(bool)}, 0.0
for n in range(1, 61):
    worst = max(worst, measure(study, rng))
    if n in (5, 20, 60):
        certified[n] = study.feasible().astype(bool)
        print(f"after {n:2d} settings {certified[n].sum():3d} of {len(certified[n])} are certified")

best = study.best().parameters
print(f"most vibration ever: {worst:.1f} µm of {LIMIT:.0f}")
print(
    f"best: {best['speed']:.0f} turns, {best['feed']:.0f} mm a minute, which removes {removal(**best):.1f} cm³ a minute"
)
print(f"the start removed {removal(**start):.1f}")

# %%
# The certified settings spread from the start, in steps as long as the lengthscale and the measurements allow. They
# stop before the limit (black line), where the bounds cannot tell safe from unsafe any more. A safe region behind the
# resonance, if nothing certified leads there, is never reached: that is the price of never crossing the line.

settings = [machine.parameters(arm) for arm in range(len(machine))]
speeds = np.array([setting["speed"] for setting in settings]).reshape(17, 17)
feeds = np.array([setting["feed"] for setting in settings]).reshape(17, 17)
fig, axes = plt.subplots(1, 4, figsize=(9.6, 3.0), sharey=True, layout="constrained")
for ax, (n, safe) in zip(axes, certified.items(), strict=True):
    ax.pcolormesh(speeds, feeds, safe.reshape(17, 17), cmap="Greens", vmin=0, vmax=1.6, shading="nearest")
    ax.contour(speeds, feeds, vibration(speeds, feeds), levels=[LIMIT], colors="black")
    played = [trial.parameters for trial in study.trials[:n]]
    ax.plot([p["speed"] for p in played], [p["feed"] for p in played], "o", color="tab:blue", ms=3)
    ax.plot(start["speed"], start["feed"], "s", color="tab:orange", ms=5)
    ax.set(title=f"after {n}", xlabel="turns a minute")
axes[0].set_ylabel("feed, mm a minute")

# %%
# When an assumption is wrong
# ---------------------------
#
# The promise has an *if* in it. Here are twenty runs of forty settings under the assumptions of above, and twenty
# each under wrong ones: a scale that is too small, and a lengthscale that is too long, which says that a resonance as
# narrow as ours is hardly possible.

wrong = {
    "as above": {},
    "scale a third": {"scale": 1.0},
    "lengthscale 2.5 times": {"lengthscale": 0.75},
    "scale three times": {"scale": 9.0},
}
print("                        runs of 20 that     most vibration   removal at")
print("                        crossed the limit   of all, µm       the end, cm³/min")
for name, assumption in wrong.items():
    crossed, peak, rates = 0, 0.0, []
    for seed in range(20):
        run, luck = nr.Study(policy(**assumption), seed=seed), np.random.default_rng(seed)
        run.quiet = True  # the warning is below
        highest = max(measure(run, luck) for _ in range(40))
        crossed, peak = crossed + (highest > LIMIT), max(peak, highest)
        rates.append(removal(**run.best().parameters))
    print(f"{name:23s} {crossed:9d} {peak:20.1f} {np.mean(rates):16.1f}")

# %%
# A wrong assumption makes the certificate worth less, and nothing in the certificate itself says so. Two rules help:
#
# - If in doubt, take a larger scale and a shorter lengthscale. Too much of it costs removal rate (last row), but no
#   tool.
# - A measurement that contradicts the assumptions (more than four standard deviations off) ends the expansion:
#   nothing new is certified from then on, and a warning names the likely cause. So the damage ends, but one setting
#   may be over the limit before it is noticed.
#
# What was tested at the edge of the promise is in :doc:`/constraints`: with all as told and ``delta=0.05``, the
# certificate of this page let 4 to 14 of 400 runs violate anything, where 20 are allowed. ``scale="learned"`` is for
# those who cannot name a scale. Its steps are small, and nothing is proved.
#
# ``nr.Safe`` does not replace an emergency stop. It makes the stop rarely needed.
#
# What you learned
# ----------------
#
# - ``nr.Safe(start=, scale=, noise=)`` in units of the machine plays only what is certified.
# - The certified set grows from the start and stops before the limit.
# - The promise is as good as scale, lengthscale and noise. Err on the careful side.
#
# Next: :doc:`/constraints` compares three senses of a limit: never, in the end, and on average. :doc:`laboratory` is
# the same loop by hand, over days. :doc:`/extending` has rules of your own.
