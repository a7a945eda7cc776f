"""Trials as files: those that the grid's query selects, in its order, with all columns."""

from __future__ import annotations

import csv
import io
import json

from ....study.export import rows
from ....study.study import Study
from ....study.trial_json import with_history
from .columns import columns_of
from .grid import Query, selected, wanted

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a text that begins so


def as_csv(study: Study, query: Query) -> str:
    """Returns a table with the columns of `Study.export`. A text that a spreadsheet would compute begins with `'`."""
    columns = columns_of(study)
    trials = [columns.trials[number] for number in selected(columns, wanted(columns, query)).tolist()]
    table = rows(study.policy, trials, study.replica.roster.columns)
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(_harmless(name) for name in (table[0] if table else ["number"]))
    writer.writerows([_harmless(value) for value in row.values()] for row in table)
    return file.getvalue()


def as_json(study: Study, query: Query) -> str:
    """Returns a list of the trials as JSON, with what was told before corrections."""
    columns = columns_of(study)
    numbers = selected(columns, wanted(columns, query)).tolist()
    more = study.replica.roster.columns
    return json.dumps(
        [with_history(columns.trials[number]) | more(columns.trials[number]) for number in numbers], ensure_ascii=False
    )


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
