"""What a tuning file may say of the policy: everything that an algorithm takes, or a reason why not."""

import inspect
import re
import runpy
import sys
from pathlib import Path

import pytest

import nilregret as nr
from nilregret.algorithms import registry as schema
from nilregret.slots.by_name import SLOTS
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import (
    CoordinateSearch,
    InitialDesign,
    InTurn,
    UncertaintySampling,
    Uniform,
    UniformExploration,
)
from nilregret.theory.series import EvenSeries, PowerSeries
from nilregret.tuning.toml import study_file
from nilregret.tuning.toml.config import load

WORST = nr.slots.Ignored(failed="worst")
DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "tune.md").read_text()
JOB = """
trials = 5
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[parameters.kind]
type = "choice"
options = ["a", "b", "c"]
[parameters.y]
type = "int"
low = 1
high = 9
"""
MIXED = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b", "c"), y=nr.Int(1, 9))
OBJECTIVE = '[objective]\nfunction = "objective:score"\n'
POLICY = '[policy]\nalgorithm = "gp_ucb"\nnoise = 0.1\nkernel = { type = "matern" }\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield tmp_path
    sys.modules.pop("mine", None)


def test_a_file_has_limits(folder):
    limited = MIXED.where("x + y <= 5", "kind != 'a' or x > 0.5")
    lines = """where = ["x + y <= 5", "kind != 'a' or x > 0.5"]"""
    assert policy_of(folder, job=f"{lines}\n{JOB}").domain == limited
    path = folder / "study.toml"
    path.write_text(f'where = "x + y <= 5"\ngrid = 3\n{JOB.replace("trials = 5", "")}')
    assert study_file.load(path).policy.domain == MIXED.where("x + y <= 5").grid(3)
    with pytest.raises(nr.errors.InvalidInput, match=r"\[where\] Limit 'x . z <= 5' names `z`"):
        policy_of(folder, job=f'where = ["x + z <= 5"]\n{JOB}')


def policy_of(folder, *lines, policy=POLICY, job=JOB):
    path = folder / "job.toml"
    path.write_text("\n".join([job, policy, *lines, OBJECTIVE]))
    return load(path).policy


def refused(folder, *lines, policy=POLICY):
    with pytest.raises(nr.errors.InvalidInput) as caught:
        policy_of(folder, *lines, policy=policy)
    return str(caught.value).split("job.toml: ")[1]


@pytest.mark.parametrize("name", schema.ALGORITHMS)
def test_every_option_is_an_entry_or_left_out_with_a_reason(name):
    table = schema.ALGORITHMS[name]
    options = set(inspect.signature(table.make).parameters)
    assert table.make is (nr.auto if name == "auto" else getattr(nr.algorithms, name))
    assert set(table.entries) <= options
    assert options - set(table.entries) == options & set(schema.LEFT_OUT)
    required = {p.name for p in inspect.signature(table.make).parameters.values() if p.default is p.empty} - {"domain"}
    if name != "auto":
        required |= {"noise"}  # which would follow from `reward`, that no file says
    assert set(table.needed) == required


@pytest.mark.parametrize("name", schema.ALGORITHMS_LIVE)
def test_programs_that_ask_and_tell_may_name_every_option(name):
    table = schema.ALGORITHMS_LIVE[name]
    options = set(inspect.signature(table.make).parameters)
    later = {"memory", "refit", "width", "delta"} if name in schema.IN_EPOCHS else set()  # they have their own
    assert options - set(table.entries) - later == options & set(table.refused)
    assert table.make is (nr.auto if name == "auto" else getattr(nr.algorithms, name))


def test_reasons_are_given_for_what_exists():
    options = {name for table in schema.ALGORITHMS.values() for name in inspect.signature(table.make).parameters}
    assert set(schema.LEFT_OUT) <= options
    assert all(len(reason) > 20 for reason in [*schema.LEFT_OUT.values(), *schema.ALGORITHMS_LEFT_OUT.values()])


TABLES = [
    *schema.KERNELS.items(),
    *(named for _, parts in schema.PARTS.values() for named in parts.items()),
    *schema.REFITS.items(),
    *{"v": schema.POWER_LAW, "refit": schema.REFIT, "search": schema.SEARCH}.items(),
]


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_every_field_of_a_part_is_an_entry(name, table):
    own = {  # what the file knows is left out
        "scaled": ["factor", "kernel"], "active": ["parameters", "kernel"], "rounded": ["kernel"],
        "for_parameters": ["kernel", "lengthscale", "choices"],
        "imputed": ["failed", "minimum", "answer"], "late_or_never": ["failed", "minimum", "answer"],  # law: learned
        "exposed": ["failed", "wait", "minimum"],
        "bernoulli": ["ceiling"], "poisson": ["ceiling"], "bounded": ["low", "high"],  # the goal says which are losses
        "no_worse": ["than", "by", "delta", "metric", "higher", "span", "norm_bound"],
    }  # fmt: skip
    if name in own:
        assert table.entries == own[name]
        return
    fields = inspect.signature(table.make).parameters
    beside = {"count"} if table in schema.PARTS["constraints"][1].values() else set()
    assert set(table.entries) == set(fields) - beside
    assert set(table.needed) == {p.name for p in fields.values() if p.default is p.empty}


def test_every_part_that_a_program_can_name_a_file_can_name_too():
    """Public kernels and parts; an empirical kernel is of arms that no file lists."""
    made = {table.make for _, table in TABLES}
    public = [getattr(room, name) for room in (nr.kernels, nr.slots) for name in room.__all__]
    unsaid = ("score", "objective", "constraints", "switching")  # the last two: an objective gives one number
    kinds = tuple(kind for slot, (kind, _) in SLOTS.items() if slot not in unsaid)
    parts = {thing for thing in public if isinstance(thing, type) and issubclass(thing, (*kinds, nr.kernels.Kernel))}
    parts = {part for part in parts if not inspect.isabstract(part)}
    assert parts - made == {
        nr.kernels.Empirical,
        nr.kernels.Multiplied,
        nr.kernels.Stretched,
        nr.slots.Censored,
        nr.slots.EarlierStudies,
        nr.slots.GivenPoints,
        nr.slots.Memory,
    }  # `like` at the top of a file makes earlier studies and their points, and `Censored.within` the last one


def test_a_file_may_say_what_is_known_to_auto(folder):
    text = '[policy]\nalgorithm = "auto"\n'
    assert policy_of(folder, policy=text) == nr.auto(MIXED)
    lines = ["noise = 0.2", "budget = 60", "parallel = 3", 'world = "drifting"', 'answers = "late"']
    known = {"noise": 0.2, "budget": 60, "parallel": 3, "world": "drifting", "answers": "late"}
    assert policy_of(folder, *lines, policy=text) == nr.auto(MIXED, **known)
    said = refused(folder, 'kernel = { type = "matern" }', policy=text)
    assert "unknown kernel" in said
    assert "noise, budget, parallel, reference, world, answers" in said
    assert "`constraints` cannot be set in a file" in refused(folder, "constraints = 1", policy=text)
    assert "`world` is 'flat'" in refused(folder, 'world = "flat"', policy=text)


def test_the_page_of_entries_names_everything():
    text = runpy.run_path(str(DOCS / "policy_tables.py"))["filled"]((DOCS / "policy-tables.md").read_text())
    assert "<!--" not in text
    named = [*TABLES, *schema.ALGORITHMS.items(), *((name, schema.ALGORITHMS_LIVE[name]) for name in schema.IN_EPOCHS)]
    words = {word for name, table in named for word in (name, *table.entries)}
    assert {word for word in words if f"`{word}`" not in text} == set()


BLOCKS = [
    block
    for block in re.findall(r"^```toml\n(.*?)^```", PAGE + (DOCS / "policy-tables.md").read_text(), re.M | re.S)
    if "[policy]" in block or "trials = " in block  # not those that are a part of a file alone
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_pages_files_are_accepted_and_play(folder, block):
    (folder / "mine.py").write_text(re.search(r"^with `mine.py`:\n\n```python\n(.*?)^```", PAGE, re.M | re.S).group(1))
    path = folder / "job.toml"
    path.write_text(block if "trials = " in block else JOB + block + OBJECTIVE)
    job = load(path)
    policy = nr.auto(job.domain) if job.policy is None else job.policy
    assert (job.policy is None) == ("[policy]" not in block)
    assert nr.Policy.from_json(policy.to_json()) == policy
    study = nr.Study(policy, seed=0)
    for k in range(3):
        study.tell(study.ask(), float(k))
    assert study.ask().parameters


def test_there_are_blocks_of_each_kind():
    assert len(BLOCKS) == 6
    assert sum("trials = " in block for block in BLOCKS) == 1


@pytest.mark.parametrize("name", schema.ALGORITHMS)
def test_every_algorithm_is_made_from_a_file(folder, name):
    needs = {"eta": 1.0, "window": 3.0, "horizon": 50, "reference": [-2.0, -2.0]}
    more = [f"{entry} = {needs[entry]}" for entry in schema.ALGORITHMS[name].needed if entry in needs]
    more += ["norm_bound = 1.0"] * (name in ("igp_ucb", "gp_ts", "lb_gp_ucb"))
    text = POLICY.replace("gp_ucb", name)
    policy = policy_of(folder, *more, policy="".join(text.splitlines(True)[:3]) if name == "auto" else text)
    assert policy.algorithm == name
    if "pending" in schema.ALGORITHMS[name].entries:
        assert policy.pending == nr.slots.Ignored(failed="worst")  # a failing region is left


@pytest.mark.parametrize(
    ("line", "slot", "part"),
    [
        ('memory = { type = "sliding_window", rounds = 30 }', "memory", nr.slots.SlidingWindow(30)),
        ('memory = "adaptive"', "memory", nr.slots.EDetector()),
        (
            'memory = { type = "e_detector", delta = 0.01, clip = 3 }',
            "memory",
            nr.slots.EDetector(delta=0.01, clip=3.0),
        ),
        ('memory = { type = "restart_every", rounds = 30 }', "memory", nr.slots.RestartEvery(30)),
        ('memory = { type = "restart_at", rounds = [3, 9] }', "memory", nr.slots.RestartAt((3, 9))),
        (
            'memory = { type = "restart_doubling", first = 4, ridge = true }',
            "memory",
            nr.slots.RestartDoubling(4, ridge=True),
        ),
        ('explore = { type = "uncertainty", rounds = 4 }', "explore", UncertaintySampling(4)),
        ('explore = { type = "uniform" }', "explore", UniformExploration()),
        ('explore = { type = "floor", rate = 0.1 }', "explore", Uniform(0.1)),
        (
            'explore = { type = "elsewhere", otherwise = { every = 3 } }',
            "explore",
            nr.slots.Elsewhere(otherwise=CoordinateSearch(every=3)),
        ),
        (
            'explore = { type = "in_turn", parts = [{ type = "initial_design", rounds = 4 }, '
            '{ type = "coordinate_search", every = 3 }] }',
            "explore",
            InTurn((InitialDesign(4), CoordinateSearch(every=3))),
        ),
        ('pending = "hallucinate"', "pending", nr.slots.Hallucinated(failed="worst")),
        ('pending = "ignore"', "pending", nr.slots.Ignored(failed="worst")),
        ('pending = { type = "ignored", failed = "aside" }', "pending", nr.slots.Ignored()),
        (
            'pending = { type = "nearest_means", neighbours = 2 }',
            "pending",
            nr.slots.NearestMeans(neighbours=2, failed="worst"),
        ),
        ('pending = "auto"', "pending", nr.slots.LateOrNever(failed="worst")),
        (
            'pending = { type = "imputed", minimum = -1.0, answer = 2.0 }',
            "pending",
            nr.slots.Imputed(minimum=-1.0, answer=2.0, failed="worst"),
        ),
        (
            'pending = { type = "censored", window = 2.0, minimum = -1.0 }',
            "pending",
            nr.slots.Censored.within(2.0, minimum=-1.0),
        ),
        ("search = { starts = 2 }", "search", nr.slots.PointSearch(starts=2)),
        ("refit = { every = 5, restarts = 0 }", "refit", nr.slots.Refit(every=5, restarts=0)),
        ('width = { type = "constant", value = 2 }', "confidence", ConstantWidth(value=2.0)),
    ],
)
def test_parts_from_a_file(folder, line, slot, part):
    assert getattr(policy_of(folder, line), slot) == part


@pytest.mark.parametrize(
    ("table", "memory"),
    [
        ('type = "discount", rate = 0.1', nr.slots.Discount(0.1)),
        ('type = "drift_bank", rates = [0.0, 0.1]', nr.slots.DriftBank((0.0, 0.1))),
        (
            'type = "all_of", parts = [{ type = "sliding_window", rounds = 9 }, { type = "discount", rate = 0.1 }]',
            nr.slots.AllOf((nr.slots.SlidingWindow(9), nr.slots.Discount(0.1))),
        ),
    ],
)
def test_forgetting_in_time(folder, table, memory):
    line = f"memory = {{ {table} }}"
    assert policy_of(folder, line, job=JOB.replace("trials = 5", "trials = 5\ngrid = 3")).memory == memory
    if isinstance(memory, nr.slots.DriftBank):
        assert "finitely many arms" in refused(folder, line)
    else:
        assert policy_of(folder, line).memory == memory


def test_series_and_schedules(folder):
    assert policy_of(folder, "series = 3.0").confidence.series == PowerSeries(3.0)
    assert policy_of(folder, 'series = { type = "even", rounds = 9 }').confidence.series == EvenSeries(9)
    free = POLICY.replace("gp_ucb", "igp_ucb")
    assert policy_of(folder, "v = 2", policy=free).confidence.schedule == nr.theory.PowerLaw(2.0)
    law = policy_of(folder, "v = { constant = 2.0, exponent = 0.5 }", policy=free)
    assert law.confidence.schedule == nr.theory.PowerLaw(2.0, 0.5)
    cpd = policy_of(folder, "horizon = 90", "threshold = { constant = 2.0 }", policy=POLICY.replace("ucb", "ucb_cpd"))
    assert cpd.memory.threshold == nr.theory.PowerLaw(2.0)


@pytest.mark.parametrize(
    ("table", "kernel"),
    [
        ('{ type = "rational_quadratic", alpha = 2.0 }', nr.kernels.RationalQuadratic(2.0)),
        ('{ type = "periodic", period = 0.5 }', nr.kernels.Periodic(0.5)),
        ('{ type = "linear", scale = 3 }', nr.Linear(scale=3.0)),
        ('{ type = "matern", lengthscale = [1, 2, 3, 4, 5] }', nr.Matern(2.5, [1.0, 2.0, 3.0, 4.0, 5.0])),
        (
            '{ type = "sum", left = { type = "linear" }, right = { type = "matern" } }',
            nr.Linear() + nr.Matern(),
        ),
        (
            '{ type = "product", left = { type = "linear" }, right = { type = "matern" } }',
            nr.Linear() * nr.Matern(),
        ),
        ('{ type = "scaled", factor = 3.0, kernel = { type = "matern" } }', 3.0 * nr.Matern()),
        # x has column 0, the three options of kind columns 1 to 3, y column 4.
        (
            '{ type = "active", parameters = ["y", "kind"], kernel = { type = "matern" } }',
            nr.Matern().on(4, 1, 2, 3),
        ),
        ('{ type = "for_parameters" }', nr.kernel_for(MIXED)),
        (
            '{ type = "for_parameters", kernel = { type = "matern", nu = 1.5 }, lengthscale = 0.3, '
            'choices = "overlap" }',
            nr.kernel_for(MIXED, kernel=nr.Matern(1.5), lengthscale=0.3, choices="overlap"),
        ),
        (
            '{ type = "tied", kernel = { type = "matern", lengthscale = [1, 2] }, groups = [0, 1, 1, 1, 0] }',
            nr.kernels.Tied(nr.Matern(2.5, (1.0, 2.0)), (0, 1, 1, 1, 0)),
        ),
        (
            '{ type = "mixture", left = { type = "active", parameters = ["kind"], kernel = { type = "overlap", '
            'groups = [0, 0, 0] } }, right = { type = "matern" }, share = 0.3 }',
            nr.kernels.Mixture(nr.kernels.Overlap((0, 0, 0)).on(1, 2, 3), nr.Matern(), 0.3),
        ),
        ('{ type = "rounded", kernel = { type = "matern" } }', nr.kernels.Rounded(nr.Matern(), MIXED)),
    ],
)
def test_kernels_from_a_file(folder, table, kernel):
    free = POLICY.replace("gp_ucb", "expected_improvement")  # which derives nothing from the kernel
    found = policy_of(folder, policy=free.replace('{ type = "matern" }', table)).kernel
    assert found == kernel


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ["memroy = { }"],
            "unknown memroy. Did you mean 'memory'? The entries of `gp_ucb` are: kernel, noise",
        ),
        (["horizon = 10"], "[policy] unknown horizon. The entries"),
        (["context = 3"], "[policy] `context` cannot be set in a file: contexts are for programs"),
        (
            ["memory = { type = 'sliding' }"],
            "[memory] `type` is 'sliding': it must be one of 'sliding_window'",
        ),
        (["memory = { rounds = 3 }"], "[policy] [memory] `type` is missing: it must be one of 'sliding_window'"),
        (["memory = 3"], "`memory` must be a text or a table, and is a whole number."),
        (
            ["memory = { type = 'sliding_window', round = 3 }"],
            "[policy] [memory] missing rounds; unknown round. Did you mean 'rounds'? The entries of 'sliding_window'",
        ),
        (
            ["memory = { type = 'sliding_window', rounds = 'many' }"],
            "[policy] [memory] `rounds` must be a whole number, and is a text.",
        ),
        (["memory = { type = 'sliding_window', rounds = 0 }"], "[policy] [memory] `rounds` is 0"),
        (["pending = 'halucinate'"], "'ignore', 'hallucinate', 'auto'. Did you mean 'hallucinate'?"),
        (["pending = { type = 'ignored', failed = 'best' }"], "[policy] [pending] `failed` is 'best'"),
        (
            ["width = 'finit'"],
            "[policy] `width` is 'finit': it must be one of 'finite', 'compact', 'rkhs'.",
        ),
        (["scale = 'big'"], "`scale` must be a number, and is a text."),
        (["search = { candidates = 1 }"], "[policy] [search] `candidates` is 1"),
        (["width = { type = 'nowhere:Mine' }"], "[policy] [width] `type` 'nowhere:Mine' could not be loaded"),
        (["width = { type = 'broken:Mine' }"], "could not be loaded from"),
        (["width = { type = 'mine:Shrinking', start = 1, delta = [] }"], "'mine:Shrinking' does not take these values"),
        (["width = { type = 'math:pi' }"], "'math:pi' must be a class that derives from `Confidence`"),
        (["memory = { type = 'mine:Shrinking', start = 1 }"], "must be a class that derives from `Memory`"),
        (["width = { type = 'mine:Shrinking', strat = 1 }"], "missing start; unknown strat. Did you mean 'start'?"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(folder, lines, sentence):
    (folder / "mine.py").write_text(re.search(r"^with `mine.py`:\n\n```python\n(.*?)^```", PAGE, re.M | re.S).group(1))
    (folder / "broken.py").write_text("1 / 0")
    assert sentence in refused(folder, *lines)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (
            "{ type = 'active', parameters = ['z'], kernel = { type = 'matern' } }",
            "`parameters` is 'z': it must be",
        ),
        ("{ type = 'sum', left = { type = 'matern' } }", "[policy] [kernel] missing right"),
        ("{ type = 'sum', left = { type = 'matern' }, right = { type = 'mat' } }", "[kernel] [right] `type` is 'mat'"),
        ("{ type = 'scaled', factor = 0, kernel = { type = 'matern' } }", "[policy] [kernel] `factor` is 0"),
        (
            "{ type = 'matern', lengthscale = 'short' }",
            "[policy] [kernel] `lengthscale` must be a number or a list",
        ),
    ],
)
def test_mistakes_in_kernels(folder, kernel, sentence):
    assert sentence in refused(folder, policy=POLICY.replace('{ type = "matern" }', kernel))


def test_the_constrained_algorithms_say_why_not(folder):
    said = refused(folder, policy=POLICY.replace("gp_ucb", "gp_ucb_noisy_constraints"))
    assert "[policy] `algorithm` 'gp_ucb_noisy_constraints' needs constraint values with every reward" in said


def test_a_study_of_an_older_file_goes_on(folder):
    """The policy of such a file is what it was: a failure counts as the worst, the rest is the algorithm's own."""
    old = policy_of(folder, "scale = 0.2", "prior_mean = 0.5", "refit = { every = 5 }")
    space = nr.Space(x=nr.Float(0.0, 1.0), kind=nr.Choice("a", "b", "c"), y=nr.Int(1, 9))
    more = {
        "scale": 0.2,
        "prior_mean": 0.5,
        "refit": nr.slots.Refit(every=5),
        "pending": nr.slots.Ignored(failed="worst"),
    }
    assert old == nr.gp_ucb(space, nr.Matern(), noise=0.1, **more)


def test_a_file_may_have_a_bank_of_lengthscales(folder):
    line = 'refit = { type = "lengthscale_bank", factors = [0.5, 1, 2], around = { every = 5 } }'
    bank = nr.slots.LengthscaleBank(factors=(0.5, 1.0, 2.0), around=nr.slots.Refit(every=5))
    assert policy_of(folder, line).refit == bank
    assert "Did you mean 'factors'?" in refused(folder, 'refit = { type = "lengthscale_bank", factor = [0.5] }')


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            'algorithm = "gp_ucb"\nreward = { type = "bernoulli", ceiling = 0.2 }\nkernel = { type = "matern" }',
            lambda space: nr.gp_ucb(space, nr.Matern(), reward=nr.slots.Bernoulli(ceiling=0.2), pending=WORST),
        ),
        (
            'algorithm = "gp_ucb"\nnoise = 0.1\nswitching = "lazy"\nkernel = { type = "matern" }',
            lambda space: nr.gp_ucb(space, nr.Matern(), noise=0.1, switching="lazy", pending=WORST),
        ),
        (
            'algorithm = "gp_ucb_noisy_constraints"\nnoise = 0.1\nnorm_bound = 1.0\nepoch = 5\nepochs = 2\n'
            'kernel = { type = "matern" }',
            lambda space: nr.gp_ucb_noisy_constraints(
                space, nr.Matern(), noise=0.1, norm_bound=1.0, epoch=5, epochs=2, constraints=2, pending=WORST
            ),
        ),
        (
            'algorithm = "gp_ucb"\nnoise = 0.1\nkernel = { type = "matern" }\n'
            'constraints = { type = "safe", start = [{ x = 0.5 }], scale = 25.0, noise = 0.5 }',
            lambda space: nr.gp_ucb(
                space,
                nr.Matern(),
                noise=0.1,
                pending=WORST,
                constraints=nr.Safe(start=[[0.5]], count=2, scale=25.0, noise=0.5),
            ),
        ),
    ],
)
def test_a_study_of_a_program_takes_what_no_file_of_an_objective_does(folder, policy, expected):
    path = folder / "study.toml"
    counted = "constraints = 2\n" * ("epochs" in policy or "safe" in policy)
    path.write_text(f'{counted}[parameters.x]\ntype = "float"\nlow = 0.0\nhigh = 1.0\n[policy]\n{policy}\n')
    assert study_file.load(path).policy == expected(nr.Space(x=nr.Float(0, 1)))
    with pytest.raises(nr.errors.InvalidInput):
        policy_of(folder, policy=f"[policy]\n{policy}\n")


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(("said", "wanted"), [({}, nr.EveryRound), ({"constraints": "on_average"}, nr.OnAverage)])
def test_auto_takes_constraints_in_the_sense_that_is_said(said, wanted, live):
    space = nr.Space(x=nr.Float(0, 1))
    place = schema.PolicyContext(space, None, constraints=2, live=live)
    made = schema.policy({"algorithm": "auto", **said}, space, place)
    assert type(made.constraints) is wanted
    assert made.constraint_count == 2


def test_auto_takes_a_floor_where_a_program_asks():
    arms = nr.Arms(range(3))
    place = schema.PolicyContext(None, None, live=True)
    floor = {"type": "floor", "rate": 0.1}
    made = schema.policy({"algorithm": "auto", "reward": "bernoulli", "explore": floor}, arms, place)
    assert made == nr.auto(arms, reward="bernoulli").using(explore=nr.slots.Uniform(0.1))
    shared = {"algorithm": "auto", "reward": "bernoulli", "explore": {"shares": {"1": 0.05}}}
    assert schema.policy(shared, arms, place).explore == nr.slots.Shares({1: 0.05})
    for wrong, sentence in (("uniform", "`explore` must be a table"), ({"type": "floor", "rate": 0}, "`rate` is 0")):
        with pytest.raises(nr.errors.InvalidInput, match=sentence):
            schema.policy({"algorithm": "auto", "explore": wrong}, arms, place)
    with pytest.raises(nr.errors.InvalidInput, match="unknown explore"):
        schema.policy({"algorithm": "auto", "explore": floor}, arms, schema.PolicyContext(None, None))
