"""Where data sets lie: in a folder of the user's, never in the library."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput, MissingData

VARIABLE = "NOREGRET_DATA"


def find(folder: str, files: Sequence[str], path: str | os.PathLike[str] | None, *, origin: str) -> Path:
    """The first of `files` that is in `folder` under `path`, or `path` itself, if that is a file.

    Args:
        folder: of the data set.
        files: its names, the usual one first.
        path: the file itself, the data set's folder, or the folder of all data sets; NOREGRET_DATA unless given.
        origin: where the data come from, for the error.
    """
    given = os.environ.get(VARIABLE) if path is None else os.fspath(path)
    if not given:
        looked = f"no path was given and the environment variable {VARIABLE} is not set"
    else:
        root = Path(given).expanduser()
        if root.is_file():
            return root
        for candidate in (place / file for place in (root, root / folder) for file in files):
            if candidate.is_file():
                return candidate
        wanted = " or ".join(f"`{folder}/{file}`" for file in files)
        looked = f"looked for {wanted} in `{root}`{f' (from {VARIABLE})' if path is None else ''}"
    raise MissingData(
        f"The data set `{folder}` was not found: {looked}. The library holds no data. {origin} "
        f"Put the file into a folder, as `{folder}/{files[0]}`, and give that folder as `path`, or name it once "
        f"and for all: export {VARIABLE}=/path/to/folder. What the file must hold is in docs/environments.md."
    )


def arrays(file: Path, names: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """The named arrays of an npz file."""
    try:
        with np.load(file, allow_pickle=False) as held:
            missing = [name for name in names if name not in held.files]
            if missing:
                raise InvalidInput(
                    f"`{file}` holds no array {', '.join(missing)}, only {', '.join(held.files) or 'nothing'}. "
                    "Usually it is the file of another data set, or of an earlier conversion."
                )
            return [held[name] for name in names]
    except (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"`{file}` is not an npz file of plain arrays ({error}).") from error
