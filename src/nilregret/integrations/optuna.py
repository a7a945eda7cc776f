"""A sampler for Optuna, and the import of Optuna's studies (the extra `optuna`)."""

from __future__ import annotations

try:
    import optuna  # noqa: F401 - checks that Optuna is installed
except ImportError as _error:
    from ..errors import MissingExtra

    raise MissingExtra(
        "`nilregret.integrations.optuna` needs Optuna, which is not installed: pip install 'nilregret[optuna]'."
    ) from _error

from .optuna_import import import_study
from .sampler import NoRegretSampler

__all__ = ["NoRegretSampler", "import_study"]
