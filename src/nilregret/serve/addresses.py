r"""The names of studies in addresses: any name can stand there, also one that browsers and proxies would take for more.

`.` and `..` are steps within an address, `/` ends a part of it, `\` is a slash to some, and what cannot be printed is
refused: such a name, and one that looks like what stands for them, is written as `~~` and the hexadecimal digits of its
UTF-8. `..` is `~~2e2e`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

INSTEAD: Final = "~~"
LONGEST: Final = 8192  # characters in an address; requests have at most 16 KiB with all headers
WRITTEN = re.compile(re.escape(INSTEAD) + "((?:[0-9a-f]{2})+)")


def segment(name: str) -> str:
    """A name as one part of an address."""
    if name in (".", "..") or not name.isprintable() or "/" in name or "\\" in name or name.startswith(INSTEAD):
        return INSTEAD + name.encode("utf-8").hex()
    return quote(name, safe="")


def name_in(segment: str) -> str:
    """The name that such a part, percent-decoded, stands for."""
    written = WRITTEN.fullmatch(segment)
    if written is None:
        return segment
    try:
        return bytes.fromhex(written[1]).decode("utf-8")
    except UnicodeDecodeError:  # of no name; there is no study of this one either
        return segment
