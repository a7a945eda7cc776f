"""Tokens: who may call the service, kept in the database that it serves, each as a hash.

A token is 256 random bits, shown once. What is kept is its SHA-256; no salt or slow hash is needed, because nobody can
try 2^256 of them. To find out whose a token is nothing is looked up by anything that a caller sends: the hashes are in
memory under a key that only this process knows (`_blind`), so that the time of a look-up says nothing about how near a
guess came, and the last word has a comparison in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..._utils.checks import number, shown, storable
from ..._utils.errors import InvalidInput, StorageError
from ...storage import Storage
from .caller import ROLES, Caller, Role, check_role, check_tenant
from .token_store import Record, Session, vault_of

MARK = "nr_"  # how a token begins, so that those who look for secrets in code find it
BYTES = 32  # 256 bits
FRESH = 1.0  # seconds after which revocations, and tokens made by others, are looked for
FRESH_FOR_STRANGERS = 0.1  # the same where a token is unknown: perhaps it was made just now
SESSION_SECONDS = 12 * 3600.0  # a working day
MOST_SESSIONS = 50  # of one token; the oldest go
LONGEST = 200  # characters of a text that describes a token
DUMMY = hashlib.sha256(b"no token").hexdigest()


@dataclass(frozen=True)
class Token:
    """What is known of a token, which is not the token.

    Attributes:
        id: names it, and opens nothing.
        role: see `Caller`.
        tenant: likewise.
        about: what it is for, in words.
        created_at: Unix seconds.
        expires_at: likewise; None: never.
        revoked_at: likewise; None: it is not.
    """

    id: str
    role: Role
    tenant: str
    about: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None

    def valid(self, now: float) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@final
class Tokens:
    """The tokens of a storage. One object may be used by several threads.

    Args:
        storage: a database keeps them beside its studies; for any other storage they live as long as it does.
        clock: Unix seconds.
    """

    def __init__(self, storage: Storage, *, clock: Callable[[], float] = time.time) -> None:
        self._vault = vault_of(storage)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._read_at = -math.inf  # of the monotonic clock
        self._tokens: dict[bytes, Record] = {}
        self._sessions: dict[bytes, Session] = {}
        self._by_id: dict[str, Record] = {}

    # -- for who runs the service ------------------------------------------------------------------------------------

    def new(self, role: str, tenant: str, *, about: str = "", expires: float | None = None) -> str:
        """Make a token; what is returned is shown once and kept nowhere.

        Args:
            role: "reader", "decider" or "admin".
            tenant: whose studies exist for it.
            about: what it is for, in words.
            expires: seconds from now after which it opens nothing; None: never.
        """
        return self.made(role, tenant, about=about, expires=expires)[0]

    def made(self, role: str, tenant: str, *, about: str = "", expires: float | None = None) -> tuple[str, Token]:
        """As `new`; and what is known of the token."""
        if not isinstance(about, str) or len(about) > LONGEST or "\0" in about or not storable(about):
            raise InvalidInput(f"`about` is {shown(about)}: it must be a text of at most {LONGEST} characters.")
        now = self._clock()
        until = None if expires is None else now + number("expires", expires, low=0.0, open_low=True, high=1e11)
        secret = MARK + secrets.token_urlsafe(BYTES)
        record = Record(
            id=secrets.token_hex(6), hash=_hash(secret), role=check_role(role), tenant=check_tenant(tenant),
            about=about, created_at=now, expires_at=until, revoked_at=None,
        )  # fmt: skip
        self._vault.add(record)
        self.refresh()
        return secret, _shown(record)

    def list(self) -> list[Token]:
        """All there ever were, oldest first; those that no longer open anything too."""
        records = map(_sound, self._vault.records()[0])
        return [_shown(record) for record in sorted(records, key=lambda each: each.created_at)]

    def revoke(self, id: str) -> Token:  # noqa: A002 - what it is called everywhere
        """Let a token open nothing any more, nor what was logged in with it; again is harmless.

        Args:
            id: of the token; or the token itself, which is what one has of one that was found somewhere.

        Raises:
            InvalidInput: there is none such.
        """
        if isinstance(id, str) and id.startswith(MARK):
            hashed = _hash(id.strip())
            id = next((each.id for each in self._vault.records()[0] if each.hash == hashed), "")  # noqa: A001 - likewise
            if not id:
                raise InvalidInput("There is no such token: it is mistyped, or of another storage.")
        known = isinstance(id, str) and id.isascii() and id.isalnum()
        if not (known and self._vault.revoke(id, self._clock())):
            raise InvalidInput(f"There is no token {shown(id)}: `nilregret token list` has the ids of those there are.")
        self.refresh()
        return next(token for token in self.list() if token.id == id)

    # -- for the gate ------------------------------------------------------------------------------------------------

    def any(self) -> bool:
        """Whether there ever was one: then nothing is open without, also where all have been revoked since."""
        return bool(self._by_id)

    def check(self, secret: str | None) -> Caller | None:
        """Whose token this is; None where it opens nothing, for whatever reason. Takes the same time for any."""
        hashed = _hash(secret or "")
        found = self._tokens.get(self._blind(hashed))
        return self._caller(found, same=hmac.compare_digest(hashed, DUMMY if found is None else found.hash))

    def check_session(self, cookie: str | None) -> Caller | None:
        """Whose session this is; None where it opens nothing."""
        hashed = _hash(cookie or "")
        found = self._sessions.get(self._blind(hashed))
        same = hmac.compare_digest(hashed, DUMMY if found is None else found.hash)
        if found is None or self._clock() >= found.expires_at:
            return None
        return self._caller(self._by_id.get(found.token), same=same)

    def log_in(self, secret: str) -> str | None:
        """A session for a token, as the value of a cookie; None where the token opens nothing."""
        caller = self.check(secret)
        if caller is None or caller.token is None:
            return None
        now = self._clock()
        cookie = secrets.token_urlsafe(BYTES)
        until = now + SESSION_SECONDS
        self._vault.begin(Session(_hash(cookie), caller.token, until), now=now, most=MOST_SESSIONS)
        self.refresh()
        return cookie

    def log_out(self, cookie: str) -> None:
        """End a session; where there is none nothing happens."""
        self._vault.end(_hash(cookie))
        self.refresh()

    def stale(self, *, stranger: bool = False) -> bool:
        """Whether it is time to `refresh`.

        Args:
            stranger: whether a token came that is not known.
        """
        return time.monotonic() - self._read_at > (FRESH_FOR_STRANGERS if stranger else FRESH)

    def refresh(self) -> None:
        """Read what is in the storage now.

        Raises:
            StorageError: it cannot be read; what was known remains known.
        """
        with self._lock:
            began = time.monotonic()
            found, sessions = self._vault.records()
            records = list(map(_sound, found))
            self._by_id = {record.id: record for record in records}
            self._tokens = {self._blind(record.hash): record for record in records}
            self._sessions = {self._blind(session.hash): session for session in sessions}
            self._read_at = began

    def _blind(self, hashed: str) -> bytes:
        return hmac.digest(self._key, hashed.encode(), "sha256")

    def _caller(self, record: Record | None, *, same: bool) -> Caller | None:
        if record is None or not same or not _shown(record).valid(self._clock()):
            return None
        return Caller(record.tenant, check_role(record.role), record.id)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _sound(record: Record) -> Record:
    """A record as we have written it; who reads another one cannot say what it allows."""
    texts = (record.id, record.hash, record.role, record.tenant, record.about)
    times = (record.created_at, record.expires_at or 0.0, record.revoked_at or 0.0)
    if (
        not all(type(each) is str for each in texts)
        or not all(isinstance(each, float | int) for each in times)
        or record.role not in ROLES
    ):
        raise StorageError(
            f"The token {shown(record.id)} in the storage has been damaged. Nobody is let in until it is mended: "
            "restore a copy, or remove its row."
        )
    return record


def _shown(record: Record) -> Token:
    return Token(
        record.id, check_role(record.role), record.tenant, record.about, record.created_at, record.expires_at,
        record.revoked_at,
    )  # fmt: skip
