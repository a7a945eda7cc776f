"""Tables beside the studies, which only a service has: who may call it.

They are made at the first write to them and no study needs them, so the format of the studies' tables does not change
with them: a version that knows nothing of them goes on with the studies.
"""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sql


class Beside(NamedTuple):
    """The tables of a service."""

    metadata: sql.MetaData
    tokens: sql.Table
    sessions: sql.Table


def beside(prefix: str = "") -> Beside:
    """The tables under these names, as of `tables.tables`."""
    metadata = sql.MetaData()
    tokens = sql.Table(
        f"{prefix}tokens",
        metadata,
        sql.Column("id", sql.Text, primary_key=True),  # which names a token and opens nothing
        sql.Column("hash", sql.Text, nullable=False, unique=True),  # SHA-256, hexadecimal; the token is nowhere
        sql.Column("role", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("about", sql.Text, nullable=False),
        sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds
        sql.Column("expires_at", sql.Double),  # None: never
        sql.Column("revoked_at", sql.Double),  # None: not
    )
    sessions = sql.Table(
        f"{prefix}sessions",
        metadata,
        sql.Column("hash", sql.Text, primary_key=True),  # of the cookie, as of a token
        sql.Column("token", sql.Text, nullable=False),  # its id: who revokes it ends its sessions
        sql.Column("expires_at", sql.Double, nullable=False),
    )
    return Beside(metadata, tokens, sessions)
