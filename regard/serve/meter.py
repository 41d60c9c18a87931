"""What happens in, counted; the format that Prometheus reads out."""

import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = tuple[tuple[str, str], ...]
Gauge = tuple[str, str, Iterable[tuple[Labels, float]]]  # name, help, values


class Meter:
    """Counts, and how long requests took. Every label is a word of ours, so there are never many."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: Counter[tuple[str, Labels]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.started = time.time()

    def count(self, name: str, labels: Labels = (), by: int = 1) -> None:
        with self.lock:
            self.counts[name, labels] += by

    def took(self, path: str, seconds: float) -> None:
        with self.lock:
            self.buckets.setdefault(path, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
            self.seconds[path] += seconds  # type: ignore[assignment]

    def text(self, gauges: Iterable[Gauge]) -> str:
        with self.lock:
            counts, buckets, seconds = (
                dict(self.counts),
                {k: list(v) for k, v in self.buckets.items()},
                {**self.seconds},
            )
        lines = [line for name in HELP for line in counter_lines(name, counts)]
        lines += histogram_lines(buckets, seconds)
        usual: list[Gauge] = [
            ("process_resident_memory_bytes", "Memory in use.", [((), float(resident()))]),
            ("process_start_time_seconds", "When the server started.", [((), self.started)]),
        ]
        lines += [line for gauge in [*gauges, *usual] for line in gauge_lines(gauge)]
        return "\n".join(lines) + "\n"


HELP = {
    "regard_requests_total": "Requests by path, method and status.",
    "regard_texts_total": "Texts answered, by model.",
    "regard_groups_total": "Groups of requests answered together, by model.",
    "regard_dropped_total": "Requests whose client had left before they were begun, by model.",
    "regard_stopped_total": "Searches that were stopped because every client had left, by model.",
    "regard_loads_total": "Models loaded, by model and result.",
}


def counter_lines(name: str, counts: dict[tuple[str, Labels], int]) -> Iterator[str]:
    yield f"# HELP {name} {HELP[name]}"
    yield f"# TYPE {name} counter"
    for (each, labels), value in sorted(counts.items()):
        if each == name:
            yield f"{name}{shown(labels)} {value}"


def histogram_lines(buckets: dict[str, list[int]], seconds: dict[str, int]) -> Iterator[str]:
    yield "# HELP regard_request_seconds Time from a request's headers to the end of its answer."
    yield "# TYPE regard_request_seconds histogram"
    for path, counts in sorted(buckets.items()):
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
            total += count
            yield f"regard_request_seconds_bucket{shown((('path', path), ('le', bound)))} {total}"
        yield f"regard_request_seconds_sum{shown((('path', path),))} {seconds[path]:.6f}"
        yield f"regard_request_seconds_count{shown((('path', path),))} {total}"


def gauge_lines(gauge: Gauge) -> Iterator[str]:
    name, words, values = gauge
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} gauge"
    for labels, value in values:
        yield f"{name}{shown(labels)} {value:g}" if value < 1e6 else f"{name}{shown(labels)} {value:.0f}"


def shown(labels: Labels) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels) + "}" if labels else ""


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
