"""A report that follows a run: a small server on this machine, which ends with the run."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from discodso.base.checks import is_integer, require
from discodso.base.errors import DiscodsoError
from discodso.report.folders import read_run
from discodso.report.page import embedded, page
from discodso.report.page_data import page_data
from discodso.run.folder import is_running

ADDRESS = "127.0.0.1"  # nobody else on the network sees it
_NAMES = (ADDRESS, "localhost")
_LOOK = 0.25  # seconds between two looks at the folders
_GRACE = 15.0  # seconds for a page to fetch the end of the run
_WATCHED = 5.0  # a page that has asked within so many seconds is still open


class LiveReport:
    """Serves the report of folders in which runs are going on.

    Args:
        folders: `out` of the runs.
        port: to listen on; 0 for any free one.
    """

    def __init__(self, folders: Sequence[str | Path], port: int = 0) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._lock = threading.Lock()
        self._seen: Any = None
        self._data: dict[str, Any] = {}
        self._asked = 0.0
        self._over = False
        self.ended_was_fetched = False
        require("port", port, is_integer(port) and 0 <= port <= 65535, "a number from 0 to 65535")
        if not any(is_running(folder) for folder in self._folders):
            for folder in self._folders:
                read_run(folder)  # says what is wrong with a folder that is none
            names = " ".join(map(str, self._folders))
            raise DiscodsoError(
                f"no run is going on in {names}; `discodso report {names}` writes what there is"
            )
        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), _handler(self))
        except OSError as error:
            raise DiscodsoError(
                f"port {port} cannot be used: {error.strerror}; name another by --port"
            ) from None
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://{ADDRESS}:{self.port}/"

    def serve(self) -> None:
        """Serve until the runs have ended and whoever is looking has seen it."""
        thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        thread.start()
        try:
            while any(is_running(folder) for folder in self._folders):
                time.sleep(_LOOK)
            self._over = True
            deadline = time.monotonic() + _GRACE
            while not self.ended_was_fetched and self._is_watched() and time.monotonic() < deadline:
                time.sleep(_LOOK)
        finally:
            self._server.shutdown()
            self._server.server_close()

    def _is_watched(self) -> bool:
        return bool(self._asked) and time.monotonic() - self._asked < _WATCHED

    def data(self) -> dict[str, Any]:
        """The data of the page now; made anew only if a file has changed."""
        with self._lock:
            self._asked = time.monotonic()
            now = [self._over, *(_signature(folder) for folder in self._folders)]
            if now != self._seen:
                found = page_data([read_run(folder) for folder in self._folders], live=True)
                self._data = {**found, "running": not self._over}
                self._seen = now
            return self._data


def _signature(folder: Path) -> tuple[Any, ...]:
    found: list[Any] = [is_running(folder)]
    for file in sorted(folder.iterdir()):
        if file.suffix in (".json", ".jsonl", ".toml"):
            stat = file.stat()
            found.append((file.name, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _handler(live: LiveReport) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Two addresses: the page, and its data."""

        def do_GET(self) -> None:
            """Answer."""
            # A page from elsewhere that got its name to point here shall learn nothing.
            if self.headers.get("Host", "").rsplit(":", 1)[0] not in _NAMES:
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            try:
                if self.path in ("/", "/index.html"):
                    self._answer(page(live.data()), "text/html")
                elif self.path == "/data.json":
                    data = live.data()
                    content = embedded({key: value for key, value in data.items() if key != "made"})
                    mark = f'"{hashlib.sha256(content.encode()).hexdigest()[:16]}"'
                    if self.headers.get("If-None-Match") == mark:
                        self.send_response(HTTPStatus.NOT_MODIFIED)
                        self.end_headers()
                    else:
                        self._answer(embedded(data), "application/json", mark)
                    if not data["running"]:
                        live.ended_was_fetched = True
                else:
                    self.send_error(HTTPStatus.NOT_FOUND)
            except (BrokenPipeError, ConnectionResetError):  # the reader has gone
                pass
            except DiscodsoError as error:
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(error))

        def _answer(self, content: str, kind: str, mark: str = "") -> None:
            body = content.encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            if mark:
                self.send_header("ETag", mark)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing on the terminal."""

    return Handler
