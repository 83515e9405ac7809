"""A browser without a window: it opens pages, asks them, takes pictures, and keeps what went wrong."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

BROWSER = "chromium-headless-shell"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1280,900")
_PATIENCE = 30.0
_PAUSE = 0.05
# A page that has opened still moves its parts for so long.
_SETTLING = 0.5


def is_installed() -> bool:
    return shutil.which(BROWSER) is not None


class Browser:
    """Speaks Chromium's DevTools protocol over two pipes; owns the process, and ends it in close."""

    def __init__(self, folder: Path):
        theirs, self._to = _pipe()
        self._from, back = _pipe()
        self._log = (folder / "browser.log").open("w")
        flags = [*_FLAGS, f"--user-data-dir={folder}"]
        # The protocol wants these two numbers.
        shell = f'exec "$@" 3<&{theirs} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", BROWSER, *flags, "about:blank"],
            pass_fds=(theirs, back),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        os.close(theirs)
        os.close(back)
        self._buffer = b""
        self._last = 0
        self._session = None
        self.faults: list[str] = []
        self._hosts: set[str] = set()
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Opens a page; what it fetches from another host is a fault."""
        self.faults.clear()
        self._hosts = {urlsplit(address).netloc}
        opened = self._call("Page.navigate", url=address)
        assert "errorText" not in opened, f"{address}: {opened['errorText']}"
        self.wait_for("document.readyState === 'complete'")

    def ask(self, expression: str) -> object:
        """The value of an expression of JavaScript in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> object:
        """The first value of the expression that is true."""
        deadline = time.monotonic() + _PATIENCE
        while not (value := self.ask(f"(() => {{ return {expression} }})()")):
            assert time.monotonic() < deadline, f"not within {_PATIENCE:.0f} s: {expression}; {self.faults}"
            time.sleep(_PAUSE)
        return value

    def picture(self, file: Path) -> None:
        """What the window shows."""
        time.sleep(_SETTLING)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Ends the browser, which ends the processes that it has started."""
        self._session = None
        try:
            self._call("Browser.close")
            self._process.wait(_PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
        for descriptor in (self._to, self._from):
            os.close(descriptor)
        self._log.close()

    def _call(self, method: str, **parameters: object) -> dict:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            said = self._read()
            if said.get("id") == self._last:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            self._note(said.get("method"), said.get("params", {}))

    def _read(self) -> dict:
        while b"\0" not in self._buffer:
            more = os.read(self._from, 1 << 20)
            assert more, f"{BROWSER} has ended; {self._log.name} has what it said"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: str | None, about: dict) -> None:
        if event == "Runtime.exceptionThrown":
            self.faults.append(f"exception: {about['exceptionDetails']}")
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.faults.append(f"console: {about['args']}")
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.faults.append(f"log: {about['entry']['text']} {about['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent":
            host = urlsplit(about["request"]["url"]).netloc
            if host and host not in self._hosts:
                self.faults.append(f"fetched from elsewhere: {about['request']['url']}")


def _pipe() -> tuple[int, int]:
    """A pipe whose numbers are none of those that the browser wants."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved
