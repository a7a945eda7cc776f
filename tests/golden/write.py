"""Write the golden traces anew after a change that is meant to alter decisions: python tests/golden/write.py."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests import test_golden_auto
from tests.conformance.test_policies import GOLDEN, TRACED, play

import nilregret as nr

for name, make in TRACED.items():
    (GOLDEN / f"{name}.json").write_text(json.dumps(play(nr.Study(make(), seed=7), 50)) + "\n")

rows = [f"{json.dumps(name)}: {json.dumps(play())}" for name, play in test_golden_auto.CASES.items()]
test_golden_auto.GOLDEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
