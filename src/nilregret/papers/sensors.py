"""Shared parts of the sensor figures: readings of the Intel lab or a substitute, and held-out snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from .._utils.checks import Array
from ..environments import Readings, SensorNetwork, intel_lab, intel_lab_log
from ..errors import MissingData
from ..policy.policy import Policy
from ..simulation.results import Run
from .figure import Job, World, compare

INTEL_LAB = ("intel_lab/intel_lab_30min.npz", "intel_lab/data.txt.gz", "intel_lab/data.txt")  # any one of these files
STAND_IN = (
    "The data stand in for the paper's: temperatures of the Intel lab averaged over half-hours, {motes} motes on 5 "
    "days. Where the original log (`intel_lab/data.txt`) lies in the data folder, it is used."
)


def intel_temperatures(data: Path | None, *, days: int) -> tuple[Readings, tuple[str, ...]]:
    """Returns the first days of the Intel lab's log by the minute, or half-hourly means and a note about them."""
    try:
        log = intel_lab_log(data)
    except MissingData:
        readings = intel_lab(data)
        return readings, (STAND_IN.format(motes=len(readings.sensors)),)
    first = np.unique(np.asarray(log.day))[:days].tolist()
    return log.select(days=first).reporting(0.5).filled(), ()


def compare_on_network(
    job: Job,
    network: SensorNetwork,
    rules: Callable[[Array], Mapping[str, Policy]],
    measure: Callable[[Run], Array],
    *,
    rounds: int,
) -> dict[str, Array]:
    """Returns measurements of policies on held-out snapshots, in a random order that is repeated if necessary.

    Trials of one snapshot differ in noise alone and become one replicate (`groups` of `compare`).

    Args:
        job: number of trials, and how they are run.
        network: network with the snapshots.
        rules: returns the policies for a snapshot `(N,)`.
        measure: returns the measurements of a run.
        rounds: number of rounds T.
    """
    order = np.random.default_rng([job.seed, len(network)]).permutation(len(network))
    rows = np.resize(order, job.trials).tolist()

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - A snapshot has nothing random.
        return network.environment(rows[trial]), rules(network.functions[rows[trial]])

    return compare(job, world, measure, rounds=rounds, groups=rows)
