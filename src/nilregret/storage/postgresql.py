"""A PostgreSQL database, through psycopg.

Nothing outlives a transaction: no session locks, no prepared statements, no settings. So it works behind a pool of
connections that hands out another one for each transaction (PgBouncer). Our two tables stand beside others' under the
names `nilregret_studies` and `nilregret_trials`.
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
from .._utils.errors import InvalidInput, MissingExtra, StorageError
from .database import LOCK_SECONDS, Database, newer
from .notes import notes_table
from .tables import FORMAT, Tables, tables

SCHEMES = ("postgresql:", "postgresql+psycopg:", "postgres:")
PREFIX = "nilregret_"
OLD_PREFIX = "noregret_"  # of version 0.2
MARK = f"{PREFIX}format"  # a table of one row, with the format
KEY = 0x6E726774  # "nrgt": of the lock under which tables are made
# Settings end with the transaction. `lock_timeout` is of a wait for another writer.
BEGIN = f"BEGIN; SET LOCAL lock_timeout = '{LOCK_SECONDS:.0f}s'"
BEGIN_WRITING = f"{BEGIN}; SET LOCAL synchronous_commit = off"
FLUSH = (
    "SELECT pg_logical_emit_message(true, 'nilregret', '')"  # a record of its own, committed as the server is set to
)
COMMIT_AND_FLUSH = f"COMMIT; {FLUSH}"
CONNECT_SECONDS = 10  # how long to wait for a server that does not answer


@final
class Server(Database):
    """A database of a PostgreSQL server.

    Args:
        url: as of `SqlStorage`.
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
        self.tables, self.notes = TABLES, NOTES
        self._process = os.getpid()
        self._can_flush: bool | None = None
        weakref.finalize(self, self.engine.dispose)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sql.Connection]:
        """See `Database`; a writer locks the rows that it reads for it.

        A commit that waits for the disk holds its locks meanwhile, so that writers to one study would wait for one
        another's disk. Instead a writer commits without waiting, which gives the lock away, and then waits for a flush
        of all that was written so far, which the server does for many at once. What comes later in the log, others'
        events that build on this one included, cannot reach the disk before it.
        """
        driver = self._driver()
        flushed = write and self._flushes(driver)
        with self._in_words(driver):
            connection, cursor = self._begun(BEGIN_WRITING if flushed else BEGIN, driver)
            try:
                yield connection
                cursor.execute(COMMIT_AND_FLUSH if flushed else "COMMIT")
            except BaseException:
                with suppress(driver.Error):  # a connection that is lost has none
                    cursor.execute("ROLLBACK")
                raise
            finally:
                if connection.connection.dbapi_connection.closed:
                    connection.invalidate()
                connection.close()

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """See `Database`; the server is asked once, and not for a transaction around it."""
        driver = self._driver()
        with self._in_words(driver):
            connection, cursor = self._begun(statement, driver, parameters)
            with connection:
                found: Sequence[Any] = cursor.fetchall()
                return found

    def _driver(self) -> Any:
        if self._process != os.getpid():
            self.engine.dispose(close=False)  # connections of the process that this one was forked from
            self._process = os.getpid()
        return self.engine.dialect.dbapi

    @contextmanager
    def _in_words(self, driver: Any) -> Iterator[None]:
        """Errors of the database as `StorageError`s."""
        try:
            yield
        except (exc.DBAPIError, driver.Error) as error:
            own = error.orig if isinstance(error, exc.DBAPIError) else error
            cause = str(own).strip().split("\n")[0]
            lost = isinstance(own, driver.OperationalError | driver.InterfaceError)
            raise StorageError(
                f"The storage {self.url} could not be used: {cause}. {_remedy(cause, lost=lost)}"
            ) from error

    def _begun(self, how: str, driver: Any, parameters: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        """A connection that answers, after a first statement; those that the server has closed are thrown away."""
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
            except BaseException:  # an interrupt, when the transaction may have begun
                connection.invalidate()
                connection.close()
                raise
            else:
                connection.info.pop("fresh", None)
                return connection, cursor

    def _flushes(self, driver: Any) -> bool:
        """Whether the server lets us write the record that is flushed; found out once."""
        if self._can_flush is None:
            with self.transaction(write=False) as connection:
                try:
                    connection.connection.cursor().execute(FLUSH)
                    self._can_flush = True
                except driver.ProgrammingError:
                    self._can_flush = False
        return self._can_flush

    def close(self) -> None:
        """See `Database`."""
        self.engine.dispose()

    def format(self, connection: sql.Connection) -> int:
        """See `Database`."""
        there = self._renamed(connection, set(sql.inspect(connection).get_table_names()))
        ours = {table.name for table in self.tables.metadata.tables.values()} | {MARK}
        if not there & ours:
            return 0
        if not ours <= there:
            raise StorageError(
                f"{self.url} has others of our tables, no {min(ours - there)!r}: it has been damaged. Restore a copy."
            )
        known = connection.exec_driver_sql(f"SELECT max(format) FROM {MARK}").scalar_one()
        if type(known) is not int or known < 1:
            raise StorageError(f"{self.url} has the format {shown(known)} in {MARK}: it has been damaged.")
        if known > FORMAT:
            raise newer(self.url, known, FORMAT)
        return known

    def _renamed(self, connection: sql.Connection, there: set[str]) -> set[str]:
        """Gives the tables of version 0.2 the names of today; returns the names of all tables."""
        old = sorted(name for name in there if name.startswith(OLD_PREFIX))
        if f"{OLD_PREFIX}studies" not in old or self.tables.studies.name in there:
            return there
        for name in old:  # another process may have been faster
            connection.exec_driver_sql(
                f"ALTER TABLE IF EXISTS {name} RENAME TO {PREFIX}{name.removeprefix(OLD_PREFIX)}"
            )
        return there.difference(old) | {PREFIX + name.removeprefix(OLD_PREFIX) for name in old}

    def mark(self, connection: sql.Connection, format: int) -> None:  # noqa: A002 - as in `Database`
        """See `Database`."""
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {MARK} (format integer NOT NULL)")
        connection.exec_driver_sql(f"DELETE FROM {MARK}")
        connection.exec_driver_sql(f"INSERT INTO {MARK} VALUES ({format})")

    def columns(self, connection: sql.Connection, table: sql.Table) -> set[str]:
        """See `Database`."""
        return {column["name"] for column in sql.inspect(connection).get_columns(table.name)}

    def lock_tables(self, connection: sql.Connection) -> None:
        """A lock that ends with the transaction."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({KEY})")

    def check_whole(self, connection: sql.Connection) -> None:
        """A server looks after its files itself."""

    def gone(self, name: str) -> str:
        """See `Database`."""
        return (
            f"{self.url} no longer holds the study {name!r} that was opened: it has been deleted, or the database is "
            "another. Nothing was written. Open the study anew to work with what is there now."
        )


TABLES: Tables = tables(PREFIX)
NOTES: sql.Table = notes_table(PREFIX)


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
