"""Idempotent requests: a retry with the same `Idempotency-Key` gets the stored reply.

The reply is stored as a note, in the transaction that records the trials. So no crash can make a request run twice, or
give a retry a different decision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...study.transaction import Transaction
from .decision_ids import key_of
from .problems import Problem


class StoredReply(NamedTuple):
    """The reply to an earlier request: numbers of trials, and further values."""

    numbers: list[int]
    more: Any


class IdempotentRequest(NamedTuple):
    """A request that may be retried.

    Attributes:
        key: of the note with the reply, or None if the request has no `Idempotency-Key`.
        body: hash of the request, or "" without a key.
    """

    key: str | None
    body: str

    @classmethod
    def of(cls, kind: str, key: str | None, body: msgspec.Struct) -> IdempotentRequest:
        """Returns the request of a kind, with its `Idempotency-Key` and its body."""
        if key is None:
            return cls(None, "")
        text = msgspec.json.encode(body, order="deterministic")
        return cls(key_of("key", key), hashlib.sha256(kind.encode() + b"\0" + text).hexdigest())

    @staticmethod
    def hash_of(*parts: Any) -> str | None:
        """Returns a hash of some entries of a request. None if none of them is given."""
        if all(part is None for part in parts):
            return None
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()

    def stored_reply(self, transaction: Transaction) -> StoredReply | None:
        """Returns the reply to the first request with this key. None if there was none.

        Raises:
            Problem: 422, the key belongs to a different request.
        """
        known = None if self.key is None else transaction.read_note(self.key)
        if known is None:
            return None
        body, numbers, more = json.loads(known)
        if body != self.body:
            raise Problem(
                422, "key_reused", "This Idempotency-Key came before with another request, which it names for good. "
                "Take a new key for each new request, and the same one to repeat it.", field="Idempotency-Key",
            )  # fmt: skip
        return StoredReply(numbers, more)

    def store(self, transaction: Transaction, numbers: Sequence[int], more: Any = None) -> None:
        """Stores the reply for retries."""
        if self.key is not None:
            transaction.write_note(self.key, msgspec.json.encode([self.body, numbers, more]).decode())
