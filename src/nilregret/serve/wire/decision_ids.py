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
import secrets
from typing import final

from ...storage import StoredStudy
from ...storage.notes import owner
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

    def number(self, tenant: str, study: StoredStudy, id: str) -> int:  # noqa: A002 - the name in messages
        """Returns the number of the trial with this id.

        Raises:
            Problem: 404, this study has no such decision.
        """
        raw = _bytes(id)
        if len(raw) == MAC + NUMBER:
            mac = raw[:MAC]
            number = int.from_bytes(self._hidden(mac, raw[MAC:]), "big")
            if hmac.compare_digest(mac, self._mac(tenant, study, number)):
                return number
            number = int.from_bytes(self._hidden_earlier(mac, raw[MAC:]), "big")
            if hmac.compare_digest(mac, self._mac_earlier(tenant, study, number)):
                return number
        raise Problem(404, "no_decision", "There is no decision of this id in this study. Ids are those that "
                      "`POST .../decisions` gave, for the study that was asked.", field="id")  # fmt: skip

    def _mac(self, tenant: str, study: StoredStudy, number: int) -> bytes:
        said = "\0".join((tenant, owner(study), str(number)))
        return hashlib.blake2b(said.encode(), digest_size=MAC, key=self._signing).digest()

    def _mac_earlier(self, tenant: str, study: StoredStudy, number: int) -> bytes:
        """Returns the code of the first services, to whose decisions rewards may still come."""
        said = "\0".join((tenant, owner(study), str(number)))
        return hmac.digest(self._signing, said.encode(), "sha256")[:MAC]

    def _hidden_earlier(self, mac: bytes, number: bytes) -> bytes:
        mask = hmac.digest(self._hiding, mac, "sha256")[:NUMBER]
        return (int.from_bytes(number) ^ int.from_bytes(mask)).to_bytes(NUMBER)

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
