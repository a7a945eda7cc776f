"""A sampler and a pruner for Optuna, and the import of Optuna's studies (the extra `optuna`)."""

from ..errors import needs

with needs("`nilregret.integrations.optuna`", "Optuna", "optuna"):
    import optuna  # noqa: F401 - checks that Optuna is installed

from .optuna_import import import_study
from .pruner import NoRegretPruner
from .sampler import NoRegretSampler

__all__ = ["NoRegretPruner", "NoRegretSampler", "import_study"]
