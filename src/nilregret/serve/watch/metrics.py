"""Metrics for Prometheus: of the records, and of the processes of the service.

Several server processes publish theirs as one, through files that each process writes.
prometheus-client adds up counters and histograms of processes (its multiprocess mode). What is computed from records is
published here as gauges, of which the latest value counts: whichever process answers `/metrics`, it tells of all.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Self, cast, final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from ...domains.domain import Arms
from ...errors import NoRegretError
from ...policy.engines import row_of
from ...policy.policy import Policy
from ...slots.envelope import Confidence, FiniteBayes
from ...study.study import Study
from ...study.waiting import overdue
from ...theory.regret_bounds import sum_of_deviations_bound
from ..work.answers import LATE, TellResult
from ..work.deadlines import DEFAULTED
from ..work.workers import StudyWorker, StudyWorkers, counts_of
from .signals import KINDS, signals_of

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # variable of the environment that prometheus-client reads when it is imported
OF_PROCESS = "nilregret_process"  # begins the names of what no tenant is told
READ = "read"  # file whose time is that of the last reading
PERIOD_SECONDS = 5.0  # between two publications of a process
WATCHED_SECONDS = 300.0  # after a reading, in which processes publish
Labels = tuple[tuple[str, str], ...]


@contextmanager
def shared_in(folder: Path) -> Iterator[Path]:
    """Lets the processes that begin within the block share their metrics in a new folder, which it yields."""
    before = os.environ.get(FOLDER)
    folder.mkdir()
    os.environ[FOLDER] = str(folder)
    try:
        yield folder
    finally:
        os.environ.pop(FOLDER)
        if before is not None:
            os.environ[FOLDER] = before


def forget(folder: Path, number: int) -> None:
    """Drops what a process that has ended said of its present state. What it has counted stays."""
    mark_process_dead(number, str(folder))  # type: ignore[no-untyped-call]


@final
class SharedMetrics:
    """The metrics of all processes that share a folder, as one of them writes and reads them.

    Args:
        folder: for files of the processes.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._registry = Path(folder), CollectorRegistry()
        self._gauges: dict[str, Gauge] = {}
        self._labels: dict[str, set[Labels]] = {}

    @classmethod
    def of_environment(cls) -> Self | None:
        """Returns the metrics that this process shares, or None if it is alone."""
        folder = os.environ.get(FOLDER)
        return cls(folder) if folder else None

    def publish(self, families: Iterable[Metric], mode: Literal["sum", "livesum", "mostrecent"]) -> None:
        """Writes metrics for the other processes.

        Args:
            families: of this process.
            mode: of prometheus-client. The values of processes are added up, or the latest counts.
        """
        for family in families:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            now = {tuple(sample.labels.items()): sample.value for sample in family.samples}
            # A study that this process has dropped may be open in another one, whose next value counts.
            gone = self._labels.get(name, set()) - set(now) if mode == "mostrecent" else set()
            self._labels[name] = set(now)
            for labels, value in [*dict.fromkeys(gone, math.nan).items(), *now.items()]:
                self._gauge(name, family.documentation, labels, mode).labels(**dict(labels)).set(value)

    def _gauge(self, name: str, about: str, labels: Labels, mode: Literal["sum", "livesum", "mostrecent"]) -> Gauge:
        if name not in self._gauges:
            self._gauges[name] = Gauge(
                name, about, [each for each, _ in labels], registry=self._registry, multiprocess_mode=mode
            )
        return self._gauges[name]

    @property
    def watched(self) -> bool:
        """True if metrics were read a short time ago, by any process."""
        try:
            return time.time() - (self._folder / READ).stat().st_mtime < WATCHED_SECONDS
        except FileNotFoundError:
            return False

    def text(self, tenant: str | None) -> bytes:
        """Returns the metrics of a tenant's studies, or of all studies and processes for None."""
        (self._folder / READ).touch()
        registry = CollectorRegistry()
        registry.register(_Merged(self._folder, tenant))
        return generate_latest(registry)


@final
class _Merged:
    """A collector of what all processes have written to their files."""

    def __init__(self, folder: Path, tenant: str | None) -> None:
        self._folder, self._tenant = folder, tenant

    def collect(self) -> Iterable[Metric]:
        """Returns the metrics (see `prometheus_client.registry.Collector`)."""
        files = MultiProcessCollector(None, str(self._folder))  # type: ignore[no-untyped-call]
        found: list[Metric] = sorted(files.collect(), key=lambda each: each.name)  # type: ignore[no-untyped-call]
        for metric in found:
            if metric.type == "gauge" and metric.name.endswith("_total"):
                metric.name, metric.type = metric.name.removesuffix("_total"), "counter"
            known = self._tenant is None or not metric.name.startswith(OF_PROCESS)
            metric.samples = [
                sample for sample in metric.samples
                if known and not math.isnan(sample.value) and self._tenant in (None, sample.labels.get("tenant"))
            ]  # fmt: skip
        return [metric for metric in found if metric.samples]


def regret_bound(study: Study) -> float | None:
    """Returns R_T <= 2 beta_T sum sigma_{t-1}(x_t) after T rounds, in reward units, or None if nothing is proved.

    This is how Srinivas et al. 2010 (Lemmas 5.2 and 5.4) and Chowdhury & Gopalan 2017 (Theorem 3) bound the regret of a
    policy that plays the highest upper bound. Here the realised information gain replaces its largest value.

    The bound needs confidence bounds that are proved for f, and finitely many arms. It also needs each answer before
    the next decision. With later answers, and for the later plays of a run (`switching`), another posterior has
    decided. The width must never fall, so that the last one is the largest. With unknown noise it falls, because the
    noise is bounded ever more closely. With a sketch it may fall, because the next sketch may be a better one.
    """
    policy, trials = study.policy, study.trials
    if not isinstance(policy, Policy) or not _proves(policy):
        return None
    played = [trial for trial in trials if trial.state != "pending"]
    prompt = all(
        trial.state == "observed" and trial.told_order == trial.asked_order + 1 and not trial.corrected
        for trial in played
    )
    width = study.width
    if not played or not prompt or len(trials) > len(played) + 1 or math.isnan(width):
        return None
    rows = np.stack([row_of(trial) for trial in played])
    deviations = sum_of_deviations_bound(
        len(played), information_gain=study.information_gain, regularization=policy.regularization,
        prior_variance=float(policy.kernel.diagonal(rows).max()),
    )  # fmt: skip
    return 2.0 * _largest(width, policy.confidence, len(played)) * deviations


def _largest(width: float, confidence: Confidence, rounds: int) -> float:
    """Returns the largest width of all rounds, given the last. Widths grow unless a series shares delta unevenly."""
    series = getattr(confidence, "series", None)
    if series is None:
        return width
    bayes = cast(FiniteBayes, confidence)  # of the widths that grow, this one alone has a series
    return max(width, bayes.width(max(range(1, rounds + 1), key=series.log)))


def _proves(policy: Policy) -> bool:
    certain = policy.valid_for == "f" and policy.plain and not policy.explore.ever and policy.switching is None
    highest = policy.score.highest_bound and isinstance(policy.domain, Arms)
    return certain and highest and policy.output_count == 1 and policy.sketch is None and _grows(policy.confidence)


def _grows(confidence: Confidence) -> bool:
    """Returns whether the width never falls. For `FiniteBayes` this leaves out its series (see `_largest`)."""
    return confidence.grows and getattr(confidence, "noise", 0.0) is not None


LOG = logging.getLogger("nilregret.serve")
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
OF_STUDY = ("tenant", "study")
LEARNED: tuple[tuple[str, str, Callable[[Study], float | None]], ...] = (
    ("width", "What multiplies the standard deviation in the bounds.", lambda study: study.width),
    ("information_gain", "Realised information gain, nats.", lambda study: study.information_gain),
    ("regret_bound", "Upper bound of the regret so far, where it is proved.", regret_bound),
)


@final
class Metrics:
    """The metrics of one server process, and of the others with which it shares them.

    Args:
        workers: of the studies to count, as far as they are open in this process.
        clock: Unix seconds.
    """

    def __init__(self, workers: StudyWorkers, clock: Callable[[], float]) -> None:
        self._workers, self._clock = workers, clock
        registry = self._own = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"{OF_PROCESS}_{name}", about, (*OF_STUDY, *labels), registry=registry)

        self._latency = Histogram(
            "nilregret_request_seconds", "Time until an answer, by operation.", ("operation",), buckets=SECONDS,
            registry=registry,
        )  # fmt: skip
        self._decisions = counter("decisions", "Decisions given by this process.")
        self._repeated = counter("repeated_requests", "Requests that said nothing new.")
        self._answers = counter("answers", "Decisions whose reward, failure or stop this process took.")
        self._observations = counter("observations", "Observations taken by this process.")
        self._late = counter("late_answers", "Answers after their deadline, by whether they counted.", "counted")
        self._open = Gauge(
            "nilregret_open_studies", "Studies held in memory by this process.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._fits = _OwnMetrics(workers)
        registry.register(self._fits)
        self._shared, self._lock = SharedMetrics.of_environment(), threading.Lock()

    def seconds(self, operation: str) -> Histogram:
        """Returns the latencies of an operation. `observe` adds one."""
        return self._latency.labels(operation)

    def count_repeated(self, worker: StudyWorker) -> None:
        """Counts a request that said nothing new."""
        self._repeated.labels(worker.tenant, worker.name).inc()

    def count_decisions(self, worker: StudyWorker, count: int, *, again: bool) -> None:
        """Counts decisions, or a retry of their request."""
        if again:
            self.count_repeated(worker)
        else:
            self._decisions.labels(worker.tenant, worker.name).inc(count)

    def count_answer(self, worker: StudyWorker, result: TellResult) -> None:
        """Counts the answer to a decision, unless a part or all of it is not new."""
        if result.again:
            self.count_repeated(worker)
        if result.new:
            self._answers.labels(worker.tenant, worker.name).inc()
        if result.new and result.late:
            self._late.labels(worker.tenant, worker.name, "yes" if result.counted else "no").inc()

    def count_observations(self, worker: StudyWorker, count: int, *, again: bool) -> None:
        """Counts observations, or a retry of their request."""
        if again:
            self.count_repeated(worker)
        else:
            self._observations.labels(worker.tenant, worker.name).inc(count)

    def text(self, tenant: str | None) -> bytes:
        """Returns the metrics of a tenant's studies, or of all studies and of the process for None. Reads studies."""
        if self._shared is not None:
            self._publish(self._shared)
            return self._shared.text(tenant)
        self._open.set(len(self._workers.open))
        of_record = CollectorRegistry()
        for each in self._of_record(tenant):
            of_record.register(each)
        own = generate_latest(self._own) if tenant is None else b""
        return own + generate_latest(of_record)

    def _of_record(self, tenant: str | None) -> tuple[_RecordMetrics, _SignalMetrics]:
        workers = [worker for worker in self._workers.open if tenant is None or worker.tenant == tenant]
        signals = _SignalMetrics(workers, self._workers, self._clock())
        return _RecordMetrics(workers, self._workers), signals

    def _publish(self, shared: SharedMetrics) -> None:
        with self._lock:  # readers and `keep_published` run in threads
            self._open.set(len(self._workers.open))
            running, *counters = self._fits.collect()
            shared.publish([running], "livesum")
            shared.publish(counters, "sum")
            for each in self._of_record(None):
                shared.publish(each.collect(), "mostrecent")

    async def keep_published(self) -> None:
        """Publishes the metrics of this process again and again while any process is asked for metrics."""
        while self._shared is not None:
            await asyncio.sleep(PERIOD_SECONDS)
            if self._shared.watched:
                try:
                    await self._workers.in_thread(self._publish, self._shared)
                except Exception as error:
                    LOG.error("The metrics of process %s could not be published.", os.getpid(), exc_info=error)


@final
class _OwnMetrics:
    """Metrics of what this process does apart from requests: its fits, and its errors."""

    def __init__(self, workers: StudyWorkers) -> None:
        self._workers = workers

    def collect(self) -> list[Metric]:
        """Returns the metrics (see `prometheus_client.registry.Collector`)."""
        of_process = OF_PROCESS
        running = GaugeMetricFamily(f"{of_process}_fits_under_way", "Fits that wait or run.", labels=OF_STUDY)
        made = CounterMetricFamily(f"{of_process}_fits", "Fits made apart from decisions.", labels=OF_STUDY)
        late = CounterMetricFamily(
            f"{of_process}_trials_before_fit", "Trials recorded while a fit was under way.", labels=OF_STUDY
        )
        for worker in self._workers.open:
            of, fits = (worker.tenant, worker.name), worker.study.late_fits
            if fits is not None:
                running.add_metric(of, fits.under_way)
                made.add_metric(of, fits.made)
                late.add_metric(of, fits.late)
        errors = CounterMetricFamily(
            f"{of_process}_study_errors", "Errors of studies outside of requests.", labels=OF_STUDY
        )
        for key, count in list(self._workers.errors.items()):
            errors.add_metric(key, count)
        return [running, made, late, errors]


@final
class _SignalMetrics:
    """The signals of the open studies, by kind."""

    def __init__(self, open_: list[StudyWorker], workers: StudyWorkers, now: float) -> None:
        self._open, self._workers, self._now = open_, workers, now

    def collect(self) -> Iterable[Metric]:
        """Returns the metric (see `prometheus_client.registry.Collector`)."""
        found = GaugeMetricFamily(
            "nilregret_signal", "1 while the study needs a look, by kind.", labels=(*OF_STUDY, "kind")
        )
        for worker in self._open:
            with self._workers.isolated(worker.tenant, worker.name):
                kinds = {signal.kind for signal in signals_of(worker.study, now=self._now)}
                for kind in KINDS:
                    found.add_metric((worker.tenant, worker.name, kind), float(kind in kinds))
        return [found]


@final
class _RecordMetrics:
    """Metrics of studies, computed from their records."""

    def __init__(self, open_: list[StudyWorker], workers: StudyWorkers) -> None:
        self._open, self._workers = open_, workers

    def collect(self) -> Iterable[Metric]:
        """Returns the metrics (see `prometheus_client.registry.Collector`)."""
        trials = GaugeMetricFamily("nilregret_trials", "Trials on record, by state.", labels=(*OF_STUDY, "state"))
        past = GaugeMetricFamily("nilregret_overdue", "Pending trials past their deadline.", labels=OF_STUDY)
        decisions = CounterMetricFamily("nilregret_decisions", "Decisions on record.", labels=OF_STUDY)
        observed = CounterMetricFamily("nilregret_observations", "What nobody had asked for.", labels=OF_STUDY)
        answers = CounterMetricFamily(
            "nilregret_answers", "Decisions whose reward, failure or stop came.", labels=OF_STUDY
        )
        late = CounterMetricFamily("nilregret_late_answers", "Of these, after the deadline.", labels=OF_STUDY)
        violations = CounterMetricFamily("nilregret_violations", "Trials that violated a constraint.", labels=OF_STUDY)
        restarts = CounterMetricFamily("nilregret_restarts", "Cuts of the memory.", labels=OF_STUDY)
        for worker in self._open:
            of = worker.tenant, worker.name
            with self._workers.isolated(*of):
                counts = counts_of(worker.study, worker.deadlines)
                unanswered = self._unanswered(worker)
                for state, count in counts.states.items():
                    trials.add_metric((*of, state), count)
                past.add_metric(of, overdue(worker.study, worker.study.replica.clock()))
                decisions.add_metric(of, counts.decisions)
                observed.add_metric(of, counts.observations)
                answers.add_metric(of, counts.answers - unanswered)
                late.add_metric(of, counts.late - unanswered)
                violations.add_metric(of, counts.violations)
                restarts.add_metric(of, len(worker.study.restarts))
        return [trials, past, decisions, observed, answers, late, violations, restarts, *self._learned()]

    def _unanswered(self, worker: StudyWorker) -> int:
        """Returns how many decisions have an answer of the deadline rule and none of a caller."""
        if not worker.deadlines.active:
            return 0
        defaulted = self._workers.storage.count_notes(worker.stored, f"{DEFAULTED}:")
        return defaulted - self._workers.storage.count_notes(worker.stored, f"{LATE}:", unlike="[null%")

    def _learned(self) -> list[Metric]:
        found: list[Metric] = []
        for name, about, read in LEARNED:
            family = GaugeMetricFamily(f"nilregret_{name}", about, labels=OF_STUDY)
            for worker in self._open:
                of = worker.tenant, worker.name
                with self._workers.isolated(*of), suppress(NoRegretError):  # a policy without a posterior
                    value = read(worker.study)
                    if value is not None and not math.isnan(value):
                        family.add_metric(of, value)
            found.append(family)
        return found
