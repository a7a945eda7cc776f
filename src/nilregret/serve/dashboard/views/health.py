"""The health of a study: what fails, waits, comes late, has changed, overruns a budget or is unknown."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...._utils.checks import many
from ....study.cautions import unknown_levels
from ....study.study import Study
from .changes import changes
from .columns import STATES, columns_of
from .constraints import constraints_view
from .delays import delays

REASONS, LATEST = 5, 20  # reasons that are listed, and trials that are counted as the latest


def health(study: Study, *, now: float) -> dict[str, Any]:
    """Returns the parts of the page that say something, and the names of the others.

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
    """
    waits, changed, limits = delays(study, now=now), changes(study), constraints_view(study)
    failed, unknown = _failures(study), unknown_levels(study.policy, study.trials)
    waiting = waits["pending_count"] or waits["late_count"] or waits["abandoned_count"]
    moved = bool(changed["restarts"])
    weighed = moved or changed["picture"]["kind"] != "none"
    quiet = [
        name
        for name, shown in (("failures", failed), ("waiting", waiting), ("changes", weighed), ("constraints", limits))
        if not shown
    ]
    return {
        "waits": waits if waiting else None, "changes": changed if weighed else None, "budgets": limits,
        "failures": failed, "said": bool(failed or waiting or weighed or limits or unknown), "quiet": ", ".join(quiet),
        "unknown": [each.sentence for each in unknown],
    }  # fmt: skip


def _failures(study: Study) -> dict[str, Any] | None:
    """Returns how many trials have failed, of all and of the latest, and their most frequent reasons."""
    columns = columns_of(study)
    failed = columns.array("state") == STATES.index("failed")
    count, recent = int(failed.sum()), int(failed[-LATEST:].sum())
    if not count:
        return None
    sentence = f"{count:,} of {many(len(failed), 'trial')} failed, {recent} of the latest {min(LATEST, len(failed))}."
    reasons = Counter(columns.array("reason")[failed].tolist()).most_common()
    return {"sentence": sentence, "reasons": reasons[:REASONS], "others": len(reasons) - REASONS}
