"""Imports of Python objects that a tuning file names, from modules beside the file or installed ones.

Only a tuning file, which the user runs on purpose, can make the program import a module. A stored study may come from
anybody, so it can only name classes that are already registered.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, exception_text


def imported(what: str, reference: str, module: str, name: str, folder: Path) -> Any:
    """Returns the object `name` of `module`.

    Args:
        what: place of the reference for errors, such as "[objective] `function`".
        reference: text of the reference, for errors.
        module: name of the module.
        name: name of the object.
        folder: folder of the tuning file.

    Raises:
        InvalidInput: the module or the object cannot be loaded.
    """
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # A module of the user may raise anything.
        raise InvalidInput(
            f"{what} {reference!r} could not be loaded from {folder}: {exception_text(error)}. The module must lie "
            "beside the TOML file or be installed, with everything it imports."
        ) from error
