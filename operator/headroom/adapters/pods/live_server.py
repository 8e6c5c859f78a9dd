"""A live model server that is measured: its model, its metrics, and single requests to it.

Open Inference Protocol v2 over HTTP. A request without a given body has ones for every input that
the model's metadata names.
"""

from __future__ import annotations

import json
import re
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
GENERATES = (
    "A server that generates text is measured by `headroom plan generation RATE --measure URL`"
)
_MODEL_PATH = re.compile(r"(?P<base>.*)/v2/models/(?P<model>[^/]+)(?:/infer)?/?")
_MODEL_LABEL = re.compile(r'^headroom_max_batch_size\{model="([^"\\\s]{1,256})"\}', re.MULTILINE)
"""Names are shown in errors: one of 900 kB filled the terminal."""


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
                    f"{url} must name the model; it does not: pass --model NAME. {GENERATES}"
                )
            self._model = found[1]
        if self._body is None:
            self._body = await self._synthetic_body()
        sample = self._read(page)
        return sample.cost if sample else None

    async def ask(self) -> tuple[int | None, str]:
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

    async def sample(self) -> PodSample | None:
        """Read the server's counters; None if it is another kind of server."""
        return self._read(await self._page())

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
                        f"wait until the model is loaded. {GENERATES}"
                    )
                answer = await read_start(response, MAX_METADATA_BYTES, MAX_METADATA_BYTES)
                metadata = json.loads(answer)
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
