"""What bounds are called valid for is asked of the whole policy, not of the width alone."""

import math
from dataclasses import replace

import pytest

import nilregret as nr
from nilregret.slots.envelope import CompactBayes, FiniteBayes
from nilregret.slots.pending import Hallucinated
from nilregret.slots.widths.delayed import CensoredWidth, Inflated
from nilregret.slots.widths.self_normalized import BoundedNoise, GreedyGain, PeriodRkhs, SelfNormalized

ARMS, KERNEL = nr.Arms.grid(0, 1, 30), nr.SquaredExponential(0.2)


def policy(width, *, ridge, noise=0.1, **more):
    return nr.igp_ucb(ARMS, KERNEL, noise=noise, width=width, regularization=ridge, **more)


@pytest.mark.parametrize(
    ("width", "right", "wrong"),
    [
        (SelfNormalized(norm_bound=1.0, noise=0.1), 1.0, 0.99),  # Chowdhury & Gopalan, Theorem 2: lambda >= 1
        (FiniteBayes(size=30), 0.1**2, 1.0),  # Srinivas et al., eq. 1: lambda = sigma^2
        (CompactBayes(dimension=1, side=1.0, log_a=1.0, b=5.0), 0.1**2, 1.0),
        (BoundedNoise(norm_bound=1.0, gain=GreedyGain()), 0.1**2, 1.0),
        (PeriodRkhs(horizon=50, norm_bound=1.0, gain=GreedyGain()), 6 * 0.1**2 * math.log(50), 0.1**2),  # eq. A.1
    ],
    ids=lambda value: type(value).__name__,
)
def test_lambda_is_the_one_of_the_proof(width, right, wrong):
    assert policy(width, ridge=right).valid_for == width.valid_for != "none"
    assert policy(width, ridge=wrong).valid_for == "none"
    assert policy(width, ridge=right).using(regularization=wrong).valid_for == "none"
    inflated = {"confidence": Inflated(base=width), "pending": Hallucinated()}
    assert policy(width, ridge=right).using(**inflated).valid_for == width.valid_for
    assert policy(width, ridge=wrong).using(**inflated).valid_for == "none"


def test_noise_is_no_larger_than_the_width_says():
    width = SelfNormalized(norm_bound=1.0, noise=0.1)
    assert policy(width, ridge=1.0, noise=0.05).valid_for == "f"
    assert policy(width, ridge=1.0, noise=0.2).valid_for == "none"


def test_there_are_no_more_points_than_the_width_says():
    contexts = {"context": nr.Arms.grid(0, 1, 2)}
    assert policy(FiniteBayes(size=29), ridge=0.1**2).valid_for == "none"
    assert policy(FiniteBayes(size=30), ridge=0.1**2, **contexts).valid_for == "none"
    assert policy(FiniteBayes(size=60), ridge=0.1**2, **contexts).valid_for == "f"
    box = policy(FiniteBayes(size=30), ridge=0.1**2).using(domain=nr.Box([0.0], [1.0]))
    assert box.valid_for == "none"


def test_censored_widths_know_small_lambdas():
    made = nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=3, regularization=0.3)
    assert made.valid_for == "rho_m f"
    assert made.using(regularization=0.2).valid_for == "none"
    assert made.using(noise=0.2).valid_for == "none"
    assert isinstance(made.confidence, CensoredWidth)
    assert replace(made, confidence=replace(made.confidence, ridge=0.2), regularization=0.2).valid_for == "rho_m f"
