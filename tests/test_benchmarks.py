"""Every benchmark loads, and one of them runs; nightly, each runs on a small budget. What it prints is for people."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
QUICKEST = "information.py"  # the only one outside the nightly tests
NEEDS_PEER = {"boxes.py"}  # BoTorch, which is too large for a test run
SMALL = {
    "constraints.py": ["--rounds", "24", "--epoch", "6", "--side", "9", "--seeds", "1"],
    "constrained.py": ["--runs", "1", "--rounds", "6", "--side", "9"],
    "asks.py": ["--searches", "1", "--sizes", "20", "--asks", "4"],
    "decisions.py": [
        "--from",
        "10",
        "--asks",
        "2",
        "--blocks",
        "1",
        "--example",
        "5",
        "--seeds",
        "1",
        "--memory",
        "100",
    ],
    "discrete.py": ["--seeds", "1", "--kinds", "log", "--repeats", "1"],
    "fit.py": ["--sizes", "30", "--repeats", "1"],
    "replicate.py": ["--seeds", "3", "--rounds", "8", "--repeats", "1"],
    "frames.py": ["--rounds", "60", "--timed", "100", "--repeats", "1"],
    "arms.py": ["--rounds", "8", "--seeds", "1", "--long", "2000", "--imports", "1", "--tiny", "4"],
    "replay.py": ["--studies", "2", "--workers", "2", "--share", "0.002", "--many", "2", "20", "--rounds", "6"],
    "service.py": ["--count", "6", "--clients", "2"],
    "storage.py": ["--count", "8", "--long", "150", "--box", "0", "--crowd", "16", "--repeats", "1"],
    "dashboard.py": ["--trials", "60", "--repeats", "1"],
    "importance.py": ["--trials", "8", "--seeds", "1"],
    "every_reward.py": ["--runs", "1", "--rounds", "4"],
    "evaluation.py": ["--worlds", "2", "--rounds", "40", "--floors", "0", "0.2", "--large", "1000"],
    "explain.py": ["--trials", "60", "--rounds", "8"],
    "propensities.py": ["--arms", "2", "12", "--rounds", "4", "--blocks", "1", "--draws", "100"],
    "coverage.py": ["--runs", "2", "--rounds", "5", "--jobs", "1"],
    "recommended.py": ["--runs", "2", "--others", "1", "--boxes", "1", "--auto", "1", "--rounds", "4"],
    "lengthscales.py": ["--seeds", "1", "--rounds", "4", "--jobs", "1"],
    "widths.py": ["--seeds", "1", "--rounds", "4", "--runs", "2", "--cover", "4", "--jobs", "1"],
    "answer_noise.py": ["--seeds", "1", "--trials", "12"],
    "arms_change.py": ["--seeds", "1", "--rounds", "600", "--trials", "600", "--contexts", "60"],
    "clicks.py": ["--seeds", "1", "--rounds", "30", "--runs", "2", "--cover", "5", "--long", "40"],
    "million.py": ["--seeds", "2", "--rounds", "60", "--long", "400", "--exact", "40", "--dense", "50"],
    "pending.py": ["--rounds", "6", "--arms", "40"],
    "workers.py": ["--workers", "3", "--jobs", "2", "--seconds", "0.02"],
    "late.py": ["--rounds", "12", "--seeds", "2"],
    "change.py": ["--count", "12", "--rounds", "50", "--runs", "2"],
    "adaptive.py": [
        "--runs",
        "2",
        "--worlds",
        "2",
        "--drifts",
        "2",
        "--rounds",
        "9",
        "--long",
        "40",
        "--arms",
        "30",
        "--surprises",
        "1",
    ],
    "drift.py": ["--seeds", "2", "--rounds", "12"],
    "together.py": ["--seeds", "2", "--rounds", "30"],
    "changing.py": ["--rounds", "60", "--long", "60", "--repeats", "1"],
    "tuning.py": [
        "--problems",
        "conditional",
        "splines-diabetes",
        "--methods",
        "ei",
        "random",
        "--trials",
        "4",
        "--seeds",
        "1",
        "--workers",
        "2",
        "--within",
        "0.5",
    ],
    "live.py": ["--seeds", "2", "--rounds", "12"],
    "contexts.py": ["--decisions", "200", "--dense", "100", "--pairs", "4"],
    "limits.py": ["--problems", "vessel", "--methods", "auto", "random", "--trials", "3", "--seeds", "2"],
    "deployment.py": ["--restarts", "1", "--copies", "2", "--seconds", "0.3", "--clients", "2"],
    "attack_sequences.py": ["--sequences", "2"],
    "attack_fuzz.py": ["--calls", "150"],
    "attack_service.py": ["--requests", "90", "--slow", "4"],
    "attack_schema.py": ["--requests", "110"],
    "attack_hostile.py": ["--texts", "20", "--rows", "20"],
    "optuna_sampler.py": ["--trials", "30", "--asks", "3"],
    "sketch.py": [
        "--decisions",
        "40",
        "--dense",
        "30",
        "--rounds",
        "60",
        "--prefix",
        "20",
        "--seeds",
        "1",
        "--observations",
        "20",
        "--exact",
        "1",
    ],
    "many_arms.py": [
        "--rounds",
        "4",
        "--cases",
        "1",
        "--whole",
        "4200",
        "--horizon",
        "4",
        "--seeds",
        "2",
        "--dimensions",
        "2",
    ],
    "information.py": ["--naive", "10", "--long", "500", "--many", "500", "--repeats", "1"],
}
PRINTED = {
    "discrete.py": "ms of a decision",
    "constraints.py": "same: yes",
    "constrained.py": "of the pessimistic rule",
    "arms.py": "same arms: yes",
    "frames.py": "one ask of gp_ucb on 1,000 arms",
    "replay.py": "no number given twice",
    "service.py": "beyond the empty endpoint and the commit",
    "storage.py": "times Optuna's throughput",
    "dashboard.py": "KB in all",
    "importance.py": "spread",
    "every_reward.py": "E alone",
    "evaluation.py": "intervals of the gain over the logger",
    "propensities.py": "standard errors",
    "explain.py": "0 explanations wrong",
    "coverage.py": "regret at most",
    "recommended.py": "of the regret of two deviations",
    "lengthscales.py": "`lb_gp_ucb`",
    "widths.py": "geometric mean",
    "answer_noise.py": "all alike over untold",
    "arms_change.py": "contexts, silent no, 60 trials: an arm added and the next decision take",
    "clicks.py": "over that of independent beta distributions",
    "million.py": "largest error of the posterior",
    "replicate.py": "equal arms in 100% of runs",
    "pending.py": "largest ratio",
    "workers.py": "% busy",
    "late.py": "auto over window",
    "asks.py": "log EI found less that of a long search",
    "decisions.py": "bytes a decision",
    "fit.py": "log likelihood",
    "change.py": "same verdicts: yes",
    "adaptive.py": "with the bank",
    "together.py": "full, constraint changes alone",
    "changing.py": "GP-UCB-CPD",
    "drift.py": "| related | still |",
    "tuning.py": "mean regret with several workers over that with one",
    "contexts.py": "dense over it at 100",
    "live.py": "504 contexts (goal: 1 ms, 5 ms at the worst), 12 rounds",
    "limits.py": "auto less random: regret",
    "deployment.py": "\n0 wrong in all",
    "attack_sequences.py": " 0 mismatches, 0 foreign exceptions",
    "attack_fuzz.py": " 0 wrong in all",
    "attack_service.py": "0 let in, 0 faults in all",
    "attack_schema.py": " 0 server errors, 0 kinds of answers that do not fit",
    "attack_hostile.py": " 0 executions, 0 foreign exceptions, 0 silent",
    "optuna_sampler.py": "NoRegretSampler: 24 of 24 trials",
    "information.py": "same: yes",
    "many_arms.py": "regret over exact",
    "sketch.py": "regret over exact: mean",
}


def test_table_is_complete():
    assert {path.name for path in BENCHMARKS.glob("*.py")} == set(SMALL) | NEEDS_PEER
    assert set(PRINTED) == set(SMALL)


def test_every_benchmark_finds_what_it_imports():
    """All in one process, where numpy and scipy are imported once."""
    load = "import runpy, sys; sys.path.insert(0, sys.argv[1]); [runpy.run_path(path) for path in sys.argv[2:]]"
    paths = [str(BENCHMARKS / name) for name in SMALL]
    done = subprocess.run(
        [sys.executable, "-c", load, str(BENCHMARKS), *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == QUICKEST else [pytest.mark.nightly]) for name in SMALL]
)
def test_it_runs(name):
    command = [sys.executable, str(BENCHMARKS / name), *SMALL[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert PRINTED[name] in done.stdout
