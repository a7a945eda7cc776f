r"""Names of studies in URLs, written so that browsers and proxies leave any name as it is.

In a path `.` and `..` are steps, `/` ends a part, some programs read `\` as a slash, and unprintable characters are
refused. A name with any of these is written as `~~` and the hexadecimal digits of its UTF-8. A name that begins with
`~~` is written in the same way. For example, `..` is `~~2e2e`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

INSTEAD: Final = "~~"
NAME_PATTERN: Final = r"^([^/\\\x00-\x1f\x7f-\x9f]{1,200}|~~([0-9a-f]{2}){1,800})$"
NEW_PATTERN: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"  # of a new name, for programs, as the others
ID_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
WRITTEN = re.compile(re.escape(INSTEAD) + "((?:[0-9a-f]{2})+)")


def segment(name: str) -> str:
    """Returns a name as one part of a path."""
    if name in (".", "..") or not name.isprintable() or "/" in name or "\\" in name or name.startswith(INSTEAD):
        return INSTEAD + name.encode("utf-8").hex()
    return quote(name, safe="")


def name_in(segment: str) -> str:
    """Returns the name that a percent-decoded part of a path stands for."""
    written = WRITTEN.fullmatch(segment)
    if written is None:
        return segment
    try:
        return bytes.fromhex(written[1]).decode("utf-8")
    except UnicodeDecodeError:  # not the writing of a name, so no study has this one
        return segment
