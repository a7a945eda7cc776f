"""The way of one `ask` through the package: how many files and functions it passes, and what that costs.

    python benchmarks/frames.py
    python benchmarks/frames.py --check

`--check` compares the files and calls of four ways with those in `HELD` below, and fails if one differs. They are
counts, the same on every machine. Whoever changes a way changes its numbers in the same commit and says why there.

1. A study of GP-UCB plays 1,000 arms (Matern kernel, finite-set width), with an answer before each question. The
   figures are medians over the last asks whose answered arm was played before: such a round adds no arm to the
   posterior.
2. A round is one `ask` and one `tell`, here at 2 and at 1,000 arms (SE, lengthscale 0.2, noise variance 0.025,
   beta_t / 5). Its peer is the arithmetic of the same rounds alone, as calls of numpy and BLAS. That is the update of
   the posterior, the scores and the best arm, with no checks and no record. Both choose the same arms. CPU time, one
   BLAS thread, the two in turn. Of each block of rounds the quickest of all runs counts.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import http.client
import json
import math
import statistics
import sys
import threading
import time
from pathlib import Path

import numpy as np
from scipy.linalg.blas import daxpy, dger

import nilregret as nr
from nilregret.kernels.factorization import pivoted_cholesky, tolerance
from nilregret.testing.serving import Serving

# Files and calls of each way, medians over rounds. A search on a box takes as many calls as its optimiser wants, and a
# request as many as its coroutines are resumed, so only their files are held.
HELD = {"tell": (4, 7), "ask on arms": (12, 29), "ask of auto": (38, None), "POST of an ask": (36, None)}

BLOCK = 50  # rounds
NOISE = 0.025**0.5

HOME = str(Path(nr.__file__).parent)


FRAMES = []  # file and name of each function of the package that was called


def profile(frame, event, _):
    """Notes a call of a function of the package."""
    if event == "call" and frame.f_code.co_filename.startswith(HOME):
        FRAMES.append((frame.f_code.co_filename[len(HOME) + 1 :], frame.f_code.co_qualname))


def passed(act, *args):
    """Returns the result of a call, and the files and names of the functions of the package that it passes."""
    FRAMES.clear()
    sys.setprofile(profile)
    try:
        result = act(*args)
    finally:
        sys.setprofile(None)
    return result, FRAMES.copy()


def rounds_of(study, rounds):
    """Yields what a tell and the ask after it pass in each round, and whether the arm told was played before."""
    rng, trial, played = np.random.default_rng(0), study.ask(), set()
    for _ in range(rounds):
        reward = float(np.sin(9.0 * trial.point[0]) + 0.1 * rng.standard_normal())
        known = trial.arm in played
        played.add(trial.arm)
        _, tell = passed(study.tell, trial, reward)
        trial, ask = passed(study.ask)
        yield tell, ask, known


def requests(count):
    """Yields what the service passes to answer each of some requests for a decision, with the reward before it."""
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
    threading.setprofile(profile)  # for the threads of the service
    try:
        with Serving() as service:
            host, _, port = service.url.removeprefix("http://").partition(":")
            connection = http.client.HTTPConnection(host, int(port))

            def said(method, path, body):
                connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
                return json.loads(connection.getresponse().read())

            at = "/v1/studies/frames"
            said("PUT", at, {"policy": json.loads(policy.to_json())})
            for i in range(count):
                FRAMES.clear()
                (asked,) = said("POST", f"{at}/decisions", {})["decisions"]
                yield FRAMES.copy()
                said("PUT", f"{at}/decisions/{asked['id']}/reward", {"reward": i / count})
            connection.close()
    finally:
        threading.setprofile(None)


def counted(lists):
    """Returns the median number of files and of calls of some lists of frames."""
    both = [(len({file for file, _ in found}), len(found)) for found in lists]
    return tuple(int(statistics.median(column)) for column in zip(*both, strict=True))


def on_arms(rounds):
    """Returns what tells and asks of GP-UCB on 1,000 arms pass, in the rounds whose arm was played before."""
    arms = nr.Arms(np.linspace(0.0, 1.0, 1000)[:, None])
    study = nr.Study(nr.gp_ucb(arms, kernel=nr.kernels.Matern(2.5, 0.2), noise=0.1), seed=0)
    known = [(tell, ask) for tell, ask, known in rounds_of(study, rounds) if known]
    return tuple(map(list, zip(*known, strict=True)))


def check():
    """Prints files and calls of each way, and fails if one is not as held."""
    tells, asks = on_arms(60)
    study = nr.Study(nr.auto(nr.Box([0.0, 0.0], [1.0, 1.0])), seed=0)
    found = {
        "tell": tells,
        "ask on arms": asks,
        "ask of auto": [ask for _, ask, _ in rounds_of(study, 12)],
        "POST of an ask": list(requests(9)),
    }
    wrong = []
    for name, lists in found.items():
        files, calls = counted(lists)
        print(f"{name}: {files} files, {calls} calls")
        held_files, held_calls = HELD[name]
        if files != held_files or held_calls not in (None, calls):
            wrong.append(f"{name}: held are {held_files} files" + (f", {held_calls} calls" if held_calls else ""))
    if wrong:
        sys.exit("\n".join([*wrong, "Write the new numbers into HELD, and why into the commit."]))


def played_by_study(policy, values, noise):
    """Returns the arms that a study plays, and the processor time after each block of rounds, s."""
    study, arms, marks = nr.Study(policy, seed=0), [], [time.process_time()]
    for t, error in enumerate(noise, start=1):
        trial = study.ask()
        study.tell(trial, values[trial.arm] + error)
        arms.append(trial.arm)
        if t % BLOCK == 0:
            marks.append(time.process_time())
    return arms, marks


def played_by_arithmetic(policy, values, noise, first):
    """Returns the same for the arithmetic of GP-UCB in the weights of the kernel's features, from one first arm on."""
    points, ridge, confidence = policy.domain.points, policy.regularization, policy.confidence
    variance = policy.kernel.arm_variances(points).copy()
    found = pivoted_cholesky(policy.kernel, points, tol=tolerance(variance, ridge), max_rank=len(points))
    features = np.asfortranarray(found.features)
    root, mean, arm, arms = np.eye(features.shape[1], order="F"), np.zeros(len(points)), first, []
    column, z, direction, share, played, marks = mean, mean, mean, 1.0, None, [time.process_time()]
    for t, error in enumerate(noise, start=1):
        if t > 1:
            scores = np.sqrt(np.maximum(variance, 0.0))
            scores *= confidence.width(t)
            scores += mean
            arm = int(scores.argmax())
        arms.append(arm)
        if arm == played:
            column, z, direction = column * share, z * math.sqrt(share), direction * share
        else:
            z = features[arm].dot(root)
            direction = root.dot(z)
            column = features.dot(direction)
        total = ridge + z.dot(z)
        played, share = arm, ridge / total
        dger(-1.0 / (total + math.sqrt(ridge * total)), direction, z, 1, 1, root, 1, 1, 1)
        daxpy(column, mean, len(mean), (values[arm] + error - mean.item(arm)) / total)
        daxpy(column * column, variance, len(mean), -1.0 / total)
        if t % BLOCK == 0:
            marks.append(time.process_time())
    return arms, marks


def against_arithmetic(count, rounds, repeats):
    """Prints the time of a round of a study over that of its arithmetic."""
    arms = nr.Arms.grid(0, 1, count)
    policy = nr.gp_ucb(arms, nr.SquaredExponential(0.2), noise=NOISE, scale=0.2)
    values = np.sin(9.0 * arms.points[:, 0]).tolist()
    noise = (NOISE * np.random.default_rng(0).standard_normal(rounds)).tolist()
    times = []
    for _ in range(repeats):
        ours, marks = played_by_study(policy, values, noise)
        theirs, bare = played_by_arithmetic(policy, values, noise, ours[0])
        if ours != theirs:
            sys.exit("The two chose different arms.")
        times.append(np.diff([marks, bare]))
    study, arithmetic = np.min(times, axis=0).mean(axis=1) / BLOCK * 1e6
    print(
        f"a round on {count:,} arms: study {study:.1f} us, its arithmetic {arithmetic:.1f} us, "
        f"ratio {study / arithmetic:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="asks before and during the count")
    parser.add_argument("--timed", type=int, default=1000, help="rounds timed (default 1,000)")
    parser.add_argument("--repeats", type=int, default=9, help="pairs of timed runs (default 9)")
    parser.add_argument("--list", action="store_true", help="list the functions of the last round")
    parser.add_argument("--check", action="store_true", help="compare files and calls with those held")
    args = parser.parse_args()
    if args.check:
        check()
        return
    tells, asks = on_arms(args.rounds)
    if args.list:
        print(*(f"{file} {name}" for file, name in [*tells[-1], *asks[-1]]), sep="\n")
    for name, lists in (("tell", tells), ("ask", asks)):
        files, calls = counted(lists)
        print(f"one {name} of gp_ucb on 1,000 arms: {files} files, {calls} calls of functions of the package")
    for count in (2, 1000):
        against_arithmetic(count, args.timed, args.repeats)


if __name__ == "__main__":
    main()
