"""Evidence for a change from channels that have models of their own, or answers that come one by one.

The average of e-processes is one (its expectation at any stopping time is at most 1), whatever joins the channels. So
each channel whose kernel or noise is its own has a `ChangeEvidence` of its own, which is given an answer when it comes;
channels of one model are looked at together, since a change that all of them show is seen sooner so.
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
    """What is known of one or more channels: the arguments of `ChangeEvidence` of the same names."""

    covariance: Covariance
    noise_variance: float
    scaled: Callable[[Array], Array]


@final
class JointEvidence(Copyable):
    """The average of several `ChangeEvidence` of one stretch.

    Args:
        each: at least one; their channels follow one another in the values of an answer.
    """

    OWNED_EACH = ("each",)

    def __init__(self, each: Sequence[ChangeEvidence]) -> None:
        self.each = list(each)

    @property
    def together(self) -> bool:
        """Whether all values of an answer are looked at as one."""
        return len(self.each) == 1

    @property
    def channels(self) -> int:
        """How many values an answer has."""
        return sum(evidence.channels for evidence in self.each)

    @property
    def count(self) -> int:
        """Answers in the stretch, of the channel that has most."""
        return max(evidence.count for evidence in self.each)

    @property
    def latest(self) -> int:
        """The latest round answered, or the first of the stretch."""
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
        """The most likely start of the channel in which most speaks for a change."""
        return max(self.each, key=lambda evidence: evidence.log_evidence).most_likely

    @property
    def rate(self) -> float:
        """Share of f that is new in each round, of every channel."""
        return self.each[0].rate

    @rate.setter
    def rate(self, rate: float) -> None:
        for evidence in self.each:
            evidence.rate = rate

    def add(self, number: int, cell: object, values: Array) -> bool:
        """An answer `(c,)`, nan where there is none (yet); whether it says something."""
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
        """Another stretch begins with this round."""
        for evidence in self.each:
            evidence.cut(since)

    def remodel(self, each: Sequence[OutputPrior]) -> None:
        """Weigh all answers anew under what is known now, in the order of the channels."""
        for evidence, known in zip(self.each, each, strict=True):
            evidence.remodel(*known)
