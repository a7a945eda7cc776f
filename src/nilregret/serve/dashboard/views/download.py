"""Trials as files: those that the grid's query selects, in its order, with all columns."""

from __future__ import annotations

import json
from pathlib import Path

from ....storage.trial import Trial
from ....study.export import write_csv
from ....study.study import Study
from ....study.trial_json import with_history
from .columns import columns_of
from .grid import Query, selected, wanted


def as_csv(study: Study, query: Query, path: Path) -> None:
    """Writes a table with the columns of `Study.export`. A text that a spreadsheet would compute begins with `'`."""
    write_csv(study.policy, _trials(study, query), path, extra=study.replica.roster.columns)


def as_json(study: Study, query: Query, path: Path) -> None:
    """Writes a list of the trials as JSON, with what was told before corrections."""
    more, trials = study.replica.roster.columns, _trials(study, query)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[")
        for place, trial in enumerate(trials):  # One by one: a long text of JSON would stop all other threads.
            file.write(",\n" * (place > 0) + json.dumps(with_history(trial) | more(trial), ensure_ascii=False))
        file.write("]")


def _trials(study: Study, query: Query) -> list[Trial]:
    columns = columns_of(study)
    return [columns.trials[number] for number in selected(columns, wanted(columns, query)).tolist()]
