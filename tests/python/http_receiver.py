"""Servers on a loopback port that keep what is posted to them, for tests of what posts."""

import http.server
import json
import threading


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """The one who asked was killed in the middle."""


class HttpServer:
    """Serves until it is closed. A subclass says what it answers."""

    def __init__(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, content = server.answer(self.command, self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, method, path, headers, body):
        """The status and the bytes of the answer. Called from several threads."""
        raise NotImplementedError

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Receiver(HttpServer):
    """Keeps path, headers and body of what it takes in `got`. `fail` so many requests are answered with 500 first; `away`:
    all are."""

    def __init__(self, fail=0):
        self.lock, self.got, self.refused, self.fail, self.away = threading.Lock(), [], 0, fail, False
        super().__init__()

    def answer(self, method, path, headers, body):
        with self.lock:
            if self.away or self.refused < self.fail:
                self.refused += 1
                return 500, b"not now\nsecond line"
            self.got.append((path, headers, body))
            return 200, b"{}"

    def bodies(self):
        with self.lock:
            return [json.loads(body) for _, _, body in self.got]
