"""Links from names: code in a line, types of signatures, pictures with a dark twin, and pages of the navigation."""

import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from reference import names

NAME = re.compile(r"([A-Za-z_][\w.]*)(\(.*\))?", re.S)
# What pages call an object of a class.
VARIABLES = {
    "study": "Study", "result": "Result", "trial": "Trial", "policy": "Policy", "run": "simulation.Run",
    "client": "client.Client", "env": "Environment", "space": "Space",
}  # fmt: skip
BUILT_IN = {
    "functions": {"bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple", "type"},
    "exceptions": {"ValueError", "TypeError", "RuntimeError", "Exception", "KeyError", "TimeoutError", "UserWarning"},
    "constants": {"None", "True", "False"},
}  # fmt: skip
PYTHON = {
    "collections",
    "concurrent",
    "datetime",
    "pathlib",
    "typing",
    "os",
    "contextlib",
    "decimal",
    "fractions",
    "logging",
}
# Where other libraries describe a name; addresses follow a rule, so that a build needs no network.
OTHERS = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{0}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{0}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{0}.html",
    "matplotlib": "https://matplotlib.org/stable/api/{2}_api.html#{0}",
    "optuna": "https://optuna.readthedocs.io/en/stable/reference/generated/{0}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{0}.html",
}
# Public names of libraries where a signature has the place in their sources.
SAME = {
    "pandas.core.frame.DataFrame": "pandas.DataFrame",
    "numpy.random._generator.Generator": "numpy.random.Generator",
    "np.ndarray": "numpy.ndarray",
    "pathlib._local.Path": "pathlib.Path",
    "concurrent.futures._base.Executor": "concurrent.futures.Executor",
    "NDArray": "numpy.typing.NDArray",
}


@cache
def public(srcdir: str) -> dict[str, str]:
    """Returns the public name for each way to write a name: its place in the sources, and its last word if unique."""
    known: dict[str, str] = {}
    last: dict[str, list[str]] = {}
    for name in names((Path(srcdir) / "reference.md").read_text(encoding="utf-8")):
        thing = pkgutil.resolve_name(name)
        known[f"{thing.__module__}.{thing.__qualname__}"] = known[name] = name
        last.setdefault(name.rsplit(".", 1)[1], []).append(name)
    for short, several in last.items():
        top = [name for name in several if name.count(".") == 1]
        if len(several) == 1 or top:
            known.setdefault(short, (top or several)[0])
    return known


def full(text: str, within: str | None, known: dict[str, str], objects: Any) -> str | None:
    """Returns the documented object that code in a line names, if there is one."""
    match = NAME.fullmatch(text)
    if not match:
        return None
    first, *rest = match[1].split(".")
    if first in ("nr", "nilregret"):
        first, *rest = [*rest, ""] if len(rest) == 1 else (rest or [""])
        candidates = [f"nilregret.{match[1].split('.', 1)[-1]}", ".".join(filter(None, [known.get(first, ""), *rest]))]
    elif rest:
        owner = VARIABLES.get(first, first)
        candidates = [".".join([base, *rest]) for base in (known.get(owner, ""), f"nilregret.{owner}") if base]
    else:
        plain = first[0].isupper() or "_" in first or first == "auto" or bool(match[2])
        candidates = [f"{within}.{first}"] if within else []
        candidates += [known[first]] if plain and first in known else []
    return next((name for name in candidates if name in objects), None)


class LinkNames(SphinxPostTransform):
    """Makes a link of each code in a line that names something public."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Goes through a page."""
        known, objects = public(str(self.app.srcdir)), self.env.domaindata["py"]["objects"]
        here = self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            if self._linked(literal) or (here.startswith("from-") and self._of_another_library(literal)):
                continue
            name = full(literal.astext(), self._within(literal), known, objects)
            if name is None:
                continue
            entry = objects[name]
            if entry.docname == here and name in known:
                continue  # the page of the name itself
            anchor = "" if name in known else entry.node_id  # a name of the list has the whole page
            parent, index = literal.parent, literal.parent.index(literal)
            parent[index] = make_refnode(self.app.builder, here, entry.docname, anchor, literal, name)

    @staticmethod
    def _linked(node: nodes.Node) -> bool:
        """Returns whether a node is part of a heading or a link."""
        while node is not None and not isinstance(node, nodes.title | nodes.reference | addnodes.pending_xref):
            node = node.parent
        return node is not None

    @staticmethod
    def _of_another_library(node: nodes.Node) -> bool:
        """Returns whether a node is in the first column of a table, which has the names of the other library."""
        while node is not None and not isinstance(node, nodes.entry):
            node = node.parent
        return node is not None and node.parent.index(node) == 0

    @staticmethod
    def _within(node: nodes.Node) -> str | None:
        """Returns the class whose docstring a node is in."""
        while node is not None:
            if isinstance(node, addnodes.desc) and node["objtype"] in ("class", "exception"):
                return str(node[0]["ids"][0]) if node[0]["ids"] else None
            node = node.parent
        return None


class DarkTwins(SphinxTransform):
    """Shows `name-dark.png` in place of `name.png` on a dark page, if there is one."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Goes through a page."""
        for image in list(self.document.findall(nodes.image)):
            uri = image["uri"]
            if "://" in uri:
                continue
            _, file = self.env.relfn2path(uri, self.env.docname)
            twin = Path(file).with_stem(Path(file).stem + "-dark")
            if twin.exists():
                dark = image.deepcopy()
                dark["uri"] = re.sub(r"(\.\w+)$", r"-dark\1", uri)
                image["classes"].append("only-light")
                dark["classes"].append("only-dark")
                image.parent.insert(image.parent.index(image) + 1, dark)


def missing(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolves a type of a signature: ours by its place in the sources, others by the rules of their sites."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    target = SAME.get(target, target)
    ours = public(str(app.srcdir)).get(target)
    objects = env.domaindata["py"]["objects"]
    if ours in objects:
        return make_refnode(app.builder, node["refdoc"], objects[ours].docname, "", contnode, ours)
    address = outside(target)
    return nodes.reference("", "", contnode, internal=False, refuri=address) if address else None


def outside(target: str) -> str | None:
    """Returns the page of a name of Python or another library."""
    for page, built_in in BUILT_IN.items():
        if target in built_in:
            return f"https://docs.python.org/3/library/{page}.html#{target}"
    module, _, _ = target.rpartition(".")
    top = target.split(".")[0]
    if target.startswith("numpy.typing."):
        return f"https://numpy.org/doc/stable/reference/typing.html#{target}"
    if module and top in PYTHON:
        return f"https://docs.python.org/3/library/{module}.html#{target}"
    if module and top in OTHERS:
        return OTHERS[top].format(target, module, module.rpartition(".")[2])
    return None


def shallow(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Ends the navigation at its second level, so that two hundred names are not on each page."""
    whole = context.get("toctree")
    if whole is not None:

        def toctree(**options: Any) -> str:
            shown = str(whole(**{**options, "maxdepth": 2}))
            return shown.replace('role="heading"', 'role="heading" aria-level="2"')

        context["toctree"] = toctree


def source(domain: str, info: dict[str, str]) -> str | None:
    """Returns where the source of an object is."""
    import nilregret

    if domain != "py":
        return None
    try:
        thing: Any = pkgutil.resolve_name(
            f"{info['module']}:{info['fullname']}" if info["module"] else info["fullname"]
        )
        thing = inspect.unwrap(thing.fget if isinstance(thing, property) else thing)
        lines, start = inspect.getsourcelines(thing)
        file = Path(inspect.getsourcefile(thing) or "").relative_to(Path(nilregret.__file__).parent)
    except (AttributeError, TypeError, ValueError, OSError, ImportError):
        return None
    return f"https://github.com/nilregret/nilregret/blob/main/src/nilregret/{file}#L{start}-L{start + len(lines) - 1}"
