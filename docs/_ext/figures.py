"""The tutorials: their order, and the figures that the last expression of a block returns, as a notebook shows them."""

from sphinx_gallery.scrapers import figure_rst

NAMES = "tune_a_model trade_offs laboratory changing_prices clicks visitors safe_tuning compare_policies"
ORDER = [f"{name}.py" for name in NAMES.split()]


def order(name):
    """Returns the place of a tutorial."""
    return ORDER.index(name)


def returned_figures(_block, variables, configuration):
    """Returns the reStructuredText of the figure that the block's last expression is, or nothing."""
    figure = variables["example_globals"].get("___")
    if not hasattr(figure, "savefig"):
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=110)
    return figure_rst([path], configuration["src_dir"])
