"""Python objects that a tuning file names, from modules beside it or installed.

Only what the file says that a user runs is ever imported; a stored study, whose text may come from anybody, names
classes that must be known already.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from .errors import InvalidInput, exception_text


def imported(what: str, reference: str, module: str, name: str, folder: Path) -> Any:
    """The object `name` of `module`; `what` and `reference` are for errors, such as "[objective] `function`"."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever a module of the user's own may raise
        raise InvalidInput(
            f"{what} {reference!r} could not be loaded from {folder}: {exception_text(error)}. The module must lie "
            "beside the TOML file or be installed, with everything it imports."
        ) from error
