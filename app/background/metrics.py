"""Counts and durations of this process, and their sum over all server processes as Prometheus reads it.

Each server process writes its numbers to a file of its own every few seconds. The process that is asked for
`/metrics` adds up the files, so no process waits for another. The file of a process that has ended stays: a count never
decreases while the server runs.

To add a metric, add a line to `METRIC_FAMILIES`, and call `PROCESS_METRICS.count` or `observe` where it happens. Labels
are names of the code, such as a design: never a campaign, a person or an item.
"""

import json
import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

SAVE_PAUSE_SECONDS = 5.0
MAX_GAUGE_AGE_SECONDS = 30.0  # then its process has ended, or hangs
HISTOGRAM_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds

Value = TypeVar("Value")  # Python 3.11 has no other way
LabelValues = tuple[str, ...]
Series = tuple[str, LabelValues]
"""Name of a metric, and the values of its labels."""


@dataclass(frozen=True)
class MetricFamily:
    """A metric: its kind, one line about it, and the names of its labels."""

    kind: Literal["counter", "gauge", "histogram"]
    description: str
    labels: tuple[str, ...] = ()


METRIC_FAMILIES = {
    "easel_answers_total": MetricFamily("counter", "Answers that were stored.", ("design",)),
    "easel_answer_seconds": MetricFamily("histogram", "Time to store an answer, including those stored with it."),
    "easel_build_info": MetricFamily("gauge", "The running version; the value is 1.", ("version",)),
    "easel_campaigns": MetricFamily("gauge", "Campaigns by status, without rehearsals.", ("status",)),
    "easel_db_connections_in_use": MetricFamily("gauge", "Database connections in use.", ("pool",)),
    "easel_db_errors_total": MetricFamily("counter", "Requests that the database did not answer.", ("code",)),
    "easel_hits_leased_total": MetricFamily("counter", "HITs that were leased to annotators.", ("design",)),
    "easel_http_request_seconds": MetricFamily("histogram", "Time until the end of a response.", ("route", "method")),
    "easel_http_requests_total": MetricFamily("counter", "Responses that have ended.", ("route", "method", "status")),
    "easel_indexes": MetricFamily("gauge", "Campaigns whose posteriors a process keeps in memory."),
    "easel_live_viewers": MetricFamily("gauge", "Open live pages."),
    "easel_next_hit_seconds": MetricFamily("histogram", "Time to find or lease a HIT, including those found with it."),
    "easel_outbox_due": MetricFamily("gauge", "Messages of alerts that wait to be sent."),
    "easel_outbox_failed_total": MetricFamily("counter", "Failed attempts to send a message.", ("way",)),
    "easel_process_cpu_seconds_total": MetricFamily("counter", "Processor time of the server processes."),
    "easel_processes": MetricFamily("gauge", "Server processes that answer."),
    "easel_requests_waiting": MetricFamily("gauge", "Requests of annotators that wait for their turn."),
    "easel_revision_seconds": MetricFamily("histogram", "Time to apply decisions to the posteriors of a campaign."),
    "easel_revisions_running": MetricFamily("gauge", "Campaigns whose posteriors are being revised."),
    "easel_selection_seconds": MetricFamily("histogram", "Time to choose the items of a HIT."),
}


@dataclass
class Histogram:
    """Number of durations up to each bound, not cumulative and with one more number for longer ones, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(HISTOGRAM_BOUNDS) + 1))
    total_seconds: float = 0.0

    def add(self, counts: Iterable[int], total_seconds: float) -> None:
        self.counts = [number + more for number, more in zip(self.counts, counts, strict=True)]
        self.total_seconds += total_seconds


@dataclass
class MetricValues:
    """Numbers of one process, or of several added up."""

    numbers: dict[Series, float] = field(default_factory=lambda: defaultdict(float))
    histograms: dict[Series, Histogram] = field(default_factory=lambda: defaultdict(Histogram))

    def to_json_text(self) -> str:
        numbers = [[name, labels, value] for (name, labels), value in self.numbers.items()]
        histograms = [
            [name, labels, histogram.counts, histogram.total_seconds]
            for (name, labels), histogram in self.histograms.items()
        ]
        return json.dumps([numbers, histograms])

    def add_from_json(self, document: str, *, with_gauges: bool) -> None:
        numbers, histograms = json.loads(document)
        for name, labels, value in numbers:
            if with_gauges or METRIC_FAMILIES[name].kind != "gauge":
                self.numbers[name, tuple(labels)] += value
        for name, labels, counts, total_seconds in histograms:
            self.histograms[name, tuple(labels)].add(counts, total_seconds)


class ProcessMetrics:
    """Metrics of this process. Its methods are cheap: they run in every request, whether metrics are read or not."""

    def __init__(self) -> None:
        self.values = MetricValues()
        self.folder: Path | None = None
        self._file_name = f"{os.getpid()}-{time.time_ns()}.json"  # of no earlier process with the same id

    def count(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter, or to a gauge."""
        self.values.numbers[name, labels] += amount

    def observe(self, name: str, seconds: float, *labels: str, times: int = 1) -> None:
        """Add a duration to a histogram, `times` times if several requests took it together."""
        histogram = self.values.histograms[name, labels]
        histogram.counts[bisect_left(HISTOGRAM_BOUNDS, seconds)] += times
        histogram.total_seconds += seconds * times

    @contextmanager
    def timing(self, histogram: str) -> Iterator[None]:
        """Add the duration of this block to a histogram."""
        started_at = time.perf_counter()
        try:
            yield
        finally:
            self.observe(histogram, time.perf_counter() - started_at)

    @contextmanager
    def counting_and_timing(self, gauge: str, histogram: str) -> Iterator[None]:
        """Count this block in a gauge while it runs, and add its duration to a histogram."""
        self.count(gauge)
        try:
            with self.timing(histogram):
                yield
        finally:
            self.count(gauge, amount=-1)

    def save(self, gauges: Mapping[Series, float]) -> None:
        """Write the numbers of this process to its file, together with gauges that are read only now."""
        if self.folder is None:
            return
        path = self.folder / self._file_name
        partial_file = path.with_suffix(".part")
        partial_file.write_text(self._current_values(gauges).to_json_text())
        partial_file.replace(path)

    def sum_over_processes(self, gauges: Mapping[Series, float]) -> MetricValues:
        """Return the numbers of all server processes, those of this one as they are now."""
        total = self._current_values(gauges)
        paths = self.folder.glob("*.json") if self.folder is not None else ()
        for path in paths:
            if path.name != self._file_name:
                age = time.time() - path.stat().st_mtime
                total.add_from_json(path.read_text(), with_gauges=age < MAX_GAUGE_AGE_SECONDS)
        return total

    def _current_values(self, gauges: Mapping[Series, float]) -> MetricValues:
        numbers = defaultdict(float, self.values.numbers)
        numbers.update(gauges)
        numbers["easel_process_cpu_seconds_total", ()] = time.process_time()
        numbers["easel_processes", ()] = 1
        histograms: dict[Series, Histogram] = defaultdict(Histogram)
        for series, histogram in self.values.histograms.items():
            histograms[series].add(histogram.counts, histogram.total_seconds)
        return MetricValues(numbers, histograms)


PROCESS_METRICS = ProcessMetrics()


def prometheus_text(values: MetricValues) -> str:
    """Return the values in Prometheus' text format, version 0.0.4."""
    return "\n".join(iterate_prometheus_lines(values)) + "\n"


def iterate_prometheus_lines(values: MetricValues) -> Iterator[str]:
    for name, family in METRIC_FAMILIES.items():
        yield f"# HELP {name} {family.description}"
        yield f"# TYPE {name} {family.kind}"
        for (_, labels), number in sorted(series_with_values_of_metric(values.numbers, name)):
            yield f"{name}{labels_in_braces(family.labels, labels)} {number!r}"
        for (_, labels), histogram in sorted(
            series_with_values_of_metric(values.histograms, name), key=lambda entry: entry[0]
        ):
            yield from iterate_histogram_lines(name, family.labels, labels, histogram)


def series_with_values_of_metric(values: Mapping[Series, Value], name: str) -> list[tuple[Series, Value]]:
    return [(series, value) for series, value in values.items() if series[0] == name]


def iterate_histogram_lines(
    name: str, label_names: tuple[str, ...], labels: LabelValues, histogram: Histogram
) -> Iterator[str]:
    count = 0
    for bound, number in zip((*map(repr, HISTOGRAM_BOUNDS), "+Inf"), histogram.counts, strict=True):
        count += number
        yield f"{name}_bucket{labels_in_braces((*label_names, 'le'), (*labels, bound))} {count}"
    yield f"{name}_sum{labels_in_braces(label_names, labels)} {histogram.total_seconds!r}"
    yield f"{name}_count{labels_in_braces(label_names, labels)} {count}"


def labels_in_braces(names: tuple[str, ...], values: LabelValues) -> str:
    pairs = ",".join(f'{name}="{escape_label(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def escape_label(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def make_metrics_saver(read_gauges: Callable[[], Mapping[Series, float]]) -> Callable[[], Awaitable[None]]:
    """Return the work of a background loop that saves the numbers of this process."""

    async def save() -> None:
        PROCESS_METRICS.save(read_gauges())

    return save
