"""Files that users name: places to write to, and contents as bytes, also of gzip, and as text of known encoding."""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ..errors import InvalidInput
from .checks import shown

# Byte order marks and the encodings that they announce. That of UTF-32 begins with that of UTF-16, so it comes first.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GZIP = b"\x1f\x8b"
PICTURES = (".png", ".pdf", ".svg")
PAGE = ".html"
Place = TypeVar("Place", str | Path | None, Path)
SAVE = (
    'Save it as UTF-8: in a spreadsheet as "CSV UTF-8", in an editor by "Save with encoding", in a shell by '
    "`iconv -f CP1252 -t UTF-8`."
)


def check_picture(path: Place, *, interactive: bool | None = None) -> Place:
    """Returns the path of a picture, or raises `InvalidInput` before any work for it if none can be saved there.

    Args:
        path: of the picture, or None to save nothing.
        interactive: True for a page, False for a picture or a page, None for a picture.
    """
    if path is not None:
        drawn: tuple[str, ...] = () if interactive is True else PICTURES
        check_place("picture", path, drawn if interactive is None else (*drawn, PAGE))
    return path


def check_place(what: str, path: str | Path, endings: Sequence[str] = ()) -> Path:
    """Returns the path of a file to write, before any work for it.

    Raises:
        InvalidInput: it has none of some endings, its folder does not exist, or it cannot be written.
    """
    place = Path(path)
    if endings and place.suffix.lower() not in endings:
        listed = "one of " * (len(endings) > 1) + ", ".join(endings)
        raise InvalidInput(f"The {what} {shown(str(path))} must end in {listed}.")
    try:
        folder, kind = kind_of(place.parent), kind_of(place)
    except (OSError, ValueError) as error:  # A path with a NUL is a `ValueError`.
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"The {what} {shown(str(path))} cannot be written: {why}.") from error
    if folder != stat.S_IFDIR:
        raise InvalidInput(f"The {what} goes to the folder {str(place.parent)!r}, which does not exist: make it first.")
    if kind == stat.S_IFDIR or not os.access(place if kind else place.parent, os.W_OK):
        why = "it is a folder" if kind == stat.S_IFDIR else "permission denied"
        raise InvalidInput(f"The {what} {shown(str(path))} cannot be written: {why}.")
    return place


def kind_of(path: Path) -> int:
    """Returns the kind of what is at a path, such as `stat.S_IFREG` for a file, and 0 if nothing is there.

    Raises:
        OSError: the path cannot be looked at. `Path.exists` hides that since Python 3.14.
        ValueError: the path has a NUL.
    """
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def bytes_of(path: str | Path) -> bytes:
    """Returns the content of a file, unpacked if it is gzip.

    Raises:
        InvalidInput: the file cannot be read.
    """
    try:
        data = Path(path).read_bytes()
        return gzip.decompress(data) if data.startswith(GZIP) else data
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {shown(str(path))}, so it cannot be read.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except (EOFError, zlib.error, ValueError) as error:  # A path with a NUL is a `ValueError`.
        raise InvalidInput(f"{path} cannot be read: {error}.") from error


def text_in(data: bytes, name: str | Path) -> str:
    """Returns bytes as text: UTF-8, or what a byte order mark announces.

    Args:
        data: content of a file.
        name: of the file, for errors.

    Raises:
        InvalidInput: the bytes are in another encoding. None is guessed, because a wrong guess misreads in silence.
    """
    encoding = next((encoding for mark, encoding in MARKS if data.startswith(mark)), "utf-8")
    try:
        # In UTF-8 a NUL byte is a NUL. Files that are no text have many, and other bytes that are not UTF-8.
        text = "\0" if encoding.startswith("utf-8") and b"\0" in data else data.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{data[error.start : error.start + 1].hex()} in line {data.count(10, 0, error.start) + 1}"
        raise InvalidInput(
            f"{name} cannot be read: it is not {encoding.removesuffix('-sig').upper()} ({wrong}). "
            f"Usually a program saved it in an older encoding, such as Latin-1. {SAVE}"
        ) from None
    if "\0" in text:
        raise InvalidInput(
            f"{name} cannot be read: it has NUL characters. Usually it is UTF-16 without a byte order mark, or no text "
            f"at all. {SAVE}"
        )
    return text


def text_of(path: str | Path) -> str:
    """Returns the text of a file (see `bytes_of` and `text_in`)."""
    return text_in(bytes_of(path), path)
