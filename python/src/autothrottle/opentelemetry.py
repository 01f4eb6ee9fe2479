"""How long requests wait, for what, and what came of them, as metrics and spans of OpenTelemetry::

    from autothrottle import Throttle
    from autothrottle.opentelemetry import instrument

    throttle = Throttle(rate=5)
    instrument(throttle)

Names and attributes are those of npm's ``autothrottle/opentelemetry``, so that one board serves both. Install
``autothrottle[opentelemetry]``.

A request that leaves at once costs one addition, which the exporter reads when it collects. The caller's
context is kept where a request begins to wait, and its span is made when it leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ._clock import NANOS
from ._events import CancelEvent, RequestEvent
from ._extras import lacking
from ._threads import ThreadThrottle
from ._throttle import Throttle

try:
    from opentelemetry import context, metrics, trace
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from opentelemetry.trace import Status, StatusCode, Tracer
except ModuleNotFoundError as error:
    raise lacking(error, "opentelemetry") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from ._permit import Waiting
    from ._stats import ScopeStats

__all__ = ["instrument"]

_NAME = "autothrottle"
_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
"""Seconds: from one frame of a page to ten minutes."""

Attributes = Mapping[str, str | bool | int | float]


@dataclass(slots=True)
class _Waiting:
    """A request that may wait: since when, in whose context, and for what."""

    at: float
    caller: Context
    told: dict[str, str | bool | int | float]
    began: int
    """The same instant by the wall, in nanoseconds."""


def instrument(
    throttle: Throttle | ThreadThrottle,
    *,
    meter: Meter | Literal[False] | None = None,
    tracer: Tracer | Literal[False] | None = None,
    attributes: Attributes | None = None,
) -> Callable[[], None]:
    """Tells OpenTelemetry what a throttle does. Gives a function that ends it.

    * histogram ``autothrottle.wait.duration`` in seconds, by scope and reason: how long requests waited
    * counter ``autothrottle.requests``, by scope and status or ``error.type``: those that ended
    * gauges ``autothrottle.waiting``, ``autothrottle.in_flight``, ``autothrottle.delay`` (seconds), by scope
    * span ``throttle.wait`` under the span of the caller, of requests that waited

    ``meter`` and ``tracer`` are those of the global providers by default; ``False`` leaves that part out.
    ``attributes`` are added to every measurement and span, such as the throttle's name beside others.

    A request of several scopes counts once, in the scope that kept it waiting, else in its first. The gauges
    read ``throttle.stats()`` when the exporter collects. Raises ``TypeError`` if the throttle is none.
    """
    if not isinstance(throttle, (Throttle, ThreadThrottle)):
        raise TypeError(f"instrument wants a throttle; got {throttle!r:.60}")
    told = _Telling(throttle, meter, tracer, dict(attributes or {}))
    events = throttle._scheduler.events
    events.waits.append(told.waits)
    events.ends.append(told.ended)
    throttle.on("cancel", told.cancelled)

    def end() -> None:
        told.is_over = True
        if told.waits in events.waits:
            events.waits.remove(told.waits)
            events.ends.remove(told.ended)
        throttle.off("send", told.sent)
        throttle.off("cancel", told.cancelled)

    return end


class _Telling:
    """The metrics of one throttle."""

    def __init__(
        self,
        throttle: Throttle | ThreadThrottle,
        meter: Meter | Literal[False] | None,
        tracer: Tracer | Literal[False] | None,
        attributes: dict[str, str | bool | int | float],
    ) -> None:
        self.is_over = False
        self._throttle = throttle
        self._attributes = attributes
        self._waiting: dict[int, _Waiting] = {}
        self._tracer = None if tracer is False else tracer or trace.get_tracer(_NAME)
        self._ended: dict[tuple[str, int | None, str | None], int] = {}
        if meter is False:
            self._waits = None
            return
        made = meter or metrics.get_meter(_NAME)
        self._waits = made.create_histogram(
            "autothrottle.wait.duration",
            unit="s",
            description="How long requests waited before they left",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        made.create_observable_counter(
            "autothrottle.requests", [self._count], description="Requests that ended"
        )
        for name, unit, description, read in (
            ("waiting", "", "Requests that wait", lambda stats: stats.waiting),
            ("in_flight", "", "Requests in flight", lambda stats: stats.in_flight),
            ("delay", "s", "The gap in force between two requests", lambda stats: stats.delay),
        ):
            made.create_observable_gauge(
                f"autothrottle.{name}", [self._gauge(read)], unit=unit, description=description
            )

    def waits(self, request: Waiting) -> None:
        """A request begins to wait, the first time or again."""
        scheduler = self._throttle._scheduler
        told = self._of(request.scopes[0], {"autothrottle.reason": "unknown"})
        waiting = _Waiting(scheduler.clock.now() / NANOS, context.get_current(), told, time.time_ns())
        if not self._waiting:
            scheduler.events.send.append(self.sent)
        self._waiting[request.charge.id] = waiting
        for scope in request.scopes:
            reason = self._throttle.scope(scope).stats.reason
            if reason is not None:
                waiting.told = self._of(scope, {"autothrottle.reason": reason})
                break

    def sent(self, event: RequestEvent) -> None:
        """It left."""
        self._end(event, None)

    def cancelled(self, event: CancelEvent) -> None:
        """It gave up."""
        self._end(event, event.error or "cancelled")

    def ended(self, scope: str, status: int | None, error: BaseException | None) -> None:
        """It ended."""
        key = scope, status, None if error is None else type(error).__name__
        self._ended[key] = self._ended.get(key, 0) + 1

    def _end(self, event: RequestEvent, error: BaseException | str | None) -> None:
        waiting = self._waiting.pop(event.id, None)
        if waiting is not None and not self._waiting:
            self._throttle.off("send", self.sent)
        if waiting is None or (event.at <= waiting.at and error is None):
            return
        if self._waits is not None:
            self._waits.record(event.at - waiting.at, waiting.told, waiting.caller)
        if self._tracer is None:
            return
        began, told = waiting.began, waiting.told
        span = self._tracer.start_span("throttle.wait", waiting.caller, attributes=told, start_time=began)
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end(began + round((event.at - waiting.at) * 1e9))

    def _gauge(
        self, read: Callable[[ScopeStats], float]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            if self.is_over:
                return
            for scope, stats in self._throttle.stats().scopes.items():
                yield Observation(read(stats), self._of(scope, {}))

        return observe

    def _count(self, _: CallbackOptions) -> Iterable[Observation]:
        for (scope, status, error), ended in self._ended.copy().items():
            yield Observation(ended, self._of(scope, _outcome(status, error)))

    def _of(self, scope: str, more: Attributes) -> dict[str, str | bool | int | float]:
        return {**self._attributes, "autothrottle.scope": scope, **more}


def _outcome(status: int | None, error: str | None) -> Attributes:
    """By the names of OpenTelemetry's conventions for HTTP."""
    if status is not None:
        return {"http.response.status_code": status}
    return {} if error is None else {"error.type": error}
