"""Decisions over HTTP: the service, its security and its dashboard. Needs the extra `nilregret[serve]`."""
