"""
Safe tuning of a machine
========================

A milling machine removes more metal the faster it runs, and it vibrates. Above 6 µm of vibration a tool breaks. So
you want the best settings, and you may not try a bad one to learn that it is bad. ``nr.Safe`` plays only settings that
measurements so far prove to be safe. You tell it how fast vibration may rise, and how wrong the sensor may be. This
page tunes the machine, shows what is certified, and then tells wrong numbers on purpose.
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
)

# %%
# What must be known
# ------------------
#
# Nothing can be certified from nothing. ``nr.Safe`` needs three things, in units of the machine:
#
# - ``start``: settings that are known to be safe. The machine has run at a gentle one for years.
# - ``slope``: the most by which vibration changes with each parameter. A machinist says: 1,000 turns a minute more
#   never made it worse by more than 2.5 µm, and 100 mm a minute more feed not by more than 1 µm.
# - ``noise``: the largest error of a measurement. The data sheet of the sensor says 0.2 µm. This is a bound and no
#   standard deviation. Of a standard deviation, take four.
#
# The constraint is told as measured minus limit, so at most 0 is safe. Kernels and lengthscales are not asked for:
# they decide nothing about safety, and ``nr.auto`` learns them.

start = {"speed": 3250, "feed": 237.5}


def policy(times=1.0, domain=machine):
    slope = {"speed": times * 2.5 / 1000, "feed": times * 1.0 / 100}  # µm per turn a minute, and per mm a minute
    return nr.auto(domain, constraints=nr.Safe(start=[start], slope=slope, noise=0.2))


def measure(study, rng):
    """Plays one setting, tells what was measured, and returns the true vibration."""
    trial = study.ask()
    true = vibration(**trial.parameters)
    rate = removal(**trial.parameters) + 0.3 * rng.standard_normal()
    study.tell(trial, rate, constraints=[true + rng.uniform(-0.2, 0.2) - LIMIT])
    return true


# %%
# Forty settings
# --------------
#
# ``study.feasible(points)`` is the certificate of each setting, 1 or 0. We look at it on the way.

speeds, feeds = np.meshgrid(np.linspace(2000, 12_000, 101), np.linspace(100, 1200, 101))
places = [{"speed": speed, "feed": feed} for speed, feed in zip(speeds.ravel(), feeds.ravel(), strict=True)]

study, rng = nr.Study(policy(), seed=0), np.random.default_rng(0)
certified, worst = {}, 0.0
for n in range(1, 41):
    worst = max(worst, measure(study, rng))
    if n in (1, 5, 15, 40):
        certified[n] = study.feasible(places).reshape(speeds.shape)
        print(f"after {n:2d} settings {100 * certified[n].mean():2.0f}% of all are certified")

best = study.best().parameters
print(f"most vibration ever: {worst:.2f} µm of {LIMIT:.0f}")
print(f"best: {best['speed']:.0f} turns, {best['feed']:.0f} mm a minute: {removal(**best):.1f} cm³ a minute")
possible = np.where(vibration(speeds, feeds) <= LIMIT, removal(speeds, feeds), 0.0).max()
print(f"the start removed {removal(**start):.1f}, and {possible:.1f} is the most that is safe")

# %%
# Each measurement certifies a diamond around it (green). Diamonds shrink towards the limit (black line), where a
# measurement leaves no room any more. The policy spends measurements only on the way to better settings, not to certify
# everywhere. A better region behind the resonance, if nothing certified leads there, is never reached: that is the
# price of never crossing the line.

fig, axes = plt.subplots(1, 4, figsize=(9.6, 3.0), sharey=True, layout="constrained")
for ax, (n, safe) in zip(axes, certified.items(), strict=True):
    ax.pcolormesh(speeds, feeds, safe, cmap="Greens", vmin=0, vmax=1.6, shading="nearest")
    ax.contour(speeds, feeds, vibration(speeds, feeds), levels=[LIMIT], colors="black")
    played = [trial.parameters for trial in study.trials[:n]]
    ax.plot([p["speed"] for p in played], [p["feed"] for p in played], "o", color="tab:blue", ms=3)
    ax.plot(start["speed"], start["feed"], "s", color="tab:orange", ms=5)
    ax.set(title=f"after {n}", xlabel="turns a minute")
axes[0].set_ylabel("feed, mm a minute")

# %%
# When a number is wrong
# ----------------------
#
# Measurements can refute what was told. If two differ by more than slopes and noise allow, ``ask`` raises an error, and
# nothing is certified any more. Here both slopes are told as a quarter.

wrong, rng = nr.Study(policy(0.25), seed=0), np.random.default_rng(0)
try:
    for _ in range(40):
        measure(wrong, rng)
except nr.NoRegretError as error:
    print(error)

# %%
# The error names both trials, and how much steeper the slopes must be at least. Look at the two trials, since a faulty
# reading would say the same. Then tell steeper slopes, and not only as steep as two trials show: here those of above. A
# new study takes over the trials, and the run goes on. The first step of a study is short, and here it has shown what is
# wrong. So no setting was near the limit.

study = nr.Study(policy(), seed=1)
study.add_from(wrong)
worst = max(measure(study, rng) for _ in range(20))
print(f"{len(study.trials)} trials, {worst:.2f} µm at most since then, {removal(**study.best().parameters):.1f} cm³")

# %%
# What a wrong number costs
# -------------------------
#
# Here are ten runs of 25 settings each, on a grid, which is faster. ``caution``, 1.5 unless told, is a reserve:
# certificates take all slopes 1.5 times as steep as told. So slopes may be told up to 1.5 times too small. Beyond that
# nothing is promised. Short first steps then find most slopes that are too small before the limit is crossed.

print("slopes told    refuted    crossed the limit    most vibration, µm    best removal, cm³ a minute")
for name, times in {"as above": 1.0, "half": 0.5, "a quarter": 0.25, "twice": 2.0}.items():
    refuted, peaks, rates = 0, [], []
    for seed in range(10):
        run, luck, seen = nr.Study(policy(times, machine.grid(17)), seed=seed), np.random.default_rng(seed), []
        try:
            for _ in range(25):
                seen.append(measure(run, luck))
        except nr.NoRegretError:
            refuted += 1
        peaks.append(max(seen))
        rates.append(max(removal(**trial.parameters) for trial in run.trials))
    crossed = sum(peak > LIMIT for peak in peaks)
    print(f"{name:10s} {refuted:7d} of 10 {crossed:12d} of 10 {max(peaks):15.1f} {np.mean(rates):22.1f}")

# %%
# If in doubt, tell steeper slopes and more noise. Steps are then shorter, which costs removal rate (last row), but no
# tool. If you can only guess to a factor of three, say ``caution=3``, which promises as much.
#
# Do you know a Gaussian process that fits the vibration, its lengthscale and its size? Then ``scale=`` in place of
# ``slope=`` certifies more from each measurement, and a run crosses the limit with probability at most ``delta``.
# :doc:`/constraints` shows what a wrong lengthscale costs there.
#
# ``nr.Safe`` does not replace an emergency stop. It makes the stop rarely needed.
#
# What you learned
# ----------------
#
# - ``nr.Safe(start=, slope=, noise=)`` in units of the machine plays only what is certified.
# - The promise is as good as slopes and noise bound. Measurements can refute these, and say what would fit.
# - A new study takes over the trials with ``add_from``.
#
# Next: :doc:`/constraints` has units, tables of jumps for choices, and how to find slopes in old logs. :doc:`laboratory`
# is the same loop by hand, over days. :doc:`/extending` has rules of your own.
