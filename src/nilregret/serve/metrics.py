"""Figures for Prometheus: of the record, the same whichever process is asked, and of this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from .._utils.errors import NoRegretError
from ..study.study import Study
from .commands import LATE, TellResult
from .deadlines import DEFAULTED
from .regret import regret_bound
from .worker import NotesStorage, StudyWorker, StudyWorkers

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
OF_STUDY = ("tenant", "study")
LEARNED: tuple[tuple[str, str, Callable[[Study], float | None]], ...] = (
    ("width", "What multiplies the standard deviation in the bounds.", lambda study: study.width),
    ("information_gain", "Realised information gain, nats.", lambda study: study.information_gain),
    ("regret_bound", "Upper bound of the regret so far, where it is proved.", regret_bound),
)


@final
class Metrics:
    """Of one server process.

    Args:
        desks: whose studies are counted, as far as they are open here.
    """

    def __init__(self, desks: StudyWorkers) -> None:
        self._desks = desks
        registry = self._own = CollectorRegistry()
        self._latency = Histogram(
            "nilregret_request_seconds", "Time until an answer, by operation.", ("operation",), buckets=SECONDS,
            registry=registry,
        )  # fmt: skip
        self._decisions = Counter(
            "nilregret_process_decisions", "Decisions given by this process.", OF_STUDY, registry=registry
        )
        self._repeated = Counter(
            "nilregret_process_repeated_requests", "Requests that said nothing new.", OF_STUDY, registry=registry
        )
        self._answers = Counter(
            "nilregret_process_answers", "Decisions whose reward or failure this process took.", OF_STUDY,
            registry=registry,
        )  # fmt: skip
        self._observations = Counter(
            "nilregret_process_observations", "Observations taken by this process.", OF_STUDY, registry=registry
        )
        self._late = Counter(
            "nilregret_process_late_answers", "Answers after their deadline, by whether they counted.",
            (*OF_STUDY, "counted"), registry=registry,
        )  # fmt: skip
        self._open = Gauge("nilregret_open_studies", "Studies held in memory by this process.", registry=registry)

    def seconds(self, operation: str) -> Histogram:
        """How long requests of a kind take; `observe` adds one."""
        return self._latency.labels(operation)

    def decided(self, desk: StudyWorker, count: int, *, again: bool) -> None:
        """Decisions were given."""
        if again:
            self._repeated.labels(desk.tenant, desk.name).inc()
        else:
            self._decisions.labels(desk.tenant, desk.name).inc(count)

    def heard(self, desk: StudyWorker, heard: TellResult) -> None:
        """An answer came, perhaps not for the first time, or what is a part of one."""
        if heard.again:
            self._repeated.labels(desk.tenant, desk.name).inc()
        if heard.new:
            self._answers.labels(desk.tenant, desk.name).inc()
        if heard.new and heard.late:
            self._late.labels(desk.tenant, desk.name, "yes" if heard.counted else "no").inc()

    def observed(self, desk: StudyWorker, *, again: bool) -> None:
        """An observation came."""
        (self._repeated if again else self._observations).labels(desk.tenant, desk.name).inc()

    def text(self, tenant: str | None) -> bytes:
        """As Prometheus reads it, of this tenant; of all and of the process where None. Looks, so in a thread."""
        desks = [desk for desk in self._desks.open if tenant is None or desk.tenant == tenant]
        self._open.set(len(self._desks.open))
        of_record = CollectorRegistry()
        of_record.register(_OfRecord(desks, self._desks.storage))
        own = generate_latest(self._own) if tenant is None else b""
        return own + generate_latest(of_record)


@final
class _OfRecord:
    """Figures of studies, from their records."""

    def __init__(self, desks: Iterable[StudyWorker], storage: NotesStorage) -> None:
        self._desks, self._storage = list(desks), storage

    def collect(self) -> Iterable[Metric]:
        """See `prometheus_client.registry.Collector`."""
        trials = GaugeMetricFamily("nilregret_trials", "Trials on record, by state.", labels=(*OF_STUDY, "state"))
        decisions = CounterMetricFamily("nilregret_decisions", "Decisions on record.", labels=OF_STUDY)
        observed = CounterMetricFamily("nilregret_observations", "What nobody had asked for.", labels=OF_STUDY)
        answers = CounterMetricFamily("nilregret_answers", "Decisions whose reward or failure came.", labels=OF_STUDY)
        late = CounterMetricFamily("nilregret_late_answers", "Of these, after the deadline.", labels=OF_STUDY)
        violations = CounterMetricFamily("nilregret_violations", "Trials that violated a constraint.", labels=OF_STUDY)
        restarts = CounterMetricFamily("nilregret_restarts", "Cuts of the memory.", labels=OF_STUDY)
        for desk in self._desks:
            of, counts = (desk.tenant, desk.name), desk.tally.counts(desk.study, desk.waiting)
            silent = self._silent(desk)
            for state, count in counts.states.items():
                trials.add_metric((*of, state), count)
            decisions.add_metric(of, counts.decisions)
            observed.add_metric(of, counts.observations)
            answers.add_metric(of, counts.answers - silent)
            late.add_metric(of, counts.late - silent)
            violations.add_metric(of, counts.violations)
            restarts.add_metric(of, len(desk.study.restarts))
        return [trials, decisions, observed, answers, late, violations, restarts, *self._learned()]

    def _silent(self, desk: StudyWorker) -> int:
        """Decisions of which the study's rule has told something, and nobody else has."""
        if not desk.waiting.acts:
            return 0
        told = self._storage.count_notes(desk.stored, f"{DEFAULTED}:")
        return told - self._storage.count_notes(desk.stored, f"{LATE}:", unlike="[null%")

    def _learned(self) -> list[Metric]:
        found: list[Metric] = []
        for name, what, of in LEARNED:
            family = GaugeMetricFamily(f"nilregret_{name}", what, labels=OF_STUDY)
            for desk in self._desks:
                try:
                    value = of(desk.study)
                except NoRegretError:  # a policy without a posterior
                    continue
                if value is not None and not math.isnan(value):
                    family.add_metric((desk.tenant, desk.name), value)
            found.append(family)
        return found
