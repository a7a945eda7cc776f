"""Tables of a service beside the studies: the tokens that may call it, and their sessions.

The first write to them makes the tables, and no study needs them. So the format of the studies' tables does not change
with them, and versions that do not know them can still use the studies.
"""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sql


class AuthTables(NamedTuple):
    """The tables of a service."""

    metadata: sql.MetaData
    tokens: sql.Table
    sessions: sql.Table


def auth_tables(prefix: str = "") -> AuthTables:
    """Returns the tables.

    Args:
        prefix: of their names (see `tables.tables`).
    """
    metadata = sql.MetaData()
    tokens = sql.Table(
        f"{prefix}tokens",
        metadata,
        sql.Column("id", sql.Text, primary_key=True),  # It names a token and gives no access.
        sql.Column(
            "hash", sql.Text, nullable=False, unique=True
        ),  # SHA-256, hexadecimal. The token itself is not stored.
        sql.Column("role", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("about", sql.Text, nullable=False),
        sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds.
        sql.Column("expires_at", sql.Double),  # NULL means never.
        sql.Column("revoked_at", sql.Double),  # NULL means not revoked.
    )
    sessions = sql.Table(
        f"{prefix}sessions",
        metadata,
        sql.Column("hash", sql.Text, primary_key=True),  # Of the cookie, as of a token.
        sql.Column("token", sql.Text, nullable=False),  # Its id. Revoking a token ends its sessions.
        sql.Column("expires_at", sql.Double, nullable=False),
    )
    return AuthTables(metadata, tokens, sessions)
