"""Login to the dashboard: a token buys a session cookie, which is another secret that no script can read."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from starlette.responses import HTMLResponse, RedirectResponse, Response

from ..wire.problems import Problem
from .tokens import SESSION_SECONDS, of_api

IN, OUT, HOME = "/login", "/logout", "/"
PLAIN_COOKIE: Final = "nilregret_session"
SECURE_COOKIE: Final = "__Host-nilregret_session"  # browsers accept this prefix over TLS only, and from this host only
FORM_BYTES = 4096
FORM_TYPE = "application/x-www-form-urlencoded"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>nilregret: log in</title>
<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">
{style}
</head>
<body>
<main>
<h1>nilregret</h1>
<form method="post" action="{action}">
<input name="username" value="nilregret" autocomplete="username" hidden>
<p><label for="token">Token</label>
<input id="token" name="token" type="password" required autofocus autocomplete="current-password"></p>
{said}
<p><button type="submit">Log in</button></p>
</form>
<p>Who runs the service makes one: <code>nilregret token new</code>.
What a page shows goes by the role of the token.</p>
</main>
</body>
</html>
"""


def cookie_of(headers: Mapping[str, str], *, tls: bool = False) -> str | None:
    """Returns the session cookie or None. Over TLS only the cookie counts that no other host can set."""
    found: dict[str, str] = {}
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    names = (SECURE_COOKIE,) if tls else (SECURE_COOKIE, PLAIN_COOKIE)
    return next((found[name] for name in names if found.get(name)), None)


def wants_page(headers: Mapping[str, str], method: str, path: str) -> bool:
    """Returns whether a browser asks for a page and not for an address of the API, so that words and links help."""
    return method in ("GET", "HEAD") and "text/html" in headers.get("accept", "") and not of_api(path)


def redirect_to_form(path: str, query: str) -> Response:
    """Returns a redirection to the form that leads back to the page, whether that exists or not."""
    wanted = path + (f"?{query}" if query else "")
    return RedirectResponse(f"{IN}?next={quote(wanted, safe='/')}" if wanted != HOME else IN, 303)


def form(query: str, *, wrong: bool = False, style: str | None = None) -> Response:
    """Returns the page with the form.

    Args:
        query: of the address, with the page to go to after the login.
        wrong: whether an invalid token was sent.
        style: URL of a style sheet.
    """
    said = (
        '<p role="alert" class="alert">This token opens nothing: it is mistyped, expired or revoked.</p>'
        if wrong
        else ""
    )
    link = f'<link rel="stylesheet" href="{escape(style)}">' if style else ""
    action = IN + (f"?{query}" if query else "")
    return HTMLResponse(PAGE.format(style=link, action=escape(action), said=said), 401 if wrong else 200)


def token_in(body: bytes, headers: Mapping[str, str]) -> str:
    """Returns the token that was entered into the form.

    Raises:
        Problem: the body is no form with a token.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE or len(body) > FORM_BYTES:
        raise Problem(415, "form", "Logging in takes the form of the page, with one field, `token`.")
    try:
        found = parse_qs(body.decode("ascii"), max_num_fields=4).get("token", [""])
    except ValueError:  # no ASCII, or too many fields
        raise Problem(400, "form", "Logging in takes one field, `token`.") from None
    return found[0].strip()


def logged_in(cookie: str, query: str, *, secure: bool) -> Response:
    """Returns a redirection to the wanted page, with the session cookie."""
    response = RedirectResponse(_next(query), 303)
    response.headers.append("Set-Cookie", _cookie(cookie, round(SESSION_SECONDS), secure=secure))
    return response


def logged_out() -> Response:
    """Returns a redirection to the form that deletes the session cookie."""
    response = RedirectResponse(IN, 303)
    for secure in (False, True):
        response.headers.append("Set-Cookie", _cookie("", 0, secure=secure))
    return response


def _cookie(value: str, seconds: int, *, secure: bool) -> str:
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    return f"{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")


def _next(query: str) -> str:
    """Returns the page to go to after the login, which must be one of this site."""
    wanted = parse_qs(query, max_num_fields=None).get("next", [HOME])[0]
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return HOME
    own = not parts.scheme and not parts.netloc and wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if own and wanted.isprintable() and "\\" not in wanted else HOME
