"""The files of data sets, in a folder of the user."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...._utils.errors import InvalidInput, MissingData

VARIABLE = "NILREGRET_DATA"


def located(names: Iterable[str], path: str | os.PathLike[str] | None) -> Path | None:
    """Returns the first existing file, or `path` itself if that is a file. None if there is none.

    Args:
        names: names such as "light_cmu/light_cmu.npz", the usual one first.
        path: the file, the folder of the data set, or the folder of all data sets. NILREGRET_DATA unless given.
    """
    place = _place(path)
    if place is None:
        return None
    root, listed = place, list(names)
    places = [root, *(root / Path(name).name for name in listed), *(root / name for name in listed)]
    return next((place for place in places if place.is_file()), None)


def _place(path: str | os.PathLike[str] | None) -> Path | None:
    """Returns the path of the user, or else the folder in NILREGRET_DATA, or None."""
    text = os.environ.get(VARIABLE) if path is None else os.fspath(path)
    return Path(text).expanduser() if text else None


def find(folder: str, files: Sequence[str], path: str | os.PathLike[str] | None, *, origin: str) -> Path:
    """Returns the first of `files` that is in `folder` under `path`, or `path` itself if that is a file.

    Args:
        folder: folder of the data set.
        files: names of the file, the usual one first.
        path: the file, the folder of the data set, or the folder of all data sets. NILREGRET_DATA unless given.
        origin: origin of the data, for the error.

    Raises:
        MissingData: if there is no such file.
    """
    names = [f"{folder}/{file}" for file in files]
    file = located(names, path)
    if file is not None:
        return file
    raise MissingData(
        f"The data set `{folder}` was not found: {looked_for(names, path, 'no path was given')}. {origin} "
        f"Give the folder that holds `{names[0]}` as `path` (on the command line: --data), or name it once and for "
        f"all: export {VARIABLE}=/path/to/folder. What the file must hold is in docs/environments.md."
    )


def looked_for(names: Sequence[str], path: str | os.PathLike[str] | None, nowhere: str) -> str:
    """Returns the places without the files, in words. `nowhere` is the text if no place was named."""
    place = _place(path)
    if place is None:
        return f"{nowhere} and the environment variable {VARIABLE} is not set"
    wanted = " or ".join(f"`{name}`" for name in names)
    return f"looked for {wanted} in `{place}`{f' (from {VARIABLE})' if path is None else ''}"


def arrays(file: Path, names: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Returns the named arrays of an npz file."""
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
