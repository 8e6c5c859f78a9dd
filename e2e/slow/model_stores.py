"""An S3 bucket and a Hugging Face hub with one model each, just enough for their clients.

    python model_stores.py PORT

Both want credentials: `Bearer hub-token` of the hub, any signature of the access key `bucket-key`
of the bucket. Run as a program it needs nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

FILES = {"config.json": b'{"kind": "test"}\n', "1/weights.bin": bytes(range(256)) * 1000}
BUCKET, PREFIX, KEY = "models", "vision/small", "bucket-key"
REPOSITORY, TOKEN, COMMIT = "acme/small", "hub-token", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"
_MOMENT = "2026-01-01T00:00:00.000Z"


def digest() -> str:
    """Return the digest of the model, in the form of model.digest."""
    whole = hashlib.sha256()
    for name in sorted(FILES):
        whole.update(f"{hashlib.sha256(FILES[name]).hexdigest()}  ./{name}\n".encode())
    return f"sha256:{whole.hexdigest()}"


class Stores(BaseHTTPRequestHandler):
    """Answers both, by path."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Answer what GET would, without the body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer a bucket's listing or object, or the hub's description or file."""
        url = urlsplit(self.path)
        path = unquote(url.path)
        authorized = self.headers.get("Authorization", "")
        if path.startswith(f"/{BUCKET}"):
            if f"Credential={KEY}/" not in authorized:
                return self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            key = path.removeprefix(f"/{BUCKET}").lstrip("/")
            listing = self._listing(parse_qs(url.query).get("prefix", [""])[0])
            return self._file(key.removeprefix(f"{PREFIX}/")) if key else self._answer(200, listing)
        if authorized != f"Bearer {TOKEN}":
            return self._answer(401, b'{"error": "Invalid username or password."}')
        if path.startswith(f"/api/models/{REPOSITORY}"):
            return self._answer(200, json.dumps(self._described(path)).encode(), "application/json")
        marks = f"/{REPOSITORY}/resolve/{COMMIT}/"
        return self._file(path.removeprefix(marks)) if marks in path else self._answer(404, b"")

    def _listing(self, prefix: str) -> bytes:
        found = "".join(
            f"<Contents><Key>{PREFIX}/{name}</Key><LastModified>{_MOMENT}</LastModified>"
            f'<ETag>"{hashlib.md5(content).hexdigest()}"</ETag><Size>{len(content)}</Size></Contents>'
            for name, content in FILES.items()
            if f"{PREFIX}/{name}".startswith(prefix)
        )
        return (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()
        )

    def _described(self, path: str) -> object:
        files = [
            {"type": "file", "path": name, "size": len(content), "oid": _etag(content)}
            for name, content in FILES.items()
        ]
        if "/tree/" in path:
            return files
        siblings = [{"rfilename": name} for name in FILES]
        return {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "siblings": siblings}

    def _file(self, name: str) -> None:
        content = FILES.get(name)
        if content is None:
            return self._answer(404, b"")
        return self._answer(200, content)

    def _answer(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", kind)
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.send_header("ETag", f'"{_etag(body)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, form: str, *values: object) -> None:
        """Say what was asked."""
        print(form % values, file=sys.stderr, flush=True)


def _etag(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Stores).serve_forever()
