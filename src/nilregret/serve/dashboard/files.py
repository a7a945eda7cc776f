"""The static files of the dashboard (styles, scripts, icons), which are small and kept in memory."""

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
CACHED_FOR_A_YEAR = "public, max-age=31536000, immutable"  # for addresses that contain the digest of the content
REVALIDATED = "public, no-cache"


class _File(NamedTuple):
    body: bytes
    media_type: str
    digest: str


@cache
def _files() -> dict[str, _File]:
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            body = path.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:16]
            found[path.relative_to(FOLDER).as_posix()] = _File(body, TYPES[path.suffix], digest)
    return found


def address(name: str) -> str:
    """Returns the address of a static file with its digest, so that browsers may cache the file for ever."""
    return f"/static/{name}?v={_files()[name].digest}"


def bytes_of_scripts() -> int:
    """Returns the size of all scripts together."""
    return sum(len(file.body) for name, file in _files().items() if name.endswith(".js"))


async def static(request: Request) -> Response:
    """Serves a file."""
    return _response(request, request.path_params["file"])


async def favicon(request: Request) -> Response:
    """Serves the icon at the address that browsers try by themselves."""
    return _response(request, "favicon.ico")


def _response(request: Request, name: str) -> Response:
    file = _files().get(name)
    if file is None:
        return Response(status_code=404)
    tag = f'"{file.digest}"'
    headers = {
        "ETag": tag,
        "Cache-Control": CACHED_FOR_A_YEAR if request.query_params.get("v") == file.digest else REVALIDATED,
    }
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
