"""From data to pages: templates that escape whatever they are given."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..._utils.checks import counted
from ..addresses import segment
from ..auth.caller import Caller
from ..auth.caller import caller_of as of_scope
from ..auth.tenants import reachable
from . import files
from .views.pictures import in_words, many, short


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("nilregret.serve.dashboard", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "short": short, "moment": moment, "iso": iso, "part": segment, "hexadecimal": hexadecimal,
        "reachable": reachable, "in_words": in_words, "as_json": as_json,
        "many": many, "counted": counted,
    }  # fmt: skip
    made.globals |= {"address": files.address}
    return made


def caller_of(request: Request) -> Caller:
    """Who looks, as the gate has found out."""
    return of_scope(request.scope)


def hexadecimal(name: str) -> str:
    """A name as part of an id."""
    return name.encode("utf-8", "surrogatepass").hex()


def as_json(value: Any) -> str:
    """For an attribute, which is escaped like any other text."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def moment(seconds: float | None) -> str:
    """Unix seconds as a date and a time of day, UTC; what is no date as a number."""
    said = iso(seconds)
    return said.replace("T", " ").removesuffix("Z") + " UTC" if said.endswith("Z") else said


def iso(seconds: float | None) -> str:
    """The same for machines."""
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):  # a clock of the user's own counts from anywhere
        return f"{seconds:g} s"


def page(
    request: Request, template: str, *, status: int = 200, headers: dict[str, str] | None = None, **data: Any
) -> Response:
    """A page, or a part of one, of a template."""
    caller = caller_of(request)
    text = (
        _environment()
        .get_template(template)
        .render(request_path=request.url.path, may_leave=caller.token is not None, now=time.time(), **data)
    )
    return HTMLResponse(text, status, headers)
