"""Random sequences of operations, a small part of `benchmarks/attack.py sequences`."""

import pytest

from . import sequences


@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.nightly)])
def test_a_reopened_copy_continues_and_predictions_are_dense_solves(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 5), tmp_path)
    assert wrong == []
    assert compared > 40
    assert solved > 6


@pytest.mark.parametrize("first", [0, pytest.param(6, marks=pytest.mark.nightly)])
def test_so_does_the_recommended_policy_with_parts_of_its_own_and_others(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 6), tmp_path, sequences.some_auto)
    assert wrong == []
    assert compared > 40
    assert solved > 6


@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.nightly)])
def test_so_do_posteriors_of_constraints_in_every_world(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 5), tmp_path, sequences.some_limits)
    assert wrong == []
    assert compared > 40
    assert solved > 6


@pytest.mark.parametrize("first", [0, pytest.param(6, marks=pytest.mark.nightly)])
def test_so_do_studies_whose_arms_come_and_go(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 6), tmp_path, sequences.some_policy, arms=True)
    assert wrong == []
    assert compared > 30
    assert solved > 6


@pytest.mark.parametrize("first", [0, pytest.param(6, marks=pytest.mark.nightly)])
def test_so_do_studies_with_points_to_try_first(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 6), tmp_path, arms=True, queue=True)
    assert wrong == []
    assert compared > 30
    assert solved > 6


@pytest.mark.parametrize("first", [0, pytest.param(6, marks=pytest.mark.nightly)])
def test_so_do_studies_whose_trials_report_and_stop(first, tmp_path):
    compared, solved, wrong = sequences.run(range(first, first + 6), tmp_path, arms=True, steps=True)
    assert wrong == []
    assert compared > 30
    assert solved > 6


@pytest.mark.parametrize("broken", ["outcomes.Outcomes.fail", "training_data.TrainingData._close"])
def test_what_is_looked_for_would_be_found(broken, monkeypatch):
    monkeypatch.setattr(f"nilregret.policy.{broken}", lambda *_: None)
    wrong = sequences.run([2, 6, 11, 14])[2]
    assert wrong
    assert all(isinstance(error, sequences.Problem) for _, error, _ in wrong)
