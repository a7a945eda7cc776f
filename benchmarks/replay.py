"""What it costs to open a long record, whether it decides the same anywhere, and whether kills lose any of it.

    python benchmarks/replay.py [box] --points 10000 --studies 40 --kills 300 --workers 8 --share 1.0 --many 50 5000
        --rounds 24 [--numpy PYTHON ...]
    python benchmarks/replay.py box          # what the factor of a box costs, live and opened
    python benchmarks/replay.py --studies 0 --numpy PYTHON   # PYTHON has another numpy

First the costs: a server begins on many studies (`--many`: how many, and trials of each), records are opened
(`--share` of their trials), a late decision is explained. Then a policy that fits goes on with a record for `--rounds`
under one thread of BLAS, under two, and by the interpreters given, and must decide the same.

Last durability: studies whose workers are killed with SIGKILL at random moments, again and again, on both databases,
until there were `--kills`. Each study is worked on by 1 to 8 processes; each is killed after a random time, from before
the database is made on, and started anew, until the study has all its rounds. Then no number was given twice, every
reward that a `tell` returned from is on record, and the study opens again and repeats its decisions; with one worker
its trials equal, arm for arm and bit for bit, those of an uninterrupted run in memory.

`box` opens a study of many points on a box under a kernel that is given, and decides once. Processor seconds, and those
of one dense Cholesky factorisation of the same matrix.
"""

import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import ExitStack

import bench
import numpy as np
from benchmarks.replay_parts import anywhere, opening
from scipy.linalg import cholesky
from tests.postgres import Server

import nilregret as nr
from nilregret._utils.process_setting import one_thread
from nilregret.study.transaction import Transaction

ROUNDS = 40
BOX_KERNEL = nr.Matern(2.5, 0.2)


def policy(seed):
    """Both engines take turns: features for the smooth kernel, arms played for the rough one."""
    if seed % 2:
        square = np.stack(np.meshgrid(*[np.linspace(0, 1, 16)] * 2), axis=-1).reshape(-1, 2)
        return nr.gp_ucb(nr.Arms(square), nr.Matern(1.5, 0.2), noise=0.1, scale=0.2)
    return nr.gp_bucb(nr.Arms.grid(0, 1, 200), nr.SquaredExponential(0.1), noise=0.1)


def reward(seed, trial):
    noise = np.random.default_rng([seed, trial.number]).normal(scale=0.1)
    return float(np.sin(7 * trial.point).sum() + noise)


def work(url, seed, alone):
    """Ask and tell; what it says of a number has been recorded."""
    print(json.dumps(["started"]), flush=True)
    study = nr.Study(policy(seed), seed=seed, storage=url)
    if alone:  # what was open when the last process died is answered first
        for trial in [trial for trial in study.trials if trial.state == "pending"]:
            study.tell(trial, reward(seed, trial))
    while len(study.trials) < ROUNDS:
        trial = study.ask()
        print(json.dumps(["asked", trial.number]), flush=True)
        study.tell(trial, reward(seed, trial))
        print(json.dumps(["told", trial.number]), flush=True)


class Worker:
    """A process, and when it is to be killed."""

    def __init__(self, url, seed, alone, luck):
        command = bench.calling(__file__, "work", url, seed, alone)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.said, self._luck = [], luck
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self):
        """Read what it says, and kill it on the way."""
        early = self._luck.random() < 0.25  # while the database is made, or the study is opened
        last = 1 if early else self._luck.randint(2, ROUNDS // 2)
        pause = self._luck.uniform(0.0, 0.4 if early else 0.02)
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.said.append(json.loads(line))
            if len(self.said) == last:
                time.sleep(pause)
                self.process.send_signal(signal.SIGKILL)
        self.process.stdout.close()

    def end(self):
        """What it said, and whether it was killed."""
        self._thread.join()
        code = self.process.wait()
        if code not in (0, -signal.SIGKILL):
            raise RuntimeError(f"a worker ended with {code}")
        return self.said, code != 0


def attack(url, seed, workers, luck):
    """Until the study is complete; gives what workers said, and how many were killed."""
    said, kills = [], 0
    while True:
        running = [Worker(url, seed, workers == 1, random.Random(luck.random())) for _ in range(workers)]
        for worker in running:
            facts, killed = worker.end()
            said, kills = said + facts, kills + killed
        # It may have been killed before there was a study.
        with contextlib.suppress(nr.errors.InvalidInput), nr.Study.open(storage=url) as study:
            if len(study.trials) >= ROUNDS:
                return said, kills


def is_straight(study, seed):
    """Whether it is, bit for bit, a study in memory that nobody interrupted."""
    straight, trials = bench.quiet(policy(seed), seed=seed), study.trials
    bench.play(straight, len(trials), lambda trial: reward(seed, trial))
    same = [(t.arm, t.reward) for t in trials] == [(t.arm, t.reward) for t in straight.trials]
    return same and np.array_equal(study.predict(), straight.predict())


def verdict(url, seed, workers, said):
    """What is wrong, in words."""
    study = nr.Study.open(storage=url)
    study.quiet = True
    if workers == 1:
        for trial in [trial for trial in study.trials if trial.state == "pending"]:
            study.tell(trial, reward(seed, trial))
    trials = list(study.trials)
    numbers = [fact[1] for fact in said if fact[0] == "asked"]
    if len(numbers) != len(set(numbers)):
        return "a number was given twice"
    for number in [fact[1] for fact in said if fact[0] == "told"]:
        if trials[number].reward != reward(seed, trials[number]):
            return f"the reward of trial {number} is lost"
    if [trial.number for trial in trials] != list(range(len(trials))):
        return "numbers have gaps"
    if not study.explain(len(trials) - 1).repeated:
        return "the last decision is not repeated"
    if workers == 1 and not is_straight(study, seed):
        return "it is not the uninterrupted study"
    study.close()
    return None


def on_a_box(url, points):
    """A study that asked for these points and heard of each before the next."""
    policy = nr.gp_ucb(nr.Box([0.0, 0.0], [1.0, 1.0]), BOX_KERNEL, noise=0.1)
    with nr.Study(policy, storage=url) as study:
        rewards = np.sin(7 * points).sum(axis=1)

        def play():
            kept = study.replica
            transaction = Transaction(kept)
            for point, reward in zip(points, rewards.tolist(), strict=True):
                order = kept.record.order + 1
                decision = study.inputs.point(point)
                trial = kept.put(transaction._trial(decision, None, order=order, now=1e9))
                kept.put(trial.answered(reward=reward, order=order + 1, time=1e9))

        study.replica.write(play)


def box(count):
    """What opening costs, and the decision after it."""
    with tempfile.TemporaryDirectory() as folder, one_thread:
        points = np.random.default_rng(0).random((count, 2))
        for size in (2, count):  # the first one to load what is imported on the way
            on_a_box(url := f"sqlite:///{folder}/{size}.db", points[:size])
            times = [time.process_time()]
            with nr.Study.open(storage=url) as study:
                for call in (lambda: None, lambda: study.predict(points[:1]), study.ask):
                    call()
                    times.append(time.process_time())
        cholesky(BOX_KERNEL(points, points) + 0.01 * np.eye(count), overwrite_a=True, check_finite=False)
        times.append(time.process_time())
    opened, known, decided, dense = np.diff(times)
    print(
        f"{count} points on a box: open {opened:.1f} s, prediction {known:.1f} s, decision {decided:.1f} s; dense "
        f"factorisation {dense:.1f} s; open and predict {(opened + known) / dense:.1f} times that"
    )


@bench.command(__doc__)
def main(options):
    if options.parts == "box":
        box(options.points)
        return
    wrong = []
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    with tempfile.TemporaryDirectory() as folder:
        opening.started(folder, *options.many)
        wrong += [] if opening.table(folder, options.share) else ["a study that was opened went on otherwise"]
        wrong += anywhere.compare(folder, options.numpy or (), options.rounds)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = stack.enter_context(Server()) if options.studies else None
        for kind in ("SQLite", "PostgreSQL"):
            kills = done = 0
            for seed in range(options.studies):
                if kills >= options.kills:
                    break
                luck = random.Random(seed)
                workers = 1 + seed % options.workers
                url = f"sqlite:///{folder}/{seed}.db" if kind == "SQLite" else server.url()
                said, more = attack(url, seed, workers, luck)
                kills, done = kills + more, done + 1
                problem = verdict(url, seed, workers, said)
                wrong += [f"{kind}, study {seed}, {workers} workers: {problem}"] if problem else []
                print(f"\r{kind}: {done} studies, {kills} kills, {len(wrong)} wrong", end="", flush=True)
            print(
                f"\r{kind}: {done} studies of 1 to {options.workers} workers survived {kills} kills, {len(wrong)} wrong"
            )
    print("\n".join(wrong) or "no answer was lost, no number given twice, every study opened again")
    sys.exit(bool(wrong))
