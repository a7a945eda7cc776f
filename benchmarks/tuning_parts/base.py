"""What a problem is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nilregret as nr


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something to maximise.

    Attributes:
        name: as the command line has it.
        space: its parameters.
        value: noiseless reward of a dict of parameters.
        best: the highest value, or, of models, the highest that is known; the report takes what runs have found where
            that is higher.
        noise: standard deviation of what is added to a value when it is told.
        model: whether a model is trained, as opposed to a known function.
        held_out: whether it belongs to the half on which nothing was developed.
    """

    name: str
    space: nr.Space
    value: Callable[[dict[str, Any]], float]
    best: float
    noise: float = 0.0
    model: bool = False
    held_out: bool = False

    def told(self, parameters: dict[str, Any], rng: np.random.Generator) -> tuple[float, float]:
        """The noiseless value and the value that the method is told."""
        value = float(self.value(parameters))
        return value, value + self.noise * float(rng.standard_normal()) if self.noise else value


def model_problem(value, best, held_out=False, **parameters):
    name = value.__name__.replace("_", "-")
    return Problem(name=name, space=nr.Space(**parameters), value=value, best=best, model=True, held_out=held_out)


def log(low, high):
    return nr.Float(low, high, log=True)


def log_int(low, high):
    return nr.Int(low, high, log=True)
