"""Chromium without a window, by its protocol for developers over two pipes; it needs no package.

Commands and answers are JSON that end with a zero byte, in the file descriptors 3 and 4.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"""


class Browser:
    """One browser with one page, which is 1,600 x 1,000; to be used with ``with``."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM
        theirs_in, self._commands = os.pipe()
        self._answers, theirs_out = os.pipe()
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={folder}", "about:blank"]
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._numbers = itertools.count(1)
        self._read = b""
        self._page: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._page = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": 1600, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **parameters: Any) -> Any:
        """A command, and what comes back."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self._page:
            command["sessionId"] = self._page
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            block = os.read(self._answers, 1 << 20)
            assert block, "the browser is gone"
            self._read += block
        answer, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(answer)
        return found

    def open(self, file: Path) -> None:
        """Show a file, and forget what happened before."""
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression of JavaScript holds; a test that waits for ever is ended."""
        while not self.ask(f"Boolean({condition})"):
            assert not self.exceptions, self.exceptions
            time.sleep(0.05)

    @property
    def exceptions(self) -> list[str]:
        """What the scripts of the page did not catch."""
        thrown = (e for e in self.events if e["method"] == "Runtime.exceptionThrown")
        return [json.dumps(event["params"]["exceptionDetails"])[:2000] for event in thrown]

    @property
    def loaded(self) -> list[str]:
        """Addresses that the page asked for, but those of what it contains."""
        asked = (e for e in self.events if e["method"] == "Network.requestWillBeSent")
        addresses = [event["params"]["request"]["url"] for event in asked]
        return [each for each in addresses if not each.startswith(("data:", "blob:"))]

    def photograph(self, file: Path) -> None:
        """Write what is to be seen as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
