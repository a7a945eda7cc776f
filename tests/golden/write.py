"""Write the golden traces anew after a change that is meant to alter decisions: python tests/golden/write.py.

A case that parts where a few last bits are rounded otherwise is refused: it would fail on another machine. What is on
record and still so stays as it is.
"""

import json
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.test_policies import GOLDEN, TRACED, play
from tests.last_bits import last_bits_moved
from tests.test_golden_auto import CASES, parted
from tests.test_golden_auto import GOLDEN as OF_AUTO

import nilregret as nr


def steady(name, case):
    found = case()
    with last_bits_moved():
        again = case()
    if apart := parted(case, found, again):
        t, here, there = apart
        raise SystemExit(f"{name!r} parts in round {t}: {here} here, {there} elsewhere. Play something clearer.")
    return found


def traced(policy):
    return play(nr.Study(policy, seed=7), 50)


for name, make in TRACED.items():
    (GOLDEN / f"{name}.json").write_text(json.dumps(steady(name, partial(traced, make()))) + "\n")

known, rows = json.loads(OF_AUTO.read_text()), []
for name, case in CASES.items():
    found, before = steady(name, case), known.get(name, [])
    unchanged = len(found) == len(before) and parted(case, found, before) is None
    rows.append(f"{json.dumps(name)}: {json.dumps(before if unchanged else found)}")
OF_AUTO.write_text("{\n" + ",\n".join(rows) + "\n}\n")
