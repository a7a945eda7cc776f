"""Wrote the files of this folder, once, for format 1. They stay: every later version must read them.

A kind that is not there yet is added: python tests/format1/write.py
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import nilregret as nr
from tests.format1.kinds import KINDS, begun, gone_on
from tests.format1.service import served
from tests.format1.tables import FOLDER, dump, restored

DECISIONS, EVALUATED = FOLDER / "decisions.json", "value of uniform"


def written(name, folder):
    """Writes a study's file, and returns what the study that was never closed decides next."""
    path = Path(folder) / f"{name}.db"
    study, clock = begun(name, storage=f"sqlite:///{path}")
    dump(path, FOLDER / f"{name}.sql")
    return gone_on(name, study, clock)


def evaluated(folder):
    """Returns what the uniform policy is worth by the log in a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = nr.Study.open(storage=restored("propensities", folder), name="propensities")
        return float(nr.evaluate(study, "uniform").value)


if __name__ == "__main__":
    decisions = json.loads(DECISIONS.read_text()) if DECISIONS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in KINDS.keys() - decisions.keys():
            decisions[name] = written(name, folder)
        if "service" not in decisions:
            decisions["service"] = served(Path(folder) / "service.db", FOLDER / "service.sql")
        if EVALUATED not in decisions:
            decisions[EVALUATED] = evaluated(tempfile.mkdtemp(dir=folder))
    rows = [f"{json.dumps(name)}: {json.dumps(decisions[name])}" for name in sorted(decisions)]
    DECISIONS.write_text("{\n" + ",\n".join(rows) + "\n}\n")
