"""Samples in the Prometheus text format, version 0.0.4. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gua.metrics.names import METRICS, Metric

# One value: its metric, the labels' values in the metric's order, and the number.
Sample = tuple[Metric, tuple[str, ...], float]


def to_text(samples: Iterable[Sample]) -> str:
    """All samples, those of one metric together below its help, in the order of the table."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample[0].name, []).append(sample)
    lines: list[str] = []
    for metric in METRICS:
        found = by_name.get(metric.name)
        if found:
            lines += [f"# HELP {metric.name} {_escaped(metric.help)}", f"# TYPE {metric.name} gauge"]
            lines += [_line(metric, values, number) for _, values, number in found]
    return "\n".join(lines) + "\n"


def _line(metric: Metric, values: Sequence[str], number: float) -> str:
    if len(values) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}, not {len(values)} of them")
    labels = ",".join(f'{label}="{_quoted(value)}"' for label, value in zip(metric.labels, values))
    return f"{metric.name}{{{labels}}} {_number(number)}" if labels else f"{metric.name} {_number(number)}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("no metric of ours is infinite")
    return str(int(value)) if value == int(value) else repr(float(value))


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
