"""Rendering of pages by templates, which escape all values."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..._utils.checks import counted, many
from ...study.formatting import duration
from ...study.formatting import moment as date_or_number
from ..auth.tokens import Caller
from ..auth.tokens import caller_of as of_scope
from ..wire.messages import segment
from . import files
from .views.forms import ACTIONS
from .views.pictures import short

VERSION = version("nilregret")
DID = "did"  # entry of an address: the action after which a browser came there
CODE = re.compile(r"`([^`]+)`")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("nilregret.serve.dashboard", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "short": short, "moment": moment, "iso": iso, "part": segment, "hexadecimal": hexadecimal,
        "duration": duration, "as_json": as_json,
        "many": many, "counted": counted, "unbroken": unbroken, "middle": middle, "breakable": breakable,
        "filled": filled, "coded": coded,
    }  # fmt: skip
    made.globals |= {"address": files.address}
    return made


def caller_of(request: Request) -> Caller:
    """Returns the caller that the middleware has authenticated."""
    return of_scope(request.scope)


def hexadecimal(name: str) -> str:
    """Returns a name in hexadecimal digits, which may be part of an HTML id."""
    return name.encode("utf-8", "surrogatepass").hex()


def as_json(value: Any) -> Markup:
    """Returns a value as JSON for an attribute in single quotes, escaped."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;")):
        text = text.replace(sign, escaped)
    return Markup(text)


def unbroken(text: str) -> Markup:
    """Returns a list such as "rate=0.01, depth=3" whose lines break between its parts only."""
    return Markup(" ").join(Markup('<span class="part">{}</span>').format(part) for part in text.split(" "))


def middle(text: str, most: int) -> str:
    """Returns a text without its middle if it has more characters than `most`, since names often differ at the end."""
    kept = most - 1
    return (
        text
        if len(text) <= most
        else f"{text[: kept - kept // 2]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - kept // 2 :]}"
    )


def breakable(name: str) -> Markup:
    """Returns a name that a line may break in: behind an underscore."""
    return escape(name).replace("_", Markup("_<wbr>"))


def coded(sentence: str) -> Markup:
    """Returns a sentence, escaped, with what stands between backticks as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(sentence))))


def filled(given: Mapping[str, str]) -> set[str]:
    """Returns the names of the entries of a form in which something was typed."""
    return {name for name, text in given.items() if text.strip() not in ("", "0")}


def moment(seconds: float | None) -> str:
    """Returns Unix seconds as a date and a time of day in UTC, or as a number if no date fits."""
    text = date_or_number(seconds)
    return f"{text} UTC" if ":" in text else text


def iso(seconds: float | None) -> str:
    """Returns Unix seconds in ISO 8601, or as a number if no date fits."""
    text = date_or_number(seconds)
    return text.replace(" ", "T") + "Z" if ":" in text else text


def page(
    request: Request, template: str, *, status: int = 200, headers: dict[str, str] | None = None, **data: Any
) -> Response:
    """Returns a page, or a part of a page, rendered by a template."""
    caller = caller_of(request)
    text = (
        _environment()
        .get_template(template)
        .render(
            request_path=request.url.path,
            may_leave=caller.token is not None,
            may_act=caller.may("admin"),
            did=ACTIONS.get(request.query_params.get(DID, "")),
            did_action=request.query_params.get(DID, ""),
            now=time.time(),
            version=VERSION,
            **data,
        )
    )
    return HTMLResponse(text, status, headers)
