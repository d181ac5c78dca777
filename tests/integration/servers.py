"""A server on loopback for tests of clients: it answers what a test says, in pieces of odd sizes."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 97
"""Bytes a chunk: splits lines and characters on purpose."""


@dataclass
class Asked:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


@dataclass
class Answer:
    """What is sent back."""

    body: bytes = b"{}"
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """The connection ends before the body does."""
    pause: float = 0.0
    """Seconds between two pieces."""
    delay: float = 0.0
    """Seconds between the headers and the first piece."""


@contextmanager
def serving(answer: Callable[[Asked], Answer], *, get: bool = False) -> Iterator[str]:
    """The address of a server that answers so; to GET and other methods as well, if it shall."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # small writes would wait for acknowledgements, 40 ms each

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            made = answer(Asked(self.path, headers, body, self.command))
            # A client that waits no longer is no error; its traceback would appear in the output of a later test.
            with suppress(ConnectionError):
                self.send(made)

        def send(self, made: Answer) -> None:
            self.send_response(made.status)
            self.send_header("content-type", made.content_type)
            self.send_header("transfer-encoding", "chunked")
            for key, value in made.headers.items():
                self.send_header(key, value)
            self.end_headers()
            time.sleep(made.delay)
            for at in range(0, len(made.body), PIECE):
                piece = made.body[at : at + PIECE]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if made.pause:
                    time.sleep(made.pause)
            if made.cut:
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(b"0\r\n\r\n")

        if get:
            do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
