"""Downloads: a file is written in a reading thread and sent in parts, so that no answer is held in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from starlette.responses import StreamingResponse

from ..study.study import Study
from .worker import StudyWorker

PART = 1 << 16  # bytes in one part of a file


async def download(
    worker: StudyWorker, name: str, media: str, write: Callable[[Study, Path], object]
) -> StreamingResponse:
    """Returns a file as a response. The file is gone when it is closed, also if the client leaves.

    Args:
        worker: of the study.
        name: of the file, for the client.
        media: type of the file.
        write: writes the file of a study to a path.
    """

    def written(study: Study) -> BinaryIO:
        with tempfile.NamedTemporaryFile(prefix="nilregret-", suffix=Path(name).suffix, delete=False) as file:
            path = Path(file.name)
        try:
            write(study, path)
            return path.open("rb")
        finally:
            path.unlink()

    named = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_parts(await worker.read(written)), media_type=media, headers=named)


def _parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(PART):
            yield part
