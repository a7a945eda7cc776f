"""Ranges of parameters as searches of scikit-learn take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from .._utils.checks import shown
from ..domains.conditions import Conditional
from ..domains.domain import Space
from ..domains.parameters import Choice, Float, Int, Parameter
from ..errors import InvalidInput

LOG = ("log", "log-uniform")  # third entry of a range on a logarithmic scale


@final
class Ranges:
    """A space, and those options of its choices that a record cannot name (estimators, arrays).

    Attributes:
        space: the domain of the study.
    """

    def __init__(self, given: Space | Mapping[str, Any]) -> None:
        self._options: dict[str, list[Any]] = {}
        if isinstance(given, Space):
            self.space = given
            return
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                f"`param_space` is {shown(given)}: it must be an nr.Space, or a dict such as "
                "{'C': nr.Float(1e-3, 1e3, log=True), 'kernel': ['rbf', 'linear']}."
            )
        self.space = Space(**{str(name): self._parameter(str(name), each) for name, each in given.items()})

    def _parameter(self, name: str, given: Any) -> Parameter | Conditional:
        if isinstance(given, Float | Int | Choice | Conditional):
            return given
        if isinstance(given, list | np.ndarray):
            options = list(given)
            try:
                return Choice(*options)
            except InvalidInput:
                if not options:
                    raise
                self._options[name] = options
                return Choice(*range(len(options)))
        if isinstance(given, tuple):
            return _range(name, given)
        return _of_scipy(name, given)

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters of a trial as the estimator takes them."""
        return {
            name: self._options[name][value] if name in self._options else value for name, value in parameters.items()
        }


def _range(name: str, given: tuple[Any, ...]) -> Parameter:
    log = len(given) == 3 and given[2] in LOG
    ends = [end.item() if isinstance(end, np.generic) else end for end in given[:2]]
    if len(given) != 2 + log or not all(type(end) in (int, float) for end in ends):
        raise InvalidInput(
            f"The range of `{name}` is {shown(given)}: write (low, high), or (low, high, 'log-uniform') where the "
            "logarithm varies; options are a list."
        )
    low, high = ends
    return Int(low, high, log=log) if type(low) is type(high) is int else Float(low, high, log=log)


def _of_scipy(name: str, given: Any) -> Parameter:
    """Returns the parameter of a frozen distribution of `scipy.stats`, as `RandomizedSearchCV` takes it."""
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal", "randint"):
        low, high = (end.item() if isinstance(end, np.generic) else end for end in given.support())
        return Int(int(low), int(high)) if kind == "randint" else Float(low, high, log=kind != "uniform")
    raise InvalidInput(
        f"The range of `{name}` is {shown(given)}: it must be an nr.Float, nr.Int or nr.Choice, (low, high), a list of "
        "options, or `uniform`, `loguniform` or `randint` of scipy.stats. Of other distributions only the ends would "
        "count: write those."
    )
