"""Hostile requests, texts, rows, values and orders of operations: what gets through. The tests have small forms.

    python benchmarks/attack.py [service|schema|hostile|fuzz|sequences] [--count N] --seed 0 --slow 300 --rows 1900
        [--only alone|chains]
    python benchmarks/attack.py service --count 100000

- service: broken HTTP, headers and bodies without end, paths out of every folder, useless tokens, pages of other sites,
  guesses at the form, good tokens of another tenant, and `--slow` lines that send a byte now and then. Meanwhile an
  honest caller decides, and what was acknowledged must be on record, and nothing else.
- schema: requests that schemathesis makes from the API's own description, each by itself, half of them broken; and as
  many in chains that follow its links from study to decision to reward, to where a study has thousands of trials.
- hostile: texts of policies, and `--rows` rows of stored studies, which are refused in words, or describe something
  that can be. Anything else is a fault: a foreign exception, a change that could not have come about, a command run.
- fuzz: public calls with hostile values (`tests/attacks/fuzz.py`).
- sequences: thirty operations on a random policy, a fifth of them on an SQLite file. Decisions are those of a copy that
  is rebuilt from the record, predictions those of a dense solve. `--seed N --count 1` plays one again.
"""

import contextlib
import sys
import tempfile
import time
import traceback

import bench


def service(options):
    from tests.attacks.service import attack, summary

    with tempfile.TemporaryDirectory() as folder:
        report = attack(options.count or 100_000, folder, seed=options.seed, slow_lines=options.slow)
    print(summary(report))
    return bool(report.faults)


def schema(options):
    from tests.attacks.chains import attack_chains
    from tests.attacks.schema import attack_schema, summary

    failed = False
    for name, attack in (("alone", attack_schema), ("chains", attack_chains)):
        if options.only in (None, name):
            statuses, failures = attack(options.count or 10_000, seed=options.seed)
            print(f"{'Each by itself' if name == 'alone' else 'In chains'}:", summary(statuses, failures), sep="\n")
            failed = failed or bool(failures)
    return failed


def hostile(options):
    from tests.attacks.hostile import attack_rows, attack_texts

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where a command would leave its mark
        results = {"texts": attack_texts(options.count or 2500, options.seed)}
        results["rows"] = attack_rows(options.rows, folder, options.seed)
    for what, (counts, faults) in results.items():
        print(*faults, f"{what}: {dict(sorted(counts.items()))}", sep="\n")
        print(f"  {counts['executions']} executions, {counts['foreign']} foreign exceptions, {counts['silent']} silent")
    return any(faults or counts["executions"] for counts, faults in results.values())


def fuzz(options):
    from tests.attacks import fuzz

    start, calls = time.perf_counter(), options.count or 100_000
    counts, wrong = fuzz.run(calls, seed=options.seed)
    silent = counts["accepted in silence"] + counts["not finite"]
    print(
        *wrong,
        f"{calls} calls of {len(fuzz.targets())} targets in {time.perf_counter() - start:.0f} s: {counts['worked']} "
        f"worked, {counts['refused']} refused, {counts['foreign exception']} foreign exceptions, {silent} accepted in "
        f"silence, {counts['hangs']} hangs, {len(wrong)} wrong in all",
        sep="\n",
    )


def sequences(options):
    from tests.attacks import sequences

    start, count = time.perf_counter(), options.count or 5000
    with tempfile.TemporaryDirectory() as folder:
        compared, solved, wrong = sequences.run(range(options.seed, options.seed + count), folder)
    for seed, error, sequence in wrong:
        print(f"sequence {seed}: {type(error).__name__}: {error}")
        print(f"  {None if sequence is None else sequence.policy}")
        if not isinstance(error, sequences.Problem):
            traceback.print_exception(error, limit=-4, file=sys.stdout)
    foreign = sum(not isinstance(error, sequences.Problem) for _, error, _ in wrong)
    print(
        f"{count} sequences in {time.perf_counter() - start:.0f} s: {compared} decisions and {solved} "
        f"predictions compared, {len(wrong) - foreign} mismatches, {foreign} foreign exceptions"
    )


@bench.command(__doc__)
def main(options):
    return int(globals()[options.parts or "service"](options) or 0)
