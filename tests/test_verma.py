"""The figures of Verma, Dai and Low: tables of expensive objectives, rules, measures and sentences."""

import gzip
import math

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.environments.delays import FixedDelay, PoissonDelay
from nilregret.papers.verma import synthetic, tables, tuning, widths
from nilregret.study.curves import Curves

SHAPES = {"svm": (1681, 2), "lr": (1183, 3), "cnn": (384, 3), "growing": (441, 2)}


def quiet(done, total):
    """No progress bar."""


@pytest.mark.parametrize("name", SHAPES)
def test_tables_that_come_with_the_library(name, tmp_path):
    known = tables.table(name, tmp_path)
    assert known.arms.points.shape == SHAPES[name]
    assert known.accuracy.shape[-1] == SHAPES[name][0]
    assert (known.accuracy.ndim == 2) == (name == "growing")
    assert 0.0 < known.accuracy.min() < known.accuracy.max() < 1.0
    assert known.arms.points.min() == 0.0
    assert known.arms.points.max() == 1.0


def test_the_svm_table_agrees_with_the_published_runs(tmp_path):
    """Best accuracy 181 of 231, that of the majority 150: the same split and the same ranges."""
    known = tables.table("svm", tmp_path)
    assert known.accuracy.max() == pytest.approx(181 / 231)
    assert (known.accuracy == 150 / 231).mean() > 0.9


@pytest.fixture
def data(tmp_path):
    """Small data sets with something to learn."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 30))
    y = (X[:, 0] + 0.1 * rng.standard_normal(60) > 0).astype(int)
    header = ",".join(f"c{i}" for i in range(31))
    for folder, file, columns in (("breast_cancer", "wdbc.csv.gz", 30), ("pima_diabetes", "diabetes.csv", 8)):
        (tmp_path / folder).mkdir()
        rows = "\n".join(
            [
                header,
                *(",".join(map(repr, [*map(float, x[:columns]), int(label)])) for x, label in zip(X, y, strict=True)),
            ]
        )
        opened = gzip.open if file.endswith("gz") else open
        with opened(tmp_path / folder / file, "wt") as stream:
            stream.write(rows)
    return tmp_path


def test_tables_are_made_from_data(data, monkeypatch):
    axes, correct, cases = tables._lr(data, quiet, sizes=2, rates=3)
    assert [len(axis) for axis in axes] == [2, 3, 3]
    assert cases == 18
    grid = correct.reshape(2, 3, 3)
    assert grid[:, 2, 0].min() > 0.8 * cases  # a large rate that does not decay learns
    axes, correct, cases = tables._svm(data, quiet, grid=2)
    assert correct.shape == (4,)
    axes, correct, cases = tables._growing(data, quiet, grid=2)
    assert correct.shape == (20, 4)
    # A table of one's own is used instead of the library's.
    monkeypatch.setitem(tables.MAKERS, "svm", lambda where, report: tables._svm(where, report, grid=3))
    file = tables.tabulate("svm", data / tables.FOLDER, data=data, report=quiet)
    assert file == data / "verma_tables" / "svm.npz"
    assert len(tables.table("svm", data).arms) == 9
    assert len(tables.table("svm", data / "elsewhere").arms) == 1681


def test_tables_by_command(data, monkeypatch, tmp_path):
    monkeypatch.setitem(tables.MAKERS, "lr", lambda where, report: tables._lr(where, report, sizes=2, rates=2))
    call = CliRunner().invoke(main, ["papers", "--tabulate", "lr", "--data", str(data), "--out", str(tmp_path / "out")])
    assert call.exit_code == 0, call.output
    assert "lr.npz" in call.output
    assert (tmp_path / "out" / "lr.npz").exists()
    call = CliRunner().invoke(main, ["papers", "--tabulate", "rl"])
    assert call.exit_code == 1
    assert "there are svm, lr, cnn, growing" in call.output
    call = CliRunner().invoke(main, ["papers", "--tabulate", "svm", "--data", str(tmp_path / "nowhere")])
    assert call.exit_code == 1
    assert "pima_diabetes" in call.output


def test_what_is_not_installed_is_named(monkeypatch, data):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(nr.errors.MissingExtra, match="needs torch"):
        tables._cnn(data, quiet)


def test_a_split_keeps_the_shares_of_the_classes():
    y = np.repeat([0.0, 1.0], [70, 30])
    learn, validate = tables.split(y, 0.3, seed=1)
    assert sorted([*learn, *validate]) == list(range(100))
    assert (y[validate] == 1.0).sum() == 9
    assert len(validate) == 30


def test_rules_are_those_of_the_paper():
    made = synthetic.rules(
        [*synthetic.UCB, *synthetic.TS], synthetic.ARMS, synthetic.KNOWN, noise=0.01, m=20.0, regularization=0.01
    )
    assert list(made) == [*synthetic.UCB, *synthetic.TS]
    for name, policy in made.items():
        assert policy.regularization == 0.01
        assert policy.prior_mean == 0.0
        study = nr.Study(policy, seed=0)
        assert study.width == 1.0  # beta_t = 1; nothing has been asked for
        trials = study.ask(count=3)
        recent = study.predict(np.array([trial.point for trial in trials]))[1].sum()
        assert study.width == pytest.approx(1.0 + (recent if name.endswith("SDF") else 0.0))
    kinds = [type(made[name].pending).__name__ for name in synthetic.UCB]
    assert (
        kinds == [type(made[name].pending).__name__ for name in synthetic.TS] == ["Censored", "Ignored", "Hallucinated"]
    )
    assert synthetic.window(PoissonDelay(10.0)) == 20.0
    assert synthetic.window(FixedDelay(10.0)) == 10.0


def test_functions_fill_the_unit_interval():
    f = synthetic.scaled_sample(synthetic.ARMS, synthetic.LENGTHSCALE, 3)
    assert (f.values.min(), f.values.max()) == (0.0, 1.0)
    assert len(synthetic.ARMS) == 1000


def test_before_the_first_answer_regret_is_that_of_the_worst_point():
    arms = nr.Arms.grid(0, 1, 5)
    env = nr.Environment(lambda x: x[:, 0], domain=arms, delay=2)
    run = nr.simulate(nr.algorithms.greedy_variance(arms, nr.SquaredExponential(0.1), noise=0.1), env, 6)
    shown = synthetic.known_regret(1.0)(run)
    np.testing.assert_array_equal(shown[:2], [1.0, 1.0])
    np.testing.assert_array_equal(shown[2:], run.simple_regret[2:])


def test_sentences_about_a_round():
    x = np.array([10.0, 20.0, 30.0])
    noise = np.array([[0.01], [-0.01], [0.01]])
    shown = Curves(x=x, lines={"a": np.array([[3.0, 1.0, 2.0]]) + noise, "b": np.array([[3.0, 2.0, 1.0]]) - noise},
                   x_label="x", y_label="y", title="t")  # fmt: skip
    assert synthetic.smaller(shown, "a", ["b"], at=20.0, text="").holds
    assert not synthetic.smaller(shown, "a", ["b"], at=30.0, text="").holds
    assert "At round 30." in synthetic.smaller(shown, "a", ["b"], at=99.0, text="").text
    assert not synthetic._larger_is_worse(shown).holds
    worse = Curves(
        x=x, lines={"5": 1.0 + noise + 0 * x, "10": 2.0 + noise * x, "20": 4.0 - noise * x}, x_label="", y_label=""
    )
    assert synthetic._larger_is_worse(worse).holds
    assert synthetic._comparable(shown, "a", "a").holds
    assert not synthetic._comparable(shown, "a", "b").holds


def test_contexts_stay_for_thirty_rounds(tmp_path):
    shown, arms, values = tuning.growing(tmp_path)
    assert values.shape == (20, len(arms))
    assert len(shown) == 20
    job = contexts_job()
    result = tuning.contextual(job, ["GP-UCB"], shown, arms, values, tuning.GROWING)
    assert result.panels[0].lines["GP-UCB"].shape == (1, 35)


def contexts_job():
    from nilregret.papers import Job

    return Job(trials=1, rounds=35)


@pytest.mark.parametrize("thompson", [False, True])
def test_widths_are_equal(thompson):
    made = widths.policies(thompson=thompson)
    assert len({policy.confidence for policy in made.values()}) == 1
    assert len({policy.pending for policy in made.values()}) == len(made) == 4
    studies = [nr.Study(policy) for policy in made.values()]
    for study in studies:
        study.ask(count=4)
    assert {study.width for study in studies} == {1.0 if thompson else 2.0}
    assert math.isclose(widths.KERNEL.scale, 0.25**2)


def test_figures_are_listed_in_the_order_of_their_pages():
    names = [figure.name.removeprefix("verma-") for figure in synthetic.PAPER.figures]
    assert [name[0] for name in names] == list("111155" + "2" * 8 + "3" * 4 + "4" * 4 + "esc")
