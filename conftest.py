"""Every code block of the README, the docs and the docstrings is run, in a folder of its own."""

import gc
import os
import sys

# Tests run in one process a core: more threads in each would only fight for them.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("NILREGRET_TRACEBACK", "1")  # Crashes of commands are looked into.
# Without bytecode, as in many containers, each process that a test starts would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import shutil
import tempfile
from pathlib import Path

# Thousands of commits would wait for the disk: files of tests are in memory where there is room for them.
_memory = Path("/dev/shm")
if (
    "TMPDIR" not in os.environ
    and os.access(_memory, os.W_OK)
    and not os.statvfs(_memory).f_flag & os.ST_NOEXEC  # Tests start programs there.
    and shutil.disk_usage(_memory).free > 4e9
):
    os.environ["TMPDIR"], tempfile.tempdir = str(_memory), None

from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.sybil import SybilCollection

settings.register_profile("same examples every time", derandomize=True)
settings.load_profile("same examples every time")


class _Docstrings(PythonDocStringDocument):
    """The docstrings of a module; one without a prompt is not parsed, which takes a second of each process."""

    @staticmethod
    def extract_docstrings(python_source_code):
        return PythonDocStringDocument.extract_docstrings(python_source_code) if ">>>" in python_source_code else ()


def _enter(namespace):
    namespace["_home"], namespace["_folder"] = Path.cwd(), TemporaryDirectory()
    os.chdir(namespace["_folder"].name)


def _leave(namespace):
    os.chdir(namespace["_home"])
    namespace["_folder"].cleanup()


def _enter_page(namespace):
    """Pages and pictures say no importance, whose draws take most of the time."""
    _enter(namespace)
    namespace["_patch"] = patch = pytest.MonkeyPatch()
    patch.setattr("nilregret.study.importance.DRAWS", 4)
    patch.setattr("nilregret.study.importance.POINTS", 256)


def _leave_page(namespace):
    namespace["_patch"].undo()
    _leave(namespace)


_pages = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], setup=_enter_page, teardown=_leave_page
)
_docstrings = Sybil(
    parsers=[DocTestParser()],
    patterns=[f"src/nilregret/{'*/' * depth}*.py" for depth in range(6)],
    exclude="src/nilregret/plots/*.py",
    document_types={".py": _Docstrings},
    setup=_enter,
    teardown=_leave,
)
_pictures = Sybil(
    parsers=[DocTestParser()],
    patterns=["src/nilregret/plots/*.py"],
    document_types={".py": _Docstrings},
    setup=_enter_page,
    teardown=_leave_page,
)


def pytest_collection_finish():
    """What collecting has made stays, and the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


pytest_collect_file = SybilCollection([_pages, _docstrings, _pictures]).pytest()
