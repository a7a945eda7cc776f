"""Public names: few at the top, the others in modules, and every name of version 0.2 still found."""

import importlib
import pickle
import subprocess
import sys
import traceback

import pytest

import nilregret as nr

TOP = """
    maximize minimize run Study Trial Result Space Float Int Choice when Arms Box auto gp_ucb irgp_ucb igp_ucb
    gp_ts kernel_ucb gp_ucb_cpd gp_ucb_sdf gp_ts_sdf gp_bucb gp_ucb_noiseless_constraints
    gp_ucb_noisy_constraints expected_improvement SquaredExponential Matern Linear kernel_for EveryRound
    OnAverage Safe Environment simulate replicate compare evaluate information_gain Policy NoRegretError
"""
MODULES = ["kernels", "slots", "theory", "environments", "plots", "errors", "testing"]
OLD = """
    Active AllOf Arms Bernoulli Bounded Box Calibration Censored ChangeDetector ChangeTest Choice
    CoordinateSearch Discount DriftBank EDetector Empirical Environment EvenSeries EveryRound Explanation
    ExponentialPenalty Fit Float GreedyDesign Hallucinated Ignored Imputed InTurn InitialDesign Int InvalidInput
    Kernel LateOrNever Lazy LengthscaleBank Linear Matern MissingData MissingExtra Mixture NearestMeans
    NoRegretError NoRegretWarning OnAverage Overlap PenaltyFunction Periodic PointSearch Poisson Policy PowerLaw
    PowerPenalty PowerSeries Product RationalQuadratic Refit RestartAt RestartDoubling RestartEvery
    RestartOnChange Result Rewards RidgeChoice Rounded Run Safe ServiceError Sketch SlidingWindow Space Spectrum
    SquaredExponential Standardization StorageError Study Sum Tied Trial TrialError __version__ admmbo asy_ts
    auto bandit_oco calibrate_threshold conditional_gain_bound cross_validate_ridge detect_change
    effective_dimension environments expected_improvement fit gp_bts gp_bucb gp_bucb_regret_bound gp_ts
    gp_ts_regret_bound gp_ts_sdf gp_ts_sdf_regret_bound gp_ucb gp_ucb_cpd gp_ucb_cpd_regret_bound
    gp_ucb_cpd_regret_rate gp_ucb_noiseless_constraints gp_ucb_noisy_constraints gp_ucb_regret_bound gp_ucb_sdf
    gp_ucb_sdf_regret_bound greedy_mean greedy_variance igp_ucb igp_ucb_regret_bound information_gain
    information_gain_rate irgp_ucb kernel_for kernel_ucb lb_gp_ucb least_slack log_marginal_likelihood maximize
    minimize noiseless_constraints_bounds noisy_constraints_bounds plots probability_of_improvement replicate
    run simulate when
"""  # of version 0.2


def test_dir_shows_the_few_public_names():
    assert dir(nr) == sorted(TOP.split() + MODULES)
    assert len(dir(nr)) <= 50


@pytest.mark.parametrize("name", OLD.split())
def test_names_of_version_0_2_are_found(name):
    assert getattr(nr, name) is not None


@pytest.mark.parametrize("name", [*MODULES, "algorithms"])
def test_dir_of_a_module_shows_its_public_names_alone(name):
    module = getattr(nr, name)
    assert sorted(dir(module)) == sorted(module.__all__)
    strangers = [
        each
        for each in module.__all__
        if not getattr(getattr(module, each), "__module__", "nilregret").startswith(("nilregret", "builtins"))
    ]
    assert strangers == []


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("gp_ubc", "gp_ucb"), ("matern", "Matern"), ("DriftBanc", "DriftBank"), ("EveryRond", "EveryRound")],
)
def test_a_misspelt_name_gets_a_hint(misspelt, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{misspelt}'. Did you mean '{meant}'"):
        getattr(nr, misspelt)


def test_a_misspelt_picture_gets_a_hint():
    with pytest.raises(AttributeError, match=r"'nilregret\.plots' has no attribute 'histroy'\. Did you mean 'history'"):
        _ = nr.plots.histroy


@pytest.mark.parametrize(
    ("call", "misspelt", "meant"),
    [
        (lambda: nr.auto(nr.Box(0, 1), paralel=4), "paralel", "parallel"),
        (lambda: nr.minimize(abs, nr.Box(0, 1), trails=3), "trails", "trials"),
        (lambda: nr.Study(None, gaol="minimize"), "gaol", "goal"),
        (lambda: nr.OnAverage(stp=1), "stp", "step"),
        (lambda: nr.compare({}, {}, roundz=3), "roundz", "rounds"),
        (lambda: nr.kernels.Matern(2.5, lengthscal=1), "lengthscal", "lengthscale"),
        (lambda: nr.plots.history(None, paht="x.png"), "paht", "path"),
        (lambda: nr.theory.gp_ucb_regret_bound(10, widht=3), "widht", "width"),
    ],
)
def test_a_misspelt_keyword_gets_a_hint(call, misspelt, meant):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{misspelt}'. Did you mean '{meant}'"):
        call()


def test_a_function_with_hints_is_the_function_itself_to_other_processes():
    assert pickle.loads(pickle.dumps(nr.auto)) is nr.auto
    assert nr.kernel_for is nr.kernels.kernel_for


def test_an_error_inside_a_call_gets_no_hint():
    study = nr.Study(nr.auto(nr.Box(0, 1)))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'trails'$"):
        nr.run(study, abs, trials=1, callbacks=[lambda *_: (lambda: None)(trails=1)])


def test_a_traceback_has_one_hint():
    try:
        _ = nr.minimise
    except AttributeError as error:
        text = "".join(traceback.format_exception(error))
    assert text.endswith("no attribute 'minimise'. Did you mean 'minimize'?\n")


@pytest.mark.parametrize("name", nr.errors.__all__)
def test_a_traceback_names_an_error_by_its_public_module(name):
    kind = getattr(nr.errors, name)
    assert kind.__module__ == "nilregret.errors"
    assert getattr(importlib.import_module(kind.__module__), name) is kind
    assert type(pickle.loads(pickle.dumps(kind("text")))) is kind


def test_an_error_comes_back_from_another_process_as_itself():
    code = (
        "import cloudpickle, sys; from nilregret.domains.parameters import Float\n"
        "try: Float(1, 0)\n"
        "except ValueError as error: sys.stdout.buffer.write(cloudpickle.dumps(error))"
    )
    sent = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    back = (
        "import pickle, sys, nilregret._utils.errors as e\nassert type(pickle.load(sys.stdin.buffer)) is e.InvalidInput"
    )
    assert type(pickle.loads(sent)) is nr.errors.InvalidInput
    for first in ("", "import nilregret as nr\n", "import nilregret.errors\n"):
        subprocess.run([sys.executable, "-c", first + back], input=sent, check=True)


def test_a_strange_name_gets_no_hint():
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzyx'$"):
        _ = nr.xyzzyx
