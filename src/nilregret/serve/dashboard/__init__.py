"""The dashboard: pages about studies, rendered by the server (`ROUTES`), and refusals as pages (`error_page`).

A page loads nothing from other hosts. The header `Content-Security-Policy: default-src 'self'` forbids scripts and
styles within a page, so all of them are files in `static/`.
"""

from .pages import ROUTES
from .pages.common import error_page

__all__ = ["ROUTES", "error_page"]
