"""Which program this is, to the bit: what two processes must have in common to compute the same from a record.

Rounding hangs on the library's code, on that of numpy, scipy and Python, on the BLAS library they bring, on the
instructions that it finds in the processor, and on how many threads share a sum.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

STARTED = time.time()  # Unix seconds; what of our code was changed later is not what runs here
SETTINGS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "GOTO_NUM_THREADS",
    "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "OPENBLAS_CORETYPE", "MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES",
)  # fmt: skip


@cache
def program() -> str | None:
    """SHA-256 of all that, hexadecimal; None where it cannot be known.

    Some 20 ms, once in a process.
    """
    own = code(Path(__file__).parent.parent, before=STARTED)
    return None if own is None else _hash([own, *_libraries(), *_machine()])


def code(folder: Path, *, before: float) -> str | None:
    """SHA-256 of all modules in a folder; None where one was changed since, or cannot be read.

    Args:
        folder: with the modules.
        before: Unix seconds.
    """
    hashed = hashlib.sha256()
    try:
        for path in sorted(folder.rglob("*.py")):
            facts = path.stat()
            if max(facts.st_mtime, facts.st_ctime) >= before:
                return None  # upgraded under a running process: it goes on with what it has loaded
            content = path.read_bytes()
            hashed.update(f"{path.relative_to(folder).as_posix()}:{len(content)}:".encode())
            hashed.update(content)
    except OSError:
        return None
    return hashed.hexdigest()


def _libraries() -> list[Any]:
    import numpy as np
    import scipy
    import scipy.linalg
    from threadpoolctl import threadpool_info

    blas = {
        (pool.get("internal_api"), pool.get("version"), pool.get("architecture"))
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    return [sys.version, np.__version__, scipy.__version__, sorted(map(str, blas))]


def _machine() -> list[Any]:
    affinity = getattr(os, "sched_getaffinity", None)
    processors = os.cpu_count() if affinity is None else len(affinity(0))
    said = {name: os.environ.get(name) for name in SETTINGS}
    return [platform.system(), platform.machine(), platform.libc_ver(), _processor(), processors, said]


def _processor() -> str:
    """Its name, and the instructions that it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.partition(":")[0].strip() in wanted)


def _hash(facts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
