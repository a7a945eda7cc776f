"""Evidence for a change from several outputs with models of their own, or whose values come one by one.

The average of e-processes is an e-process (its expectation at any stopping time is at most 1), whatever the dependence
of the outputs. So each output with its own kernel or noise has a `ChangeEvidence` of its own, which gets its values as
they come. Outputs that share a model are tested together, since a change in all of them is then detected sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from ..._utils.checks import Array
from ..._utils.copying import Copyable
from .evidence import ChangeEvidence
from .posterior_sets import Covariance


class OutputPrior(NamedTuple):
    """The prior of one or more outputs: the arguments of `ChangeEvidence` of the same names."""

    covariance: Covariance
    noise_variance: float
    scaled: Callable[[Array], Array]


@final
class JointEvidence(Copyable):
    """The average of several `ChangeEvidence` of one stretch.

    Args:
        each: at least one. Their outputs follow one another in the values of an observation.
    """

    OWNED_EACH = ("each",)

    def __init__(self, each: Sequence[ChangeEvidence]) -> None:
        self.each = list(each)

    @property
    def together(self) -> bool:
        """True if all values of an observation are tested together."""
        return len(self.each) == 1

    @property
    def channels(self) -> int:
        """Number of values of an observation."""
        return sum(evidence.channels for evidence in self.each)

    @property
    def count(self) -> int:
        """Number of observations in the stretch, of the output that has most."""
        return max(evidence.count for evidence in self.each)

    @property
    def latest(self) -> int:
        """Latest observed round, or the first of the stretch."""
        return max(evidence.latest for evidence in self.each)

    @property
    def log_evidence(self) -> float:
        """Log of the average."""
        if self.together:
            return self.each[0].log_evidence
        logs = [evidence.log_evidence for evidence in self.each]
        return float(np.logaddexp.reduce(logs) - np.log(len(logs)))

    @property
    def most_likely(self) -> int | None:
        """Most likely start of the output with the largest evidence."""
        return max(self.each, key=lambda evidence: evidence.log_evidence).most_likely

    @property
    def rate(self) -> float:
        """Share of f that is new in each round, for every output."""
        return self.each[0].rate

    @rate.setter
    def rate(self, rate: float) -> None:
        for evidence in self.each:
            evidence.rate = rate

    def add(self, number: int, cell: object, values: Array) -> bool:
        """Adds an observation `(c,)`, with nan for missing values, and returns True if it has any complete output."""
        heard = False
        for evidence, own in zip(self.each, self._parted(values), strict=True):
            if not np.isnan(own).any():
                evidence.add(number, cell, own)
                heard = True
        return heard

    def _parted(self, values: Array) -> Iterator[Array]:
        first = 0
        for evidence in self.each:
            yield values[first : first + evidence.channels]
            first += evidence.channels

    def cut(self, since: int) -> None:
        """Begins another stretch at this round."""
        for evidence in self.each:
            evidence.cut(since)

    def remodel(self, each: Sequence[OutputPrior]) -> None:
        """Compares all observations again under new priors, in the order of the outputs."""
        for evidence, known in zip(self.each, each, strict=True):
            evidence.remodel(*known)
