"""The static files: styles, scripts, pictures, all of them small and in memory."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
    ".ico": "image/x-icon", ".txt": "text/plain; charset=utf-8",
}  # fmt: skip
A_YEAR = "public, max-age=31536000, immutable"  # of an address that names the content
ASK_AGAIN = "public, no-cache"


class _File(NamedTuple):
    body: bytes
    kind: str
    stamp: str


@cache
def _files() -> dict[str, _File]:
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            body = path.read_bytes()
            stamp = hashlib.sha256(body).hexdigest()[:16]
            found[path.relative_to(FOLDER).as_posix()] = _File(body, TYPES[path.suffix], stamp)
    return found


def address(name: str) -> str:
    """Of a static file, with its content in it, so that a browser may keep it for good."""
    return f"/static/{name}?v={_files()[name].stamp}"


def bytes_of_scripts() -> int:
    """Of all scripts together, as they are sent."""
    return sum(len(file.body) for name, file in _files().items() if name.endswith(".js"))


async def static(request: Request) -> Response:
    """One of the files."""
    return _answer(request, request.path_params["file"])


async def favicon(request: Request) -> Response:
    """Where browsers look for it unasked."""
    return _answer(request, "favicon.ico")


def _answer(request: Request, name: str) -> Response:
    file = _files().get(name)
    if file is None:
        return Response(status_code=404)
    tag = f'"{file.stamp}"'
    headers = {"ETag": tag, "Cache-Control": A_YEAR if request.query_params.get("v") == file.stamp else ASK_AGAIN}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.kind, headers=headers)
