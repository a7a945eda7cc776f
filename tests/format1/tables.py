"""SQLite files as SQL text, which shows in a diff and is small."""

import contextlib
import sqlite3
from pathlib import Path

FOLDER = Path(__file__).parent
MARKS = ("application_id", "user_version")


def dump(database, path):
    """Writes a database as SQL, with the marks in its header."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        marks = [f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};" for name in MARKS]
        path.write_text("\n".join([*marks, *connection.iterdump()]) + "\n")


def restored(name, folder):
    """Makes the database of a file again, and returns its URL."""
    database = Path(folder) / f"{name}.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript((FOLDER / f"{name}.sql").read_text())
    return f"sqlite:///{database}"
