"""Decisions over HTTP: the service, its security and its dashboard; needs the extra `nilregret[serve]`."""
