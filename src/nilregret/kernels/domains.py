"""The default kernel for a domain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .._utils.checks import Array, one_of, shown
from ..domains.domain import Arms, Domain, Space, check_domain, enclosing_box, sides
from ..domains.parameters import Choice
from ..errors import InvalidInput
from .base import Kernel, checked_lengths
from .categories import Mixture, Overlap
from .stationary import DISTANCE, Matern, SquaredExponential, Stationary
from .tied import Tied

LENGTHSCALE = 0.2  # times sqrt(m), the mode exp(sqrt(2) - 3) = 0.205 of the prior of fits (Hvarfner et al. 2024)


def prior_std(domain: Domain, context: Domain | None, kernel: Kernel) -> float:
    """Returns the largest prior standard deviation, over the arms or the corners of the box.

    Arms that were added to a running study do not change it.
    """
    domain = domain.founding if isinstance(domain, Arms) else domain
    if isinstance(domain, Arms) and context is None:
        return math.sqrt(float(kernel.arm_variances(domain.points).max()))
    box = enclosing_box(domain, context)
    return math.sqrt(float(kernel.diagonal(np.stack([box.lower, box.upper])).max()))


def kernel_for(
    domain: Domain,
    *,
    context: Domain | None = None,
    kernel: Stationary | None = None,
    lengthscale: float | None = None,
    choices: str = "tied",
) -> Kernel:
    """Returns the kernel for a domain, with one lengthscale for each parameter or coordinate.

    On a `Space` (or its grid) the columns of a choice share a lengthscale (`Tied`), so that a fit learns one for each
    parameter. In every parameter the lengthscale is the same share of its range, and in a box the same share of each
    side.

    Args:
        domain: `Arms`, `Box` or `Space`.
        context: domain of contexts, the first columns of the rows that the kernel sees, or None.
        kernel: stationary kernel of which everything but the lengthscale is kept, or None for `Matern(2.5)`.
        lengthscale: share of each parameter's range, or of each side. None for 0.2 sqrt(m) in m parameters, the
            mode of the prior of fits, hence where they begin. (For a mixture that prior counts the parameters of
            each part.)
        choices: "tied" for one kernel of all parameters. "overlap" for a `Mixture` of `Overlap` for the choices and
            the stationary kernel for the numbers (CoCaBO, Ru et al. 2020). "transformed" for the same mixture with
            the transformed overlap exp(sum_i l_i 1[h_i = h'_i] / c) for the choices (Casmopolitan, Wan et al. 2021,
            eq. 2). Divided by its value at h = h' it is a squared exponential kernel of lengthscales sqrt(c / (2
            l_i)), tied.

    >>> import nilregret as nr
    >>> space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), kernel=nr.Choice("rbf", "linear", "poly"))
    >>> nr.kernel_for(space, lengthscale=0.3)
    Tied(kernel=Matern(nu=2.5, lengthscale=(0.3, 0.3), scale=1.0), groups=(0, 1, 1, 1))
    >>> nr.kernel_for(nr.Box([0, 0], [1, 20]), lengthscale=0.3)
    Matern(nu=2.5, lengthscale=(0.3, 6.0), scale=1.0)
    """
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    family: object = Matern(2.5) if kernel is None else kernel
    if not isinstance(family, Stationary):
        raise InvalidInput(f"`kernel` must be a stationary kernel such as Matern(1.5), not {shown(kernel)}.")
    one_of("choices", choices, ["tied", "overlap", "transformed"])
    groups = parameter_groups(domain, context)
    count = max(groups) + 1
    share = LENGTHSCALE * math.sqrt(count) if lengthscale is None else lengthscale
    if isinstance(checked_lengths("lengthscale", share, why=DISTANCE), tuple):
        raise InvalidInput(
            f"`lengthscale` is {shown(lengthscale)}: give one number, a share of every range. For a lengthscale of its "
            "own for each, write the kernel itself.",
            advice="Such as Matern(2.5, lengthscale=[0.1, 0.3]).",
        )
    unit = sides(domain, context)
    lengths = np.zeros(count)
    lengths[list(groups)] = share * unit  # all columns of one parameter have the unit 1
    if choices == "tied":
        return _tied(family, lengths, groups)
    named = _columns_of_choices(domain, context)
    numbers = [column for column in range(len(groups)) if column not in named]
    if not named:
        return _tied(family, lengths, groups)
    own = _counted([groups[column] for column in named])
    smooth = _tied(SquaredExponential(), np.full(max(own) + 1, share), own)
    left = (Overlap(own) if choices == "overlap" else smooth).on(*named)
    if not numbers:
        return left
    of_numbers = [groups[column] for column in numbers]  # each has a column
    return Mixture(left, _tied(family, lengths[of_numbers], _counted(of_numbers)).on(*numbers))


def _tied(family: Stationary, lengths: Array, groups: tuple[int, ...]) -> Stationary | Tied:
    """Returns the kernel with a lengthscale for each group, tied if a group has several columns."""
    made = replace(family, lengthscale=tuple(lengths.tolist()))  # type: ignore[type-var]  # all are dataclasses
    return made if len(lengths) == len(groups) else Tied(made, groups)


def _counted(groups: list[int]) -> tuple[int, ...]:
    """Returns some of the groups, counted from 0 without gaps."""
    place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    return tuple(place[group] for group in groups)


def _columns_of_choices(domain: Domain, context: Domain | None) -> list[int]:
    """Returns the columns of a (context, point) row that belong to choices."""
    found: list[int] = []
    start = 0
    for part in [domain] if context is None else [context, domain]:
        space = part.space if isinstance(part, Arms) else part if isinstance(part, Space) else None
        for parameter, columns in [] if space is None else space.columns():
            if isinstance(parameter, Choice):
                found += range(start + columns.start, start + columns.stop)
        start += part.dimension
    return found


def parameter_groups(domain: Domain, context: Domain | None = None) -> tuple[int, ...]:
    """Returns the number of the parameter or coordinate of each column of a (context, point) row."""
    widths: list[int] = []
    for part in [domain] if context is None else [context, domain]:
        space = part.space if isinstance(part, Arms) else part if isinstance(part, Space) else None
        widths += [1] * part.dimension if space is None else [p.columns for p in space.parameters.values()]
    numbers: Array = np.repeat(np.arange(len(widths)), widths)
    return tuple(int(number) for number in numbers)
