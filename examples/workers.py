"""Several workers tune one model at once: each asks, evaluates, and tells when it is done, in any order.

    python examples/workers.py --workers 4 --trials 24

The workers are processes that share nothing but an SQLite file. Every question is decided knowing which trials are
still under way, and keeps away from them; no one waits for the others. Kill them and run the command again: the study
goes on where it was; what was under way is given up first.
"""

import argparse
import multiprocessing

from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import nilregret as nr


def policy():
    """Where to search and how to decide; the same in every worker."""
    space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), gamma=nr.Float(1e-6, 1e-1, log=True))
    return nr.auto(space, parallel=4)


def accuracy(C, gamma, rows):
    """Mean accuracy over three folds of the first rows of the digits."""
    features, labels = load_digits(return_X_y=True)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return float(cross_val_score(SVC(C=C, gamma=gamma), features[:rows], labels[:rows], cv=folds).mean())


def work(storage, trials, rows):
    """Ask and tell until there are enough trials."""
    study = nr.Study(policy(), seed=0, storage=storage, name="digits")
    while len(study.trials) < trials:
        trial = study.ask()
        study.tell(trial, accuracy(**trial.parameters, rows=rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4, help="processes at once (default 4)")
    parser.add_argument("--trials", type=int, default=24, help="trials in all, give or take the workers (default 24)")
    parser.add_argument("--rows", type=int, default=1797, help="rows of the data that are used (default all 1,797)")
    parser.add_argument("--storage", default="sqlite:///workers.db", help="URL of the database")
    options = parser.parse_args()
    study = nr.Study(policy(), seed=0, storage=options.storage, name="digits")
    for trial in study.trials:
        if trial.state == "pending":
            study.fail(trial, "its worker was stopped")
    start = multiprocessing.get_context("spawn").Process
    arguments = (options.storage, options.trials, options.rows)
    workers = [start(target=work, args=arguments) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    answered = [trial for trial in study.trials if trial.reward is not None]
    order = [trial.number for trial in sorted(answered, key=lambda trial: trial.told_order)]
    distinct = len({tuple(trial.point) for trial in answered})
    print(f"{len(answered)} trials of {distinct} settings; answered in the order {order}")
    best = study.best()
    print(f"best: {best.parameters}, accuracy {best.reward:.4f}")


if __name__ == "__main__":
    main()
