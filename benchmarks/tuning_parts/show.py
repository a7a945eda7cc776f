"""What the runs say, for people: as text and as Markdown."""

from math import isnan

from .report import by_problem, reached, rows, worker_ratios

DIFFERENCES = ["difference in regret", "difference in rank"]
HEADINGS = ["mean regret", "mean rank", *DIFFERENCES, "wall s", "CPU s", "ask s", "runs"]


def text(table, title, *, problems=True):
    """Regrets by problem, unless told not to, a line for each method, and how the first stands to the others."""
    lines = ["", f"{title}, {table.trials} trials: normalised regret (1 = median random search, 0 = optimum)"]
    if problems:
        wide = max(len(name) for name in table.problems) + 2
        lines.append(" " * wide + "".join(f"{name:>14}" for name in table.methods))
        for name, row in zip(table.problems, table.regret, strict=True):
            lines.append(f"{name:{wide}}" + "".join(f"{cell:14.3f}" for cell in by_problem(row)))
    head = f"{'method':14}{'mean regret [95%]':>24}{'median':>9}{'mean rank [95%]':>22}"
    lines.append(head + f"{'wall s':>9}{'CPU s':>9}{'ask s':>9}{'problems':>10}{'runs':>7}")
    every = rows(table)
    for row in every:
        regret, rank = _fit(row.regret, row.interval, 3), _fit(row.rank, row.rank_interval, 2)
        seconds = f"{row.wall:9.2f}{row.cpu:9.2f}{row.ask:9.3f}"
        lines.append(f"{row.method:14}{regret:>24}{row.median:9.3f}{rank:>22}{seconds}{row.problems:10}{row.runs:7}")
    for row in every[1:]:
        lines.append(
            f"   {table.methods[0]} less {row.method}: regret {_fit(row.less, row.less_interval, 3, '+')},"
            f" rank {_fit(row.rank_less, row.rank_less_interval, 2, '+')}"
        )
    lines += [f"   worse than random search: {row.method}: {_worse(row)}" for row in every if row.method != "random"]
    return "\n".join(lines)


def within_text(cache, problems, methods, seeds, trials, radius):
    """How many runs came so close to the maximum."""
    lines = ["", f"within {radius:g} of the maximum after {trials} trials, with Wilson's 95% interval"]
    for problem in problems:
        for method in methods:
            hits, count, (low, high) = reached(cache, problem, method, seeds, trials, radius)
            share = f"{hits / count:.1%} [{low:.1%}, {high:.1%}]" if count else "no runs"
            lines.append(f"   {problem}, {method}: {hits} of {count}, {share}")
    return "\n".join(lines)


def ratio_text(one, many, title):
    """What several workers cost at equal trials."""
    lines = ["", f"{title}, {one.trials} trials: mean regret with several workers over that with one"]
    for single, method, (ratio, interval, runs) in zip(
        one.methods, many.methods, worker_ratios(one, many), strict=True
    ):
        lines.append(f"   {method} / {single}: {_fit(ratio, interval, 3)}, {runs} runs each")
    return "\n".join(lines)


def markdown(tables):
    """Tables for a page, of `{title: Table}` of equal trials: methods against halves, then problem by problem."""
    first = next(iter(tables.values()))
    lines = [
        f"After {first.trials} trials, with 95% intervals. Regret is normalised: 0 is the optimum, 1 the median random "
        f"search. Differences are {first.methods[0]}'s number less the one of the line: above 0 the method of the line "
        "does better."
    ]
    for title, table in tables.items():
        every = rows(table)
        lines += ["", f"**{title}** ({len(table.problems)} problems)", "", _line(["method", *HEADINGS])]
        lines.append(_line(["---", *["---:"] * len(HEADINGS)]))
        for row in every:
            self = row.method == table.methods[0]
            lines.append(
                _line(
                    [
                        row.method, _fit(row.regret, row.interval, 3), _fit(row.rank, row.rank_interval, 2),
                        "" if self else _fit(row.less, row.less_interval, 3, "+"),
                        "" if self else _fit(row.rank_less, row.rank_less_interval, 2, "+"),
                        f"{row.wall:.2f}", f"{row.cpu:.2f}", f"{row.ask:.3f}", str(row.runs),
                    ]
                )
            )  # fmt: skip
        lines += ["", "Worse than random search beyond the interval:", ""]
        lines += [f"- {row.method}: {_worse(row)}" for row in every if row.method != "random"]
    lines += ["", _line(["problem", *first.methods]), _line(["---", *["---:"] * len(first.methods)])]
    whole = max(tables.values(), key=lambda table: len(table.problems))
    for name, row in zip(whole.problems, whole.regret, strict=True):
        lines.append(_line([name, *["" if isnan(cell) else f"{cell:.3f}" for cell in by_problem(row)]]))
    return "\n".join(lines) + "\n"


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _worse(row):
    return ", ".join(f"{name} [{low:+.3f}, {high:+.3f}]" for name, (low, high) in row.worse) or "on no problem"


def _fit(value, interval, digits, sign=""):
    low, high = interval
    return f"{value:{sign}.{digits}f} [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
