"""Costs that stay small however long a record is: of opening it, of `best`, and of the first decision of a process."""

import subprocess
import sys
from typing import get_type_hints

import numpy as np
import pytest
import scipy
from scipy.spatial.distance import cdist
from scipy.stats import qmc, rankdata

import nilregret as nr
from nilregret import serialize
from nilregret._utils import randomness
from nilregret._utils.randomness import Draws
from nilregret.domains.space import Space
from nilregret.gp.warping import Warp, half_rank
from nilregret.kernels.base import squared_distances
from nilregret.study.best import BLOCK, FirstAnswers, _compared, best_trial

FIRST_DECISIONS = """
import sys
import nilregret as nr

def loaded():
    own = {module for name, module in sys.modules.items() if name.startswith("nilregret")}
    classes = {each for module in own for each in vars(module).values() if hasattr(each, "__mro__")}
    kept = [vars(each).get("__dataclass_fields__") for each in classes]
    print(len(own), sum(type(each) is dict for each in kept), *sys.modules)

loaded()
nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)).ask()
loaded()
study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))))
study.tell(study.ask(), 0.0)
study.ask()
loaded()
"""
# Modules of the package, and dataclasses whose methods are made. A larger number needs a reason.
MOST = {"import": (3, 0), "gp_ucb": (138, 16), "auto": (146, 28)}
WITHOUT = {
    "import": ("numpy", "ast", "difflib", "pathlib"),
    "gp_ucb": ("decimal", "statistics", "uuid", "nilregret.theory.change.detector", "nilregret.slots.silence"),
}
DESCRIBED = """
import importlib, pathlib
import nilregret as nr
from nilregret.serialize import _DECODERS
nr._load_parts()
known, home = set(_DECODERS), pathlib.Path(nr.__file__).parent
for room in ("algorithms", "domains", "gp", "kernels", "policy", "slots", "storage", "theory"):
    for path in (home / room).rglob("[!_]*.py"):
        importlib.import_module(".".join(["nilregret", *path.relative_to(home).with_suffix("").parts]))
print(*(set(_DECODERS) - known))
"""
HEAVY = ("stats", "spatial", "special", "optimize", "interpolate", "integrate", "ndimage", "fft")
HEAVY += ("sparse",) * (scipy.__version__ >= "1.16")  # Before, SciPy imported it with `scipy.linalg`.


def test_a_first_decision_imports_linear_algebra_and_what_it_uses():
    found = subprocess.run([sys.executable, "-c", FIRST_DECISIONS], check=True, capture_output=True, text=True)
    names = {}
    for (when, (modules, made)), line in zip(MOST.items(), found.stdout.splitlines(), strict=True):
        count, classes, *names[when] = line.split()
        assert int(count) <= modules
        assert int(classes) <= made
        assert not {*WITHOUT.get(when, ())} & {*names[when]}
    assert not {f"scipy.{name}" for name in HEAVY} & {*names["auto"]}  # A point of the design needs no score.


def test_a_stored_description_finds_every_described_class():
    found = subprocess.run([sys.executable, "-c", DESCRIBED], check=True, capture_output=True, text=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize("dimension", [1, 2, 6, 32, 33])
def test_directions_are_those_of_joe_and_kuo(dimension):
    known = len(randomness._JOE_KUO.split()) + 1
    assert known == 32
    plain = qmc.Sobol(dimension, scramble=False, bits=30).random_base2(12)
    wanted = (plain[2 ** np.arange(1, 13) - 1] * 2.0**30).astype(np.int64)
    digits = randomness._directions(dimension, 12)
    np.testing.assert_array_equal(digits @ (1 << np.arange(29, -1, -1)), wanted)


@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (2, 3, 4), (40, 1, 6), (1, 40, 6), (40, 30, 1), (0, 2, 3), (9, 9, 9)]
)
def test_distances_are_the_same_to_the_bit_with_and_without_scipy(n, m, d):
    rng = Draws(f"distances {n} {m} {d}")
    first, second = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    wanted = cdist(first, second, "sqeuclidean")
    assert squared_distances(first, second).tobytes() == wanted.tobytes()
    assert squared_distances(1e200 * first, 1e-200 * second).shape == wanted.shape  # They overflow in silence.


def test_equal_rewards_have_the_mean_of_their_ranks():
    rewards = np.array([3.0, 1.0, 1.0, 2.0, 5.0, 9.0, 8.0, 1.0, 2.5])
    warp = half_rank(rewards)
    low, first = np.unique(rewards[rewards < 2.5], return_index=True)
    assert warp.knots[:-1].tolist() == low.tolist()
    ranks = rankdata(rewards)[np.flatnonzero(rewards < 2.5)[first]]
    assert ranks.tolist() == [2.0, 4.0]
    steps = warp.heights[:-1] - 2.5
    from scipy.special import ndtri

    np.testing.assert_allclose(steps / steps[0], ndtri((ranks - 0.5) / 9) / ndtri((ranks[0] - 0.5) / 9), rtol=1e-12)


SPACE = nr.Space(x=nr.Float(1e-3, 1.0, log=True), n=nr.Int(1, 9), kind=nr.Choice("a", "b"))


@pytest.mark.parametrize("space", [SPACE, nr.Space(kind=nr.Choice("a", "b"), x=nr.when("kind", "a", nr.Float(0, 1)))])
def test_points_of_a_space_are_decoded_together_as_alone(space):
    points = space.spread(Draws("points").random((50, len(space.parameters))))
    assert space.decoded(points) == [space.decode(point) for point in points]
    assert space.lower is space.lower
    assert not space.upper.flags.writeable


def _noted(patched, name):
    """Returns a list that grows by each call of a method of spaces."""
    whole, calls = getattr(Space, name), []
    patched.setattr(Space, name, lambda *args: (calls.append(name), whole(*args))[1])
    return calls


def test_opening_checks_and_decodes_all_points_at_once(tmp_path, monkeypatch):
    counts = []
    for trials in (5, 60):
        url = f"sqlite:///{tmp_path}/{trials}.db"
        study = nr.Study(nr.auto(SPACE, context=nr.Space(y=nr.Float(0, 1))), storage=url)
        rng = Draws("opened")
        for _ in range(trials):
            x, n, kind = rng.random(), int(rng.integers(8)) + 1, "ab"[rng.integers(2)]
            study.add({"x": max(x, 1e-3), "n": n, "kind": kind}, x, context={"y": x})
        study.close()
        with monkeypatch.context() as patched:
            calls = [_noted(patched, name) for name in ("inside", "snap", "decoded")]
            opened = nr.Study.open(storage=url)
        counts.append([len(each) for each in calls])
        assert len(opened.trials) == trials
        opened.close()
    assert counts[0] == counts[1]


# -- best ------------------------------------------------------------------------------------------------------------

ARMS = nr.Arms.grid(0, 1, 9)
POLICIES = {
    "one kernel": nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1),
    "a window": nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1, memory=nr.slots.SlidingWindow(12)),
    "contexts": nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1, context=nr.Arms.grid(0, 1, 3)),
    "fits": nr.auto(ARMS),
    "restarts": nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1, memory=nr.slots.RestartEvery(24)),
    "a box": nr.gp_ucb(nr.Box([0.0], [1.0]), nr.SquaredExponential(0.3), noise=0.1),
    "limits": nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1, constraints=nr.EveryRound(count=1)),
    "limits under contexts": nr.gp_ucb(
        ARMS, nr.SquaredExponential(0.3), noise=0.1, context=nr.Arms.grid(0, 1, 3), constraints=nr.EveryRound(count=1)
    ),
    "multipliers": nr.gp_ucb_noiseless_constraints(
        ARMS, nr.SquaredExponential(0.3), noise=0.1, norm_bound=1.0, epoch=20, epochs=3
    ),
    "fits on a box": nr.auto(nr.Box([0.0], [1.0])),
}


def _slowly(study, context=None):
    """Returns the best trial among all that are answered."""

    def read(state):
        answered, means = _compared(study.policy, study.goals[0], state, study._in_use(), context)
        return answered[int(means.argmax())]

    return study.replica.query(read)


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.parametrize("name", POLICIES)
def test_the_best_trial_is_the_same_when_each_is_read_once(name, goal, monkeypatch):
    monkeypatch.setattr("nilregret.study.best.BLOCK", 4)
    study, rng, late = nr.Study(POLICIES[name], goal=goal), Draws("best"), []
    study.quiet = True
    for n in range(60):
        seen = n % 3 / 2
        trial = study.ask([seen]) if "contexts" in name else study.ask()
        limits = {"constraints": [trial.point[0] - 0.75 + 0.5 * (n % 2)]} if study.policy.constraint_count else {}
        reward = float(np.sin(7.0 * trial.point[0]) + 0.1 * rng.standard_normal())
        if n % 7 == 3:
            late.append((trial, reward))
        elif n % 11 == 5:
            study.fail(trial, "broken")
        else:
            study.tell(trial, reward, **limits)
        if n % 13 == 12:
            study.tell(*late.pop(0), **limits)
        if n == 30:
            study.tell(study.best(), -3.0 if goal == "maximize" else 3.0, revise=True, **limits)
        if n in (0, 1, 2, 20, 31, 58) or n % 5 == 0:
            assert study.best() is _slowly(study)
            if "contexts" in name and n > 9:
                assert study.best(context=[seen]) is _slowly(study, np.array([seen]))
    if name in ("one kernel", "fits", "a window"):
        study.retire_arm(study.best().arm)
        assert study.best() is _slowly(study)


class Counted(list):
    """Trials that note how many of them are read."""

    read = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        self.read += len(found) if isinstance(index, slice) else 1
        return found


def test_the_best_of_a_long_record_is_found_without_reading_it():
    study, rng = nr.Study(POLICIES["one kernel"]), Draws("long")
    for _ in range(6 * BLOCK):
        trial = study.ask()
        study.tell(trial, float(np.sin(7.0 * trial.point[0]) + 0.1 * rng.standard_normal()))
    trials, firsts = Counted(study.trials), FirstAnswers()

    def read(state):
        return best_trial(
            study.policy, "maximize", state, firsts.of(study.policy, state, trials, study.replica.roster), None
        )

    best = study.replica.query(read)
    assert best is _slowly(study)
    assert trials.read <= 3 * BLOCK
    before = trials.read
    assert study.replica.query(read) is best
    assert trials.read == before


@pytest.mark.parametrize("name", ["limits", "fits", "fits on a box"])
def test_the_best_of_many_trials_reads_each_once_and_is_kept(name, monkeypatch):
    study, rng, read, valued = nr.Study(POLICIES[name]), Draws("kept"), [], []
    limits = {"constraints": [-1.0]} if name == "limits" else {}
    for n in range(300):
        x = rng.random() if name == "fits on a box" else n % 9 / 8
        study.add([x], float(np.sin(7.0 * x) + 0.1 * rng.standard_normal()), **limits)
    study.tell(study.ask(), 0.0, **limits)
    waits, moments = FirstAnswers._waits, Warp.moments
    monkeypatch.setattr(FirstAnswers, "_waits", lambda self, trial: (read.append(trial), waits(self, trial))[1])
    monkeypatch.setattr(
        Warp, "moments", lambda self, mean, std: (valued.append(len(mean)), moments(self, mean, std))[1]
    )
    counts = []
    for _ in range(3):
        best = study.best()
        assert study.best() is best is study.best()
        counts.append((len(read), sum(valued)))
        study.tell(study.ask(), 0.0, **limits)
    assert [count for count, _ in counts] == [301, 302, 303]
    assert counts[-1][1] <= 3 * 40
    with study.replica.lock:
        assert study.replica.query(lambda state: study._best(None, state)) is _slowly(study)


def test_the_best_trial_of_several_processes(tmp_path):
    url = f"sqlite:///{tmp_path}/both.db"
    one, two = (nr.Study(POLICIES["one kernel"], storage=url) for _ in range(2))
    rng, late = Draws("two"), []
    for n in range(30):
        study, other = (one, two)[:: 1 if n % 2 else -1]
        trial = study.ask()
        reward = float(np.sin(7.0 * trial.point[0]) + 0.1 * rng.standard_normal())
        if n % 4 == 1:
            late.append((trial.number, reward))
        else:
            other.tell(trial.number, reward)
        if n % 9 == 8:
            study.tell(*late.pop(0))
        if n == 20:
            study.tell(other.best().number, -2.0, revise=True)
        if n:
            assert study.best().number == _slowly(study).number == other.best().number
    one.close()
    two.close()


def test_types_of_every_recorded_part_can_be_read():
    ours = [cls for cls in serialize._ENCODERS if cls.__module__.startswith("nilregret")]
    assert len(ours) > 100
    for cls in ours:
        get_type_hints(cls)  # else a field of a stored description is not checked, and a file cannot name it
