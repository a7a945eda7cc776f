"""Storage of tokens and sessions, as hashes: in the database of the studies, or in memory."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, final

import sqlalchemy as sql

from ...storage import SqlStorage, Storage


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
