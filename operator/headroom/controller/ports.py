"""Ports of the controller; adapters fit by structure, tests use fakes.

Every method that calls the API may raise a `headroom.errors.ClusterError`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from headroom.api import InferenceService
from headroom.scaling import Decision
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.values.token_decision import GenerationDecision, GenerationMeasurement
from headroom.telemetry.prometheus_pages import ScrapedPage

Manifest = dict[str, Any]
"""A Kubernetes object as JSON."""


class Clock(Protocol):
    """Wall-clock time.

    Intervals come from the event loop's clock, which a test may make virtual.
    """

    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...


class Scraper(Protocol):
    """Reads pages of metrics."""

    async def scrape(self, url: str, prefix: str, most_bytes: int) -> str:
        """Fetch a page within the scraper's own deadline, or its lines that begin with a prefix.

        Raise `headroom.errors.ScrapeFailed`; PageTooLarge above this many bytes.
        """
        ...


class Prometheus(Protocol):
    """Has scraped pages of metrics."""

    async def pages(
        self, metrics: frozenset[str], namespace: str, pods: Sequence[str], window_s: float
    ) -> Mapping[str, ScrapedPage]:
        """Return the newest page of each pod by its name, where one is not older than the window.

        Raise `headroom.errors.ScrapeFailed` where the answer is not whole.
        """
        ...


class Cluster(Protocol):
    """The Kubernetes API.

    An object is named by apiVersion, kind, namespace and name, as in its manifest.
    """

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read one object; raise NotFound where it is not."""
        ...

    async def get_scale(self, api_version: str, kind: str, namespace: str, name: str) -> Manifest:
        """Read an object's scale; raise NotFound where there is none, Rejected for a bad one."""
        ...

    async def list_all(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
    ) -> list[Manifest]:
        """Read all objects of a kind that `kept` keeps; a namespace of None means every one.

        Items carry no apiVersion and kind; what `kept` raises ends the list.
        """
        ...

    async def list_at(
        self,
        api_version: str,
        kind: str,
        namespace: str | None,
        label_selector: str = "",
        kept: Callable[[Manifest], Manifest | None] = lambda one: one,
        left_out: Callable[[Manifest], None] | None = None,
    ) -> tuple[list[Manifest], str]:
        """Read all objects of a kind, and the resourceVersion of the answer.

        They come without managedFields; `kept` may return a known equal object for each. `left_out`
        takes what names an object that is too large to be read; without it, AnswerTooLarge.
        """
        ...

    async def create(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """POST; raise Conflict where an object of that name exists."""
        ...

    async def apply(
        self, manifest: Manifest, *, field_manager: str, dry_run: bool = False
    ) -> Manifest:
        """Apply server-side, taking over fields that others own.

        A uid or resourceVersion in it guards the write.
        """
        ...

    async def apply_status(self, manifest: Manifest, *, field_manager: str) -> Manifest:
        """Apply the status subresource server-side."""
        ...

    async def apply_scale(
        self, deployment: Manifest, replicas: int, *, field_manager: str
    ) -> Manifest:
        """Write replicas through /scale of a Deployment, or of any object that has one.

        Return the Scale as it is stored, where admission may have changed the replicas.
        Raise Conflict unless the object is still the one that was read.
        """
        ...

    async def evict(self, namespace: str, name: str, uid: str) -> None:
        """Evict the pod with this UID; raise Unavailable where a disruption budget forbids it now.

        Raise NotFound or Conflict where it is gone or another has its name.
        """
        ...

    async def json_patch(
        self, manifest: Manifest, operations: list[Manifest], *, field_manager: str
    ) -> Manifest:
        """Patch the named object with RFC 6902 operations, all or none."""
        ...


class Recorder(Protocol):
    """Keeps the controller's metrics."""

    def decided(self, service: InferenceService, decision: Decision) -> None:
        """Count a decision, and show its signals."""
        ...

    def overdue(self, service: InferenceService, pods: int) -> None:
        """Show the pods that should have ended."""
        ...

    def gateway_rates(self, service: InferenceService, rates: Mapping[str, float | None]) -> None:
        """Show the requests a second that gateways count, by outcome."""
        ...

    def tokens_measured(
        self, service: InferenceService, measured: Mapping[str, float | None], room: float
    ) -> None:
        """Show each token SLO's measurement, in seconds, and the capacity factor."""
        ...

    def generated(
        self,
        service: InferenceService,
        decision: GenerationDecision | None,
        measured: GenerationMeasurement | None,
    ) -> None:
        """Show tokens per second, KV memory, capacity and its limit; nothing without tokens."""
        ...

    def classes_measured(self, service: InferenceService, classes: ClassState) -> None:
        """Show the attainment of each class with promises of its own."""
        ...

    def judged(self, service: InferenceService, *, kept: bool) -> None:
        """Count a minute that counts for the SLO."""
        ...

    def decision_failed(self, service: InferenceService, exception: str) -> None:
        """Count an exception inside the decision, by its class."""
        ...

    def show_unhealthy(self, namespace: str, name: str, reasons: Collection[str]) -> None:
        """Show the reasons of conditions that are not as they should be, and no others."""
        ...

    def held(self, namespace: str, name: str) -> None:
        """Remove the gauges of earlier decisions: none is made for this service; counters stay."""
        ...

    def ticked(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count a tick: how long it took, how late it began, how it ended."""
        ...

    def unlisted(self, namespaces: Collection[str]) -> None:
        """Show the namespaces that cannot be read while others can, and no others."""
        ...

    def unread(self, services: Collection[tuple[str, str]]) -> None:
        """Show the services, by namespace and name, that are too large to be read; no others."""
        ...

    def forgotten(self, namespace: str, name: str) -> None:
        """Remove the metrics of a deleted service."""
        ...


class RecordingSink(Protocol):
    """Takes the lines of a recording, in order."""

    def append(self, text: str) -> None:
        """Add whole lines without waiting; raise OSError where no more can be kept."""
        ...
