"""The dashboard: read-only pages about studies, rendered by the server (`ROUTES`).

A page loads nothing from other hosts. The header `Content-Security-Policy: default-src 'self'` forbids scripts and
styles within a page, so all of them are files in `static/`.
"""

from .pages import ROUTES

__all__ = ["ROUTES"]
