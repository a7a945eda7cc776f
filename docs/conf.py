"""The documentation site: `sphinx-build -W --keep-going docs dist/site`.

Its pages are those that are read on their own too; the reference is made from the docstrings.
"""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from service_api import filled

project = "nilregret"
author = "the authors of nilregret"
release = version = installed("nilregret")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["tutorials", "learn/*.ipynb", "learn/*.py"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
suppress_warnings = ["config.cache"]  # the configuration of the gallery holds a function
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
}
root_doc = "index"
myst_heading_anchors = 4  # links to headings, as a repository's page shows them
html_theme = "furo"
html_title = f"nilregret {release}"
html_show_sourcelink = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text with `code`: nothing in them is reStructuredText but the doctest blocks."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            words = re.split(r"(`[^`]+`)", line)
            lines[i] = "".join(
                f"`{w}`" if w.startswith("`") else re.sub(r"([|*\\])|(?<=\w)(_)(?!\w)", r"\\\g<0>", w) for w in words
            )


def _fill(app, name, source):
    """Fills the page of the service's addresses from its OpenAPI document."""
    if name == "service-api":
        source[0] = filled(source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon reads the sections
