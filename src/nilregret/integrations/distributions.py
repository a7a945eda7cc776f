"""Optuna's distributions as parameters of a `Space`, and values there and back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, final

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from .._utils.checks import Array
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Space
from ..domains.parameters import Choice, Float, Int, Parameter

OFF_GRID = 1e-6  # steps by which a value may miss the grid of its distribution and still be meant


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """The parameter that varies as a distribution does; errors where there is none.

    A float with a step is the whole number of steps, and a choice among what a record cannot hold (objects, NaN) is
    the position among the options.
    """
    if isinstance(distribution, FloatDistribution):
        if distribution.step is not None:
            return Int(0, round((distribution.high - distribution.low) / distribution.step))
        return Float(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return Int(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
    if isinstance(distribution, CategoricalDistribution):
        try:
            return Choice(*distribution.choices)
        except InvalidInput:
            return Choice(*range(len(distribution.choices)))
    raise InvalidInput(
        f"A {type(distribution).__name__} is no distribution that is known here: usually a package has one of its own. "
        "Suggest a float, an int or a categorical."
    )


def is_known(distribution: BaseDistribution) -> bool:
    """Whether there is such a parameter: not of another package's distribution, nor of a range beyond all floats."""
    try:
        parameter_of(distribution)
    except InvalidInput:
        return False
    return True


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """The distribution that varies as a parameter does."""
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return CategoricalDistribution(parameter.options)


@final
class Translation:
    """Between the values that an Optuna trial has and the parameters of a space.

    Attributes:
        distributions: by name, in the order of the space.
        space: of the same names.
        domain: the space, or arms of it.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], domain: Space | Arms | None = None) -> None:
        """From distributions, by default to a space of the parameters that vary alike."""
        self.distributions = dict(distributions)
        if domain is None:
            domain = Space(**{name: parameter_of(distribution) for name, distribution in distributions.items()})
        space = domain.space if isinstance(domain, Arms) else domain
        if space is None:
            raise InvalidInput("Arms of a sampler need named parameters: make them with `Space(...).grid(...)`.")
        self.domain: Space | Arms = domain
        self.space = space

    @staticmethod
    def of_domain(domain: Space | Arms) -> Translation:
        """Of a space that a user has declared, or of arms of one."""
        space = domain.space if isinstance(domain, Arms) else domain
        parameters = {} if space is None else space.parameters
        return Translation({name: distribution_of(each) for name, each in parameters.items()}, domain)

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """The parameters behind a trial's values; None where one is missing or outside its range.

        Of conditional parameters those that count; what else the trial has says nothing here.
        """
        found: dict[str, Any] = {}
        conditions = self.space.conditions
        for name, distribution in self.distributions.items():
            if conditions is not None and not conditions.is_active(name, found):
                continue
            parameter = self.space.parameters[name]
            value = _plain(values[name], distribution, parameter) if name in values else None
            if value is None:
                return None
            found[name] = value[0]
        return found

    def point(self, values: Mapping[str, Any]) -> Array | None:
        """The point `(d,)` of a trial's values; None where one is missing, outside its range, or off the grid."""
        found = self.parameters(values)
        if found is None:
            return None
        try:
            point = self.space.encode(found)
            return point if isinstance(self.domain, Space) else self.domain.inside("point", point[None])[0]
        except InvalidInput:  # another range in this trial, or another step
            return None

    def fixed(self, values: Mapping[str, Any]) -> dict[str, list[float]]:
        """The columns of those of a trial's values that lie in the range of their parameter, by name."""
        found: dict[str, list[float]] = {}
        for name in self.distributions.keys() & values.keys():
            parameter = self.space.parameters[name]
            plain = _plain(values[name], self.distributions[name], parameter)
            with suppress(InvalidInput):  # out of range: then it is nothing that the policy could choose beside
                found |= {} if plain is None else {name: parameter.encode(plain[0])}
        return found

    def values(self, point: Array) -> dict[str, Any]:
        """What Optuna is told of a point `(d,)`: Python's own numbers, and the options themselves."""
        return {
            name: _theirs(value, self.distributions[name], self.space.parameters[name])
            for name, value in self.space.decode(point).items()
        }


def _plain(value: Any, distribution: BaseDistribution, parameter: Parameter) -> tuple[Any] | None:
    """A trial's value as the parameter's, in a tuple since None is an option too; None where it is none."""
    try:
        inside = distribution.to_internal_repr(value)
    except ValueError:  # no option of this choice, or no number
        return None
    if isinstance(parameter, Choice):
        return (parameter.options[int(inside)],)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None and isinstance(parameter, Int):
        steps = (inside - distribution.low) / distribution.step
        return (round(steps),) if abs(steps - round(steps)) <= OFF_GRID else None
    return (inside,)


def _theirs(value: Any, distribution: BaseDistribution, parameter: Parameter) -> Any:
    if isinstance(distribution, CategoricalDistribution) and isinstance(parameter, Choice):
        return distribution.choices[_position(value, parameter)]
    if isinstance(distribution, FloatDistribution) and distribution.step is not None and isinstance(parameter, Int):
        return on_grid(distribution.low, distribution.step, value)
    return value


def _position(value: Any, parameter: Choice) -> int:
    """Which option it is; 1 and True are two."""
    same = (type(option) is type(value) and option == value for option in parameter.options)
    return list(same).index(True)


def on_grid(low: float, step: float, steps: int) -> float:
    """`low + steps * step` as it is written, not as floats add up: 0.3, and not 0.30000000000000004."""
    return float(Decimal(str(low)) + steps * Decimal(str(step)))
