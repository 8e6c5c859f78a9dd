"""Measures a live model server with an open loop: requests at Poisson instants.

Open Inference Protocol v2 over HTTP. Latency is measured from the scheduled instant of a request,
so a generator that cannot keep up shows as latency (no coordinated omission). Everything except
status 200 is a miss: refusals, errors, timeouts, and requests above the bound in flight.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from headroom.adapters.http_session import HttpSession, read_start
from headroom.errors import Unmeasurable
from headroom.profiles.open_inference import ONES, UnusableMetadata, request_of_ones
from headroom.scaling.values.observation import CostModel, PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.headroom_page import METRICS_PATH, read_sample

MAX_IN_FLIGHT = 1000
MAX_PAGE_BYTES = 1 << 20
MAX_METADATA_BYTES = 1 << 16
MAX_ANSWER_BYTES = 1 << 26
SHOWN_BYTES = 200
ASKING_TIMEOUT_S = 10.0
_ONES = {**ONES, "FP16": 1.0, "BF16": 1.0, "BYTES": "measure"}
"""Headroom's server and others read half precision from JSON."""
_GENERATES = (
    "A server that generates text is measured by `headroom plan generation RATE --measure URL`"
)
_MODEL_PATH = re.compile(r"(?P<base>.*)/v2/models/(?P<model>[^/]+)(?:/infer)?/?")
_MODEL_LABEL = re.compile(r'^headroom_max_batch_size\{model="([^"\\]+)"\}', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """The measurement at one rate."""

    rate_rps: float
    duration_s: float
    latencies_s: tuple[float, ...]
    """Latencies of answers with status 200, from their scheduled instants."""
    missed: int
    late_s: float
    """95th percentile of the delay between scheduled and actual sending: the generator's share."""
    batches: float | None = None
    batch_items: float | None = None
    batch_seconds: float | None = None


class LiveServer(HttpSession):
    """One model server at a URL. Use as an async context manager."""

    def __init__(
        self, url: str, model: str | None, *, timeout_s: float, body: bytes | None = None
    ) -> None:
        super().__init__(MAX_IN_FLIGHT)
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise Unmeasurable(
                f"the server must have an http or https URL; got {url!r:.80}: "
                "use one such as http://127.0.0.1:8000"
            )
        match = _MODEL_PATH.fullmatch(url)
        self._base = (match["base"] if match else url).rstrip("/")
        self._model = model or (match["model"] if match else None)
        self._timeout_s, self._body = timeout_s, body

    @property
    def model(self) -> str:
        """The model's name; available after `learn`."""
        assert self._model is not None
        return self._model

    async def learn(self) -> CostModel | None:
        """Find the model and its inputs; return the cost model that the server exposes.

        Raises Unmeasurable if the server does not answer or its inputs cannot be synthesized.
        """
        page = await self._page()
        if self._model is None:
            url = f"{self._base}{METRICS_PATH}"
            if page is None:
                raise Unmeasurable(
                    f"{url} must answer with metrics; got none: check that the server is up, or "
                    "pass --model NAME"
                )
            found = _MODEL_LABEL.search(page)
            if found is None:
                raise Unmeasurable(
                    f"{url} must name the model; it does not: pass --model NAME. {_GENERATES}"
                )
            self._model = found[1]
        if self._body is None:
            self._body = await self._synthetic_body()
        sample = self._read(page)
        return sample.cost if sample else None

    async def idle_s(self, requests: int = 5) -> float:
        """Return the median latency of sequential requests.

        Raises Unmeasurable if the server refuses them.
        """
        clock = asyncio.get_running_loop().time
        taken = []
        for _ in range(requests):
            began_s = clock()
            status, text = await self._ask()
            if status != 200:
                raise Unmeasurable(
                    f"a single request must be answered with 200; got {status or 'no answer'} "
                    f"{text!r:.120}: pass a valid request with --body FILE. {_GENERATES}"
                )
            taken.append(clock() - began_s)
        return sorted(taken)[len(taken) // 2]

    async def step(self, rate_rps: float, duration_s: float, seed: int) -> MeasuredStep:
        """Send requests at this rate for `duration_s`, and wait until all have ended."""
        before = self._read(await self._page())
        latencies, missed, late = await self._send(_instants(rate_rps, duration_s, seed))
        after = self._read(await self._page())
        return MeasuredStep(
            rate_rps=rate_rps,
            duration_s=duration_s,
            latencies_s=tuple(latencies),
            missed=missed,
            late_s=sorted(late)[int(0.95 * (len(late) - 1))] if late else 0.0,
            **_batches(before, after),
        )

    async def _send(self, due_s: list[float]) -> tuple[list[float], int, list[float]]:
        clock = asyncio.get_running_loop().time
        began_s, in_flight, missed = clock(), 0, 0
        latencies: list[float] = []
        late: list[float] = []

        async def one(due: float) -> None:
            nonlocal in_flight, missed
            late.append(clock() - began_s - due)
            status, _ = await self._ask()
            in_flight -= 1
            if status == 200:
                latencies.append(clock() - began_s - due)
            else:
                missed += 1

        async with asyncio.TaskGroup() as requests:
            for due in due_s:
                await asyncio.sleep(max(0.0, began_s + due - clock()))
                if in_flight >= MAX_IN_FLIGHT:
                    missed += 1
                    continue
                in_flight += 1
                requests.create_task(one(due))
        return latencies, missed, late

    async def _ask(self) -> tuple[int | None, str]:
        """Return the status and the start of the answer; None without an answer."""
        headers = {"content-type": "application/json"}
        url = f"{self._base}/v2/models/{self._model}/infer"
        try:
            async with self.request(
                "POST", url, self._timeout_s, data=self._body, headers=headers
            ) as response:
                text = await read_start(response, SHOWN_BYTES, MAX_ANSWER_BYTES)
                return response.status, text.decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return None, f"{type(error).__name__}: {error}"

    async def _page(self) -> str | None:
        """Return the server's metrics page; None if it has none."""
        try:
            url = f"{self._base}{METRICS_PATH}"
            async with self.request("GET", url, self._timeout_s) as response:
                if response.status != 200:
                    return None
                page = await read_start(response, MAX_PAGE_BYTES, MAX_PAGE_BYTES)
                return page.decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None

    def _read(self, page: str | None) -> PodSample | None:
        """Return the page as a sample; None if it is from another kind of server."""
        try:
            return read_sample(page, pod="measured", model=self.model, time_s=0.0) if page else None
        except TelemetryError:
            return None

    async def _synthetic_body(self) -> bytes:
        url = f"{self._base}/v2/models/{self._model}"
        try:
            async with self.request("GET", url, ASKING_TIMEOUT_S) as response:
                if response.status != 200:
                    raise Unmeasurable(
                        f"{url} must answer with 200; got {response.status}: check --model, or "
                        f"wait until the model is loaded. {_GENERATES}"
                    )
                told = await read_start(response, MAX_METADATA_BYTES, MAX_METADATA_BYTES)
                metadata = json.loads(told)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
            raise Unmeasurable(
                f"{url} does not answer ({type(error).__name__}: {error}): check that the server "
                "is up"
            ) from error
        return ones_for(metadata)


def ones_for(metadata: object) -> bytes:
    """Return the body of a request with ones for every input of a model's metadata.

    Raises Unmeasurable if there is none.
    """
    try:
        return b"".join(request_of_ones(metadata, _ONES).chunks())
    except UnusableMetadata as error:
        raise Unmeasurable(f"{error}: pass --body FILE") from error


def _instants(rate_rps: float, duration_s: float, seed: int) -> list[float]:
    """Return the instants of a Poisson process with this rate; at least one."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    due = [chance.expovariate(rate_rps)]
    while due[-1] < duration_s:
        due.append(due[-1] + chance.expovariate(rate_rps))
    return due[:-1] or [0.0]


def _batches(before: PodSample | None, after: PodSample | None) -> dict[str, float]:
    """Return the increases of the server's batch counters; empty if unknown."""
    if before is None or after is None or after.batches < before.batches:
        return {}
    return {
        "batches": after.batches - before.batches,
        "batch_items": after.batch_items - before.batch_items,
        "batch_seconds": after.batch_seconds - before.batch_seconds,
    }
