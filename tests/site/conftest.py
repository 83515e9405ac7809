"""The site that ./dev docs has made, on a server, and a browser for it."""

import functools
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import browser
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and writes no line for each."""

    def log_message(self, *_):
        pass


def serve(folder: Path) -> ThreadingHTTPServer:
    """A server of the folder's files on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def address_of(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture(scope="session")
def site() -> Path:
    folder = ROOT / "build" / "site"
    assert (folder / "index.html").exists(), f"{folder} has no site: run ./dev docs first"
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    server = serve(site)
    yield address_of(server)
    server.shutdown()


@pytest.fixture
def window(tmp_path: Path) -> Iterator[browser.Browser]:
    if not browser.is_installed():
        pytest.skip(f"there is no {browser.BROWSER}, which Debian has under this name")
    opened = browser.Browser(tmp_path)
    yield opened
    opened.close()
