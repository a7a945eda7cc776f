"""Client of a decision service (`nilregret serve`) with the verbs of `Study`. Needs the extra `nilregret[client]`.

Retries are idempotent: every request for a decision carries an `Idempotency-Key`, and a reward that is sent again is
the same reward.
"""

from .awaited import AsyncClient, AsyncRemoteStudy
from .remote import Client, RemoteStudy

__all__ = ["AsyncClient", "AsyncRemoteStudy", "Client", "RemoteStudy"]
