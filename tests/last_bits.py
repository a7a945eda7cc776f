"""Another C library in process: its exp, log, log1p, sin, cos and normal quantile round some last bits otherwise."""

import math
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.special


def _moved(function):
    def call(*args, **kwargs):
        out = kwargs.pop("out", None)
        value = np.asarray(function(*args, **kwargs))
        if value.dtype == np.float64:
            bits = np.ascontiguousarray(value).view(np.int64).reshape(value.shape)
            odd = ((bits * 2654435761) >> 17) & 1  # half of all values, always the same ones
            exact = ~np.isfinite(value) | (value == 0.0) | (value == 1.0)
            value = np.where(exact, value, (bits + odd).view(np.float64))
        if out is None:
            return value[()] if isinstance(function, np.ufunc) else value.item()
        (out[0] if isinstance(out, tuple) else out)[...] = value
        return out

    return call


@contextmanager
def last_bits_moved():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("exp", "log", "log1p", "sin", "cos"):
            patch.setattr(np, name, _moved(getattr(np, name)))
            patch.setattr(math, name, _moved(getattr(math, name)))
        patch.setattr(scipy.special, "ndtri", _moved(scipy.special.ndtri))
        yield
