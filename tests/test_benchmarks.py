"""Every benchmark loads, and one of them runs; nightly, each runs on a small budget. What it prints is for people."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
QUICKEST = "information.py"  # the only one outside the nightly tests
RUNNER = "bench.py"  # what they have in common
NEEDS_PEER = {"boxes.py"}  # BoTorch, which is too large for a test run
PRINTED = {  # by a command with a small budget
    "constrained.py --runs 1 --rounds 24 --side 9": "same: yes",
    "constrained.py slopes --runs 2 --rounds 6": "fine square, slope x 1, caution 1: ",
    "constrained.py budgets --runs 2 --rounds 6": "a cliff of 30, arms      0.1",
    "constrained.py machines --runs 1 --rounds 4": "six      auto      x 2",
    "asks.py --seeds 1 --sizes 20 --asks 4 --example 5 --repeats 1 --long 40": "ms of a decision",
    "fit.py --regret 1 --rounds 9": "regret of rounds 201 to 9",
    "replicate.py --seeds 3 --rounds 8 --repeats 1": "equal arms in 100% of runs",
    "frames.py --rounds 60 --timed 100 --repeats 1": "one ask of gp_ucb on 1,000 arms",
    "arms.py --rounds 8 --seeds 1 --long 2000 --imports 1 --tiny 4": "same arms: yes",
    "replay.py --studies 2 --workers 2 --share 0.002 --many 2 20 --rounds 6": "no number given twice",
    "service.py --count 16 --clients 2": "a pair in lists of 10",
    "service.py --bulk 400": "rows left after a kill",
    "reports.py --reports 400 --steps 20 --single 5 --judged 200": "rows of reports: 400",
    "storage.py --count 8 --long 150 --repeats 1": "times Optuna's throughput",
    "dashboard.py --trials 60 --repeats 1": "KB in all",
    "importance.py --trials 8 --seeds 1": "spread",
    "every_reward.py --runs 1 --rounds 4": "E alone",
    "evaluation.py --worlds 2 --rounds 40 --floors 0 0.2 --large 1000": "intervals of the gain over the logger",
    "propensities.py --arms 2 12 --rounds 4 --blocks 1 --draws 100": "standard errors",
    "coverage.py --runs 2 --rounds 5 --jobs 1": "regret at most",
    "recommended.py --runs 2 --auto 1 --rounds 4": "of the regret of two deviations",
    "fronts.py --runs 1 --rounds 8": "of the regret of random arms",
    "lengthscales.py --seeds 1 --rounds 4 --jobs 1": "`lb_gp_ucb`",
    "widths.py --seeds 1 --rounds 4 --runs 2 --cover 4 --exact 1 --jobs 1": "Regret without noise",
    "answer_noise.py --seeds 1 --trials 12": "all alike over untold",
    "answer_noise.py --outliers 2 --trials 6": "weights over auto",
    "arms_change.py --seeds 1 --rounds 600 --trials 600 --contexts 60": "contexts, silent no, 60 trials: an arm added",
    "changed_space.py --seeds 1": "further trials",
    "clicks.py --seeds 1 --rounds 30 --runs 2 --cover 5 --long 40": "over that of independent beta distributions",
    "million.py --seeds 2 --rounds 60 --long 400 --exact 40 --dense 50": "largest error of the posterior",
    "pending.py --rounds 6 --arms 40": "largest ratio",
    "workers.py --workers 3 --jobs 2 --seconds 0.02": "% busy",
    "late.py --rounds 12 --seeds 2": "auto over window",
    "open_trials.py --seeds 1 --rounds 12 --wait 6": "told with a yes alone",
    "fidelity.py --seeds 1 --trials 6 --problems shifted": "ahead of full only",
    "change.py --count 12 --rounds 50 --runs 2": "same verdicts: yes",
    "adaptive.py --runs 2 --worlds 2 --drifts 2 --rounds 9 --long 40 --arms 30 --surprises 1"
    " --late 40 --repeats 1": "RestartEvery",
    "drift.py --seeds 2 --rounds 12": "| related",
    "together.py --seeds 2 --rounds 30": "full, constraint changes alone",
    "tuning.py --problems conditional splines-diabetes --methods ei random --trials 4 --seeds 1 --workers 2"
    " --within 0.5": "mean regret with several workers over that with one",
    "live.py --seeds 1 --rounds 12": "A/B bounded, 0.16 and 0.1",
    "no_worse.py --worlds 4 --rounds 60": "100.00%",
    "contexts.py --decisions 200 --dense 100 --pairs 4": "dense over it at 100",
    "steps.py --quick": "Regret less that of never",
    "stopping.py cost --seeds 1 --problems cliff": "log10 of the gap with `cost=` less that without",
    "limits.py --problems vessel --methods auto random --trials 3 --seeds 2": "auto less random: regret",
    "objectives.py --problems zdt1 dtlz2-3 --methods auto random --trials 6 --seeds 2 --noise 5": "means 1.00",
    "limits_fuzz.py play --first 0 --count 6 --auto 6": "trials outside by more than 1e-09",
    "limits.py --half known --problems glaze --methods random tpe --trials 3 --seeds 2": "0 of 6 trials outside",
    "deployment.py --restarts 1 --kills 1 --copies 2 --seconds 0.3 --clients 2": "\n0 wrong in all",
    "soak.py --quick": " services, 0 wrong in all",
    "attack.py service --count 90 --slow 4": "0 let in, 0 faults in all",
    "attack.py schema --count 110": " 0 server errors, 0 kinds of answers that do not fit",
    "attack.py hostile --count 20 --rows 20": " 0 executions, 0 foreign exceptions, 0 silent",
    "attack.py fuzz --count 150": " 0 wrong in all",
    "attack.py sequences --count 2": " 0 mismatches, 0 foreign exceptions",
    "optuna_sampler.py --trials 30 --asks 3": "NoRegretSampler: 24 of 24 trials",
    "sketch.py --rounds 60 --prefix 20 --seeds 1 --observations 20 --exact 1": "regret over exact: mean",
    "many_arms.py --rounds 4 --cases 1 --whole 4200 --horizon 4 --seeds 2 --dimensions 2": "regret over exact",
    "information.py --naive 10 --long 500 --repeats 1": "same: yes",
}


def test_table_is_complete():
    named = {command.split()[0] for command in PRINTED}
    assert {path.name for path in BENCHMARKS.glob("*.py")} == named | NEEDS_PEER | {RUNNER}


def test_pages_name_each_script_and_options_that_it_has():
    sys.path.insert(0, str(BENCHMARKS))
    from bench import parser

    pages = "\n".join(page.read_text() for page in (BENCHMARKS.parent / "docs").rglob("*.md")).replace("\\\n", " ")
    found = re.findall(r"(?:python )?\bbenchmarks/(\w+\.py)([^`\n]*)", pages)
    named = {name for name, _ in found}
    assert {path.name for path in BENCHMARKS.glob("*.py")} - named <= {RUNNER}
    for name, options in found:
        doc = ast.get_docstring(ast.parse((BENCHMARKS / name).read_text()), clean=False)
        if "@bench.command" in (BENCHMARKS / name).read_text():
            parser(doc).parse_args(options.split())


def test_every_benchmark_finds_what_it_imports():
    """All in one process, where numpy and scipy are imported once."""
    load = "import runpy, sys; sys.path.insert(0, sys.argv[1]); [runpy.run_path(path) for path in sys.argv[2:]]"
    paths = [str(BENCHMARKS / name) for name in dict.fromkeys(command.split()[0] for command in PRINTED)]
    done = subprocess.run(
        [sys.executable, "-c", load, str(BENCHMARKS), *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=[] if each.startswith(QUICKEST) else [pytest.mark.nightly]) for each in PRINTED],
)
def test_it_runs(command):
    name, *options = command.split()
    done = subprocess.run([sys.executable, BENCHMARKS / name, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert PRINTED[command] in done.stdout
