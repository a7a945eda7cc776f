"""Defects put into the package by hand, each of which the tests of the README's command must find.

    python -m tests.mutations                # all of them, one after the other
    python -m tests.mutations gp/arms sqlite # those whose names hold one of these words

Each defect is an exact replacement of text in a copy of the package in a temporary folder. The test files that should
find the defect run against that copy, with the markers of the README's command. A defect is found when a test fails.
Text that is not there, or is there twice, is an error: the defect must then be written anew. First the same tests run
against a copy without a defect, where all of them must pass.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "nilregret"
PASSED, FAILED, NONE_CHOSEN = 0, 1, 5  # what pytest returns


class Defect(NamedTuple):
    """A defect and the tests that should find it."""

    module: str  # below the package, without `.py`
    right: str  # text of the module that stands there once
    wrong: str  # what replaces it
    tests: str  # files below `tests`, with spaces between them
    kind: str


DEFECTS = (
    Defect(
        "slots/widths/mixtures",
        "1.0 if left < -ROUNDING else max(left, ROUNDING)",
        "max(left, ROUNDING)",
        "test_noise_free.py",
        "answers that refute the norm bound leave no width at all",
    ),
    Defect(
        "slots/widths/mixtures",
        "left = 1.0 - posterior.quadratic_form / bound**2",
        "left = 1.0 - 1.2 * posterior.quadratic_form / bound**2",
        "test_noise_free.py",
        "bounds without noise that are too narrow",
    ),
    Defect(
        "algorithms/arguments",
        "return noise**2 or EXACT * prior_std(domain, context, kernel) ** 2",
        "return noise**2 or EXACT",
        "test_noise_free.py",
        "a tiny lambda whatever the units of the rewards",
    ),
    Defect(
        "study/pruning",
        "known = [other.as_of(order) for other in trials",
        "known = [other for other in trials",
        "test_steps.py",
        "a prediction that knows of what was told later",
    ),
    Defect(
        "study/pruning",
        "if both and self._curve[both - 1][:-1] != curve[both - 1][:-1]:",
        "if both > len(curve):",
        "test_steps.py",
        "a report that was rolled back is judged",
    ),
    Defect(
        "study/audit_reports",
        "if before is not None and before.step >= step:",
        "if before is not None and before.step > step:",
        "test_steps.py",
        "a step on record twice",
    ),
    Defect(
        "storage/sql",
        "for table in (self.tables.trials, self.tables.steps, self.tables.arms):",
        "for table in (self.tables.trials, self.tables.arms):",
        "test_steps.py",
        "reports of a deleted study",
    ),
    Defect(
        "study/pruning",
        "missed + (sign * trial.reward > best)",
        "missed + (sign * trial.reward >= best)",
        "test_steps.py",
        "an equal reward as a stop that was wrong",
    ),
    Defect(
        "evaluation/estimators",
        "ratio - centre",
        "ratio - 1.0",
        "test_evaluation.py",
        "a bet whose mean is not that of a fair game",
    ),
    Defect(
        "evaluation/api",
        "mean_interval(w, scaled, delta, largest=largest, units=used.units)",
        "mean_interval(w, scaled, delta, largest=largest)",
        "test_evaluation_units.py",
        "visits of a unit that are taken for independent",
    ),
    Defect(
        "evaluation/target",
        "drawn[draw] * propensity < factor * table[row, arm]",
        "drawn[draw] * propensity < table[row, arm]",
        "test_evaluation_studies.py",
        "rows learned from by the inverse of their probability",
    ),
    Defect(
        "kernels/stationary",
        "differences = products - rows.sum(axis=1).reshape(k, m, 1) * ((X - origin) / unit)",
        "differences = products + rows.sum(axis=1).reshape(k, m, 1) * ((X - origin) / unit)",
        "conformance/test_kernels.py",
        "a sign in the gradient",
    ),
    Defect(
        "gp/arms",
        "self._step(self._column(arm).covariance, (new - old) / self.regularization, 0.0)",
        "self._step(self._column(arm).covariance, (old - new) / self.regularization, 0.0)",
        "conformance/test_posteriors.py",
        "a sign in the revision of a target",
    ),
    Defect(
        "gp/points",
        "        self._weights = self._spectrum = None\n",
        "        self._spectrum = None\n",
        "conformance/test_points.py",
        "stale weights after a new target",
    ),
    Defect(
        "gp/likelihood",
        "gradient = -z / spread - 1.0",
        "gradient = -z / spread + 1.0",
        "test_fitting.py",
        "a sign in the gradient of the prior",
    ),
    Defect(
        "gp/likelihood",
        "self._repeats = float(np.sum(data.counts - 1.0))",
        "self._repeats = float(np.sum(data.counts))",
        "test_fitting.py",
        "a count of repeats",
    ),
    Defect(
        "slots/widths/self_normalized",
        "2.0 * (gamma + 1.0 + math.log(self.parts / delta))",
        "2.0 * (gamma + math.log(self.parts / delta))",
        "test_widths.py",
        "a term of the theorem",
    ),
    Defect(
        "slots/memory",
        "2 ** ((round_ // self.first).bit_length() - 1)",
        "2 ** (round_ // self.first).bit_length()",
        "test_late_theory.py",
        "a restart that comes too early",
    ),
    Defect(
        "slots/pending",
        "        return asked_since() <= self.window\n",
        "        return asked_since() < self.window\n",
        "test_pending.py",
        "the end of the window",
    ),
    Defect(
        "slots/objective",
        "return trial.reward - self.penalty_of(trial.constraints, multipliers)",
        "return trial.reward + self.penalty_of(trial.constraints, multipliers)",
        "test_constraints.py",
        "a sign of the penalty",
    ),
    Defect(
        "slots/safe",
        "share = 0.0 if (self._start == trial.point).all(axis=1).any() else float(risk(limits())[0])",
        "share = 0.0",
        "test_safe.py",
        "a risk that is not counted",
    ),
    Defect(
        "slots/slopes",
        "high, low, old = values + self.noise, values - self.noise",
        "high, low, old = values, values - self.noise",
        "test_safe_slopes_oracle.py",
        "a certificate without the noise bound",
    ),
    Defect(
        "domains/search/cones",
        "((upper <= 0.0) & (lower <= 0.0)).all(axis=1)",
        "(upper <= 0.0).any(axis=1) & (lower <= 0.0).all(axis=1)",
        "test_safe_slopes_oracle.py",
        "a certificate by one of two constraints",
    ),
    Defect(
        "slots/slopes",
        "kept = [told for told in self._told if told[0] >= first]",
        "kept = self._told",
        "test_safe_slopes_oracle.py",
        "a certificate by answers that a window forgot",
    ),
    Defect(
        "domains/distances",
        "table = np.minimum(table, table[:, middle, None] + table[middle])",
        "table = np.minimum(table, table[:, middle, None])",
        "test_safe_slopes_oracle.py",
        "a jump over a third option",
    ),
    Defect(
        "domains/distances",
        "found |= points[:, None, column] != places[None, :, column]",
        "found |= False",
        "test_safe_slopes_oracle.py",
        "answers in other contexts",
    ),
    Defect(
        "slots/safe_check",
        "spread / (noises**2 * ridge)",
        "spread / ridge",
        "test_safe.py",
        "repeated values that say nothing of the noise",
    ),
    Defect(
        "slots/scores",
        "self._least(t) - 2.0 * math.log(randomness.uniform)",
        "self._least(t) + 2.0 * math.log(randomness.uniform)",
        "conformance/test_policies.py",
        "a sign in a random width",
    ),
    Defect(
        "slots/propensities",
        "each[~up].min(axis=0, initial=np.inf)",
        "each[~up].max(axis=0, initial=-np.inf)",
        "test_propensities.py",
        "the wrong end of an interval",
    ),
    Defect(
        "policy/rounds",
        "return self.count - trial.number - 1 - len(self._added)",
        "return self.count - trial.number - len(self._added)",
        "test_pending.py",
        "a count of rounds",
    ),
    Defect(
        "policy/outputs",
        "counted = [trial for trial in waiting if trial.number >= first]",
        "counted = list(waiting)",
        "test_channels.py",
        "old trials that count after a restart",
    ),
    Defect(
        "policy/outcomes",
        "        self.fresh = [trial for trial in self.fresh if trial.number >= first]\n        self.abandoned",
        "        self.abandoned",
        "test_pending.py attacks/test_sequences.py",
        "old pending trials that count after a restart",
    ),
    Defect(
        "policy/trained_posterior",
        '"_entries": self._entries.copy()',
        '"_entries": self._entries',
        "attacks/test_sequences.py test_pending.py",
        "trials that a copy shares",
    ),
    Defect(
        "policy/memory_runner",
        "counted = outcomes if not first else [trial for trial in outcomes if trial.number >= first]",
        "counted = outcomes",
        "attacks/test_sequences.py test_changing.py",
        "late rewards of trials that were forgotten",
    ),
    Defect(
        "domains/search/quasi_newton",
        "held = ((at <= 0.0) & (uphill <= 0.0)) | ((at >= 1.0) & (uphill >= 0.0))",
        "held = ((at <= 0.0) & (uphill >= 0.0)) | ((at >= 1.0) & (uphill <= 0.0))",
        "test_ascent.py",
        "a sign at the sides of a box",
    ),
    Defect(
        "domains/parameters",
        "self.low + self.step * round((value - self.low) / self.step)",
        "self.step * round((value - self.low) / self.step)",
        "test_input.py",
        "an offset of whole numbers",
    ),
    Defect(
        "slots/widths/self_normalized",
        "return progress.design().bound(count)",
        "return progress.design().bound(max(count - 1, 0))",
        "test_widths.py test_information.py",
        "an index of the information gain",
    ),
    Defect(
        "theory/change/detector",
        "            np.negative(first, out=row[start:cut])\n",
        "            np.copyto(row[start:cut], first)\n",
        "test_change.py",
        "a sign in the difference of two means",
    ),
    Defect(
        "storage/sqlite",
        "                self._connection.rollback()\n                self._raw.rollback()\n",
        "                self._raw.commit()\n",
        "conformance/test_storages.py",
        "a lost rollback of the database",
    ),
    Defect(
        "study/stored",
        "same = known.order > 0 and found.stamp == self.stamp",
        "same = known.order > 0",
        "conformance/test_storages.py",
        "a stale record after another process has written",
    ),
    Defect(
        "study/transaction",
        "            self._written = notes\n",
        "            pass\n",
        "test_service_turns.py",
        "a lost rollback of notes",
    ),
    Defect(
        "serve/wire/decision_ids",
        'hashlib.sha256(kind.encode() + b"\\0" + text)',
        "hashlib.sha256(text)",
        "test_service.py test_service_words.py",
        "a key that is taken for that of another request",
    ),
    Defect(
        "serve/auth/tokens",
        "if found is None or self._clock() >= found.expires_at:",
        "if found is None:",
        "test_serve_tokens.py",
        "a session that never ends",
    ),
    Defect(
        "tuning/loop",
        'for trial in known if trial.state == "pending" and trial.lease_until is None]',
        'for trial in known if trial.state == "pending"]',
        "test_maximize.py test_workers.py",
        "a trial that two workers evaluate",
    ),
    Defect(
        "simulation/metrics",
        "own = cuts[(cuts >= start) & (cuts < end)]",
        "own = cuts[(cuts > start) & (cuts < end)]",
        "test_simulate.py test_changing.py",
        "the first round of a period",
    ),
    Defect(
        "kernels/factorization",
        "return int((residual >= top - min(TIED * top + TIED_OF_PRIOR * size, 0.5 * top)).argmax())",
        "return int(residual.argmax())",
        "test_other_machines.py",
        "a pivot among equal residuals that rounding chooses",
    ),
    Defect(
        "kernels/factorization",
        "FAVOR = 1e-3",
        "FAVOR = 0.0",
        "test_other_machines.py",
        "the same in LAPACK",
    ),
    Defect(
        "kernels/factorization",
        "return np.asarray(rng.standard_normal((rank, size)).T)",
        "return np.asarray(rng.standard_normal((size, rank)))",
        "test_draws.py",
        "numbers of a draw that depend on the rank",
    ),
    Defect(
        "study/audit",
        "bool(are_at(domain.points[trial.arm], trial.point))",
        "np.array_equal(domain.points[trial.arm], trial.point)",
        "test_other_machines.py",
        "arms that another machine has rounded otherwise",
    ),
    Defect(
        "environments/delays",
        "return math.inf if reward < self.threshold else later",
        "return math.inf if reward > self.threshold else later",
        "test_pending.py",
        "silence about the wrong answers",
    ),
    Defect(
        "plots/ticks",
        "values[values >= first - reach] if upward",
        "values[values >= first + reach] if upward",
        "test_study_pictures.py",
        "a fence on the wrong side of the quartile",
    ),
    Defect(
        "plots/front_picture",
        "across = signs[i] * np.append(np.repeat(pair[:, 0], 2), worst[0])",
        "across = signs[i] * np.insert(np.repeat(pair[:, 0], 2), 0, worst[0])",
        "test_front_pictures.py",
        "a staircase through corners that no trial reaches",
    ),
    Defect(
        "study/front",
        "hypervolume(np.minimum(front, row), reference)",
        "hypervolume(front, reference)",
        "test_front_pictures.py",
        "a volume that forgets what the front had of a point",
    ),
    Defect(
        "study/explain",
        "known = np.concatenate([told, signs * pending])",
        "known = told",
        "test_explain.py",
        "a gain of the front that pending trials do not lower",
    ),
    Defect(
        "client/session",
        "RETRIED = frozenset({429, 502, 503, 504})",
        "RETRIED = frozenset({429, 502, 504})",
        "test_client.py test_client_verbs.py",
        "an answer after which nobody tries again",
    ),
    Defect(
        "serve/http/protocol",
        "            if self._unfinished > self._limits.header_bytes:\n",
        "            if self._unfinished > 1 << 40:\n",
        "test_protocol.py test_http_sockets.py",
        "headers of any length",
    ),
    Defect(
        "serve/watch/signals",
        "return (last == IN_A_ROW) | (",
        "return (last == IN_A_ROW) & (",
        "test_signals.py",
        "failures in a row that nobody is told of",
    ),
    Defect(
        "serve/wire/decision_ids",
        "        if body != self.body:\n",
        "        if False:\n",
        "test_service.py test_service_words.py",
        "another request that gets the answer of the first",
    ),
    Defect(
        "serve/auth/origin_checks",
        'wild = plain in ("0.0.0.0", "::", "")',
        "wild = True",
        "test_serve_security.py",
        "a service of one name that takes any address",
    ),
    Defect(
        "serve/work/deadlines",
        'late = "accept" if self.late == "count" else "drop"',
        'late = "drop" if self.late == "count" else "accept"',
        "test_service.py test_service_waiting.py test_service_recipes.py",
        "late rewards that count where they should not",
    ),
    Defect(
        "_utils/numerals",
        "if value and (exponent < LEAST or abs(float(plain)) >= LARGEST):",
        "if value and (exponent < LEAST or float(plain) >= LARGEST):",
        "test_terminal.py test_numbers.py",
        "large negative numbers without a power of ten",
    ),
    Defect(
        "_utils/tables",
        'SEPARATORS = (",", ";", "\\t")',
        'SEPARATORS = (",", "\\t")',
        "test_tables.py test_export.py",
        "tables of half of Europe",
    ),
    Defect(
        "storage/rows",
        'NONE = "[]"  # Fits',
        'NONE = "null"  # Fits',
        "test_late_fits.py test_fits.py conformance/test_storages.py",
        "fits that were none and fits that there cannot be, on record",
    ),
    Defect(
        "study/transaction",
        "self._take(entry.number, len(replica.record), None, now)",
        "replica.queue.waiting.pop(entry.number)",
        "test_enqueue.py",
        "a point to try first that is taken without a record",
    ),
    Defect(
        "study/transaction",
        "if self.propensities and not enqueued and kept is None",
        "if self.propensities and kept is None",
        "test_enqueue.py",
        "a propensity of a point that no policy drew",
    ),
    Defect(
        "study/replica",
        "self.queue = Queue(self.record.changes)",
        "self.queue = self.queue if self.queue.entries else Queue(self.record.changes)",
        "test_enqueue.py",
        "a queue that is not rolled back",
    ),
    Defect(
        "policy/decide",
        "return found if active is None else found & active[:, self.columns].all(axis=1)",
        "return found",
        "test_enqueue.py",
        "a given value that a condition takes away",
    ),
    Defect(
        "storage/sql",
        "if any(change.kind not in ARM_KINDS for change in changes):",
        "if False:",
        "conformance/test_storages.py",
        "a study that an earlier version would spoil",
    ),
)


def run(folder: Path, tests: str, *options: str) -> int:
    """Runs test files against the package in a folder, and returns what pytest returned."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *options]
    files = [str(ROOT / "tests" / name) for name in tests.split()]
    return subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, check=False).returncode


def found(defect: Defect, folder: Path) -> bool:
    """Tells whether a test fails where this defect is in the copy, which is whole again afterwards."""
    path = folder / "nilregret" / f"{defect.module}.py"
    whole = path.read_text()
    try:
        path.write_text(whole.replace(defect.right, defect.wrong))
        code = run(folder, defect.tests, "-x")
    finally:
        path.write_text(whole)
    if code not in (PASSED, FAILED):
        raise SystemExit(f"{defect.module}: pytest could not run {defect.tests} (exit code {code}).")
    return code == FAILED


def check_texts() -> None:
    """Raises an error where the text of a defect does not stand in its module exactly once."""
    for defect in DEFECTS:
        path = PACKAGE / f"{defect.module}.py"
        count = path.read_text().count(defect.right) if path.exists() else 0
        if count != 1:
            raise SystemExit(f"{defect.module}: {defect.right!r} is there {count} times. Write this defect anew.")


def main(words: list[str]) -> int:
    """Prints which defects are found; returns how many are missed."""
    check_texts()
    chosen = [defect for defect in DEFECTS if not words or any(word in defect.module for word in words)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(PACKAGE, folder / "nilregret", ignore=shutil.ignore_patterns("__pycache__"))
        every = " ".join(dict.fromkeys(file for defect in chosen for file in defect.tests.split()))
        if run(folder, every) != PASSED:
            raise SystemExit(f"Without any defect some of these tests fail: {every}.")
        missed = 0
        for defect in chosen:
            begun = time.monotonic()
            there = found(defect, folder)
            missed += not there
            seconds = time.monotonic() - begun
            print(f"{'found ' if there else 'MISSED'} {defect.module}: {defect.kind} ({seconds:.0f} s)", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} defects found.")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
