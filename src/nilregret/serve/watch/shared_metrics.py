"""Metrics of several server processes as one, through files that each process writes.

prometheus-client adds up counters and histograms of processes (its multiprocess mode). What is computed from records is
published here as gauges, of which the latest value counts: whichever process answers `/metrics`, it tells of all.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self, final

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

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
