"""Requests that come again: they are answered as they were.

A request that carries an `Idempotency-Key` leaves a note of what it was answered, in the transaction that did it: there
is no moment at which a crash could do it twice, or leave whoever repeats it with another decision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ..study.transaction import Transaction
from .decisions import key_of
from .problems import Problem


class StoredReply(NamedTuple):
    """What a request was answered with: trials, and what else there was to say."""

    numbers: list[int]
    more: Any


class Request(NamedTuple):
    """A request that may come again.

    Attributes:
        key: of the note about it; None where the caller gave none.
        body: a hash of what was asked, where there is a key.
    """

    key: str | None
    body: str

    @classmethod
    def of(cls, kind: str, key: str | None, body: msgspec.Struct) -> Request:
        """Of a kind of request, what the caller calls it, and what it says."""
        if key is None:
            return cls(None, "")
        said = msgspec.json.encode(body, order="deterministic")
        return cls(key_of("key", key), hashlib.sha256(kind.encode() + b"\0" + said).hexdigest())

    @staticmethod
    def hash_of(*parts: Any) -> str | None:
        """Of some entries of a request; None where none of them is given."""
        if all(part is None for part in parts):
            return None
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()

    def answered(self, turn: Transaction) -> StoredReply | None:
        """What it was answered with, if it was.

        Raises:
            Problem: 422, the key was used for something else.
        """
        known = None if self.key is None else turn.read_note(self.key)
        if known is None:
            return None
        body, numbers, more = json.loads(known)
        if body != self.body:
            raise Problem(
                422, "key_reused", "This Idempotency-Key came before with another request, which it names for good. "
                "Take a new key for each new request, and the same one to repeat it.", field="Idempotency-Key",
            )  # fmt: skip
        return StoredReply(numbers, more)

    def note(self, turn: Transaction, numbers: Sequence[int], more: Any = None) -> None:
        """Remember it."""
        if self.key is not None:
            turn.write_note(self.key, msgspec.json.encode([self.body, numbers, more]).decode())
