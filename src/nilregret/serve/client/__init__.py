"""Studies that a decision service keeps (`nilregret serve`), for programs that are elsewhere: the verbs of `Study`.

Nothing is installed for it: HTTP is the standard library's. What is sent again after a failed connection is never done
twice: every question carries an `Idempotency-Key`, and an answer that is told again is the same answer.
"""

from .awaited import AsyncClient, AsyncRemoteStudy
from .remote import Client, RemoteStudy

__all__ = ["AsyncClient", "AsyncRemoteStudy", "Client", "RemoteStudy"]
