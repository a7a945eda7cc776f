"""Rows with contexts: classes of data sets, a smooth problem, banners, changed labels and late answers."""

from __future__ import annotations

import numpy as np

from .peers import Beta, Linear, Uniform, linear, vowpal
from .problems import bananas, banners, classes
from .report import paired, table, values
from .runs import auto, played, record

LATE = 100
NO_DATA = "is left out: NILREGRET_DATA names no folder with mnist_t10k."
SETS = {"digits": ("digits", None), "mnist PCA16": ("mnist", 16), "mnist PCA64": ("mnist", 64)}


def against_peers(args, row, name, make, rounds, *, by="share", late=0, peers=None, **told):
    """Plays `auto` and the peers on each seed of a problem; prints its table and returns the records."""
    found = []
    for seed in range(args.first, args.first + args.seeds):
        problem = make(seed)
        if problem is None:
            print(f"{name} {NO_DATA}\n")
            return []
        learners = [("auto", "", lambda p, s: auto(p, s, **told), {})]
        learners += [] if args.alone else list(peers or (*linear(), *vowpal()))
        for method, setting, learner, settings in learners:
            result = played(learner(problem, seed, **settings), problem, rounds, late=late)
            found.append(record(row, name, method, setting, seed, problem, *result))
    head, rows, best = table(found, by=by, ratio=by == "regret")
    args.show(f"{name}, {rounds} rounds, {args.seeds} seeds", head, rows)
    others = {method: some for method, some in best.items() if method != "auto"}
    if others:
        sign = 1.0 if by == "share" else -1.0
        peer = max(others, key=lambda method: sign * values(others[method], by).mean())
        middle, low, high = paired(values(best["auto"], by), values(others[peer], by), ratio=by == "regret")
        how = "over" if by == "regret" else "less"
        print(f"auto {how} the best peer ({peer}): {middle:.3f} [{low:.3f}, {high:.3f}]\n")
    return found


def shares(args):
    """Row a: the share right, `auto` against the best of LinUCB, LinTS and Vowpal Wabbit in hindsight."""
    rounds, found, ahead = args.rounds or 3000, [], []
    for name, (data, columns) in SETS.items():
        some = against_peers(args, "shares", name, lambda s, d=data, c=columns: classes(d, c, rounds, s), rounds)
        found += some
        best = table(some)[2] if some and not args.alone else {}
        if best:
            means = {method: values(each, "share").mean() for method, each in best.items()}
            ahead.append(means.pop("auto") - max(means.values()))
    if ahead:
        print(f"goal: at least the best peer - .01 on each ({min(ahead):+.3f}), mean above 0 ({np.mean(ahead):+.3f})\n")
    return found


def smooth(args):
    """Row b: a banana between two others, and the digits once through in 20 principal components."""
    rounds = args.rounds or 2000
    found = against_peers(
        args, "smooth", "bananas (goal .88, the best rule has .915)", lambda s: bananas(rounds, s), rounds
    )
    rounds = min(args.rounds or 1797, 1797)
    name = "digits PCA20 (goal .84)"
    return found + against_peers(args, "smooth", name, lambda s: classes("digits", 20, rounds, s), rounds)


def cost(args):
    """Row c: CPU of a decision after 10,000 (the last 500), and how it has grown."""
    rounds, found = args.rounds or 10_000, []
    for name, (data, columns) in SETS.items():
        problem, seed = classes(data, columns, rounds, args.first), args.first
        if problem is None:
            print(f"{name} {NO_DATA}\n")
            continue
        rows, peers = [], [("LinUCB", "alpha 0.25", Linear, {"width": 0.25}), *vowpal()]
        for method, setting, learner, settings in [("auto", "", auto, {}), *([] if args.alone else peers)]:
            chosen, spent = played(learner(problem, seed, **settings), problem, rounds)
            found.append(record("cost", name, method, setting, seed, problem, chosen, spent))
            part = max(rounds // 20, 1)
            first, last = (1e3 * np.median(each) for each in (spent[part : 2 * part], spent[-part:]))
            found[-1]["last ms"], found[-1]["growth"] = float(last), float(last / first)
            rows.append([f"{method} {setting}", f"{last:.3f}", f"{last / first:.2f}", f"{found[-1]['share']:.3f}"])
        head = ["method", "ms at the end (goal 1)", "end over beginning", "share"]
        args.show(f"CPU of a decision, {name}, t = {rounds}", head, rows)
    return found


def clicks_under_contexts(args):
    """Row f: 8 banners under 504 contexts that are all known; CPU in the median and at the worst, and regret."""
    rounds = args.rounds or 20_000
    peers = [*linear(), ("Beta, an arm", "", Beta, {}), ("Beta, a cell", "", Beta, {"apart": True})]
    peers += [("uniform", "", Uniform, {})]
    name = "8 banners, 504 contexts (goal: 1 ms, 5 ms at the worst)"
    return against_peers(args, "banners", name, lambda s: banners(rounds, s), rounds, by="regret", peers=peers)


def changed(args):
    """Row g: classes that change places halfway, and rewards that come 100 rounds late."""
    rounds = args.rounds or 2000

    def permuted(seed):
        return classes("mnist", 16, rounds, seed, permuted=True)

    def plain(seed):
        return classes("mnist", 16, rounds, seed)

    found = against_peers(args, "changed", "mnist PCA16, labels permuted halfway", permuted, rounds)
    return found + against_peers(
        args, "changed", f"mnist PCA16, answers {LATE} late", plain, rounds, late=LATE, answers="late"
    )
