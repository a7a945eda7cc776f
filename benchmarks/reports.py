"""What a report of a running trial costs: in memory, on disk, under a rule, and when the study is opened again.

    python benchmarks/reports.py --reports 100000 --steps 100 --single 300 --judged 20000

The first line of all is a ratio: the processor time of the later half of `--reports` reports over that of the earlier
half, in a study of trials with `--steps` steps each, and in a file. It is 1 if a report costs the same however many
there are. A file has one row for each. Reports are committed by transactions of 100, but for `--single` of them. Under
a rule a report is compared with all trials, so that its cost grows with their number: of `--judged` reports.
"""

import sqlite3
import tempfile
import time

import bench

import nilregret as nr

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 30), nr.SquaredExponential(0.2), noise=0.1)
BATCH = 100


def value(number, step):
    return 1.0 - 0.001 * (number % 7) - 1.0 / (step + 1.0)


def halves(study, reports, steps):
    """Processor seconds of the earlier and the later half of the reports."""
    spent, trials = [0.0, 0.0], max(reports // steps, 2)
    for number in range(trials):
        trial = study.ask()
        begin = time.process_time()
        for first in range(1, steps + 1, BATCH):
            chosen = range(first, min(first + BATCH, steps + 1))
            study.group_commit([reporting(trial, step) for step in chosen], seconds=1e9)
        spent[2 * number >= trials] += time.process_time() - begin
        study.tell(trial, value(number, steps))
    return spent


def reporting(trial, step):
    return lambda calls: calls.report(trial, step, value(trial.number, step))


def timed(act):
    begin, wall = time.process_time(), time.perf_counter()
    act()
    return time.process_time() - begin, time.perf_counter() - wall


def one_by_one(study, count):
    trial = study.ask()
    for step in range(1, count + 1):
        study.report(trial, step, value(0, step))


@bench.command(__doc__)
def main(options):
    reports, steps = options.reports, options.steps
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.db"
        study = nr.Study(POLICY, storage=f"sqlite:///{path}")
        early, late = halves(study, reports, steps)
        count = sum(len(trial.curve) for trial in study.trials)
        study.close()
        print(f"later half of {count:,} reports over the earlier one: {late / early:.2f}")
        print(f"in a file, committed by {BATCH}: {1e6 * (early + late) / count:.0f} us each")
        connection = sqlite3.connect(path)
        (rows,), (pages,) = (
            connection.execute(each).fetchone() for each in ("SELECT count(*) FROM steps", "PRAGMA page_count")
        )
        size = pages * connection.execute("PRAGMA page_size").fetchone()[0] / count
        connection.close()
        print(f"rows of reports: {rows:,}, with their trials {size:.0f} bytes each")
        opening, _ = timed(lambda: nr.Study.open(storage=f"sqlite:///{path}"))
        print(f"opened again in {opening:.2f} s, {1e6 * opening / count:.0f} us each")
        single = nr.Study(POLICY, storage=f"sqlite:///{folder}/single.db")
        cpu, wall = (1e3 * each / options.single for each in timed(lambda: one_by_one(single, options.single)))
        print(f"one by one: {cpu:.2f} ms of processor, {wall:.2f} ms of wall each")
        single.close()
    early, late = halves(nr.Study(POLICY), reports, steps)
    print(f"in memory: {1e6 * (early + late) / count:.0f} us each, later half over the earlier one {late / early:.2f}")
    early, late = halves(nr.Study(POLICY), reports, reports // 2)
    print(f"two trials of {reports // 2:,} steps: the second over the first {late / early:.2f}")
    judged = POLICY.using(pruning=nr.slots.Median(steps=10 * steps))
    early, late = halves(nr.Study(judged), options.judged, steps)
    each, trials = 1e6 * (early + late) / options.judged, options.judged // steps
    print(f"median rule, {trials} trials: {each:.0f} us each, later half over the earlier one {late / early:.2f}")
