"""The health of a study: what waits, comes late, has changed or overruns a budget, and nothing where all is well."""

from __future__ import annotations

from typing import Any

from ....study.study import Study
from .changes import changes
from .constraints import constraints_view
from .delays import delays


def health(study: Study, *, now: float) -> dict[str, Any]:
    """Returns the parts of the page that say something, and the names of the others.

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
    """
    waits, changed, limits = delays(study, now=now), changes(study), constraints_view(study)
    waiting = waits["pending_count"] or waits["late_count"] or waits["abandoned_count"]
    moved = bool(changed["restarts"])
    weighed = moved or changed["picture"]["kind"] != "none"
    quiet = [
        name for name, shown in (("late answers", waiting), ("changes", weighed), ("constraints", limits)) if not shown
    ]
    return {
        "waits": waits if waiting else None, "changes": changed if weighed else None, "budgets": limits,
        "said": bool(waiting or weighed or limits), "quiet": " and ".join(quiet),
    }  # fmt: skip
