"""An open loop against one live model server: requests at Poisson instants, whatever came before.

Open Inference Protocol v2 over HTTP. A request's latency runs from the instant at which it was due,
so a generator that cannot keep up shows as latency (no coordinated omission). Whatever is no answer
with status 200 is a miss: refusals, errors, timeouts, and what the bound on requests in flight held
back.
"""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from headroom.adapters.http_session import HttpSession
from headroom.adapters.synthetic_request import synthetic_request
from headroom.errors import Unmeasurable
from headroom.scaling.values import CostModel, PodSample
from headroom.telemetry.errors import TelemetryError
from headroom.telemetry.headroom_page import METRICS_PATH, read_sample

MAX_IN_FLIGHT = 1000
MAX_PAGE_BYTES = 1 << 20
ASKING_TIMEOUT_S = 10.0
_MODEL_PATH = re.compile(r"(?P<base>.*)/v2/models/(?P<model>[^/]+)(?:/infer)?/?")
_MODEL_LABEL = re.compile(r'^headroom_max_batch_size\{model="([^"\\]+)"\}', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """What one rate showed."""

    rate_rps: float
    duration_s: float
    latencies_s: tuple[float, ...]
    """Of answers with status 200, from the instant at which each was due."""
    missed: int
    late_s: float
    """The 95th percentile of how late requests were really sent: the generator's own part."""
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
                f"a server has an http or https URL, received {url!r:.80}: "
                "give one such as http://127.0.0.1:8000"
            )
        match = _MODEL_PATH.fullmatch(url)
        self._base = (match["base"] if match else url).rstrip("/")
        self._model = model or (match["model"] if match else None)
        self._timeout_s, self._body = timeout_s, body

    @property
    def model(self) -> str:
        """The model's name; known after `learn`."""
        assert self._model is not None
        return self._model

    async def learn(self) -> CostModel | None:
        """Find the model and what it takes; return the cost that the server says it has.

        Raises Unmeasurable where the server does not answer or takes what cannot be made up.
        """
        page = await self._page()
        if self._model is None:
            found = _MODEL_LABEL.search(page or "")
            if found is None:
                raise Unmeasurable(
                    f"{self._base}{METRICS_PATH} does not say which model is served: is the server "
                    "up? If it is, give --model NAME"
                )
            self._model = found[1]
        if self._body is None:
            self._body = await self._synthetic_body()
        sample = self._read(page)
        return sample.cost if sample else None

    async def idle_s(self, requests: int = 5) -> float:
        """Return the median latency of single requests, one after the other.

        Raises Unmeasurable where the server refuses them.
        """
        clock = asyncio.get_running_loop().time
        taken = []
        for _ in range(requests):
            began_s = clock()
            status, text = await self._ask()
            if status != 200:
                raise Unmeasurable(
                    f"a single request is answered 200, received {status or 'nothing'} "
                    f"{text!r:.120}: give a request that the model takes with --body FILE"
                )
            taken.append(clock() - began_s)
        return sorted(taken)[len(taken) // 2]

    async def step(self, rate_rps: float, duration_s: float, seed: int) -> MeasuredStep:
        """Send at this rate for so long, and wait until every request has ended."""
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
        """Return status and the answer's beginning; None where no answer came."""
        headers = {"content-type": "application/json"}
        url = f"{self._base}/v2/models/{self._model}/infer"
        try:
            async with self.request(
                "POST", url, self._timeout_s, data=self._body, headers=headers
            ) as response:
                text = await response.read()
                return response.status, text[:200].decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return None, f"{type(error).__name__}: {error}"

    async def _page(self) -> str | None:
        """Return the server's page of metrics; None where it has none."""
        try:
            url = f"{self._base}{METRICS_PATH}"
            async with self.request("GET", url, self._timeout_s) as response:
                if response.status != 200:
                    return None
                page = bytearray()
                async for chunk in response.content.iter_any():
                    page += chunk
                    if len(page) > MAX_PAGE_BYTES:
                        return None
                return page.decode(errors="replace")
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None

    def _read(self, page: str | None) -> PodSample | None:
        """Return the page as a sample; None where it is another server's."""
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
                        f"{url} answers {response.status}, expected 200: check --model, or wait "
                        "until the model is loaded"
                    )
                metadata = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unmeasurable(
                f"{url} does not answer ({type(error).__name__}: {error}): is the server up?"
            ) from error
        return synthetic_request(metadata)


def _instants(rate_rps: float, duration_s: float, seed: int) -> list[float]:
    """Return the instants of a Poisson process of this rate; at least one."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    due = [chance.expovariate(rate_rps)]
    while due[-1] < duration_s:
        due.append(due[-1] + chance.expovariate(rate_rps))
    return due[:-1] or [0.0]


def _batches(before: PodSample | None, after: PodSample | None) -> dict[str, float]:
    """Return what the server's counters rose by; nothing where they are not known."""
    if before is None or after is None or after.batches < before.batches:
        return {}
    return {
        "batches": after.batches - before.batches,
        "batch_items": after.batch_items - before.batch_items,
        "batch_seconds": after.batch_seconds - before.batch_seconds,
    }
