"""A headless Chromium, driven over its debugging protocol: pages, times, screenshots."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--remote-debugging-port=0", "--disable-background-networking"),
)
START_WITHIN_S = 60.0
_PAINT = """new Promise(done => {
  const look = () => {
    const found = performance.getEntriesByName("first-contentful-paint")[0];
    found ? done(found.startTime) : setTimeout(look, 20);
  };
  look();
})"""


class Browser:
    """A browser with one tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.refusals: list[str] = []
        """Refusals of the content security policy, and failures of scripts."""

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command of the protocol; raise RuntimeError where the browser refuses it."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(60.0):
            while True:
                said = json.loads((await self._socket.receive()).data)
                self._note(said)
                if said.get("id") == number:
                    if "error" in said:
                        raise RuntimeError(f"{method}: {said['error']['message']}")
                    found: dict[str, Any] = said["result"]
                    return found

    async def open(self, url: str, *, width: int = 1440, height: int = 900) -> float:
        """Open a page; give the milliseconds until something was painted."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        await self.call("Page.navigate", url=url)
        whole = f"{url}complete"
        while await self.value("location.href + document.readyState") != whole:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return float(await self.value(_PAINT))

    async def dark(self, wanted: bool) -> None:
        """Prefer dark pages, or light ones."""
        value = "dark" if wanted else "light"
        feature = {"name": "prefers-color-scheme", "value": value}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def value(self, expression: str) -> Any:
        """Evaluate an expression on the page."""
        found = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        found = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(found["data"]))

    def _note(self, said: dict[str, Any]) -> None:
        if said.get("method") == "Log.entryAdded":
            entry = said["params"]["entry"]
            if entry["level"] == "error":
                self.refusals.append(entry["text"])
        if said.get("method") == "Runtime.exceptionThrown":
            self.refusals.append(str(said["params"]["exceptionDetails"]))


@asynccontextmanager
async def browser(program: str) -> AsyncIterator[Browser]:
    """Start a browser with a profile of its own, and end it; give its only tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            *FLAGS,
            f"--user-data-dir={profile}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                    address = json.loads(await answer.text())["webSocketDebuggerUrl"]
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    tab = Browser(socket)
                    for domain in ("Page", "Runtime", "Log"):
                        await tab.call(f"{domain}.enable")
                    yield tab
        finally:
            process.terminate()
            await process.wait()


async def _port(path: Path) -> str:
    async with asyncio.timeout(START_WITHIN_S):
        while not (said := await asyncio.to_thread(_text, path)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return said.split()[0]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
