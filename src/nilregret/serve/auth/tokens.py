"""Tokens of callers, kept as hashes in the database that the service serves.

A token is 256 random bits, shown once. The database holds its SHA-256. No salt or slow hash is needed, because nobody
can try 2^256 values. Nothing that a caller sends is used for a look-up in the database. The hashes are in memory, under
a key that only this process knows (`_blind`). So the time of a look-up says nothing about how near a guess is, and the
last comparison takes constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable
from typing import final

from ..._utils.checks import number, shown, storable
from ..._utils.dataclass import dataclass
from ...errors import InvalidInput, StorageError
from ...storage import Storage
from .caller import ROLES, Caller, Role, check_role, check_tenant
from .token_store import Record, Session, token_store

MARK = "nr_"  # beginning of every token, so that tools that search code for secrets find it
BYTES = 32  # 256 bits
FRESH = 1.0  # seconds after which tokens are read again, for revocations and for tokens of other processes
FRESH_FOR_STRANGERS = 0.1  # the same for an unknown token, which may have been made just now
SESSION_SECONDS = 12 * 3600.0  # a working day
MOST_SESSIONS = 50  # of one token; the oldest are dropped
LONGEST = 200  # characters of a text that describes a token
DUMMY = hashlib.sha256(b"no token").hexdigest()


@dataclass(frozen=True)
class Token:
    """The description of a token, which is not the token itself.

    Attributes:
        id: name of the token, which gives no access.
        role: see `Caller`.
        tenant: see `Caller`.
        about: purpose, in words.
        created_at: Unix seconds.
        expires_at: Unix seconds, or None.
        revoked_at: Unix seconds, or None.
    """

    id: str
    role: Role
    tenant: str
    about: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None

    def valid(self, now: float) -> bool:
        """Returns whether the token gives access at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@final
class Tokens:
    """The tokens of a storage. Several threads may use one object.

    Args:
        storage: a database keeps the tokens beside its studies. Other storages keep them as long as they live.
        clock: Unix seconds.
    """

    def __init__(self, storage: Storage, *, clock: Callable[[], float] = time.time) -> None:
        self._store = token_store(storage)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._read_at = -math.inf  # of the monotonic clock
        self._tokens: dict[bytes, Record] = {}
        self._sessions: dict[bytes, Session] = {}
        self._by_id: dict[str, Record] = {}

    # -- for the operator --------------------------------------------------------------------------------------------

    def new(self, role: str, tenant: str, *, about: str = "", expires: float | None = None) -> str:
        """Makes a token and returns it. The token is shown once and kept nowhere.

        Args:
            role: "reader", "decider" or "admin".
            tenant: owner of the studies that callers with this token can see.
            about: purpose, in words.
            expires: seconds from now until the token expires, or None for a token that never expires.
        """
        return self.made(role, tenant, about=about, expires=expires)[0]

    def made(self, role: str, tenant: str, *, about: str = "", expires: float | None = None) -> tuple[str, Token]:
        """Makes a token, and returns it with its description (see `new`)."""
        if not isinstance(about, str) or len(about) > LONGEST or "\0" in about or not storable(about):
            raise InvalidInput(f"`about` is {shown(about)}: it must be a text of at most {LONGEST} characters.")
        now = self._clock()
        until = None if expires is None else now + number("expires", expires, low=0.0, open_low=True, high=1e11)
        secret = MARK + secrets.token_urlsafe(BYTES)
        record = Record(
            id=secrets.token_hex(6), hash=_hash(secret), role=check_role(role), tenant=check_tenant(tenant),
            about=about, created_at=now, expires_at=until, revoked_at=None,
        )  # fmt: skip
        self._store.add(record)
        self.refresh()
        return secret, _shown(record)

    def list(self) -> list[Token]:
        """Returns all tokens that were ever made, oldest first, with expired and revoked ones."""
        records = map(_sound, self._store.records()[0])
        return [_shown(record) for record in sorted(records, key=lambda each: each.created_at)]

    def revoke(self, id: str) -> Token:  # noqa: A002 - the name of the column
        """Revokes a token and the sessions that began with it. Revoking again changes nothing.

        Args:
            id: of the token, or the token itself, which is all that the finder of a leaked token has.

        Raises:
            InvalidInput: there is no such token.
        """
        if isinstance(id, str) and id.startswith(MARK):
            hashed = _hash(id.strip())
            id = next((each.id for each in self._store.records()[0] if each.hash == hashed), "")  # noqa: A001
            if not id:
                raise InvalidInput("There is no such token: it is mistyped, or of another storage.")
        known = isinstance(id, str) and id.isascii() and id.isalnum()
        if not (known and self._store.revoke(id, self._clock())):
            raise InvalidInput(f"There is no token {shown(id)}: `nilregret token list` has the ids of those there are.")
        self.refresh()
        return next(token for token in self.list() if token.id == id)

    # -- for the middleware ------------------------------------------------------------------------------------------

    def any(self) -> bool:
        """Returns whether a token was ever made. Then every request needs one, even if all tokens have been revoked."""
        return bool(self._by_id)

    def check(self, secret: str | None) -> Caller | None:
        """Returns the caller with this token, or None if it gives no access. The time is the same for any token."""
        hashed = _hash(secret or "")
        found = self._tokens.get(self._blind(hashed))
        return self._caller(found, same=hmac.compare_digest(hashed, DUMMY if found is None else found.hash))

    def check_session(self, cookie: str | None) -> Caller | None:
        """Returns the caller of this session, or None if it gives no access."""
        hashed = _hash(cookie or "")
        found = self._sessions.get(self._blind(hashed))
        same = hmac.compare_digest(hashed, DUMMY if found is None else found.hash)
        if found is None or self._clock() >= found.expires_at:
            return None
        return self._caller(self._by_id.get(found.token), same=same)

    def log_in(self, secret: str) -> str | None:
        """Begins a session and returns the value of its cookie. Returns None if the token gives no access."""
        caller = self.check(secret)
        if caller is None or caller.token is None:
            return None
        now = self._clock()
        cookie = secrets.token_urlsafe(BYTES)
        until = now + SESSION_SECONDS
        self._store.begin(Session(_hash(cookie), caller.token, until), now=now, most=MOST_SESSIONS)
        self.refresh()
        return cookie

    def log_out(self, cookie: str) -> None:
        """Ends a session, if there is one."""
        self._store.end(_hash(cookie))
        self.refresh()

    def stale(self, *, stranger: bool = False) -> bool:
        """Returns whether it is time to `refresh`.

        Args:
            stranger: whether a caller sent an unknown token.
        """
        return time.monotonic() - self._read_at > (FRESH_FOR_STRANGERS if stranger else FRESH)

    def refresh(self) -> None:
        """Reads tokens and sessions from the storage.

        Raises:
            StorageError: the storage cannot be read. The tokens of the last reading stay valid.
        """
        with self._lock:
            began = time.monotonic()
            found, sessions = self._store.records()
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
    """Returns the record, checked to be one that this module has written."""
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
