"""A router shares data rates among four servers, hour after hour, under a budget of electricity.

    python examples/router.py

Nobody knows the servers' utility beforehand, and it is measured with noise; the bill of each hour is known at its end.
On average it may be 3, in single hours it may be more. Every hour is in router.db the moment it is over: interrupt
this, run it again, and it goes on where it was (with a larger --hours, it goes on beyond). At the end: a table, and
router.png with utility, violation and the multiplier, the price of electricity that the policy has learned.
"""

import argparse
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret import plots
from nilregret.simulation import metrics
from nilregret.study.curves import Curves

WORLD = nr.environments.data_rates()  # stands in for the servers: reality, in your case
EPOCH, EPOCHS = 20, 15
BUDGET = 3.0


def serve(rates, hour):
    """What an hour at these rates brings: utility, measured with noise, and the bill."""
    point = np.array([rates])
    noise = np.random.default_rng([2022, hour]).normal(scale=0.1)
    return float(WORLD.reward(point)[0] + noise), float(WORLD.constraint(point)[0, 0] + BUDGET)


def picture(study, path):
    trials = [trial for trial in study.trials if trial.reward is not None]
    hours = np.arange(1.0, len(trials) + 1)
    g = np.array([trial.constraints for trial in trials])
    utility = np.array([trial.reward for trial in trials])
    kappa = multipliers_by_hour(study)

    def panel(y_label, lines):
        rows = {name: line[None] for name, line in lines.items()}
        return Curves(x=hours, lines=rows, x_label="hour", y_label=y_label, band="none")

    plots.panels(
        [
            panel(
                "average utility",
                {"so far": np.cumsum(utility) / hours, "best within the budget": np.full(len(hours), WORLD.best)},
            ),
            panel(
                "cumulative violation",
                {
                    "V_t: hours make up for each other": metrics.violation(g),
                    "overspending": metrics.strong_violation(g),
                },
            ),
            panel("price of electricity", {"multiplier": kappa}),
        ],
        path,
        title=f"{study.policy.algorithm}: {len(trials)} hours, {EPOCHS} epochs of {EPOCH}",
    )


def multipliers_by_hour(study):
    """The multiplier that was in force in each hour: everything a study knows follows from its record."""
    again, kappa = nr.Study(study.policy, seed=study.seed), []
    for trial in study.trials:
        if trial.number % EPOCH == 0 or not kappa:
            kappa.append(float(again.multipliers[0]))
        else:
            kappa.append(kappa[-1])
        again.add(trial.point, trial.reward, constraints=trial.constraints)
    return np.array(kappa)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=EPOCH * EPOCHS)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    policy = nr.gp_ucb_noiseless_constraints(
        WORLD.domain,
        nr.Matern(2.5, lengthscale=1.0),
        noise=0.1,
        norm_bound=1.0,
        epoch=EPOCH,
        epochs=EPOCHS,
        regularization=0.01,
    )
    study = nr.Study(policy, seed=0, storage=f"sqlite:///{options.folder.resolve()}/router.db", name="router")
    if len(study.trials):
        print(f"resumed after {len(study.trials)} hours")
    while len(study.trials) < options.hours or any(trial.state == "pending" for trial in study.trials[-1:]):
        left = [trial for trial in study.trials[-1:] if trial.state == "pending"]  # asked, and then interrupted
        trial = left[0] if left else study.ask()
        utility, bill = serve(trial.point, trial.number)
        study.tell(trial, utility, constraints=bill - BUDGET)
        hour = trial.number + 1
        if hour % EPOCH == 0 or hour == options.hours:
            done = study.trials
            print(
                f"hour {hour:3}: average utility {np.mean([t.reward for t in done]):.3f}, average bill "
                f"{BUDGET + np.mean([t.constraints[0] for t in done]):.3f} of {BUDGET}, "
                f"price of electricity {study.multipliers[0]:.3f}"
            )
    try:
        best = study.best()
        print(f"best rates within the budget: {np.round(best.point, 2)} (hour {best.number + 1})")
    except nr.errors.TrialError as error:
        print(error)
    print(f"best possible: {np.round(WORLD.argmax, 2)}, utility {WORLD.best:.3f}")
    picture(study, options.folder / "router.png")
    print(f"picture: {options.folder / 'router.png'}")


if __name__ == "__main__":
    main()
