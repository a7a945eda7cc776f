"""Prices hour by hour, in a shop whose customers change without notice.

    python examples/pricing.py

Every hour a price is set and the hour's revenue comes back: price times a number of customers that nobody knows
beforehand. One day a competitor opens next door, three weeks later it closes. GP-UCB-CPD (Avanesov) learns the best
price, spends some hours on random prices, compares what they brought lately with what they brought before, and starts
anew when the demand must have changed. The same hours with the same customers, without a detector: for comparison.
"""

import argparse
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret import plots
from nilregret.simulation import metrics

OPENS, CLOSES = 288, 792  # hours after which the competitor is there, and gone
PRICES = nr.Space(price=nr.Float(4.0, 22.0)).grid(73)  # every 25 cents


def customers(price, hour):
    """How many would buy in an hour, on average."""
    if OPENS <= hour < CLOSES:
        return 420.0 / (1.0 + np.exp((price - 8.0) / 0.9))
    return 400.0 / (1.0 + np.exp((price - 15.0) / 1.5))


def policy(hours, *, detector):
    """Revenues of some 2,000 an hour, give or take 1,200 from price to price and 150 by chance."""
    return nr.gp_ucb_cpd(
        PRICES,
        nr.Matern(2.5, lengthscale=0.25, scale=1200.0**2),  # it takes a quarter of the range to change much
        noise=150.0,
        prior_mean=2000.0,
        horizon=hours,
        constant=0.005,  # a quarter of the width in the paper's experiments, squared
        detector=detector,
    )


def run(hours, *, detector, talk=print):
    """The study after so many hours, and what the best price of every hour would have brought besides."""
    study = nr.Study(policy(hours, detector=detector), seed=1, name="pricing")
    rng = np.random.default_rng(0)  # the same luck for everyone
    everything = np.array([PRICES.parameters(arm)["price"] for arm in range(len(PRICES))])
    lost, noticed = 0.0, 0
    for hour in range(hours):
        trial = study.ask()
        price = trial.parameters["price"]
        expected = customers(price, hour)
        revenue = price * max(expected + np.sqrt(expected) * rng.standard_normal(), 0.0)
        study.tell(trial, revenue)
        lost += float((everything * customers(everything, hour)).max() - price * expected)
        if len(study.restarts) > noticed:
            noticed += 1
            talk(f"hour {hour:4d}: {study.restart_reasons[-1]}; starting anew")
        elif hour % 168 == 167:
            best = study.best().parameters["price"]
            talk(f"hour {hour:4d}: the best price is {best:.2f}, as far as is known")
    return study, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=1344, help="how long (default: eight weeks)")
    parser.add_argument("--out", type=Path, default=Path("pricing.png"), help="the picture")
    options = parser.parse_args()
    study, lost = run(options.hours, detector="test")
    _, lost_without = run(options.hours, detector="never", talk=lambda _: None)
    opens_closes = [hour for hour in (OPENS, CLOSES) if hour < options.hours]
    found = metrics.detections(study.restarts, opens_closes, options.hours)
    print(
        f"The customers changed in hours {opens_closes}, which was noticed after {found.delays.tolist()} hours; "
        f"false alarms: {found.false_alarms}."
    )
    print(f"Lost to not knowing the best prices: {lost:,.0f} with the detector, {lost_without:,.0f} without.")
    plots.changes(study, options.out, known=opens_closes, label="revenue of the hour", unit="hour")
    print(f"Picture: {options.out}")


if __name__ == "__main__":
    main()
