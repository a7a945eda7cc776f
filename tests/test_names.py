"""Public names: few at the top, the others in modules, each the real object that its module defines."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
import textwrap
import traceback
from types import FunctionType

import pytest

import nilregret as nr
from nilregret.algorithms import Slots

TOP = """
    maximize minimize run Study Trial Result Space Float Int Choice Fidelity when Arms Box auto gp_ucb irgp_ucb igp_ucb
    gp_ts kernel_ucb gp_ucb_cpd gp_ucb_sdf gp_ts_sdf gp_bucb gp_ucb_noiseless_constraints
    gp_ucb_noisy_constraints expected_improvement SquaredExponential Matern Linear kernel_for EveryRound
    OnAverage Safe Environment simulate replicate compare evaluate information_gain Policy NoRegretError
    current_trial Mixture Enough NoWorse
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
    assert len(dir(nr)) <= 55


@pytest.mark.parametrize("name", OLD.split())
def test_a_name_that_was_at_the_top_in_version_0_2_is_there_or_an_error_says_where_it_is(name):
    try:
        assert getattr(nr, name) is not None
    except AttributeError as error:
        place = str(error).partition("Did you mean '")[2].removesuffix("'?")
        assert place.endswith(f".{name}")
        assert pkgutil.resolve_name(place) is not None


def test_a_module_that_is_no_public_name_is_found_without_a_search_for_hints():
    code = "import sys, nilregret; nilregret.serialize; assert 'nilregret.gp' not in sys.modules; nilregret.Policy"
    subprocess.run([sys.executable, "-c", code], check=True)


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
    [
        ("gp_ubc", "gp_ucb"), ("matern", "Matern"), ("DriftBanc", "nilregret.slots.DriftBank"),
        ("EveryRond", "EveryRound"), ("InvalidInput", "nilregret.errors.InvalidInput"), ("fit", "nilregret.gp.fit"),
    ],
)  # fmt: skip
def test_a_misspelt_name_gets_a_hint(misspelt, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{misspelt}'. Did you mean '{meant}'"):
        getattr(nr, misspelt)


@pytest.mark.parametrize(
    ("module", "misspelt", "meant"),
    [("plots", "histroy", "history"), ("slots", "Drift_Bank", "DriftBank"), ("kernels", "Matrn", "Matern")],
)
def test_the_traceback_of_a_misspelt_name_in_a_module_has_one_hint(module, misspelt, meant, capsys):
    with pytest.raises(AttributeError, match=f"'{misspelt}'") as raised:
        getattr(getattr(nr, module), misspelt)
    sys.__excepthook__(raised.type, raised.value, raised.tb)
    shown = capsys.readouterr().err
    assert re.search(rf"Did you mean:? '{meant}'\?\n$", shown)
    assert shown.count("Did you mean") == 1


@pytest.mark.parametrize(
    ("call", "misspelt", "meant"),
    [
        (lambda: nr.Study.bounds(None, chanel=1), "chanel", "channel"),
        (lambda: nr.auto(nr.Box(0, 1), paralel=4), "paralel", "parallel"),
        (lambda: nr.Study(None, goals="minimize"), "goals", "goal"),
        (lambda: nr.OnAverage(stp=1), "stp", "step"),
        (lambda: nr.plots.history(None, paths="x.png"), "paths", "path"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_the_hint_that_python_has(call, misspelt, meant):
    hint = rf"\. Did you mean '{meant}'\?$" if sys.version_info >= (3, 13) else "$"
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{misspelt}'{hint}") as caught:
        call()
    assert not str(caught.value).startswith("Queries")


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [("study", "best_value", r"`study.best\(\)`"), ("study", "best_trials", r"`study.front\(\)`"),
     ("result", "best_params", "`result.best_parameters`"), ("result", "zzz", None)],
)  # fmt: skip
def test_attributes_of_other_libraries_are_named_as_here(kind, name, meant):
    result = nr.minimize(lambda x: x, nr.Space(x=nr.Int(0, 2)), trials=1, progress=False)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'" + (rf"\. {meant}" if meant else "$")):
        getattr(result if kind == "result" else result.study, name)


def test_a_width_of_other_libraries_is_named_as_here():
    arms, kernel = nr.Arms.grid(0, 1, 3), nr.Matern()
    with pytest.raises(TypeError, match=r"'beta'\. Here `width` multiplies the standard deviation"):
        nr.gp_ucb(arms, kernel, noise=0.1, beta=2.0)


PUBLIC = """
    algorithms client environments errors evaluation gp kernels plots simulation slots storage study testing theory
    tuning
"""


@pytest.mark.parametrize("place", ["nilregret", *(f"nilregret.{room}" for room in PUBLIC.split())])
def test_a_public_object_is_the_one_that_its_source_defines(place):
    """Nothing is put round a function or an `__init__`: signatures, tracebacks, pickles and editors see the source."""
    public = importlib.import_module(place)
    for name in public.__all__:
        found = getattr(public, name)
        if not isinstance(found, FunctionType | type):
            continue
        module = sys.modules[found.__module__]
        assert found.__name__ == found.__qualname__ == name
        assert getattr(module, name) is found is pickle.loads(pickle.dumps(found))
        made = found if isinstance(found, FunctionType) else vars(found).get("__init__")
        if isinstance(made, FunctionType) and made.__code__.co_filename not in (module.__file__, "<string>"):
            tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(made))))
            assert tree.body[0].decorator_list, f"something that the source does not show was put round {name}"


def test_an_algorithm_shows_its_source_and_its_whole_signature():
    assert not hasattr(nr.gp_ucb, "__wrapped__")
    assert inspect.getsourcefile(nr.gp_ucb) == sys.modules[nr.gp_ucb.__module__].__file__
    assert inspect.getsource(nr.gp_ucb).startswith("@algorithm()\ndef gp_ucb(\n")
    shown = inspect.signature(nr.gp_ucb).parameters
    assert [*shown][:3] == ["domain", "kernel", "noise"]
    assert shown.keys() > Slots.__annotations__.keys()


def test_nothing_finds_modules_but_python():
    assert [each for each in sys.meta_path if type(each).__module__.startswith("nilregret")] == []


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
    back = "import pickle, sys, nilregret.errors as e\nassert type(pickle.load(sys.stdin.buffer)) is e.InvalidInput"
    assert type(pickle.loads(sent)) is nr.errors.InvalidInput
    for first in ("", "import nilregret as nr\n", "import nilregret.errors\n"):
        subprocess.run([sys.executable, "-c", first + back], input=sent, check=True)


def test_a_strange_name_gets_no_hint():
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzyx'$"):
        _ = nr.xyzzyx


def test_help_of_minimize_explains_the_arguments_of_maximize():
    told = inspect.getdoc(nr.minimize)
    assert told.startswith("Finds the point at which an objective is smallest.")
    for name in inspect.signature(nr.minimize).parameters:
        assert f"\n    {name}: " in told, name
