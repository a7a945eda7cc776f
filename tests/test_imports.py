"""The package is built in one direction, and importing it loads little."""

import ast
import subprocess
import sys
from pathlib import Path

import noregret

ROOT = Path(noregret.__file__).parent

# A module imports only from those above it.
ORDER = [
    "errors",
    "blas",
    "checks",
    "pools",
    "serialize",
    "garbage",
    "randomness",
    "delays",
    "parameters",
    "conditions",
    "coordinates",
    "domain",
    "search.designs",
    "kernels.derivatives",
    "kernels.differences",
    "kernels.base",
    "kernels.combined",
    "kernels.wrapped",
    "kernels.stationary",
    "kernels.tied",
    "kernels.categories",
    "kernels.rounded",
    "kernels.domains",
    "kernels.periodic",
    "kernels.others",
    "kernels",
    "warping",
    "posterior.protocol",
    "posterior.spectrum",
    "posterior.factorization",
    "posterior.arms",
    "posterior.features",
    "posterior.played",
    "posterior.triangle",
    "posterior.drifting",
    "posterior.bank",
    "posterior.retraced",
    "posterior.rates",
    "posterior.at_points",
    "posterior.points",
    "posterior.observations",
    "posterior.weights",
    "posterior.spans",
    "posterior.inducing",
    "posterior.spanned",
    "posterior.standing",
    "posterior.prior_paths",
    "posterior.paths",
    "posterior.averaged",
    "posterior.belief",
    "posterior",
    "theory.information",
    "theory.rates",
    "change.schedules",
    "change.bounds",
    "change.closed",
    "change.geometry",
    "change.algorithm",
    "change.grams",
    "change.detector",
    "change.beliefs",
    "change.readings",
    "change.evidence",
    "change.several",
    "change.calibration",
    "change.validation",
    "change",
    "theory.regret_bounds",
    "theory.delayed_bounds",
    "likelihood",
    "fitting",
    "trial",
    "record",
    "optimize.answers",
    "slots.base",
    "widths.series",
    "slots.envelope",
    "widths.gains",
    "widths.unknown_noise",
    "widths.self_normalized",
    "widths.mixtures",
    "widths.delayed",
    "widths.periods",
    "widths.slopes",
    "widths",
    "search.arms",
    "search.ascent",
    "search.quadratic",
    "slots.books",
    "slots.view",
    "search.boxes",
    "search.lattice",
    "search",
    "slots.scores",
    "slots.refit",
    "slots.sketch",
    "slots.lengthscales",
    "slots.sizes",
    "slots.memory",
    "slots.adaptive",
    "slots.together",
    "slots.explore",
    "slots.waits",
    "slots.pending",
    "slots.silence",
    "slots.penalties",
    "theory.constraint_bounds",
    "theory",
    "slots.objective",
    "slots.rewards",
    "slots.switching",
    "slots.named",
    "widths.likelihoods",
    "slots.borders",
    "slots.constraints",
    "slots.safe",
    "slots.beside",
    "slots",
    "policy.availability",
    "policy.engines.base",
    "policy.engines.arms",
    "policy.engines.rounds",
    "policy.engines.points",
    "policy.engines",
    "policy.answers",
    "policy.aside",
    "baselines.scripted",
    "baselines.oco",
    "baselines.admm",
    "baselines",
    "storage.rows",
    "storage.base",
    "storage.memory",
    "storage.tables",
    "storage.beside",
    "storage.notes",
    "storage.database",
    "environments.changes",
    "environments.delays",
    "environments.truth",
    "environments.environment",
    "environments.table",
    "environments.sample",
    "environments.norms",
    "environments.known",
    "environments.constrained",
    "environments.files",
    "environments.readings",
    "environments.sensors",
    "environments.datasets",
    "environments.intel_log",
    "environments",
    "metrics",
    "testing.base",
    "testing.kernels",
    "curves",
    "papers.figure",
    "papers.verdicts",
    "papers.power",
    "papers.verma.tables",
    "papers",
    "tuning",
    "tuning.outside",
    "tuning.sections",
    "tuning.template",
    "tuning.shell",
    "slots.check",
    "policy.policy",
    "policy.best",
    "policy.charged",
    "policy.waiting",
    "policy.ledger",
    "policy.fits",
    "policy.balance",
    "policy.learning",
    "policy.channels",
    "policy.recent",
    "policy.runs",
    "policy.turns",
    "policy.state",
    "policy.reasons",
    "policy",
    "algorithms.common",
    "algorithms.randomised",
    "algorithms.srinivas",
    "algorithms.chowdhury",
    "algorithms.avanesov",
    "algorithms.verma",
    "algorithms.shi",
    "algorithms.ziomek",
    "algorithms",
    "algorithms.auto",
    "study.goal",
    "study.rewards",
    "study.integrity",
    "study.given",
    "study.axes",
    "study.best",
    "study.export",
    "study.explanation",
    "study.fitted",
    "study.explain",
    "storage.files",
    "storage.server",
    "storage.sql",
    "storage",
    "study.cautions",
    "study.kept",
    "study.answering",
    "study.prices",
    "study.looking",
    "study.seen",
    "study.study",
    "study.several",
    "study",
    "integrations",
    "integrations.distributions",
    "integrations.suggested",
    "integrations.follower",
    "integrations.importing",
    "integrations.sampler",
    "integrations.optuna",
    "integrations.ranges",
    "rounds",
    "lazily",
    "simulation",
    "testing.driver",
    "testing.parts",
    "testing.scores",
    "testing.policies",
    "testing.storages",
    "testing",
    "plots",
    "optimize.feasibility",
    "optimize.objective",
    "optimize.limits",
    "optimize.executors",
    "optimize.opening",
    "optimize.lock",
    "optimize.loop",
    "optimize.result",
    "optimize.progress",
    "optimize.session",
    "optimize.run",
    "optimize.call",
    "optimize",
    "integrations.sklearn",
    "papers.trials",
    "papers.report",
    "papers.sensors",
    "papers.srinivas",
    "papers.chowdhury",
    "papers.avanesov",
    "papers.verma.rules",
    "papers.verma.synthetic",
    "papers.verma.tuning",
    "papers.verma.contexts",
    "papers.verma.widths",
    "papers.verma",
    "papers.shi",
    "papers.run",
    "tuning.offered",
    "tuning.schema",
    "tuning.config",
    "tuning.evaluation",
    "tuning.workers",
    "tuning.joining",
    "tuning.run",
    "tuning.report",
    "tuning.studies",
    "operate",
    "operate.words",
    "serve",
    "serve.caller",
    "serve.limits",
    "serve.advice",
    "serve.fitting",
    "serve.problems",
    "serve.roles",
    "serve.origins",
    "serve.rates",
    "serve.timely",
    "serve.threads",
    "serve.bodies",
    "serve.answers",
    "serve.vault",
    "serve.tokens",
    "serve.login",
    "serve.gate",
    "serve.settings",
    "serve.addresses",
    "serve.tenants",
    "serve.decisions",
    "serve.waiting",
    "serve.tally",
    "serve.messages",
    "serve.queries",
    "client.calls",
    "client.sending",
    "client.remote",
    "client.awaited",
    "client",
    "serve.holding",
    "serve.desk",
    "serve.repeats",
    "serve.calls",
    "serve.regret",
    "serve.metrics",
    "serve.events",
    "serve.service",
    "serve.operations",
    "serve.doors",
    "serve.replies",
    "serve.sizes",
    "serve.holding",
    "serve.making",
    "serve.api",
    "serve.looking",
    "serve.examples",
    "serve.parameters",
    "serve.openapi",
    "serve.dashboard.views",
    "serve.dashboard.views.pictures",
    "serve.dashboard.views.domains",
    "serve.dashboard.views.progress",
    "serve.dashboard.views.standing",
    "serve.dashboard.views.waits",
    "serve.dashboard.views.changes",
    "serve.dashboard.views.budgets",
    "serve.dashboard.views.places",
    "serve.dashboard.views.maps",
    "serve.dashboard.views.rivals",
    "serve.dashboard.views.beliefs",
    "serve.dashboard.views.accounts",
    "serve.dashboard.views.worth",
    "serve.dashboard.views.trials",
    "serve.dashboard.files",
    "serve.dashboard.rendering",
    "serve.dashboard.pages",
    "serve.dashboard",
    "serve.app",
    "serve.reference",
    "serve.testing",
    "serve.connections",
    "serve.running",
    "operate",
    "operate.words",
    "operate.refusals",
    "operate.overview",
    "operate.common",
    "operate.looking",
    "operate.driving",
    "operate.keeping",
    "operate.commands",
    "operate.working",
    "operate.serving",
    "cli",
    "__main__",
]


def module_name(path):
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path):
    """Absolute names, within the package, of the modules that a file imports anywhere in it."""
    package = [*path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                full = ".".join([*base, alias.name])
                is_module = (ROOT / Path(*full.split("."))).with_suffix(".py").exists() or (
                    ROOT / Path(*full.split("."))
                ).is_dir()
                yield full if is_module else ".".join(base)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                assert not str(name).startswith("noregret"), f"{path}: write it as a relative import"


def test_every_module_is_in_the_order():
    names = {module_name(path) for path in ROOT.rglob("*.py")} - {""}
    assert names == set(ORDER)


def test_imports_go_in_one_direction():
    wrong = []
    for path in ROOT.rglob("*.py"):
        name = module_name(path)
        if name == "":
            continue
        for target in imported(path):
            if target and ORDER.index(target) >= ORDER.index(name):
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_importing_the_package_loads_nothing_heavy():
    script = "import noregret, sys; noregret.Study; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"matplotlib", "sklearn", "sqlalchemy", "msgspec", "tqdm", "tabulate", "click", "loky", "threadpoolctl"}
    heavy |= {"optuna", "pandas", "pyarrow", "dask", "distributed"}
    assert heavy & set(loaded) == set()
    script = "import noregret, sys; noregret.Study; print(*[name for name in sys.modules if name.startswith('scipy.')])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[1] for name in loaded} & {"spatial", "stats", "special", "optimize"} == set()


def test_only_plots_imports_a_plotting_library():
    users = [
        module_name(path)
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matplotlib")
    ]
    assert set(users) == {"plots"}


def test_every_public_name_is_listed_once_and_loads():
    listed = [name for names in noregret._HOME.values() for name in names]
    assert sorted(listed) == sorted(noregret.__all__) == sorted(set(listed))
    tree = ast.parse((ROOT / "__init__.py").read_text())
    typed = [
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level for alias in node.names
    ]
    assert sorted(typed) == sorted(listed)
    script = "import noregret; [getattr(noregret, name) for name in noregret.__all__]; print(noregret.__version__)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def test_no_module_hides_a_public_name():
    """Importing a module puts its name on the package."""
    assert not {path.stem for path in ROOT.glob("*")} & set(noregret.__all__)
