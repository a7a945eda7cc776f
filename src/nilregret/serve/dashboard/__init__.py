"""Pages to watch studies with, written by the server: `ROUTES`. They look and change nothing.

Everything that a page needs is beside this file; it asks nobody else for anything, and runs under a policy that forbids
scripts and styles within a page (`Content-Security-Policy: default-src 'self'`).
"""

from .pages import ROUTES

__all__ = ["ROUTES"]
