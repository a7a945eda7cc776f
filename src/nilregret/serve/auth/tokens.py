"""Callers of the service with their roles, and their tokens: hashes in the database of the studies, or in memory.

A token is 256 random bits, shown once. The database holds its SHA-256. No salt or slow hash is needed, because nobody
can try 2^256 values. Nothing that a caller sends is used for a look-up in the database. The hashes are in memory, under
a key that only this process knows (`_blind`). So the time of a look-up says nothing about how near a guess is, and the
last comparison takes constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, final, get_args

import sqlalchemy as sql

from ..._utils.checks import number, one_of, shown, storable
from ..._utils.dataclass import dataclass
from ...errors import InvalidInput, StorageError
from ...storage import SqlStorage, Storage
from ..wire.problems import Problem

Role = Literal["reader", "decider", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # a role includes those before it
OPERATOR = "default"  # tenant of the operator, who owns the studies that the command line made
LONGEST_NAME = 64  # characters of a tenant


@dataclass(frozen=True)
class Caller:
    """The sender of a request, as the middleware has found out.

    Attributes:
        tenant: owner of the studies that the caller can see.
        role: "reader" reads, "decider" also asks and tells, "admin" also makes and removes studies.
        token: id of the token (not the token). None if the service is open to its own machine.
    """

    tenant: str
    role: Role
    token: str | None

    def may(self, role: Role) -> bool:
        """Returns whether the caller's role includes this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller(OPERATOR, "admin", None)  # any caller of a service on loopback, before the first token was made

NOBODY = Caller("", "reader", None)  # any caller of public addresses; no tenant has this name


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Returns the caller that the middleware has set.

    Raises:
        RuntimeError: no middleware has seen the request, which is then refused.
    """
    caller = scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        raise RuntimeError(  # noqa: TRY004 - no argument has a wrong type
            "A request has not passed `AccessMiddleware`; `create_app` puts it before the application."
        )
    return caller


def check_role(value: object) -> Role:
    """Returns `value`, checked to be a role."""
    return next(role for role in ROLES if role == one_of("role", value, ROLES))


def check_tenant(value: object) -> str:
    """Returns `value`, checked to be a name of a tenant, which becomes a part of the names of studies."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not storable(value)
        or value != value.strip()
        or "/" in value
        or not 1 <= len(value) <= LONGEST_NAME
    ):
        raise InvalidInput(
            f"`tenant` is {shown(value)}: it must be a name of 1 to {LONGEST_NAME} printable characters without '/', "
            "and without blanks at its ends."
        )
    return value


READ_METHODS = ("GET", "HEAD", "OPTIONS")
LINES = re.compile(r"/v1/studies/[^/]+/observations")  # takes JSON lines, too
# Deciders may change these. Any other change needs an admin, also at addresses that are added later.
DECIDING = re.compile(r"/v1/studies/[^/]+/(?:decisions|rewards|failures|observations|enqueue|forget)(?:[/:].*)?")
READING = re.compile(r"/v1/studies/[^/]+/evaluations")  # changes nothing, though its request has a body
# Only admins may read these: forms that change a study, and who has changed it.
ADMINS = re.compile(r"/studies/[^/]+/actions/[^/]+|/new|(?:/v1)?/studies/[^/]+/audit")
PUBLIC = ("/healthz", "/readyz")  # for process monitors; their answers are yes or no
API = "/v1"


def needed(method: str, path: str) -> Role:
    """Returns the least role that may send such a request."""
    if ADMINS.fullmatch(path):
        return "admin"
    if method in READ_METHODS or (method == "POST" and READING.fullmatch(path)):
        return "reader"
    return "decider" if DECIDING.fullmatch(path) else "admin"


def takes_lines(method: str, path: str) -> bool:
    """Returns whether the body may be JSON lines of any number."""
    return method == "POST" and LINES.fullmatch(path) is not None


def public(method: str, path: str) -> bool:
    """Returns whether the request needs no token."""
    return path in PUBLIC and method in ("GET", "HEAD")


def of_api(path: str) -> bool:
    """Returns whether the path belongs to the API, for which cookies do not count."""
    return path == API or path.startswith((f"{API}/", f"{API}:"))


# Names of the studies of tenants in the storage. Only this module knows the rule.
#
# The operator's studies have the same name in the storage and outside. The study `shop` of a tenant T is `T/shop` in
# the storage. A name is a tenant if it ever had a token, so `team/shop` is the operator's if there is no tenant
# `team`. The tokens are read each time, so that other tenants never see a study of a new tenant.

BETWEEN = "/"
SHOWN = 128  # characters of a name in a sentence


def stored_name(storage: Storage, tenant: str, name: str) -> str:
    """Returns the name in the storage.

    Raises:
        Problem: 404, no study of this tenant can have that name.
    """
    if not name.strip() or (tenant == OPERATOR and of_others(storage, [name])):
        raise missing(name)
    return name if tenant == OPERATOR else f"{tenant}{BETWEEN}{name}"


def own_names(storage: Storage, tenant: str) -> dict[str, str]:
    """Returns the names in the storage by the names that the tenant knows, the oldest study first."""
    return own_among(storage, storage.names(), tenant)


def own_among(storage: Storage, stored: Sequence[str], tenant: str) -> dict[str, str]:
    """Returns the tenant's of these names in the storage, by the names that the tenant knows."""
    if tenant == OPERATOR:
        others = of_others(storage, stored)
        return {name: name for name in stored if name not in others}
    whose = f"{tenant}{BETWEEN}"
    return {each.removeprefix(whose): each for each in stored if each.startswith(whose) and each[len(whose) :].strip()}


def of_others(storage: Storage, stored: Iterable[str]) -> set[str]:
    """Returns the names in the storage that belong to tenants other than the operator."""
    parts = [each.partition(BETWEEN) for each in stored if BETWEEN in each]
    tenants = {record.tenant for record in token_store(storage).records()[0]} - {OPERATOR} if parts else set()
    return {"".join(part) for part in parts if part[0] in tenants and part[2].strip()}


def owners(storage: Storage, stored: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the tenant of each name in the storage, and the name as the tenant knows it."""
    listed = list(stored)
    others = of_others(storage, listed)
    split = (each.partition(BETWEEN) if each in others else (OPERATOR, "", each) for each in listed)
    return [(tenant, name) for tenant, _, name in split]


def missing(name: str) -> Problem:
    """Returns the refusal for a study that this caller cannot see, whether it exists or not."""
    return Problem(
        404, "no_study", f"There is no study {name[:SHOWN]!r}. `GET /v1/studies` lists those there are; "
        "`PUT /v1/studies/NAME` makes one.",
    )  # fmt: skip


class Record(NamedTuple):
    """A token as it is stored (see `storage.tables`)."""

    id: str
    hash: str
    role: str
    tenant: str
    about: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None


class Session(NamedTuple):
    """A session that began with a token, as it is stored."""

    hash: str
    token: str
    expires_at: float


class TokenStore(ABC):
    """A storage of tokens and sessions."""

    @abstractmethod
    def records(self) -> tuple[Sequence[Record], Sequence[Session]]:
        """Returns all tokens and sessions."""

    @abstractmethod
    def add(self, record: Record) -> None:
        """Stores a token."""

    @abstractmethod
    def revoke(self, id: str, now: float) -> bool:  # noqa: A002 - the name of the column
        """Marks a token as revoked and drops its sessions. Returns False if there is no such token."""

    @abstractmethod
    def begin(self, session: Session, *, now: float, most: int) -> None:
        """Stores a session, and drops expired sessions and all but the newest `most` of its token."""

    @abstractmethod
    def end(self, hash: str) -> None:  # noqa: A002 - the name of the column
        """Drops a session, if there is one."""


@final
class _InDatabase(TokenStore):
    def __init__(self, storage: SqlStorage) -> None:
        self._storage = storage

    def records(self) -> tuple[Sequence[Record], Sequence[Session]]:
        """Returns all tokens and sessions."""
        made = self._storage.tables
        with self._storage.transaction(write=False) as connection:
            tokens = connection.execute(sql.select(*(made.tokens.c[name] for name in Record._fields)))
            sessions = connection.execute(sql.select(*(made.sessions.c[name] for name in Session._fields)))
            return [Record(*row) for row in tokens], [Session(*row) for row in sessions]

    def add(self, record: Record) -> None:
        """Stores a token."""
        with self._storage.transaction(write=True) as connection:
            connection.execute(sql.insert(self._storage.tables.tokens).values(record._asdict()))

    def revoke(self, id: str, now: float) -> bool:  # noqa: A002 - the name of the column
        """Revokes a token and drops its sessions."""
        tokens, sessions = self._storage.tables.tokens, self._storage.tables.sessions
        with self._storage.transaction(write=True) as connection:
            first = sql.func.coalesce(tokens.c.revoked_at, now)
            done = connection.execute(sql.update(tokens).where(tokens.c.id == id).values(revoked_at=first))
            connection.execute(sql.delete(sessions).where(sessions.c.token == id))
            return done.rowcount > 0

    def begin(self, session: Session, *, now: float, most: int) -> None:
        """Stores a session, and drops old ones."""
        sessions = self._storage.tables.sessions
        with self._storage.transaction(write=True) as connection:
            connection.execute(sql.delete(sessions).where(sessions.c.expires_at <= now))
            mine = sql.select(sessions.c.hash).where(sessions.c.token == session.token)
            old = connection.execute(mine.order_by(sessions.c.expires_at.desc()).offset(most - 1)).scalars().all()
            connection.execute(sql.delete(sessions).where(sessions.c.hash.in_(old)))
            connection.execute(sql.insert(sessions).values(session._asdict()))

    def end(self, hash: str) -> None:  # noqa: A002 - the name of the column
        """Drops a session."""
        sessions = self._storage.tables.sessions
        with self._storage.transaction(write=True) as connection:
            connection.execute(sql.delete(sessions).where(sessions.c.hash == hash))


@final
class _InMemory(TokenStore):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: dict[str, Record] = {}
        self._sessions: dict[str, Session] = {}

    def records(self) -> tuple[Sequence[Record], Sequence[Session]]:
        """Returns all tokens and sessions."""
        with self._lock:
            return list(self._tokens.values()), list(self._sessions.values())

    def add(self, record: Record) -> None:
        """Stores a token."""
        with self._lock:
            self._tokens[record.id] = record

    def revoke(self, id: str, now: float) -> bool:  # noqa: A002 - the name of the column
        """Revokes a token and drops its sessions."""
        with self._lock:
            record = self._tokens.get(id)
            if record is None:
                return False
            self._tokens[id] = record._replace(revoked_at=now if record.revoked_at is None else record.revoked_at)
            self._sessions = {h: session for h, session in self._sessions.items() if session.token != id}
            return True

    def begin(self, session: Session, *, now: float, most: int) -> None:
        """Stores a session, and drops old ones."""
        with self._lock:
            kept = [each for each in self._sessions.values() if each.expires_at > now]
            mine = sorted((each for each in kept if each.token == session.token), key=lambda each: -each.expires_at)
            dropped = set(mine[most - 1 :])
            self._sessions = {each.hash: each for each in [*kept, session] if each not in dropped}

    def end(self, hash: str) -> None:  # noqa: A002 - the name of the column
        """Drops a session."""
        with self._lock:
            self._sessions.pop(hash, None)


_LOCK = threading.Lock()
_IN_MEMORY: weakref.WeakKeyDictionary[Storage, _InMemory] = weakref.WeakKeyDictionary()


def token_store(storage: Storage) -> TokenStore:
    """Returns the token store of a storage: its database, or memory that lives as long as the storage."""
    if isinstance(storage, SqlStorage):
        return _InDatabase(storage)
    with _LOCK:
        return _IN_MEMORY.setdefault(storage, _InMemory())


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
