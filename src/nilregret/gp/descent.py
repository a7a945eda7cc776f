"""Local minima within bounds by the core of SciPy's L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995).

The wrappers of `scipy.optimize.minimize` took a quarter of the time of a fit. The core is private to SciPy. If it is
missing or takes other arguments, `minimize` is called, which gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array

MEMORY = 10  # past steps that approximate the Hessian
SEARCHED = 20  # evaluations of one line search at most
ITERATIONS = 200  # largest number of a descent
FLAT = 1e-3  # largest component of the projected gradient that ends a descent
NEW, EVALUATE, CONVERGED, STOPPED, TOO_MANY = 1, 3, 4, 5, 504  # tasks of the core

Loss = Callable[[Array], tuple[float, Array]]


class Minimum(NamedTuple):
    """The end of a descent.

    Attributes:
        at: place, `(p,)`.
        value: of the loss there.
        converged: True if a tolerance was met.
        evaluations: number of the loss.
        message: reason of the end, in the words of SciPy.
    """

    at: Array
    value: float
    converged: bool
    evaluations: int
    message: str


def descend(loss: Loss, start: Array, low: Array, high: Array, tolerance: float) -> Minimum:
    """Returns the local minimum that L-BFGS-B reaches from a start.

    Args:
        loss: value and gradient. Its argument changes afterwards.
        start: `(p,)`.
        low: finite lower bounds, `(p,)`.
        high: finite upper bounds, `(p,)`.
        tolerance: relative fall of the loss in an iteration that ends the descent.
    """
    core = _core()
    if core is None or (low == high).all():
        return _by_minimize(loss, start, low, high, tolerance)
    x, value, gradient, evaluations, iterations = np.clip(start, low, high), 0.0, np.zeros(len(start)), 0, 0
    task, step = _stepper(core, x, low, high, tolerance)
    while True:
        step(value, gradient)
        if task[0] == EVALUATE:
            value, slopes = loss(x)
            gradient = slopes.copy()  # The core writes into it.
            evaluations += 1
        elif task[0] == NEW:
            iterations += 1
            if iterations >= ITERATIONS:
                task[:] = STOPPED, TOO_MANY
        else:
            break
    message = f"{core.status_messages[task[0]]}: {core.task_messages[task[1]]}"
    return Minimum(x, value, bool(task[0] == CONVERGED), evaluations, message)


def _stepper(core: Any, x: Array, low: Array, high: Array, tolerance: float) -> tuple[Any, Callable[..., None]]:
    """Returns the task of the core, and the function that hands it a value and a gradient. Both change in place."""
    n, m = len(x), MEMORY
    bounded, task, line = np.full(n, 2, dtype=np.int32), np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.int32)
    work, places = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, dtype=np.int32)
    flags, counts, numbers = np.zeros(4, dtype=np.int32), np.zeros(44, dtype=np.int32), np.zeros(29)
    setulb, factor = core._lbfgsb.setulb, tolerance / float(np.finfo(np.float64).eps)

    def step(value: float, gradient: Array) -> None:
        setulb(
            m, x, low, high, bounded, value, gradient, factor, FLAT, work, places, task, flags, counts, numbers,
            SEARCHED, line,
        )  # fmt: skip

    return task, step


@cache
def _core() -> Any:
    """Returns SciPy's module with the core, or None if it does not ask for an evaluation as expected."""
    try:
        from scipy.optimize import _lbfgsb_py as core

        one = np.ones(1)
        task, step = _stepper(core, one, 0.0 * one, 2.0 * one, 1e-3)
        step(0.0, np.zeros(1))
        known = core.status_messages[CONVERGED], core.task_messages[TOO_MANY]
    except (ImportError, AttributeError, TypeError, ValueError, LookupError):
        return None
    return core if task[0] == EVALUATE and all(known) else None


def _by_minimize(loss: Loss, start: Array, low: Array, high: Array, tolerance: float) -> Minimum:
    from scipy.optimize import minimize

    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
        options={"maxiter": ITERATIONS, "ftol": tolerance, "gtol": FLAT, "maxcor": MEMORY, "maxls": SEARCHED},
    )  # fmt: skip
    return Minimum(found.x, float(found.fun), bool(found.success), int(found.nfev), str(found.message))
