"""The commands of the service: `nilregret serve` and `nilregret token`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._utils.checks import url_of
from .._utils.files import text_of
from .._utils.process_setting import handled
from ..errors import InvalidInput, MissingExtra
from .common import echo, json_option, storage_at, wide_option, with_error_sentences

if TYPE_CHECKING:
    from ..serve.auth.tokens import Token, Tokens
    from ..serve.wire.settings import Webhook
    from ..storage import SqlStorage

DEFAULT = "sqlite:///nilregret.db"
HOST, PORT = "127.0.0.1", 8000
WEBHOOK_SECRET = "NILREGRET_WEBHOOK_SECRET"
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd])")

storage_option = click.option(
    "--storage", default=DEFAULT, show_default=True, envvar="NILREGRET_STORAGE", metavar="URL",
    help="Of the studies; made where there is none. Without it NILREGRET_STORAGE, which `ps` does not show.",
)  # fmt: skip


def _lifetime(text: str) -> float | None:
    """Returns seconds, or None if the token never expires."""
    if text == "never":
        return None
    found = DURATION.fullmatch(text)
    if found is None or not float(found[1]):
        raise InvalidInput(f"`--expires` is {text[:60]!r}: write a number with s, m, h or d, such as 90d, or never.")
    return float(found[1]) * UNITS[found[2]]


def _tokens(url: str, *, make: bool) -> Tokens:
    try:
        from ..serve.auth.tokens import Tokens
    except ImportError as error:
        raise _missing_extra(error) from error
    place = storage_at(url, make=make)
    if make:
        _prepare(place)
    return Tokens(place)


def _prepare(place: SqlStorage) -> None:
    """Makes the secret of the service, so that an error ends the command before processes start."""
    from ..serve.wire.decision_ids import SECRET, new_secret

    place.note_once(SECRET, new_secret())


def _missing_extra(error: ImportError) -> MissingExtra:
    return MissingExtra(f"The service needs packages that are not here ({error}): pip install 'nilregret[serve]'.")


@click.command(short_help="Serve decisions over HTTP, and a dashboard.")
@storage_option
@click.option("--host", default=HOST, show_default=True, help="Address to listen at; any other needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0: any that is free.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes; more than 1 on PostgreSQL."
)
@click.option(
    "--public-host", "public", multiple=True, metavar="NAME", help="Another name it is called by, as by a proxy."
)
@click.option("--proxy", metavar="ADDRESS", help="Of a reverse proxy that is believed in X-Forwarded-For and -Proto.")
@click.option("--webhook", metavar="URL", help="Send what needs a look to this address (signals of the dashboard).")
@click.option(
    "--webhook-secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The secret that signs these messages; or set NILREGRET_WEBHOOK_SECRET.",
)
@click.option("--log", is_flag=True, help="A line for each request.")
@json_option
@with_error_sentences
def serve(
    storage: str, host: str, port: int, workers: int, public: Sequence[str], proxy: str | None,
    webhook: str | None, webhook_secret_file: Path | None, *, log: bool, as_json: bool,
) -> None:  # fmt: skip
    """Serve the studies of a storage over HTTP: the API under /v1, and the dashboard.

    On this machine alone it works at once. To be reached from others (--host) there must be a token first, which
    `nilregret token new` makes. Ctrl-C and SIGTERM stop it, after what is being answered.
    """
    try:
        from ..serve.auth import origin_checks
        from ..serve.auth.tokens import Tokens
        from ..serve.http import server as running
        from ..serve.wire.settings import Settings
    except ImportError as error:
        raise _missing_extra(error) from error
    url, host = url_of(storage), origin_checks.check_address(host)
    public, proxy = (
        tuple(map(origin_checks.check_name, public)),
        None if proxy is None else origin_checks.check_proxies(proxy),
    )
    if workers > 1 and url.startswith("sqlite:"):
        raise InvalidInput("Several processes share a PostgreSQL database; with an SQLite file leave out --workers.")
    place = storage_at(storage, make=True)
    _prepare(place)
    tokens = Tokens(place)
    tokens.refresh()
    if not origin_checks.is_own(host) and not _has_valid_token(tokens):
        raise InvalidInput(
            f"At {host} every caller needs a token (at 127.0.0.1, ::1 and localhost alone none is needed before the "
            f"first is made), and {place.url} has none that is valid: "
            "make one with `nilregret token new --storage URL`, or leave out --host to serve this machine alone."
        )
    settings = Settings(public_hosts=public, webhook=_webhook(webhook, webhook_secret_file))
    service = running.Service(place.place, host, settings)
    with running.listening(host, port) as listener:
        _announce(place.url, host, listener.getsockname()[1], open_=not tokens.any(), as_json=as_json)
        place.close()
        # Uvicorn raises the signal again after it has stopped.
        with handled(lambda *_: None), suppress(KeyboardInterrupt):
            running.run(service, listener, workers=workers, proxies=proxy, log=log)
    if not as_json:
        echo("Stopped.")


def _webhook(url: str | None, file: Path | None) -> Webhook | None:
    """Returns the receiver of signals, or None if none is wanted."""
    from ..serve.wire.settings import Webhook

    if url is None:
        return None
    secret = os.environ.get(WEBHOOK_SECRET, "") if file is None else text_of(file)
    return Webhook(url, secret.strip())


def _has_valid_token(tokens: Tokens) -> bool:
    import time

    return any(token.valid(time.time()) for token in tokens.list())


def _announce(url: str, host: str, port: int, *, open_: bool, as_json: bool) -> None:
    """Prints the addresses of the service, which accepts connections by then."""
    from ..study.formatting import as_json as document
    from ..study.terminal import facts, show

    at = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    base = f"http://[{at}]:{port}" if ":" in at else f"http://{at}:{port}"
    if as_json:
        click.echo(document({"url": f"{base}/v1", "dashboard": f"{base}/", "storage": url, "open": open_}))
        return
    show(facts([("studies of", url), ("API", f"{base}/v1"), ("dashboard", f"{base}/")]))
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:") and os.name == "posix" and path.stat().st_mode & 0o077:
        echo(f"Other users of this machine may read {path}, and with it the key of the ids: chmod 600 {path}")
    if open_:
        echo(
            "Nobody needs a token: whoever uses this machine may do everything, until `nilregret token new` makes one."
        )


@click.group(short_help="The tokens of those who may call the service.")
def token() -> None:
    """Make, list and revoke the tokens with which `nilregret serve` is called."""


@token.command("new", short_help="Make a token, and show it once.")
@storage_option
@click.option(
    "--role", type=click.Choice(["reader", "decider", "admin"]), default="decider", show_default=True,
    help="reader looks; decider asks and tells too; admin makes and removes studies too.",
)  # fmt: skip
@click.option("--tenant", default="default", show_default=True, help="Whose studies exist for it.")
@click.option("--about", default="", help="What it is for, in words.")
@click.option("--expires", default="365d", show_default=True, metavar="TIME", help="From now: 90d, 12h, 30m; or never.")
@json_option
@with_error_sentences
def new(storage: str, role: str, tenant: str, about: str, expires: str, *, as_json: bool) -> None:
    """Make a token. It is shown now and never again: only its hash is kept.

    From the first one on nobody is let in without, not even on this machine.
    """
    from ..study.formatting import as_json as document
    from ..study.formatting import moment

    tokens = _tokens(storage, make=True)
    known = {each.tenant for each in tokens.list()}
    secret, made = tokens.made(role, tenant, about=about, expires=_lifetime(expires))
    if as_json:
        click.echo(document({"token": secret} | _token_data(made)))
        return
    click.echo(secret)
    until = "never expires" if made.expires_at is None else f"expires {moment(made.expires_at)} UTC"
    click.echo(f"Token {made.id}: {made.role} of {made.tenant!r}, {until}. It is not shown again.", err=True)
    if made.tenant not in known:
        _print_taken_studies(storage, made.tenant)


def _print_taken_studies(storage: str, tenant: str) -> None:
    """Prints which studies of the operator become those of a new tenant, because of their names."""
    from ..serve.auth.tokens import OPERATOR, own_names

    taken = [] if tenant == OPERATOR else list(own_names(storage_at(storage), tenant).values())
    if taken:
        listed = ", ".join(map(repr, taken))
        click.echo(
            f"The service takes these for studies of {tenant!r} from now on: {listed}. `nilregret rename` gives a "
            "study another name.",
            err=True,
        )


@token.command("list", short_help="List the tokens, without what opens.")
@storage_option
@wide_option
@json_option
@with_error_sentences
def list_(storage: str, *, wide: bool, as_json: bool) -> None:
    """List all tokens there ever were, oldest first."""
    from ..study.formatting import as_json as document
    from ..study.formatting import moment
    from ..study.terminal import show, table

    found = _tokens(storage, make=False).list()
    if as_json:
        click.echo(document([_token_data(each) for each in found]))
    elif found:
        rows = [
            [
                each.id, each.role, each.tenant, each.about, _state(each), moment(each.created_at),
                moment(each.expires_at), moment(each.revoked_at),
            ]
            for each in found
        ]  # fmt: skip
        headings = ["token", "role", "tenant", "about", "state", "made (UTC)", "expires (UTC)", "revoked (UTC)"]
        show(table(rows, headings, dispensable=["made (UTC)", "revoked (UTC)", "expires (UTC)"], wide=wide), wide=wide)
    else:
        echo("There are no tokens.")


@token.command("revoke", short_help="Let a token open nothing any more.")
@click.argument("token")
@storage_option
@json_option
@with_error_sentences
def revoke(token: str, storage: str, *, as_json: bool) -> None:
    """Let TOKEN, an id as `list` shows it or the token itself, open nothing any more.

    Who has logged in with it is logged out.
    Servers that run notice within a second. Again is harmless.
    """
    from ..study.formatting import as_json as document

    revoked = _tokens(storage, make=False).revoke(token)
    if as_json:
        click.echo(document(_token_data(revoked)))
    else:
        echo(f"Token {revoked.id} opens nothing any more.")


def _token_data(token: Token) -> dict[str, Any]:
    return asdict(token) | {"state": _state(token)}


def _state(token: Token) -> str:
    import time

    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.valid(time.time()) else "expired"
