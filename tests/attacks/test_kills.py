"""A process killed at any moment loses nothing that it was told, and the study goes on as if it had not been killed.

The large form is `benchmarks/replay.py`.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr

ROUNDS = 40
POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 50), nr.Matern(2.5, 0.2), noise=0.1, pending="hallucinate")
WORKER = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from tests.attacks.test_kills import POLICY, work
    import nilregret as nr
    def say(number):
        print(number, flush=True)
        sys.stdin.readline()
    work(nr.Study(POLICY, seed=4, storage=sys.argv[2]), say=say)
"""


def reward(trial):
    return float(np.sin(7 * trial.point[0]) + np.random.default_rng([4, trial.number]).normal(scale=0.1))


def work(study, say=lambda number: None):
    """Two questions at a time, answered in order: what was open when the process died is answered first."""
    while True:
        pending = [trial for trial in study.trials if trial.state == "pending"]
        if len(study.trials) < ROUNDS and (len(pending) < 2 or pending[-1].number % 2 == 0):
            study.ask()
        elif pending:
            say(study.tell(pending[0], reward(pending[0])).number)
        else:
            return


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "kill"), reason="kill -9 needs a POSIX system")
def test_a_study_killed_again_and_again_is_the_one_that_was_not(tmp_path):
    luck, url, kills = random.Random(9), f"sqlite:///{tmp_path}/a.db", 0
    command = [sys.executable, "-c", textwrap.dedent(WORKER), str(Path(__file__).parents[2]), url]
    while True:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        last = luck.randint(2, 5)
        for told, _ in enumerate(worker.stdout):
            worker.stdin.write("go on\n")  # to the next answer, and no further: it cannot be done before it is killed
            worker.stdin.flush()
            if told == last:
                time.sleep(luck.uniform(0.0, 0.01))  # anywhere between two writes, or in the middle of one
                worker.send_signal(signal.SIGKILL)
                break
        worker.stdout.close()
        worker.stdin.close()
        if worker.wait() == 0:
            break
        assert worker.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 2
    straight = nr.Study(POLICY, seed=4)
    work(straight)
    stored = nr.Study.open(storage=url)
    assert [(t.arm, t.reward, t.asked_order, t.told_order) for t in stored.trials] == [
        (t.arm, t.reward, t.asked_order, t.told_order) for t in straight.trials
    ]
    np.testing.assert_array_equal(stored.predict(), straight.predict())
    assert stored.ask().arm == straight.ask().arm
