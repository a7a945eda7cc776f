"""The runner of all benchmarks: options that the docstring names, one BLAS thread, processes, ratios and tables.

The first command of a script's docstring names its options with their defaults. In brackets stand those without one:

    --seeds 32             a number           --sizes 20 60     several numbers, or words of which others may be chosen
    --only a|b             one of them        --methods a b ... several words, others too
    [--markdown]           a flag             [--cache FOLDER]  N, X, FILE, FOLDER or a text
    [--only a|b]           one of them, or none               [--policy NAME ...]  several
"""

import argparse
import json
import multiprocessing
import os
import re
import resource
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import loky
import numpy as np
from tabulate import tabulate
from tqdm import tqdm

import nilregret as nr

sys.path.insert(0, str(Path(__file__).parents[1]))  # of `tests` and `benchmarks`

KINDS = {"N": int, "X": float, "FILE": Path, "FOLDER": Path}


def command(doc):
    """Runs the decorated function with the options of the docstring, if its file is the script that was called."""

    def decorate(main):
        if main.__module__ == "__main__":
            sys.exit(main(parser(doc).parse_args()))
        return main

    return decorate


def parser(doc):
    """Returns the parser of the docstring's first command."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage = re.search(r"^    python benchmarks/\S+(.*(?:\n {8}.*)*)", doc, re.M)[1].split("#")[0]
    for words in re.findall(r"\[[^]]*\]|--\S+(?:\s+(?!--|\[)\S+)*", usage):
        name, *values = words.strip("[]").split()
        optional, more = words[0] == "[", values[-1:] == ["..."]
        values = values[:-1] if more else values
        if not name.startswith("--"):
            choices = [*name.split("|"), []] if more else name.split("|")  # [] where nothing is given
            made.add_argument("parts", nargs="*" if more else "?", choices=choices, metavar=name)
        elif not values:
            made.add_argument(name, action="store_true")
        elif optional:
            choices = values[0].split("|") if "|" in values[0] else None
            given = {"choices": choices} if choices else {"metavar": values[0]}
            made.add_argument(name, type=KINDS.get(values[0], str), nargs="+" if more else None, **given)
        elif "|" in values[0]:
            made.add_argument(name, choices=values[0].split("|"), default=values[0].split("|")[0])
        else:
            default = [number(value) for value in values]
            words = isinstance(default[0], str) and len(values) > 1 and not more
            several = {"nargs": "*", "choices": values if words else None} if more or len(values) > 1 else {}
            kind = float if any(isinstance(each, float) for each in default) else type(default[0])
            made.add_argument(name, type=kind, default=default if several else default[0], **several)
    return made


def number(text):
    """Returns a whole number, a number or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


# -- playing -------------------------------------------------------------------------------------------------------


def quiet(policy, **more):
    """Returns a study that says nothing."""
    study = nr.Study(policy, **more)
    study.quiet = True
    return study


def play(study, rounds, answer, *, clock=time.process_time):
    """Asks and tells `answer(trial)`. Returns the arms (T,) and the seconds of each round (T,)."""
    arms, marks = [], [clock()]
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, answer(trial))
        arms.append(trial.arm)
        marks.append(clock())
    return np.array(arms), np.diff(marks)


def mapped(jobs, function, tasks):
    """Returns the results of a function for each tuple of arguments, in order."""
    if jobs == 1:
        return [function(*task) for task in tqdm(tasks, leave=False)]
    found = loky.get_reusable_executor(jobs).map(function, *zip(*tasks, strict=True)) if tasks else ()
    return list(tqdm(found, total=len(tasks), leave=False))


def regrets(jobs, function, cells, rules, seeds, *more):
    """Returns `function(cell, rule, seed, *more)` for each of them, (cells, rules, seeds)."""
    tasks = [(cell, rule, seed, *more) for cell in cells for rule in rules for seed in seeds]
    return np.reshape(mapped(jobs, function, tasks), (len(cells), len(rules), len(seeds)))


def apart(function, *arguments):
    """Returns the result of a function in a process of its own, whose peak memory is then its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def calling(file, name, *arguments):
    """Returns the command of a process that calls a function of a script."""
    folder, _, script = str(file).rpartition("/")
    code = f"sys.path.insert(0, {folder!r}); from {script.removesuffix('.py')} import {name}; {name}(*{arguments!r})"
    return [sys.executable, "-c", f"import sys; {code}"]


def peak():
    """Returns the largest memory of this process so far, MB."""
    try:  # what `getrusage` says outlives exec
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(call, repeats=1, *, clock=time.process_time):
    """Returns the seconds of each call, and the last result."""
    seconds, result = [], None
    for _ in range(repeats):
        start = clock()
        result = call()
        seconds.append(clock() - start)
    return seconds, result


class Kept(dict):
    """Results by key, a text or a tuple of JSON values, which are kept in a file of JSON lines if there is one."""

    def __init__(self, path=None):
        self._path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text().splitlines() if path.exists() else ()
            known = map(json.loads, lines)
            super().__init__({key if isinstance(key, str) else tuple(key): value for key, value in known})

    def get(self, key, make):
        """Returns the result of the key, made if it is not there."""
        if key not in self:
            self[key] = make()
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps([key, self[key]]) + "\n")
        return self[key]


# -- worlds --------------------------------------------------------------------------------------------------------


def root(kernel, points):
    """Returns a root of the kernel matrix: times normal numbers, it is a sample of the process at the points."""
    values, vectors = np.linalg.eigh(kernel(points, points))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def square(side, dimension=2, high=1.0):
    """Returns the arms of a grid in a cube."""
    axis = np.linspace(0, high, side)
    return nr.Arms(np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), -1).reshape(-1, dimension))


# -- what is said --------------------------------------------------------------------------------------------------


def interval(over, under=None, *, ratio=True, draws=4000):
    """Returns the ratio of means of paired values `(seeds,)`, or their difference, and its 95% bootstrap interval."""
    over, under = np.asarray(over), np.zeros(len(over)) if under is None else np.asarray(under)
    drawn = np.random.default_rng(0).integers(len(over), size=(draws, len(over)))
    a, b = over[drawn].mean(axis=1), under[drawn].mean(axis=1)
    low, high = np.quantile(a / b if ratio else a - b, [0.025, 0.975])
    return float(over.mean() / under.mean() if ratio else over.mean() - under.mean()), float(low), float(high)


def ratio(over, under, *, places=2, draws=4000):
    """Returns the ratio of means with its interval, to be read."""
    return "{:.{p}f} [{:.{p}f}, {:.{p}f}]".format(*interval(over, under, draws=draws), p=places)


def difference(over, under=None, *, places=3):
    """Returns the difference of means with its interval, to be read."""
    return "{:+.{p}f} [{:+.{p}f}, {:+.{p}f}]".format(*interval(over, under, ratio=False), p=places)


def error(values):
    """Returns the standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def table(title, head, rows, *, markdown=False, **more):
    """Prints a table under its title."""
    more = more or {"disable_numparse": True}
    form = "github" if markdown else "simple"
    print(f"{title}:\n\n" if title else "", tabulate(rows, head, tablefmt=form, **more), "\n", sep="", flush=True)
