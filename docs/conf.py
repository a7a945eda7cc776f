"""The documentation site: `sphinx-build -W --keep-going -j auto docs dist/site`.

Its pages are those that a repository shows. The build adds the output of their blocks, the tutorials, and a reference
made from the docstrings. Nothing on the built pages comes from another host.
"""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "_ext")]

import numpy.typing

# Signatures say "ArrayLike" by this name, and not the union of seven types that it stands for.
numpy.typing.ArrayLike = type("ArrayLike", (), {"__module__": "numpy.typing"})

import blocks
import links
import policy_tables
import reference
from service_api import filled

project = "nilregret"
author = "the authors of nilregret"
release = version = installed("nilregret")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["tutorials", "learn/*.ipynb", "learn/*.py", "sg_execution_times.rst"]
root_doc = "index"
default_role = "literal"  # docstrings write code as Markdown does
myst_heading_anchors = 4  # links to headings, as a repository's page shows them
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_theme = "furo"
html_title = f"nilregret {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_favicon = "../src/nilregret/serve/dashboard/static/favicon.svg"
html_logo = "_static/logo.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_copyright = html_show_sphinx = False
html_show_sourcelink = html_copy_source = html_use_index = False
copybutton_exclude = ".linenos, .gp, .go"  # prompts and outputs are not copied
copybutton_selector = "div:not(.output) > div.highlight pre"
linkcode_resolve = links.source

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 72  # a longer signature has a line for each argument
smartquotes = False  # the words in quotes are values that a user may copy

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "figures.order",
    "image_scrapers": ("matplotlib", "figures.returned_figures"),
    "capture_repr": ("_repr_html_",),
    "write_computation_times": False,
    "min_reported_time": 1e9,  # seconds: a site is the same twice
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
}


# The archive of a script and its notebook, which has the times of the files.
ARCHIVE = re.compile(r"\n    \.\. container:: sphx-glr-download sphx-glr-download-zip\n\n.*\n")


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text with `code`: nothing in them is reStructuredText but the doctest blocks."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            words = re.split(r"(`[^`]+`)", line)
            lines[i] = "".join(
                f"`{w}`" if w.startswith("`") else re.sub(r"([|*\\])|(?<=\w)(_)(?!\w)", r"\\\g<0>", w) for w in words
            )


def _fill(app, name, source):
    """Fills pages: outputs below blocks, addresses of the service, names of the reference, tutorials as pages."""
    blocks.insert(app, name, source)
    if name == "service-api":
        source[0] = filled(source[0])
    if name == "policy-tables":
        source[0] = policy_tables.filled(source[0])
    if name == "reference":
        source[0] = reference.index(source[0])
    if name.startswith("learn/"):
        source[0] = ARCHIVE.sub("", blocks.steady(source[0]))
    source[0] = re.sub(r"\]\(((?:\.\./)*)tutorials/(\w+)\.py\)", r"](\1learn/\2.rst)", source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("builder-inited", reference.write)
    app.connect("source-read", _fill)
    app.connect("autodoc-process-docstring", _plain, priority=400)  # before napoleon reads the sections
    app.connect("missing-reference", links.missing)
    app.connect("html-page-context", links.shallow, priority=400)  # before the theme draws the navigation
    app.add_transform(links.DarkTwins)
    app.add_post_transform(links.LinkNames)
