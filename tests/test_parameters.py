"""Floats with steps, constants, and options of any kind."""

import warnings
from decimal import Decimal

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.domains.domain import count_of_points
from nilregret.domains.search.designs import design, every, mutated, neighbours, one_changed
from nilregret.serialize import dumps, loads

TENTHS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


class TestSteps:
    @pytest.mark.parametrize(
        ("low", "high", "step"),
        [
            (0, 1, 0.1),
            (-0.3, 0.6, 0.3),
            (0.001, 1000, 0.001),
            (1e9, 1e9 + 1, 0.125),
            (5, 5.7, 0.7),
            (-1e-7, 1e-7, 1e-9),
        ],
    )
    def test_values_are_decimals_as_a_person_writes_them(self, low, high, step):
        parameter = nr.Float(low, high, step=step)
        count = int((Decimal(str(high)) - Decimal(str(low))) / Decimal(str(step)))
        assert parameter.count == count + 1
        for place in {0, 1, 2, 3, count // 3, count - 1, count} & set(range(count + 1)):
            value = float(Decimal(str(float(low))) + place * Decimal(str(step)))
            assert parameter.decode(np.array(parameter.encode(value))) == value == parameter.value(place)
            assert parameter.place(np.array(parameter.at(place))) == place

    def test_sums_that_round_are_values(self):
        parameter = nr.Float(0, 1, step=0.1)
        assert parameter.values(11) == TENTHS
        assert parameter.decode(np.array(parameter.encode(0.1 + 0.2))) == 0.3
        assert nr.Float(0, 1, step=1 / 3).values(9) == [0.0, 1 / 3, 2 / 3, 1.0]
        assert nr.Float(0, 3, step=0.1 + 0.2).values(99)[:3] == [0.0, 0.3, 0.6]

    def test_columns_are_those_of_a_whole_number(self):
        u = Draws("columns").random(50)
        np.testing.assert_array_equal(nr.Float(0, 1, step=0.1).spread(u), nr.Int(0, 10).spread(u))
        spaces = [nr.Space(a=nr.Float(2, 3, step=0.1), b=b) for b in (nr.Float(0, 1, step=0.05), nr.Int(0, 20))]
        for make in (
            lambda s: design(s, 20, Draws("design")),
            lambda s: mutated(s, design(s, 3, Draws("design")), 40, Draws("mutated")),
            lambda s: one_changed(s, design(s, 1, Draws("design"))[0], 1, 9, Draws("changed")),
            lambda s: neighbours(s, design(s, 1, Draws("design"))[0], np.ones(2, dtype=bool)),
            lambda s: s.grid({"a": 4, "b": 30}).points,
            every,
        ):
            np.testing.assert_array_equal(*map(make, spaces))
        assert list(map(count_of_points, spaces)) == [11 * 21, 11 * 21]
        kernel = nr.kernels.Rounded(nr.Matern(2.5, 0.5), nr.Space(x=nr.Float(0, 1, step=0.25)))
        assert kernel([[0.26]], [[0.24]])[0, 0] == 1.0

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (
                lambda: nr.Float(0, 1, step=0.3),
                r"Float from 0 in steps of 0.3 does not meet 1: .* end at 0.9. Make",
            ),
            (lambda: nr.Float(0, 1, step=2), "its values would end at 0. Make that `high`"),
            (lambda: nr.Float(0.1, 1, log=True, step=0.1), "Float takes a `step` or `log`, not both"),
            (lambda: nr.Float(0, 1, step=0), "`step` .* It is how far neighbouring values are apart"),
            (lambda: nr.Float(0, 1, step=-0.1), "`step`"),
            (lambda: nr.Float(0, 1, step="0.1"), "`step`"),
            (lambda: nr.Float(0, 1, step=float("nan")), "`step`"),
            (lambda: nr.Float(0, 1e9, step=1e-9), "more steps of 1e-9 than floats tell apart: leave `step` out"),
            (lambda: nr.Float(0, 1, step=0.1).encode(0.15), "0.15: it must be 0 plus a multiple of 0.1"),
            (lambda: nr.Float(0, 1, step=0.1).encode(1.1), "`value` .*1.1"),
            (lambda: nr.Float(2, 1), "Float needs low <= high, not 2 and 1. Usually the two are swapped"),
            (lambda: nr.Float(5, 5).encode(6), "`value` is 6: it is always 5"),
            (lambda: nr.Space(a=nr.Float(0, 1), b=nr.when("a", 1.0, nr.Int(0, 1))), "'a', which varies continuously"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, make, words):
        with pytest.raises(nr.errors.InvalidInput, match=words):
            make()

    def test_the_description_has_a_step_only_if_there_is_one(self):
        assert dumps(nr.Float(0, 1)) == '{"type": "Float", "low": 0.0, "high": 1.0, "log": false}'
        for parameter in (nr.Float(0, 1), nr.Float(0, 1, step=0.1), nr.Float(2, 2), nr.Float(1, 9, log=True)):
            assert loads(dumps(parameter)) == parameter == eval(repr(parameter), {"Float": nr.Float})

    def test_a_parameter_may_count_only_at_a_step(self):
        space = nr.Space(drop=nr.Float(0, 0.3, step=0.1), seed=nr.when("drop", [0.1, 0.1 + 0.2], nr.Int(0, 9)))
        assert space.decode(space.encode({"drop": 0.3, "seed": 4})) == {"drop": 0.3, "seed": 4}
        assert space.decode(space.encode({"drop": 0.2})) == {"drop": 0.2}
        assert space.conditions.active(space.grid(99).points).sum() == len(space.grid(99)) + 20

    def test_a_study_asks_no_other_value(self):
        space = nr.Space(a=nr.Float(0, 1, step=0.1), b=nr.Float(0, 1))
        result = nr.minimize(lambda a, b: (a - 0.3) ** 2 + (b - 0.5) ** 2, space, trials=12, progress=False)
        assert {trial.parameters["a"] for trial in result.study.trials} <= set(TENTHS)
        assert result.study.trials[result.study.add({"a": 0.1 + 0.2, "b": 0.5}, 1.0).number].parameters["a"] == 0.3

    def test_optuna_both_ways(self):
        optuna = pytest.importorskip("optuna")
        from nilregret.integrations.distributions import distribution_of, parameter_of

        for parameter in (nr.Float(0, 1, step=0.1), nr.Float(0, 1), nr.Float(2, 2), nr.Int(3, 3)):
            assert parameter_of(distribution_of(parameter)) == parameter
        assert distribution_of(nr.Float(0, 1, step=0.1)) == optuna.distributions.FloatDistribution(0, 1, step=0.1)


class TestConstants:
    SPACE = nr.Space(
        x=nr.Float(0, 1), c=nr.Float(5, 5), n=nr.Int(3, 3), kind=nr.Choice("a", "b"),
        rate=nr.when("kind", "a", nr.Float(1e-3, 1e-3, log=True)),
    )  # fmt: skip

    def test_one_column_never_moves(self):
        points = np.concatenate([design(self.SPACE, 32, Draws("design")), self.SPACE.grid(5).points])
        assert (points[:, 1:3] == 0.0).all()
        assert {self.SPACE.decode(point)["c"] for point in points} == {5.0}
        assert len(self.SPACE.grid(5)) == 10
        assert count_of_points(nr.Space(c=nr.Float(5, 5), kind=nr.Choice("a", "b"))) == 2

    def test_every_search_and_picture(self):
        seen = []

        def loss(x, c, n, kind, rate=None):
            seen.append((c, n, rate if kind == "a" else None))
            return (x - 0.3) ** 2 + (kind == "a")

        result = nr.minimize(loss, self.SPACE, trials=12, progress=False)
        assert set(seen) <= {(5.0, 3, None), (5.0, 3, 0.001)}
        assert result.best_parameters["c"] == 5.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for draw in (nr.plots.slices, nr.plots.overview, nr.plots.parallel, nr.plots.history, nr.plots.importance):
                draw(result)
            nr.plots.contour(result, parameters=("x", "c"))

    def test_a_space_of_constants_alone(self):
        result = nr.minimize(lambda c, n: c + n, nr.Space(c=nr.Float(5, 5), n=nr.Int(3, 3)), trials=3, progress=False)
        assert [trial.parameters for trial in result.study.trials] == [{"c": 5.0, "n": 3}] * len(result.study.trials)
