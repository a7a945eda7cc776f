"""What the runs say, as Markdown."""

from math import isnan

from .report import MEASURES, best_peer, by_problem, reached, rows, worker_ratios

DIFFERENCES = ["difference in {}", "difference in rank"]
HEADINGS = ["mean {}", "mean rank", *DIFFERENCES, "wall s", "CPU s", "ask s", "runs"]


def _groups(tables):
    """The cells of the head and of each group: mean, rank and what the first method has less than this one."""
    first = next(iter(tables.values())).methods
    yield [
        "problems",
        *(f"{method}: mean, rank" + ", difference" * (method != first[0]) for method in first),
        "best peer",
    ]
    for title, table in tables.items():
        every = rows(table)
        peer = best_peer(every)
        cells = [_mean_and_rank(row) + _less(row) * (row.method != first[0]) for row in every]
        yield [f"{title} ({len(table.problems)})", *cells, peer.method if peer else ""]


def _mean_and_rank(row):
    if isnan(row.regret):
        return "-"
    return f"{row.regret:+.3f}" + ("" if isnan(row.rank) else f", {row.rank:.2f}")


def _less(row):
    return "" if isnan(row.less) else f", {_fit(row.less, row.less_interval, 2, '+')}"


def _less_peer(row):
    return f"{row.method} {_fit(row.less, row.less_interval, 3, '+')}, {row.problems} problems"


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


def markdown(tables, groups=None):
    """Tables for a page, of `{title: Table}` of equal trials: methods against halves, then problem by problem.

    With groups of problems, `{title: {group: Table}}`, these take the place of the problems.
    """
    first = next(iter(tables.values()))
    lines = [
        f"After {first.trials} trials, with 95% intervals: {MEASURES[first.measure]}. Differences are "
        f"{first.methods[0]}'s number less the one of the line: above 0 the method of the line does better."
    ]
    for title, table in tables.items():
        every = rows(table)
        head = _line(["method", *HEADINGS]).format(table.measure, table.measure)
        lines += ["", f"**{title}** ({len(table.problems)} problems)", "", head]
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
        if table.regret.shape[2] > 1:
            lines += ["", "Worse than random search beyond the interval:", ""]
            lines += [f"- {row.method}: {_worse(row)}" for row in every if row.method != "random"]
        if peer := best_peer(every):
            lines += ["", f"{table.methods[0]} less the best peer: {_less_peer(peer)}."]
    if groups:
        for title, some in groups.items():
            head, *rest = map(_line, _groups(some))
            lines += ["", f"**{title}**, by groups", "", head, _line(["---"] * (head.count("|") - 1)), *rest]
        return "\n".join(lines) + "\n"
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
    if isnan(value):
        return "-"
    low, high = interval
    return f"{value:{sign}.{digits}f} [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"
