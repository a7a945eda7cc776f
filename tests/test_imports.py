"""The package is built in one direction, and importing it loads little."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache

from .source import FILES, ROOT, nodes, text_of

# Rooms by floor: a module imports from its own room and from floors below.
FLOORS = [
    {"errors"},
    {"_utils"},
    {"serialize"},
    {"domains"},
    {"kernels", "storage"},
    {"gp", "theory"},
    {"environments", "slots"},
    {"policy"},
    {"algorithms", "study"},
    {"plots"},
    {"evaluation", "simulation"},
    {"integrations", "serve", "tuning"},
    {"cli", "client", "papers", "testing"},
    {"__main__"},
]
# Rooms inside `serve/`, which imports go down too.
SERVE = ["wire", "auth", "work", "watch", "api", "dashboard", "http"]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


@cache
def imported(path):
    """Returns absolute names, within the package, of the modules that a file imports anywhere in it."""
    return tuple(found_imports(path))


def found_imports(path):
    package = [*path.relative_to(ROOT).parent.parts]
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                full = ".".join([*base, alias.name])
                yield (full if full in FILES else ".".join(base)), alias.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                assert not str(name).startswith("nilregret"), f"{path}: write it as a relative import"


def room(name):
    return name.split(".")[0]


def test_the_root_holds_rooms_alone():
    assert {path.name for path in ROOT.iterdir() if path.is_file()} == {
        "__init__.py",
        "__init__.pyi",
        "__main__.py",
        "errors.py",
        "py.typed",
        "serialize.py",
    }
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(FLOOR) - {"__main__", "errors", "serialize"}


def test_imports_go_down():
    wrong = [
        f"{name} imports {target}"
        for name, path in FILES.items()
        for target, _ in imported(path)
        if name and target and room(target) != room(name) and FLOOR[room(target)] >= FLOOR[room(name)]
    ]
    assert wrong == []


def test_imports_go_down_inside_the_service():
    inside = {name: name.split(".")[1] for name in FILES if name.startswith("serve.")}
    assert set(inside.values()) == set(SERVE)
    wrong = [
        f"{name} imports {target}"
        for name, room in inside.items()
        for target, _ in imported(FILES[name])
        if target in inside and SERVE.index(inside[target]) > SERVE.index(room)
    ]
    assert wrong == []


def test_no_room_imports_private_names_of_another():
    wrong = [
        f"{name} imports {target}.{alias}"
        for name, path in FILES.items()
        for target, alias in imported(path)
        if name and room(target) != room(name) and alias.startswith("_") and alias not in ("_utils", "__version__")
    ]
    assert wrong == []


TUPLE = {"_replace", "_asdict", "_fields", "_make"}  # Methods of named tuples, which are public.


def private_definitions(path):
    """Returns the private names that a module defines: functions, classes, variables, fields and `self._x`."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            found.add(node.attr)
    return {name for name in found if name.startswith("_")}


def is_own(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def of_other_packages(path):
    """Returns the parameters and variables whose annotation is a class of another package, such as Optuna's study."""
    foreign = {
        alias.asname or alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }
    return {
        node.arg
        for node in nodes(path)
        if isinstance(node, ast.arg) and node.annotation is not None and ast.unparse(node.annotation) in foreign
    }


def test_no_room_uses_private_attributes_of_another():
    """A private attribute is used in the module that defines it, and in its room by modules that import from there."""
    defined = {name: private_definitions(path) for name, path in FILES.items()}
    wrong = set()
    for name, path in FILES.items():
        near = [name, *(target for target, _ in imported(path) if room(target) == room(name))]
        known = set().union(TUPLE, *(defined[each] for each in near))
        foreign = of_other_packages(path)
        for node in nodes(path):
            if not isinstance(node, ast.Attribute) or is_own(node.value) or node.attr in known:
                continue
            from_elsewhere = isinstance(node.value, ast.Name) and node.value.id in foreign
            if node.attr.startswith("_") and not node.attr.startswith("__") and not from_elsewhere:
                wrong.add((name, node.attr))
    assert wrong == set()


def test_no_module_imports_itself_by_way_of_others():
    """Modules within a room import each other in one direction, too."""
    edges = {
        name: {target for target, _ in imported(path) if target and target != name} for name, path in FILES.items()
    }
    state = {}

    def visit(name, trail):
        if state.get(name) == "done":
            return
        assert name not in trail, f"a circle: {' -> '.join([*trail[trail.index(name) :], name])}"
        for target in sorted(edges[name]):
            if FILES[target].name != "__init__.py":
                visit(target, [*trail, name])
        state[name] = "done"

    for name in sorted(FILES):
        visit(name, [])


def test_only_slots_asks_of_which_class_a_part_is():
    """Elsewhere a part says itself what it does, so that parts of one's own work everywhere."""
    classes = {
        node.name
        for name, path in FILES.items()
        if room(name) == "slots"
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
    }
    wrong = [
        f"{name}:{node.lineno} {found}"
        for name, path in FILES.items()
        if room(name) != "slots"
        for node in nodes(path)
        for found in asked_classes(node) & classes
    ]
    # What a part of one's own returns is checked by its class.
    assert [
        each for each in wrong if not (each.startswith("testing.parts:") and each.endswith((" Bounds", " Restart")))
    ] == []


def asked_classes(node):
    """Returns the names of the classes in a test of a type: `isinstance`, `type(x) is ...` or a class pattern."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        tested = node.args[1:]
    elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
        tested = node.comparators
    elif isinstance(node, ast.MatchClass):
        tested = [node.cls]
    else:
        return set()
    return {getattr(each, "id", getattr(each, "attr", "")) for part in tested for each in ast.walk(part)}


def test_importing_the_package_loads_nothing_heavy():
    script = "import nilregret, sys; nilregret.Study; print(*sys.modules); nilregret.auto; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    with_study, loaded = (line.split() for line in done.stdout.splitlines())
    heavy = {"matplotlib", "sklearn", "sqlalchemy", "msgspec", "rich", "click", "loky", "threadpoolctl"}
    heavy |= {"optuna", "pandas", "pyarrow", "dask", "distributed"}
    assert heavy & {name.split(".")[0] for name in loaded} == set()
    assert {f"scipy.{name}" for name in ("spatial", "stats", "special", "optimize")} & set(with_study) == set()


def test_only_plots_imports_a_plotting_library():
    users = [
        name
        for name, path in FILES.items()
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matplotlib")
    ]
    assert {user.rpartition(".")[0] for user in users} == {"plots"}


def code_lines(path):
    """Returns the numbers of the lines that are neither blank nor a comment nor part of a docstring."""
    described = set()
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            described |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(text_of(path).split("\n"), start=1)
    return {at for at, line in lines if line.strip() and not line.strip().startswith("#") and at not in described}


def test_files_and_functions_are_short():
    """At most 400 lines of code in a file, and 40 in a function."""
    long = []
    for name, path in FILES.items():
        code = code_lines(path)
        long += [name] * (len(code) > 400)
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                long += [f"{name}.{node.name}"] * (len(code & set(range(node.lineno, node.end_lineno + 1))) > 40)
    assert long == []


def test_no_class_declares_an_attribute_twice():
    """Of two lists of owned attributes the first would be ignored."""
    twice = []
    for name, path in FILES.items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                targets = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
                count = Counter(each.id for each in targets if isinstance(each, ast.Name))
                twice += [f"{name}: {node.name}.{each}" for each, times in count.items() if times > 1]
    assert not twice


def test_what_ties_is_sorted_stably():
    """NumPy's other sorts order ties by the instructions of the processor."""
    calls = [(name, call) for name, path in FILES.items() for call in re.findall(r"argsort\(.*", text_of(path))]
    assert [call for call in calls if "stable" not in call[1]] == []


# The size of the house. Whoever adds more changes the number in the same commit, and says why in a line.
LINES = 69_031  # of code
MODULES = 398
IMPORTS = 9.3  # per cent of the lines of code
SMALL = 10  # modules under 40 lines of code, but for faces


def test_the_house_stays_small():
    lines = {name: len(code_lines(path)) for name, path in FILES.items()}
    found = [node for path in FILES.values() for node in nodes(path) if isinstance(node, ast.Import | ast.ImportFrom)]
    imports = sum(node.end_lineno - node.lineno + 1 for node in found)
    small = [name for name, count in lines.items() if count < 40 and FILES[name].name != "__init__.py"]
    assert sum(lines.values()) <= LINES
    assert len(FILES) <= MODULES
    assert 100 * imports <= IMPORTS * sum(lines.values())
    assert len(small) <= SMALL, small


def test_no_module_hides_a_public_name_of_its_package():
    """Sphinx and `pkgutil.resolve_name` would take the module for the function."""
    hidden = [
        f"{name}.{each}"
        for name, path in FILES.items()
        if path.name == "__init__.py"
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.level
        for each in (alias.asname or alias.name for alias in node.names)
        if f"{name}.{each}" in FILES and node.module
    ]
    assert hidden == []
