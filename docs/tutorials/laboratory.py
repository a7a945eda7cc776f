"""
A laboratory, over days
=======================

An experiment that takes hours cannot be a function that a program calls. You ask for the next experiments, run them
by hand, and tell what came out: today, tomorrow, from another computer, or never. This page goes through a week of a
laboratory that wants the highest yield of a reaction. It may set the temperature, the concentration and the time.
"""

# %%
# The laboratory
# --------------
#
# The flask on this page is a simulation, so that the page runs. A substance A becomes the product B, and B decays
# into C. Heat speeds both steps up, and the second one more. A reading of the yield has an error of 1.5 percentage
# points. Only this block knows any of that. In your laboratory there is a bench in its place.

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nilregret as nr

rng = np.random.default_rng(0)


def true_yield(temperature, concentration, minutes):
    """Returns the yield of B in percent, by the Arrhenius law, at °C, mol/L and minutes."""
    colder = 1.0 / (temperature + 273.15) - 1.0 / 333.15
    first = 0.08 * np.exp(-60e3 / 8.314 * colder) * concentration**0.5  # per minute
    second = 0.012 * np.exp(-95e3 / 8.314 * colder) * concentration
    return 100.0 * first / (first - second) * (np.exp(-second * minutes) - np.exp(-first * minutes))


def readings(parameters, count):
    """Returns so many readings of one flask, in percent."""
    return true_yield(**parameters) + 1.5 * rng.standard_normal(count)


# %%
# What may be tried
# -----------------
#
# Write the ranges in the units of your instruments. Nobody scales anything: the study learns how fast the yield
# changes along each parameter. ``parallel=4`` says that four flasks run at a time, so that the four of a day are
# spread out.
#
# The safety sheet of the bench says: above 75 °C for at most 90 minutes. That is known before any experiment, so it is
# a limit of the space, and no flask of any day breaks it.
#
# The study lives in a file. Each call is on disk when it returns.

folder = Path(tempfile.mkdtemp())  # yours would be a folder of your own
storage = f"sqlite:///{folder}/lab.db"

space = nr.Space(
    temperature=nr.Float(30.0, 90.0),  # °C
    concentration=nr.Float(0.1, 2.0, log=True),  # mol/L
    minutes=nr.Int(10, 180, step=5),
).where("temperature <= 75 or minutes <= 90")
policy = nr.auto(space, parallel=4)
study = nr.Study(policy, seed=1, storage=storage, name="yield", about={"unit": "percent", "bench": "3"})

# %%
# Monday
# ------
#
# Ask for four experiments, as a sheet to print for the bench. Nobody sets 63.4172 °C, so the sheet has rounded numbers.
# They are rounded before the trials are recorded, so the record has what stands on the sheet.

monday = study.sheet(4, folder / "monday.html", digits=2).trials
for trial in monday:
    at = trial.parameters
    print(f"flask {trial.number}: {at['temperature']} °C, {at['concentration']} mol/L, {at['minutes']} min")

# %%
# Three flasks give a yield. Each is read three times, so we tell the mean and its standard deviation: that of one
# reading over the root of three. The hottest flask boils over. That is a failure: its recipe is to blame, so the
# study keeps the reason and stays away from there. Had somebody dropped the flask, ``study.abandon`` would be right:
# it says nothing of the recipe.

hottest = max(monday, key=lambda trial: trial.parameters["temperature"])
for trial in monday:
    if trial is hottest:
        study.fail(trial, "boiled over")
        continue
    values = readings(trial.parameters, 3)
    study.tell(trial, values.mean(), std=1.5 / np.sqrt(3))
    print(f"flask {trial.number}: {values.mean():.0f} %")

# %%
# A colleague remembers an experiment of last month that nobody asked for, with a single reading. It counts as well,
# for less, since it is less exact.

old = {"temperature": 60.0, "concentration": 0.5, "minutes": 60}
study.add(old, readings(old, 1)[0], std=1.5)
study.close()

# %%
# Tuesday, another computer
# -------------------------
#
# ``Study.open`` needs the file and the name. Policy, seed and trials are in the file. The study decides what it would
# have decided if it had never been closed.

study = nr.Study.open(storage=storage, name="yield")
print(f"{len(study.trials)} trials on record, flask {hottest.number} failed: {study.trials[hottest.number].reason}")

# %%
# A sheet may also be a table, which a spreadsheet fills in (with ``decimal=","`` for one that writes decimal commas).
# Two flasks are read. A third one was heated to 60 °C, and the sheet says so: its trial is abandoned, and the flask
# counts as what it was. The fourth is not ready. Its row stays empty, and its trial pending.

path = folder / "tuesday.csv"
study.sheet(4, path, digits=2)
with path.open(encoding="utf-8-sig", newline="") as file:
    rows = list(csv.DictReader(file))
rows[2]["temperature"] = "60"
for row in rows[:3]:
    at = {"temperature": float(row["temperature"]), "concentration": float(row["concentration"])}
    row["value"] = f"{readings(at | {'minutes': int(row['minutes'])}, 1)[0]:.1f}"
with path.open("w", newline="") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
for trial in study.add_from(path):
    print(f"flask {trial.number}: {trial.parameters['temperature']} °C, {trial.reward} %")
late = study.sheet().trials[0]  # without a count the sheet is of what is pending
study.tell(late, readings(late.parameters, 3).mean(), std=1.5 / np.sqrt(3))

# %%
# We work through the rest of the week in the same way.

for _ in range(4):
    batch = study.ask(count=4)
    for trial in batch:
        study.tell(trial, readings(trial.parameters, 3).mean(), std=1.5 / np.sqrt(3))

# %%
# Why this experiment?
# --------------------
#
# Before a day at the bench you may want a reason. ``explain`` replays the record up to the decision. It shows the
# score of the choice and of the runner-up, and what was known then.

print(study.explain(batch[0]))

# %%
# What to report
# --------------
#
# Not the highest value that was ever read: the highest of many noisy readings is partly luck. ``study.best()`` is the
# trial with the highest posterior mean, and ``study.predict`` has that mean and its standard deviation. Both are of
# the yield without the error of the reading. Two of these deviations on either side are a 95% interval, if the model
# is right. Nobody proved that, so run the best flask again before you publish. We do, with six new readings.

best = study.best()
mean, std = study.predict(best.parameters)
low, high = mean[0] - 2.0 * std[0], mean[0] + 2.0 * std[0]
at = best.parameters
print(f"trial {best.number}: {at['temperature']:.0f} °C, {at['concentration']:.2f} mol/L, {at['minutes']} min")
print(f"believed yield {mean[0]:.0f} %, interval {low:.0f} to {high:.0f} %")

again = readings(at, 6)
print(f"six new readings: {again.mean():.1f} +- {1.5 / np.sqrt(6):.1f} %")

ranges = {"temperature": (30, 90), "concentration": (0.1, 2.0), "minutes": (10, 180)}
for name, (first, last) in ranges.items():
    if at[name] < 1.05 * first or at[name] > 0.95 * last:
        print(f"The best {name} lies at an end of its range: next time let it be wider.")

# %%
# A picture of the week: all yields, and the yield that is believed along the temperature. The other two parameters
# are those of the best trial.

degrees = np.linspace(30.0, 90.0, 61)
mean, std = study.predict([at | {"temperature": value} for value in degrees])
told = [(trial.number, trial.reward) for trial in study.trials if trial.reward is not None]

fig, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.4), sharey=True, layout="constrained")
left.plot(*zip(*told, strict=True), "o", color="tab:gray")
left.plot(best.number, best.reward, "*", color="tab:red", ms=12, label="best")
left.set(xlabel="trial", ylabel="yield, %", title="Every flask")
left.legend()
right.fill_between(degrees, mean - 2 * std, mean + 2 * std, alpha=0.25, label="95% interval")
right.plot(degrees, mean, label="believed")
right.plot(degrees, true_yield(degrees, at["concentration"], at["minutes"]), "k:", label="truth of the simulation")
right.set(xlabel="temperature, °C", title=f"{at['concentration']:.2f} mol/L, {at['minutes']} min", ylim=(0, 105))
right.legend()

# %%
# The same from a terminal
# ------------------------
#
# The bench may have no Python programmer. Every step above is a command on the same file. Here is what stands in it
# now, and then the next flask, told and explained. (``run`` calls the command as a shell would.)


def run(*words):
    print("$ nilregret", *(word.replace(str(folder) + "/", "") for word in words))
    done = subprocess.run([sys.executable, "-m", "nilregret", *words], capture_output=True, text=True, check=True)
    print(done.stdout.replace(str(folder) + "/", ""))


lab = str(folder / "lab.db")
run("show", lab, "yield")
run("ask", lab, "yield")

# %%
# The new trial is pending until somebody tells it. The study that is open in Python sees it at the next look.

trial = study.trials[-1]
run("tell", lab, "yield", str(trial.number), f"{readings(trial.parameters, 1)[0]:.1f}", "--std", "1.5")
print(study.trials[-1].state)

# %%
# What you learned
# ----------------
#
# - ``ask`` and ``tell`` may be days, programs and computers apart. The file is the laboratory's notebook.
# - ``sheet(4)`` with ``parallel=4`` plans a day on paper, and ``add_from`` reads it back.
# - ``fail`` records what went wrong, ``add`` what nobody asked for.
# - ``where`` says what is known before. ``std=`` says how exact a value is. ``explain`` says why, ``predict`` what to
#   report.
#
# Next: :doc:`/studies` has corrections of wrong values, leases, and tables for pandas. :doc:`/operating` has all
# commands. :doc:`/limits` has all that a limit may say. :doc:`/constraints` is for limits that only an experiment
# shows, and :doc:`safe_tuning` for those of them that it must never break.
