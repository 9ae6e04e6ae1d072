"""A report that follows a run: a small server on this machine, which ends with the run."""

from __future__ import annotations

import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from pathlib import Path
from typing import Any

from discodso.base.checks import is_integer, require
from discodso.base.errors import DiscodsoError
from discodso.report.folders import read_run
from discodso.report.page import embedded, page
from discodso.report.page_data import page_data
from discodso.run.folder import is_running

ADDRESS = "127.0.0.1"  # nobody else on the network sees it
SILENCE = 10.0  # seconds that a reader may say or take nothing
LONGEST_CONNECTION = 60.0  # seconds
MOST_CONNECTIONS = 32
_NAMES = (ADDRESS, "localhost")
_LOOK = 0.25  # seconds between two looks at the folders
_GRACE = 15.0  # seconds for a page to fetch the end of the run
_WATCHED = 5.0  # a page that has asked within so many seconds is still open


class LiveReport:
    """Serves the report of folders in which runs are going on.

    Every user of this machine can ask the server; the address has a token that only its owner is told, and nothing
    is answered without it.

    Args:
        folders: `out` of the runs.
        port: to listen on; 0 for any free one.
    """

    def __init__(self, folders: Sequence[str | Path], port: int = 0) -> None:
        self._folders = [Path(folder) for folder in folders]
        self._lock = threading.Lock()
        self._over = False
        self.asked = 0.0
        self.ended_was_fetched = False
        require("port", port, is_integer(port) and 0 <= port <= 65535, "a number from 0 to 65535")
        if not self._is_running():
            for folder in self._folders:
                read_run(folder)  # says what is wrong with a folder that is none
            names = " ".join(map(str, self._folders))
            raise DiscodsoError(
                f"no run is going on in {names}; `discodso report {names}` writes what there is"
            )
        try:
            self._server = _Server((ADDRESS, port), partial(_Handler, self))
        except OSError as error:
            words = f"port {port} cannot be used: {error.strerror}; name another by --port"
            raise DiscodsoError(words) from None
        self.port = self._server.server_address[1]
        self.token = secrets.token_urlsafe(16)
        self.url = f"http://{ADDRESS}:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Serve until the runs have ended and whoever is looking has seen it."""
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            while self._is_running():
                time.sleep(_LOOK)
            self._over = True
            deadline = time.monotonic() + _GRACE
            while not self.ended_was_fetched and time.monotonic() < min(deadline, self.asked + _WATCHED):
                time.sleep(_LOOK)
        finally:
            self._server.shutdown()
            self._server.server_close()

    def _is_running(self) -> bool:
        return any(is_running(folder) for folder in self._folders)

    def data(self) -> dict[str, Any]:
        """The data of the page now."""
        with self._lock:
            found = page_data([read_run(folder) for folder in self._folders], live=True)
        return {**found, "running": not self._over}

    def mark(self) -> str:
        """What tells the data of now from those before: names, times and sizes of the files behind them."""
        files = [file for folder in self._folders for file in sorted(folder.iterdir())]
        kept = [file for file in files if file.suffix in (".json", ".jsonl", ".toml")]
        seen = [(str(file), file.lstat().st_mtime_ns, file.lstat().st_size) for file in kept]
        state = self._over, [is_running(folder) for folder in self._folders], seen
        return f'"{hashlib.sha256(repr(state).encode()).hexdigest()[:16]}"'


class _Server(ThreadingHTTPServer):
    """A server with an end to everything: how many are connected, and for how long."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._open: dict[socket.socket, float] = {}
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Let somebody in, in place of who has been there longest if there are too many."""
        while len(self._open) >= MOST_CONNECTIONS:
            self._end(min(list(self._open.items()), key=itemgetter(1))[0])
        self._open[request] = time.monotonic()
        return True

    def service_actions(self) -> None:
        """End what takes too long; called every now and then."""
        now = time.monotonic()
        for connection, began in list(self._open.items()):
            if now - began > LONGEST_CONNECTION:
                self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        self._open.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """See `socketserver`."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing on the terminal: somebody has gone, or was too slow."""


class _Handler(BaseHTTPRequestHandler):
    """Two addresses: the page, and its data."""

    timeout = SILENCE
    server_version, sys_version = "discodso", ""

    def __init__(self, live: LiveReport, *arguments: Any) -> None:
        self._live = live
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer."""
        # A page from elsewhere that got its name to point here shall learn nothing.
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in _NAMES:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        known = f"/{self._live.token}/"
        asked, name = self.path[: len(known)], self.path[len(known) :]
        if not secrets.compare_digest(asked.encode("utf-8", "replace"), known.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._live.asked = time.monotonic()
        try:
            if name in ("", "index.html"):
                self._answer(page(self._live.data()), "text/html")
            elif name == "data.json":
                mark = self._live.mark()
                if self.headers.get("If-None-Match") == mark:
                    self.send_response(HTTPStatus.NOT_MODIFIED)
                    self.end_headers()
                else:
                    data = self._live.data()
                    self._answer(embedded(data), "application/json", mark)
                    self._live.ended_was_fetched = not data["running"]
            else:
                self.send_error(HTTPStatus.NOT_FOUND)
        except (ConnectionError, TimeoutError):  # the reader has gone, or does not read
            self.close_connection = True
        except (DiscodsoError, OSError) as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(error))

    def _answer(self, content: str, kind: str, mark: str = "") -> None:
        body = content.encode()
        self.send_response(HTTPStatus.OK)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        headers |= {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        headers |= {"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"}
        for name, value in {**headers, **({"ETag": mark} if mark else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing on the terminal."""
