"""The way of one `ask` through the package: how many files and functions it passes.

    python benchmarks/frames.py

A study of GP-UCB plays 1,000 arms (Matern kernel, finite-set width), with an answer before each question. The figures
are medians over the last asks whose answered arm was played before: such a round adds no arm to the posterior.
"""

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

import nilregret as nr

HOME = str(Path(nr.__file__).parent)


def passed(act):
    """Returns the files and the names of the functions of the package that a call passes, in order."""
    frames = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            frames.append((frame.f_code.co_filename[len(HOME) + 1 :], frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return frames


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="asks before and during the count")
    parser.add_argument("--list", action="store_true", help="list the functions of the last ask")
    args = parser.parse_args()
    arms = nr.Arms(np.linspace(0.0, 1.0, 1000)[:, None])
    study = nr.Study(nr.gp_ucb(arms, kernel=nr.kernels.Matern(2.5, 0.2), noise=0.1), seed=0)
    rng, trial, played, counts, frames = np.random.default_rng(0), study.ask(), set(), [], []
    for _ in range(args.rounds):
        study.tell(trial, float(np.sin(9.0 * trial.point[0]) + 0.1 * rng.standard_normal()))
        known, asked = trial.arm in played, []
        played.add(trial.arm)
        found = passed(lambda asked=asked: asked.append(study.ask()))
        (trial,) = asked
        if known:
            frames = found
            counts.append((len({file for file, _ in found}), len(found)))
    files, calls = (statistics.median(column) for column in zip(*counts, strict=True))
    if args.list:
        print(*(f"{file} {name}" for file, name in frames), sep="\n")
    print(f"one ask of gp_ucb on 1,000 arms: {files:.0f} files, {calls:.0f} calls of functions of the package")


if __name__ == "__main__":
    main()
