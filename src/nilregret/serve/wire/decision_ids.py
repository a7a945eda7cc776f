"""Public ids of decisions, which nobody can guess and from which the service computes the trial.

An id holds the hidden number of the trial, and 128 bits of BLAKE2b over tenant, study and number. The hash is keyed
with a secret of the installation: a message authentication code (RFC 7693) in a third of the time of an HMAC. So the
service needs no look-up to verify an id, and every server process knows the ids of the others. The id of one decision
says nothing about the ids of other decisions.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import msgspec

from ...storage import StoredStudy
from ...storage.rows import owner
from ...study.transaction import Transaction
from .problems import Problem

SECRET = "secret"
MAC, NUMBER = 16, 8  # bytes
LONGEST = 64  # characters; longer texts are no ids


@final
class Ids:
    """The decision ids of one installation.

    Args:
        secret: at least 256 bits, hexadecimal.
    """

    def __init__(self, secret: str) -> None:
        key = bytes.fromhex(secret)
        self._signing, self._hiding = (hmac.digest(key, part, "sha256") for part in (b"sign", b"hide"))

    def of(self, tenant: str, study: StoredStudy, number: int) -> str:
        """Returns the id of a trial."""
        mac = self._mac(tenant, study, number)
        return base64.urlsafe_b64encode(mac + self._hidden(mac, number.to_bytes(NUMBER, "big"))).decode()

    def which(self, tenant: str, study: StoredStudy, text: str) -> int | str:
        """Returns the number of the trial with this id. Any other text is an event of the caller, and is returned."""
        raw = _bytes(text)
        if len(raw) == MAC + NUMBER:
            mac = raw[:MAC]
            number = int.from_bytes(self._hidden(mac, raw[MAC:]), "big")
            if hmac.compare_digest(mac, self._mac(tenant, study, number)):
                return number
        return text

    def _mac(self, tenant: str, study: StoredStudy, number: int) -> bytes:
        said = "\0".join((tenant, owner(study), str(number)))
        return hashlib.blake2b(said.encode(), digest_size=MAC, key=self._signing).digest()

    def _hidden(self, mac: bytes, number: bytes) -> bytes:
        mask = hashlib.blake2b(mac, digest_size=NUMBER, key=self._hiding).digest()
        return (int.from_bytes(number) ^ int.from_bytes(mask)).to_bytes(NUMBER)


def new_secret() -> str:
    """Returns a secret for a new installation."""
    return secrets.token_hex(32)


def key_of(kind: str, text: str) -> str:
    """Returns the key of a note about a name that a caller chose. All keys of a kind have the same length."""
    return f"{kind}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _bytes(id: str) -> bytes:  # noqa: A002 - the name in messages
    if len(id) > LONGEST or not id.isascii():
        return b""
    try:
        return base64.b64decode(id.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


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

    @property
    def keys(self) -> list[str]:
        """The keys of the notes that the request reads."""
        return [] if self.key is None else [self.key]

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
