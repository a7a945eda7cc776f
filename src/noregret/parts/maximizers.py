"""Which point has the best score."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..randomness import Randomness

# Scores this close (relative to the best) are ties. It is far above the rounding of any posterior engine and far
# below any difference that matters, so that which arms tie does not depend on the engine.
TIE = 1e-10


def best_arm(scores: Array, randomness: Randomness) -> int:
    """The arm of the largest score, ties broken uniformly at random.

    Ties are the rule, not the exception, in the first round: under a stationary kernel all arms look alike.
    """
    best = int(scores.argmax())
    top = float(scores[best])
    ties = scores >= top - TIE * abs(top)
    if np.count_nonzero(ties) == 1:
        return best
    return int(randomness.generator.choice(np.flatnonzero(ties)))
