"""Durability: studies killed with SIGKILL at random rounds, again and again, against uninterrupted ones.

    python benchmarks/replay.py

Each study lives in an SQLite file and is worked on by a process that is killed after a random time and started anew
until the study has all its rounds. Its trials must equal, arm for arm and bit for bit, those of a run in memory.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import noregret as nr

ROUNDS = 60


def policy(seed):
    """Both engines take turns: features for the smooth kernel, arms played for the rough one."""
    if seed % 2:
        square = np.stack(np.meshgrid(*[np.linspace(0, 1, 16)] * 2), axis=-1).reshape(-1, 2)
        return nr.gp_ucb(nr.Arms(square), nr.Matern(1.5, 0.2), noise=0.1, scale=0.2)
    return nr.gp_ucb(nr.Arms.grid(0, 1, 200), nr.SquaredExponential(0.1), noise=0.1, scale=0.2)


def reward(seed, trial):
    noise = np.random.default_rng([seed, trial.number]).normal(scale=0.1)
    return float(np.sin(7 * trial.point).sum() + noise)


def work(study, seed):
    for trial in [trial for trial in study.trials if trial.state == "pending"]:
        study.tell(trial, reward(seed, trial))
    while len(study.trials) < ROUNDS:
        trial = study.ask()
        study.tell(trial, reward(seed, trial))
        print(trial.number, flush=True)


def kill_at_random(url, seed, luck):
    """Run the worker until the study is complete, killing it on the way; returns how often."""
    kills, progress = 0, -1
    while True:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--work", url, str(seed)], stdout=subprocess.PIPE, text=True
        )
        last = progress + luck.randint(1, ROUNDS // 2)
        for line in worker.stdout:
            progress = int(line)
            if progress >= last and progress < ROUNDS - 1:
                time.sleep(luck.uniform(0, 0.02))  # anywhere between two rounds, or in the middle of a write
                worker.send_signal(signal.SIGKILL)
                break
        worker.stdout.close()
        if worker.wait() == 0:
            return kills
        kills += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--work", nargs=2, metavar=("URL", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        url, seed = options.work[0], int(options.work[1])
        work(nr.Study(policy(seed), seed=seed, storage=url), seed)
        return
    identical = kills = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.studies):
            url = f"sqlite:///{Path(folder) / f'{seed}.db'}"
            kills += kill_at_random(url, seed, random.Random(seed))
            straight = nr.Study(policy(seed), seed=seed)
            for _ in range(ROUNDS):
                trial = straight.ask()
                straight.tell(trial, reward(seed, trial))
            stored = nr.Study.open(storage=url)
            same = [(t.arm, t.reward) for t in stored.trials] == [(t.arm, t.reward) for t in straight.trials]
            identical += same and np.array_equal(stored.predict(), straight.predict())
            print(f"\r{seed + 1} studies, {kills} kills, {identical} identical", end="", flush=True)
    print(f"\n{identical} of {options.studies} studies identical after {kills} kills")
    sys.exit(identical != options.studies)


if __name__ == "__main__":
    main()
