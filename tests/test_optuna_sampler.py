"""The sampler for Optuna: the conformance tests that Optuna publishes, and what they do not look at."""

import math
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase
from optuna.trial import TrialState

import nilregret as nr
from nilregret.integrations.distributions import Translation
from nilregret.integrations.optuna import NoRegretSampler
from nilregret.integrations.optuna_state import ObservedSpace, hull

from .marks import nightly
from .optuna_worker import SEED, loss, objective
from .waiting import LONG

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = nr.Space(x=nr.Float(-2, 2), rate=nr.Float(1e-4, 1, log=True), kind=nr.Choice("a", "b"))
SEARCH = nr.slots.PointSearch(candidates=16, around=4, starts=1, evaluations=2)
DISTRIBUTIONS = {
    "x": FloatDistribution(-2, 2),
    "rate": FloatDistribution(1e-4, 1, log=True),
    "kind": CategoricalDistribution(["a", "b"]),
}


def study_of(sampler=None, storage=None, **more):
    storage = optuna.storages.RDBStorage(storage) if isinstance(storage, str) else storage
    study = optuna.create_study(sampler=sampler or NoRegretSampler(), storage=storage, **more)
    if isinstance(storage, optuna.storages.RDBStorage):
        weakref.finalize(study, storage.engine.dispose)  # Optuna leaves connections open.
        weakref.finalize(study, storage.remove_session)
    return study


def told(study, count, value=loss):
    for _ in range(count):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, value(trial.params))
    return study


def params(study):
    return [trial.params for trial in study.trials]


def proposal(study, sampler, distributions=DISTRIBUTIONS):
    """What a sampler would give the next trial."""
    return sampler.sample_relative(study, next_trial(study), distributions)


def next_trial(study):
    trial = study.ask()  # running, with nothing known of it
    return trial._get_latest_trial()


class TestPublished(BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return NoRegretSampler


class TestDecisions:
    @pytest.mark.parametrize("goal", ["minimize", "maximize"])
    @pytest.mark.parametrize("grid", [False, True])
    def test_a_policy_of_a_space_decides_as_in_a_study_of_its_own(self, goal, grid):
        policy = nr.auto(SPACE.grid(7) if grid else SPACE, budget=9)
        own, sign = nr.Study(policy, goal=goal, seed=3), 1 if goal == "minimize" else -1
        for _ in range(10):
            trial = own.ask()
            own.tell(trial, sign * loss(trial.parameters))
        study = study_of(NoRegretSampler(policy, seed=3), direction=goal)
        study.optimize(lambda trial: sign * objective(trial), n_trials=10)
        for found, trial in zip(params(study), own.trials, strict=True):  # Optuna has values, rounded, and no points
            assert found == {
                name: each if grid or name == "kind" else pytest.approx(each, rel=1e-6)
                for name, each in trial.parameters.items()
            }

    def test_any_policy_decides(self):
        space = nr.Space(x=nr.Float(0, 1))
        kernel = nr.SquaredExponential(0.2)
        for make in (
            lambda space: nr.gp_ts(space, kernel, noise=0.1, norm_bound=1.0),
            lambda space: nr.gp_ucb(space.grid(30), kernel, noise=0.1),
            lambda space: nr.gp_ucb_cpd(space, kernel, noise=0.1, horizon=50),
            nr.gp_bucb(space.grid(11), kernel, noise=0.1, beta=2.0),
        ):
            study = study_of(NoRegretSampler(make))
            study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=6)
            assert len({trial.params["x"] for trial in study.trials}) > 1
        assert all(round(10 * trial.params["x"], 9) in range(11) for trial in study.trials)

    def test_it_finds_the_minimum(self):
        study = study_of(NoRegretSampler(seed=1))
        study.optimize(objective, n_trials=30)
        assert study.best_params["kind"] == "a"
        assert study.best_value < 0.02

    @pytest.mark.parametrize("limited", [False, True])
    def test_several_objectives_decide_as_in_a_study_of_their_own(self, limited):
        def values(at):
            return loss(at), 10.0 + at["x"]

        policy = nr.auto(SPACE, objectives=2, budget=9, constraints=int(limited)).using(search=SEARCH)
        own, directions = nr.Study(policy, goal=("minimize", "maximize"), seed=3), ["minimize", "maximize"]
        study = study_of(NoRegretSampler(policy, seed=3), directions=directions)
        for n in range(8):
            mine, theirs = own.ask(), study.ask(DISTRIBUTIONS)
            assert theirs.params["x"] == pytest.approx(mine.parameters["x"], rel=1e-6)
            assert theirs.params["kind"] == mine.parameters["kind"]
            if n == 2:
                own.fail(mine, "it is lost")
                study.tell(theirs, state=TrialState.FAIL)
                continue
            if limited:
                theirs.set_constraint("c", mine.parameters["x"] - 1.0)
            theirs.set_user_attr("nilregret:std", [0.1, None])
            limits = [mine.parameters["x"] - 1.0] if limited else None
            own.tell(mine, values(mine.parameters), std=(0.1, None), constraints=limits)
            study.tell(theirs, values(mine.parameters))

    def test_without_a_policy_each_direction_is_an_objective(self):
        study = study_of(directions=["minimize", "maximize", "minimize"])
        for n in range(6):
            trial = study.ask({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})
            if n != 3:  # Constraint values may be missing, and an infinite value fails the trial.
                trial.set_constraint("c", trial.params["x"] - 0.9)
            x, y = trial.params["x"], math.inf if n == 4 else trial.params["y"]
            study.tell(trial, (x + y, x - y, (x - 0.5) ** 2 + y))
        assert len({trial.params["x"] for trial in study.trials}) == 6
        again = NoRegretSampler()  # Another process goes on in the same way.
        assert proposal(study, again, study.trials[0].distributions) == study.sampler.sample_relative(
            study, study.trials[-1], study.trials[0].distributions
        )

    def test_directions_are_mirror_images(self):
        low = told(study_of(NoRegretSampler(seed=2)), 14)
        high = told(study_of(NoRegretSampler(seed=2), direction="maximize"), 14, lambda found: -loss(found))
        assert params(low) == params(high)

    def test_seeds_differ_and_the_same_seed_repeats(self):
        runs = [params(told(study_of(NoRegretSampler(seed=seed)), 6)) for seed in (0, 0, 1)]
        assert runs[0] == runs[1] != runs[2]


def in_another_process(storage, count):
    command = [sys.executable, str(Path(__file__).with_name("optuna_worker.py")), storage, str(count)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def dynamic(trial, step, *, constrained):
    """Parameters that some trials have, in ranges that change; a constraint that is set from some time on."""
    value = trial.suggest_float("x", 0, 1 if step < 12 else 2)
    way = trial.suggest_categorical("way", ["a", "b", None])
    if way == "a":
        value += trial.suggest_int("n", 1, 9, log=True)
    elif way == "b":
        value += trial.suggest_float("s", 0, 1, step=0.25) + trial.suggest_float("t", 0, 1 + 0.1 * (step % 3))
    if constrained and step > 6:
        trial.set_constraint("small", value - 1)
    return value


class TestRecord:
    @pytest.mark.nightly
    def test_a_study_resumed_in_a_fresh_process_repeats_exactly(self, tmp_path):
        whole = study_of(NoRegretSampler(seed=SEED))
        whole.optimize(objective, n_trials=24)
        storage = f"sqlite:///{tmp_path}/studies.db"
        half = study_of(NoRegretSampler(seed=SEED), storage=storage, study_name="s")
        half.optimize(objective, n_trials=12)
        worker = in_another_process(storage, 12)
        _, complaint = worker.communicate(timeout=LONG)
        assert worker.returncode == 0, complaint
        assert params(half) == params(whole)

    @pytest.mark.nightly
    def test_several_processes_share_a_study(self, tmp_path):
        storage = f"sqlite:///{tmp_path}/studies.db"
        study = told(study_of(NoRegretSampler(seed=SEED), storage=storage, study_name="s"), 8)
        workers = [in_another_process(storage, 4) for _ in range(2)]
        for worker in workers:
            _, complaint = worker.communicate(timeout=LONG)
            assert worker.returncode == 0, complaint
        points = [(found["x"], found["rate"], found["kind"]) for found in params(study)]
        assert [trial.number for trial in study.trials] == list(range(16))
        assert len(set(points)) == 16

    @pytest.mark.parametrize("kind", ["journal", "sqlite"])
    def test_the_kind_of_storage_makes_no_difference(self, tmp_path, kind):
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "log"))
        storage = optuna.storages.JournalStorage(backend) if kind == "journal" else f"sqlite:///{tmp_path}/x.db"
        assert params(told(study_of(storage=storage), 13)) == params(told(study_of(), 13))

    def test_whatever_happened_the_state_that_follows_is_the_one_made_afresh(self):
        rng = np.random.default_rng(0)
        sampler = NoRegretSampler(seed=7)
        study, running = study_of(sampler), []
        for step in range(30):
            running.append(study.ask(DISTRIBUTIONS))
            while len(running) > 3 or (running and rng.random() < 0.5):
                trial, what = running.pop(int(rng.integers(len(running)))), rng.random()
                if what < 0.15:
                    study.tell(trial, state=TrialState.FAIL)
                elif what < 0.3:
                    trial.report(loss(trial.params), 0)
                    study.tell(trial, state=TrialState.PRUNED)
                else:
                    study.tell(trial, loss(trial.params))
            if step % 7 == 3:
                study.add_trial(optuna.create_trial(state=TrialState.FAIL))  # a number that nobody asked with
            if step % 4 == 3:
                trial = next_trial(study)
                afresh = NoRegretSampler(seed=7).sample_relative(study, trial, DISTRIBUTIONS)
                assert sampler.sample_relative(study, trial, DISTRIBUTIONS) == afresh
                study.tell(trial.number, state=TrialState.FAIL)

    @pytest.mark.parametrize("constrained", [True, *nightly(False)])
    def test_so_it_is_where_parameters_come_and_go(self, constrained):
        rng, sampler = np.random.default_rng(1), NoRegretSampler(seed=7, failed="ignored")
        study, running = study_of(sampler), []
        for step in range(26):
            trial = study.ask()
            if rng.random() < 0.1:
                study.enqueue_trial({"way": "a"})
            running.append((trial, dynamic(trial, step, constrained=constrained)))
            while len(running) > 2 or (running and rng.random() < 0.6):
                (trial, value), what = running.pop(int(rng.integers(len(running)))), rng.random()
                ended = {"state": TrialState.FAIL} if what < 0.1 else {"values": value}
                study.tell(trial, **ended)
            if step % 3 == 2:
                trial, afresh = next_trial(study), NoRegretSampler(seed=7, failed="ignored")
                space = sampler.infer_relative_search_space(study, trial)
                assert afresh.infer_relative_search_space(study, trial) == space
                assert sampler.sample_relative(study, trial, space) == afresh.sample_relative(study, trial, space)
                study.tell(trial.number, state=TrialState.FAIL)

    def test_ends_that_come_to_light_late_are_put_in_their_place(self):
        sampler = NoRegretSampler(seed=7)
        study = told(study_of(sampler), 26)
        first = study.trials[20]
        earlier = optuna.create_trial(params=first.params, distributions=DISTRIBUTIONS, value=0.3)
        earlier.datetime_complete = earlier.datetime_start = study.trials[15].datetime_complete
        study.add_trial(earlier)  # of a machine whose clock is behind
        trial = next_trial(study)
        afresh = NoRegretSampler(seed=7).sample_relative(study, trial, DISTRIBUTIONS)
        assert sampler.sample_relative(study, trial, DISTRIBUTIONS) == afresh

    def test_one_sampler_serves_several_studies(self):
        sampler, others = NoRegretSampler(seed=4), [study_of(NoRegretSampler(seed=4)) for _ in range(2)]
        studies = [study_of(sampler), study_of(sampler)]
        for _ in range(13):
            for one, other, scale in zip(studies, others, (1, -1), strict=True):
                told(one, 1, lambda found, scale=scale: scale * loss(found))
                told(other, 1, lambda found, scale=scale: scale * loss(found))
        assert [params(study) for study in studies] == [params(study) for study in others]

    def test_copies_begin_where_the_record_is(self):
        study = told(study_of(NoRegretSampler(seed=4)), 12)
        sampler, trial = study.sampler, next_trial(study)
        copied = pickle.loads(pickle.dumps(sampler))
        copied.reseed_rng()
        assert copied.sample_relative(study, trial, DISTRIBUTIONS) == sampler.sample_relative(
            study, trial, DISTRIBUTIONS
        )


class TestRunning:
    def test_running_trials_are_pending_ones(self):
        study = told(study_of(NoRegretSampler(seed=1)), 12)
        asked = [study.ask(DISTRIBUTIONS) for _ in range(8)]
        at = np.array([[trial.params["x"] / 4, math.log10(trial.params["rate"]) / 4] for trial in asked])
        gaps = [np.abs(one - other).max() for i, one in enumerate(at) for other in at[:i]]
        assert min(gaps) > 0.0001  # Two at one point would be apart by at most 0.00001.
        assert max(gaps) > 0.1

    def test_what_a_trial_was_told_is_known_before_it_asks(self):
        study = told(study_of(NoRegretSampler(seed=4)), 20)
        trial = next_trial(study)
        first = study.sampler.sample_relative(study, trial, DISTRIBUTIONS)
        second = proposal(study, NoRegretSampler(seed=4))  # of another process
        apart = abs(first["x"] - second["x"]) / 4, abs(math.log10(first["rate"] / second["rate"])) / 4  # of the sides
        assert max(apart) > 0.001 or first["kind"] != second["kind"]

    def test_trials_that_are_asked_for_at_the_same_moment_differ(self):
        study = told(study_of(NoRegretSampler(seed=1)), 3)
        trials = [next_trial(study) for _ in range(4)]
        found = [NoRegretSampler(seed=1).sample_relative(study, trial, DISTRIBUTIONS)["x"] for trial in trials]
        assert len(set(found)) == 4

    def test_a_long_answer_is_split_over_attributes(self):
        names = [f"a parameter with quite a long name, number {i}" for i in range(60)]
        study = study_of()
        for _ in range(2):
            trial = study.ask({name: FloatDistribution(0, 1) for name in names})
            study.tell(trial, 1.0)
        keys = [key for key in study.trials[1].system_attrs if key.startswith("nilregret")]
        assert len(keys) > 1
        assert all(len(study.trials[1].system_attrs[key]) <= 2045 for key in keys)

    def test_threads(self):
        study = study_of(NoRegretSampler(seed=1))
        study.optimize(objective, n_trials=20, n_jobs=4)
        assert len({(found["x"], found["rate"]) for found in params(study)}) == 20

    def test_a_late_answer_counts(self):
        study = told(study_of(NoRegretSampler(seed=1)), 12)
        late = study.ask(DISTRIBUTIONS)
        told(study, 3)
        trial = next_trial(study)
        before = NoRegretSampler(seed=1).sample_relative(study, trial, DISTRIBUTIONS)
        study.tell(late, -100.0)
        assert study.sampler.sample_relative(study, trial, DISTRIBUTIONS) != before


def limited(trial):
    value = objective(trial)
    trial.set_constraint("x is large", 1 - trial.params["x"])
    trial.set_constraint("rate is small", math.log10(trial.params["rate"]) + 2.5)
    return value


class TestConstraints:
    def test_each_is_learned_by_itself(self):
        study = study_of(NoRegretSampler(seed=0))
        study.optimize(limited, n_trials=30)
        assert all(value <= 0 for value in study.best_trial.constraints.values())
        assert study.best_value < 0.3  # 0.275 at the corner

    def test_the_function_that_other_samplers_take(self):
        def limits(trial):
            return (1 - trial.params["x"], math.log10(trial.params["rate"]) + 2.5)

        study = study_of(NoRegretSampler(seed=0, constraints_func=limits))
        study.optimize(objective, n_trials=14)
        assert list(study.trials[3].constraints) == ["0", "1"]
        reference = study_of(NoRegretSampler(seed=0))

        def numbered(trial):
            value = objective(trial)
            for j, each in enumerate(limits(trial)):
                trial.set_constraint(str(j), each)
            return value

        reference.optimize(numbered, n_trials=14)
        assert params(reference) == params(study)

    def test_a_trial_may_lack_one_or_have_infinite_ones(self):
        study = study_of(NoRegretSampler(seed=0))
        for number in range(14):
            trial = study.ask(DISTRIBUTIONS)
            if number != 5:
                trial.set_constraint("first", math.inf if number == 3 else trial.params["x"])
            if number != 6:
                trial.set_constraint("second", -trial.params["x"] - 1)
            study.tell(trial, loss(trial.params))
        assert set(proposal(study, study.sampler)) == set(DISTRIBUTIONS)

    def test_nan_is_refused(self):
        study = study_of(NoRegretSampler(constraints_func=lambda trial: [math.nan]))
        with pytest.raises(nr.errors.InvalidInput, match="cannot be NaN"):
            study.optimize(objective, n_trials=1)

    def test_a_policy_without_constraints_says_so_once(self):
        study = study_of(NoRegretSampler(lambda space: nr.auto(space)))
        with pytest.warns(nr.errors.NoRegretWarning, match="made without: they are not looked at"):
            study.optimize(limited, n_trials=3)

    def test_a_policy_of_fewer_constraints_is_refused(self):
        study = study_of(NoRegretSampler(lambda space: nr.auto(space, constraints=1)))
        with pytest.raises(nr.errors.InvalidInput, match="The trials have 2 constraints"):
            study.optimize(limited, n_trials=3)

    def test_a_policy_of_constraints_that_are_not_set_yet(self):
        study = study_of(NoRegretSampler(nr.auto(SPACE, constraints=2)))
        study.optimize(limited, n_trials=3)
        assert len(study.trials) == 3


class TestEnds:
    def test_a_pruned_trial_counts_as_its_last_value(self):
        pruned, whole = study_of(NoRegretSampler(seed=1)), study_of(NoRegretSampler(seed=1))
        for number in range(16):
            one, other = pruned.ask(DISTRIBUTIONS), whole.ask(DISTRIBUTIONS)
            if number % 4 == 2:
                one.report(7.0, 1)
                one.report(loss(one.params), 2)
                pruned.tell(one, state=TrialState.PRUNED)
            else:
                pruned.tell(one, loss(one.params))
            whole.tell(other, loss(other.params))
        assert params(pruned) == params(whole)

    @pytest.mark.parametrize("how", ["pruned", "failed", "infinite", "huge"])
    def test_a_trial_without_a_usable_value_is_not_asked_for_again(self, how):
        study = told(study_of(NoRegretSampler(seed=1)), 14)
        bad = study.ask(DISTRIBUTIONS)
        if how in ("infinite", "huge"):
            study.tell(bad, -math.inf if how == "infinite" else 1e300)
        else:
            study.tell(bad, state=TrialState.PRUNED if how == "pruned" else TrialState.FAIL)
        for _ in range(3):
            trial = study.ask(DISTRIBUTIONS)
            assert abs(trial.params["x"] - bad.params["x"]) > 1e-6
            study.tell(trial, state=TrialState.FAIL)

    def test_failures_may_be_ignored(self):
        study = told(study_of(NoRegretSampler(seed=1, failed="ignored")), 14)
        trial = next_trial(study)
        before = proposal_of(study, trial)
        other = study.ask(DISTRIBUTIONS)
        study.tell(other, state=TrialState.FAIL)
        assert proposal_of(study, trial) == before

    def test_enqueued_trials_get_what_was_fixed_and_the_rest_beside_it(self):
        study = told(study_of(NoRegretSampler(seed=1)), 25)
        study.enqueue_trial({"kind": "a", "x": 0.9})
        study.enqueue_trial({"kind": "a", "x": 1.0, "rate": 0.5})
        first, second = study.ask(DISTRIBUTIONS), study.ask(DISTRIBUTIONS)
        assert (first.params["kind"], first.params["x"]) == ("a", 0.9)
        assert abs(math.log10(first.params["rate"]) + 2) < 1.0
        assert second.params == {"kind": "a", "x": 1.0, "rate": 0.5}
        assert not any(key.startswith("nilregret") for key in study.trials[26].system_attrs)
        study.enqueue_trial({"x": 5.0})  # out of range: Optuna warns, and takes it
        with pytest.warns(UserWarning, match="out of range"):
            assert study.ask(DISTRIBUTIONS).params["x"] == 5.0
        told(study, 2)

    def test_some_parameters_fixed_for_good(self):
        study = told(study_of(NoRegretSampler(nr.auto(SPACE, answers="late"), seed=1)), 12)
        with pytest.warns(optuna.exceptions.ExperimentalWarning):
            study.sampler = optuna.samplers.PartialFixedSampler({"kind": "b"}, study.sampler)
        told(study, 3)
        assert {found["kind"] for found in params(study)[12:]} == {"b"}

    def test_hyperband_shows_each_bracket_by_itself(self):
        pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
        study = optuna.create_study(sampler=NoRegretSampler(), pruner=pruner)

        def stepwise(trial):
            value = objective(trial)
            for step in range(9):
                trial.report(value + 1 / (step + 1), step)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return value

        study.optimize(stepwise, n_trials=16)
        assert len(study.trials) == 16


def proposal_of(study, trial):
    return study.sampler.sample_relative(study, trial, DISTRIBUTIONS)


class TestSpaces:
    def test_parts_that_occur_together_are_decided_together(self):
        def conditional(trial):
            x = trial.suggest_float("x", 0, 1)
            if trial.suggest_categorical("way", ["walk", "ride"]) == "walk":
                return x + trial.suggest_float("pace", 0, 1) + trial.suggest_int("rests", 0, 3)
            return x + 0.5 * trial.suggest_float("load", 0, 1)

        study = study_of(NoRegretSampler(seed=1))
        study.optimize(conditional, n_trials=30)
        seen = ObservedSpace()
        for trial in study.trials:
            seen.observe(trial)
        assert seen.groups(seen.space) == [["load"], ["pace", "rests"], ["way", "x"]]
        assert study.best_value < 0.05
        assert len({trial.params["x"] for trial in study.trials}) > 20

    def test_groups_draw_apart_from_each_other(self):
        study = study_of(NoRegretSampler(seed=2))
        for number in range(2):
            study.add_trial(
                optuna.create_trial(
                    params={"xy"[number % 2]: 0.5}, distributions={"xy"[number % 2]: FloatDistribution(0, 1)}, value=1.0
                )
            )
        found = proposal(study, study.sampler, {name: FloatDistribution(0, 1) for name in "xy"})
        assert found["x"] != found["y"]

    def test_a_range_that_changed_is_the_last_one_and_one_that_keeps_changing_the_hull(self):
        seen = ObservedSpace()
        for low, high, expected in (
            (0, 10, (0, 10)),
            (0, 5, (0, 5)),
            (20, 30, (20, 30)),
            (0, 10, (0, 10)),
            (2, 3, (0, 30)),
        ):
            at = FloatDistribution(low, high)
            seen.observe(optuna.create_trial(params={"x": low}, distributions={"x": at}, value=1.0))
            assert seen.space == {"x": FloatDistribution(*expected)}

    def test_trials_outside_the_range_say_nothing(self):
        translation = Translation({"x": FloatDistribution(0, 1), "n": IntDistribution(0, 10, step=5)})
        assert translation.point({"x": 0.5, "n": 5}) is not None
        for values in ({"x": 2.0, "n": 5}, {"x": 0.5, "n": 4}, {"x": 0.5}, {"x": "a", "n": 5}):
            assert translation.point(values) is None

    def test_conditions_of_a_space_that_was_declared(self):
        space = nr.Space(way=nr.Choice("walk", "ride"), load=nr.when("way", "ride", nr.Float(0, 1)))
        study = study_of(NoRegretSampler(nr.auto(space, answers="late"), seed=0))

        def conditional(trial):
            return (
                trial.suggest_float("load", 0, 1) if trial.suggest_categorical("way", ["walk", "ride"]) == "ride" else 2
            )

        study.optimize(conditional, n_trials=20)
        assert study.best_value < 0.1
        assert [set(found) for found in params(study)].count({"way"}) > 0

    def test_steps_and_options_come_as_they_are_written(self):
        options = [None, 1, 1.5, "1", True, math.inf, (1, 2)]
        with pytest.warns(UserWarning, match="tuple"):
            kinds = CategoricalDistribution(options)
        distributions = {
            "step": FloatDistribution(-10, 10, step=0.1),
            "kind": kinds,
            "n": IntDistribution(1, 9, step=2),
        }
        study = study_of()
        for _ in range(12):
            trial = study.ask(distributions)
            study.tell(trial, abs(trial.params["step"]))
            assert len(repr(trial.params["step"])) <= 5
            assert trial.params["kind"] in options
            assert trial.params["n"] in (1, 3, 5, 7, 9)

    def test_a_distribution_of_somebody_elses_is_left_to_itself(self):
        class Odd(optuna.distributions.FloatDistribution.__mro__[1]):  # of a package's own
            def single(self):
                return False

            def _contains(self, value):
                return True

            def to_external_repr(self, value):
                return value

            def to_internal_repr(self, value):
                return value

        study = study_of()
        for _ in range(2):
            at = {"x": FloatDistribution(0, 1), "odd": Odd()}
            study.add_trial(optuna.create_trial(params={"x": 0.1, "odd": 3}, distributions=at, value=1.0))
        assert list(study.sampler.infer_relative_search_space(study, next_trial(study))) == ["x"]
        with pytest.raises(nr.errors.InvalidInput, match="Odd is no distribution that is known here"):
            study.sampler.sample_independent(study, next_trial(study), "odd", Odd())

    def test_hulls(self):
        assert hull(IntDistribution(0, 4, step=2), IntDistribution(1, 5, step=2)) is None
        assert hull(FloatDistribution(0, 1, step=0.5), FloatDistribution(0.25, 1.25, step=0.5)) is None
        assert hull(FloatDistribution(0, 1), IntDistribution(0, 1)) is None
        assert hull(IntDistribution(0, 4, step=2), IntDistribution(2, 8, step=2)) == IntDistribution(0, 8, step=2)

    def test_independent_draws_depend_on_seed_number_and_name_alone(self):
        study = study_of()
        trials = [next_trial(study) for _ in range(2)]
        at = FloatDistribution(0, 1)
        draws = [
            NoRegretSampler(seed=seed).sample_independent(study, trial, name, at)
            for seed in (0, 1)
            for trial in trials
            for name in "xy"
        ]
        assert len(set(draws)) == 8
        assert draws[0] == NoRegretSampler(seed=0).sample_independent(study, trials[0], "x", at)


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda: NoRegretSampler("auto"), "must be a policy"),
            (lambda: NoRegretSampler(constraints_func=3), "must be a function of a trial"),
            (lambda: NoRegretSampler(seed=-1), "`seed`"),
            (lambda: NoRegretSampler(failed="maybe"), "`failed`"),
            (lambda: NoRegretSampler(nr.auto(nr.Box([0], [1]))), "have names"),
            (lambda: NoRegretSampler(nr.auto(SPACE, context=nr.Box([0], [1]))), "has contexts"),
        ],
    )
    def test_at_once(self, make, sentence):
        with pytest.raises(nr.errors.InvalidInput, match=sentence):
            make()

    @pytest.mark.parametrize(
        ("policy", "sentence"),
        [(lambda space: nr.auto(SPACE.grid(3)), "must be of the space"), (lambda space: space, "must be made by")],
    )
    def test_when_the_policy_is_made(self, policy, sentence):
        study = study_of(NoRegretSampler(policy))
        study.add_trial(optuna.create_trial(params={"y": 0.5}, distributions={"y": FloatDistribution(0, 1)}, value=1.0))
        with pytest.raises(nr.errors.InvalidInput, match=sentence):
            study.ask({"y": FloatDistribution(0, 1)})

    @pytest.mark.parametrize(
        ("policy", "directions", "sentence"),
        [
            (nr.auto(SPACE), ["minimize", "maximize"], r"2 objectives, and the policy has 1: .* `objectives=2`"),
            (nr.auto(SPACE, objectives=2), ["minimize"], "1 objective, and the policy has 2"),
            (nr.auto, ["minimize", "maximize"], "2 objectives, and the policy has 1"),
            (
                nr.Study(nr.auto(SPACE, objectives=2), goal="minimize").policy,
                ["minimize", "maximize"],
                "objectives of the policy have the goals",
            ),
        ],
    )
    def test_a_policy_with_other_objectives(self, policy, directions, sentence):
        study = study_of(NoRegretSampler(policy), directions=directions)
        trial = optuna.create_trial(
            params={"x": 0.5, "rate": 0.1, "kind": "a"}, distributions=DISTRIBUTIONS, values=[1.0] * len(directions)
        )
        study.add_trial(trial)
        with pytest.raises(nr.errors.InvalidInput, match=sentence):
            study.ask(DISTRIBUTIONS)

    def test_optuna_is_not_installed(self):
        script = (
            "import sys; sys.modules['optuna'] = None\n"
            "import nilregret\n"
            "try:\n    import nilregret.integrations.optuna\n"
            "except nilregret.errors.MissingExtra as error:\n    print(error)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert "pip install 'nilregret[optuna]'" in done.stdout
