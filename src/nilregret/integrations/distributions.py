"""Translation between Optuna's distributions and the parameters of a `Space`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, final

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from .._utils.checks import Array
from ..domains.domain import Arms, Space
from ..domains.parameters import Choice, Float, Int, Parameter
from ..errors import InvalidInput


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """Returns the parameter with the same values as a distribution.

    A choice among options that JSON cannot hold (objects, NaN) becomes the position of the option.

    Raises:
        InvalidInput: no parameter has the values of the distribution.
    """
    if isinstance(distribution, FloatDistribution):
        return Float(distribution.low, distribution.high, log=distribution.log, step=distribution.step)
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
    """Returns False for distributions of other packages, and for ranges that exceed floats."""
    try:
        parameter_of(distribution)
    except InvalidInput:
        return False
    return True


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """Returns the distribution with the same values as a parameter."""
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return CategoricalDistribution(parameter.options)


@final
class Translation:
    """A translation between the values of an Optuna trial and the parameters of a space.

    Attributes:
        distributions: the distributions by name, in the order of the space.
        space: the space with the same names.
        domain: the space, or arms of the space.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], domain: Space | Arms | None = None) -> None:
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
        """Returns the translation for a declared space, or for arms of a space."""
        space = domain.space if isinstance(domain, Arms) else domain
        parameters = {} if space is None else space.parameters
        return Translation({name: distribution_of(each) for name, each in parameters.items()}, domain)

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the parameters of a trial, or None if a value is missing or outside its range.

        Inactive conditional parameters and values of other names are left out.
        """
        found: dict[str, Any] = {}
        conditions = self.space.conditions
        for name, distribution in self.distributions.items():
            if conditions is not None and not conditions.is_active(name, found):
                continue
            parameter = self.space.parameters[name]
            value = _parameter_value(values[name], distribution, parameter) if name in values else None
            if value is None:
                return None
            found[name] = value[0]
        return found

    def point(self, values: Mapping[str, Any]) -> Array | None:
        """Returns the point `(d,)` of a trial, or None if a value is missing, outside its range, or off the grid."""
        found = self.parameters(values)
        if found is None:
            return None
        try:
            point = self.space.encode(found)
            return point if isinstance(self.domain, Space) else self.domain.inside("point", point[None])[0]
        except InvalidInput:  # The trial has another range, or another step.
            return None

    def fixed(self, values: Mapping[str, Any]) -> dict[str, list[float]]:
        """Returns the encoded columns of the values in the range of their parameter, by name."""
        found: dict[str, list[float]] = {}
        for name in self.distributions.keys() & values.keys():
            parameter = self.space.parameters[name]
            plain = _parameter_value(values[name], self.distributions[name], parameter)
            with suppress(InvalidInput):  # Values out of range do not restrict the choice of the policy.
                found |= {} if plain is None else {name: parameter.encode(plain[0])}
        return found

    def values(self, point: Array) -> dict[str, Any]:
        """Returns the values for Optuna at a point `(d,)`: Python numbers, and the options themselves."""
        return {
            name: _optuna_value(value, self.distributions[name], self.space.parameters[name])
            for name, value in self.space.decode(point).items()
        }


def _parameter_value(value: Any, distribution: BaseDistribution, parameter: Parameter) -> tuple[Any] | None:
    """Returns the parameter's value in a tuple, because None may be an option, or None if there is no such value."""
    try:
        inside = distribution.to_internal_repr(value)
    except ValueError:  # The value is not an option of this choice, or not a number.
        return None
    if isinstance(parameter, Choice):
        return (parameter.options[int(inside)],)
    return (inside,)


def _optuna_value(value: Any, distribution: BaseDistribution, parameter: Parameter) -> Any:
    if isinstance(distribution, CategoricalDistribution) and isinstance(parameter, Choice):
        return distribution.choices[parameter.find(value) or 0]
    return value
