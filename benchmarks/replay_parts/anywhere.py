"""Whether a policy that fits decides the same by one and two threads of BLAS, and by other numerical libraries.

A study is begun here. Each interpreter then opens a copy of it, goes on, and says what it has decided; and it opens the
record of the first one that went on, and repeats its decisions.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import nilregret as nr

CHILD = """
import sys, json, warnings
import numpy as np
sys.path[:0] = json.loads(sys.argv[1])
import scipy
import nilregret as nr
from benchmarks.replay_parts.anywhere import play
from nilregret.serialize import dumps
warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
study = nr.Study.open(storage=sys.argv[2])
known = len(study.trials)
repeated = all(study.explain(number, draws=0).repeated for number in range(1, known))
play(study, int(sys.argv[3]))
print(json.dumps({
    "versions": [np.__version__, scipy.__version__], "repeated": repeated,
    "points": [trial.point.tolist() for trial in study.trials[known:]],
    "fits": [[fit.trial, fit.noise, fit.mean, dumps(fit.kernel)] for fit in study.fits],
}))
"""


def play(study, rounds):
    """Questions and answers, which are a function of the points to nine digits: theirs may differ in the last."""
    for _ in range(rounds):
        trial = study.ask()
        x = trial.point.round(9)
        study.tell(trial, round(float(3.0 * x[0] * (1.0 - x[0]) + x[-1] ** 2 - x[0] * x[1]), 9))


def run(python, url, rounds, threads):
    roots = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[2])]
    named = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(named, str(threads))}
    done = subprocess.run(
        [python, "-c", CHILD, json.dumps(roots), url, str(rounds)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def compare(folder, interpreters, rounds):
    """What is wrong, in words."""
    wrong = []
    for name, policy in {
        "arms": nr.auto(nr.Arms(np.random.default_rng(0).random((60, 2)))),
        "a box": nr.auto(nr.Box([0.0] * 3, [1.0] * 3)),
    }.items():
        path = f"{folder}/anywhere.db"
        with nr.Study(policy, seed=3, storage=f"sqlite:///{path}") as study:
            play(study, rounds)
        others = [(sys.executable, 1), (sys.executable, 2), *((python, 1) for python in interpreters)]
        found = []
        for number, (python, threads) in enumerate(others):
            copy = f"{folder}/copy{number}.db"
            shutil.copy(path, copy)
            found.append(run(python, f"sqlite:///{copy}", rounds // 2, threads))
        again = [run(python, f"sqlite:///{folder}/copy0.db", 0, threads) for python, threads in others]
        for (python, threads), mine, repeated in zip(others, found, again, strict=True):
            same = mine["points"] == found[0]["points"]
            near = np.abs(np.array(mine["points"]) - np.array(found[0]["points"])).max()
            going_on = "the same, to the bit" if same else f"within {near:.1e} of the first"
            print(
                f"auto on {name}, numpy {mine['versions'][0]}, scipy {mine['versions'][1]}, {threads} thread(s): "
                f"decides {going_on}; repeats the first one's decisions: {'yes' if repeated['repeated'] else 'NO'}",
                flush=True,
            )
            if repeated["fits"] != found[0]["fits"]:
                wrong.append(f"{python}: other fits on {name}")
            if python == sys.executable and not (same and repeated["repeated"]):
                wrong.append(f"{threads} threads: other decisions on {name}")
        Path(path).unlink()
    return wrong
