"""A PostgreSQL database, through psycopg.

Nothing outlives a transaction: no session locks, no prepared statements, no settings. So a pool that hands out another
connection for each transaction (PgBouncer) works. Our tables have names with a prefix, such as `nilregret_trials`,
because the database may have tables of other programs.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import shown
from ..errors import InvalidInput, MissingExtra, StorageError
from .database import LOCK_SECONDS, Database, newer, older
from .tables import FORMAT, Tables, tables

SCHEMES = ("postgresql:", "postgresql+psycopg:", "postgres:")
PREFIX = "nilregret_"
MARK = f"{PREFIX}mark"  # A table of one row, with the format.
OLD_MARKS = {"nilregret_format", "noregret_format"}  # Such tables of versions before 1.0.
KEY = 0x6E726774  # "nrgt", the key of the lock under which tables are made.
# Settings end with the transaction. `lock_timeout` limits the wait for another writer.
BEGIN = f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS:.0f}s'"
BEGIN_WRITING = f"{BEGIN}; SET LOCAL synchronous_commit = off"
# Readers see one moment in all statements. Otherwise a change could be read without a trial of the same commit.
BEGIN_READING = BEGIN.replace("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", 1)
# A log entry that is committed with the server's own settings.
FLUSH = "SELECT pg_logical_emit_message(true, 'nilregret', '')"
COMMIT_AND_FLUSH = f"COMMIT; {FLUSH}"
CONNECT_SECONDS = 10  # Seconds to wait for a server that does not answer.


@final
class PostgresDatabase(Database):
    """A database of a PostgreSQL server.

    Args:
        url: see `SqlStorage`.
    """

    def __init__(self, url: str) -> None:
        try:
            parsed = sql.make_url(url).set(drivername="postgresql+psycopg")
            self.engine = sql.create_engine(
                parsed, isolation_level="AUTOCOMMIT", pool_size=5, max_overflow=100, connect_args=_options(parsed)
            )
        except (exc.ArgumentError, ValueError) as error:
            raise InvalidInput(
                f"`storage` is {shown(url)}, which is no URL of a database: write "
                "'postgresql://user:password@host:5432/database'."
            ) from error
        except ImportError as error:
            raise MissingExtra(
                f"PostgreSQL needs psycopg, which is not here ({error}): pip install 'nilregret[postgresql]'."
            ) from error
        sql.event.listen(self.engine, "connect", lambda _, record: record.info.update(fresh=True))
        self.url = parsed.render_as_string(hide_password=True)
        self.place = parsed.render_as_string(hide_password=False)
        self.tables = TABLES
        self._process = os.getpid()
        self._can_flush: bool | None = None
        weakref.finalize(self, self.engine.dispose)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sql.Connection]:
        """Opens a transaction. A writer locks the rows that it reads for writing.

        A commit that waits for the disk holds its locks meanwhile, so writers to one study would wait for each other's
        disk. Instead, a writer commits without waiting, which releases the locks. It then waits for a flush of
        everything written so far, which the server does for many writers at once. Later entries of the log, such as
        events that build on this one, cannot reach the disk before it.
        """
        driver = self._driver()
        flushed = write and self._flushes(driver)
        with self._translate_errors(driver):
            begin = BEGIN_WRITING if flushed else BEGIN if write else BEGIN_READING
            connection, cursor = self._connect(begin, driver)
            try:
                yield connection
                cursor.execute(COMMIT_AND_FLUSH if flushed else "COMMIT")
            except BaseException:
                with suppress(driver.Error):  # A lost connection cannot roll back.
                    cursor.execute("ROLLBACK")
                raise
            finally:
                # SQLAlchemy itself invalidates a connection that was lost in the middle.
                if not connection.invalidated and connection.connection.dbapi_connection.closed:
                    connection.invalidate()
                connection.close()

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the rows of one statement, in one round trip and without a transaction around it."""
        driver = self._driver()
        with self._translate_errors(driver):
            connection, cursor = self._connect(statement, driver, parameters)
            with connection:
                found: Sequence[Any] = cursor.fetchall()
                return found

    def _driver(self) -> Any:
        if self._process != os.getpid():
            self.engine.dispose(close=False)  # These connections belong to the parent process.
            self._process = os.getpid()
        return self.engine.dialect.dbapi

    @contextmanager
    def _translate_errors(self, driver: Any) -> Iterator[None]:
        """Turns errors of the database into `StorageError`s."""
        try:
            yield
        except (exc.DBAPIError, driver.Error) as error:
            own = error.orig if isinstance(error, exc.DBAPIError) else error
            cause = str(own).strip().split("\n")[0]
            lost = isinstance(own, driver.OperationalError | driver.InterfaceError)
            raise StorageError(
                f"The storage {self.url} could not be used: {cause}. {_remedy(cause, lost=lost)}"
            ) from error

    def _connect(self, how: str, driver: Any, parameters: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        """Returns a connection that answers and its cursor, after a first statement.

        Connections that the server has closed are dropped.
        """
        while True:
            connection = self.engine.connect()
            cursor = connection.connection.cursor()
            try:
                cursor.execute(how, parameters)
            except driver.OperationalError:
                fresh = connection.info.pop("fresh", False)
                connection.invalidate()
                connection.close()
                if fresh:
                    raise
            except BaseException:  # After an interrupt the transaction may have begun.
                connection.invalidate()
                connection.close()
                raise
            else:
                connection.info.pop("fresh", None)
                return connection, cursor

    def _flushes(self, driver: Any) -> bool:
        """Returns whether the server allows the record that is flushed. The answer is cached."""
        if self._can_flush is None:
            with self.transaction(write=False) as connection:
                try:
                    connection.connection.cursor().execute(FLUSH)
                    self._can_flush = True
                except driver.ProgrammingError:
                    self._can_flush = False
        return self._can_flush

    def look_only(self) -> bool:
        """Returns False, because tables of an earlier version are not read as they are."""
        return False

    def close(self) -> None:
        """Closes files and connections. The next call opens them again."""
        self.engine.dispose()

    def has_tables(self, connection: sql.Connection) -> bool:
        """Returns whether our tables are there."""
        there = set(sql.inspect(connection).get_table_names())
        ours = self.tables.metadata.tables.keys() | {MARK}
        if MARK not in there and there & OLD_MARKS:
            raise older(self.url)
        if not there & ours:
            return False
        inspected = sql.inspect(connection)
        columns = {
            name: {column["name"] for column in inspected.get_columns(name)} if name in changed else ()
            for name in there
            for changed in [(self.tables.studies.name, self.tables.trials.name)]
        }
        self.lacks = self.missing_of(columns)
        ours -= {self.tables.steps.name} if len(self.lacks) > 1 else set()
        if not ours <= there:
            raise StorageError(
                f"{self.url} has others of our tables, no {min(ours - there)!r}: it has been damaged. Restore a copy."
            )
        known = connection.exec_driver_sql(f"SELECT max(format) FROM {MARK}").scalar_one()
        if type(known) is not int or known < 1:
            raise StorageError(f"{self.url} has the format {shown(known)} in {MARK}: it has been damaged.")
        if known > FORMAT:
            raise newer(self.url, known)
        return True

    def mark(self, connection: sql.Connection) -> None:
        """Marks new tables as ours, with their format."""
        connection.exec_driver_sql(f"CREATE TABLE {MARK} (format integer NOT NULL)")
        connection.exec_driver_sql(f"INSERT INTO {MARK} VALUES ({FORMAT})")

    def lock_tables(self, connection: sql.Connection) -> None:
        """Takes an advisory lock that ends with the transaction."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({KEY})")

    def check_integrity(self, connection: sql.Connection) -> None:
        """Returns at once, because a server checks its own files."""

    def gone(self, name: str) -> str:
        """Returns a sentence that says why a study may no longer be there."""
        return (
            f"{self.url} no longer holds the study {name!r} that was opened: it has been deleted, or the database is "
            "another. Nothing was written. Open the study anew to work with what is there now."
        )


TABLES: Tables = tables(PREFIX)


def _options(url: sql.URL) -> dict[str, Any]:
    given: dict[str, Any] = {"prepare_threshold": None}
    return given if "connect_timeout" in url.query else given | {"connect_timeout": CONNECT_SECONDS}


def _remedy(cause: str, *, lost: bool) -> str:
    if "lock timeout" in cause:
        return f"Others have held the study for more than {LOCK_SECONDS:.0f} s; try again, or stop who holds it."
    if "permission denied" in cause or "read-only" in cause:
        return "The user or the server may not write there; nothing was recorded."
    if "statement pooling" in cause:
        return "Set the pooler's `pool_mode` to transaction: a decision is a transaction of several statements."
    if "No space left" in cause or "disk full" in cause:
        return "Make room on the server's disk; nothing of this call was recorded, and all that was before is there."
    if "does not exist" in cause:
        return "Make it first, or correct the URL; somebody may also have removed it since it was opened."
    if lost:
        return (
            "The server cannot be reached, or ended the connection. Check that it runs and the URL is right, and try "
            "again; whether the call on which the connection broke was recorded, the list of trials says."
        )
    return "What was recorded before is still there."
