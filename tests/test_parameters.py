"""Floats with steps, constants, and options of any kind."""

import json
import sqlite3
import sys
import tomllib
from contextlib import closing
from decimal import Decimal

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.algorithms import schema
from nilregret.domains.domain import count_of_points
from nilregret.domains.parameters import option_place, option_texts
from nilregret.domains.search.designs import design, every, mutated, neighbours, one_changed
from nilregret.integrations.candidates import Ranges
from nilregret.serialize import dumps, loads
from nilregret.storage import MemoryStorage
from nilregret.tuning.toml.evaluation import filled

from .service import Client
from .test_dashboard_actions import Forms

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

    @pytest.mark.parametrize("rich", [False, pytest.param(True, marks=pytest.mark.nightly)])
    def test_every_search_and_picture(self, rich):
        seen = []

        def loss(x, c, n, kind, rate=None):
            seen.append((c, n, rate if kind == "a" else None))
            return (x - 0.3) ** 2 + (kind == "a")

        result = nr.minimize(loss, self.SPACE, trials=12 if rich else 6, progress=False)
        assert set(seen) <= {(5.0, 3, None), (5.0, 3, 0.001)}
        assert result.best_parameters["c"] == 5.0
        for draw in (nr.plots.slices, nr.plots.importance, nr.plots.overview) if rich else (nr.plots.parallel,):
            draw(result)
        nr.plots.contour(result, parameters=("x", "c"))

    def test_a_space_of_constants_alone(self):
        result = nr.minimize(lambda c, n: c + n, nr.Space(c=nr.Float(5, 5), n=nr.Int(3, 3)), trials=3, progress=False)
        assert [trial.parameters for trial in result.study.trials] == [{"c": 5.0, "n": 3}] * len(result.study.trials)


class Adam:
    """An option by its name."""

    class Inner:
        """Another one."""

    def step(self):
        """No option: a method has no name of its own."""


def sgd():
    """Also an option."""


OPTIONS = ((64,), (64, 32), [64, 32], [], None, True, 1, 1.0, "1", {"a": (1, [2]), "b": None}, Adam, sgd, np.tanh, dict)


class TestOptions:
    def test_every_kind_is_an_option_and_comes_back_as_it_was(self):
        choice = nr.Choice(*OPTIONS)
        assert choice.count == len(OPTIONS) == len(set(option_texts(choice)))
        for place, option in enumerate(OPTIONS):
            back = choice.decode(np.array(choice.encode(option)))
            assert type(back) is type(option)
            assert back == option
            assert choice.find(back) == place
        again = loads(dumps(choice))
        assert again == choice
        assert hash(again) == hash(choice)
        assert again != nr.Choice(*OPTIONS[:-1], list)
        assert again.options[:10] == OPTIONS[:10]
        assert [again.find(option) for option in OPTIONS] == list(range(len(OPTIONS)))

    def test_the_types_inside_count(self):
        assert nr.Choice((1,), (1.0,), (True,), [1]).find((True,)) == 2
        assert nr.Choice(1, 2) != nr.Choice(True, 2)
        assert nr.Choice({"a": 1, "b": 2}, 0).find({"b": 2, "a": 1}) == 0

    def test_json_finds_tuples_and_classes(self):
        choice = nr.Choice((1, 2), {"a": (3,)}, Adam, "x", (5,), [5])
        assert [choice.find(value) for value in ([1, 2], {"a": [3]}, f"{__name__}:Adam", "x")] == [0, 1, 2, 3]
        assert choice.find([5]) == 5  # A list is first of all itself.
        for text in option_texts(choice):
            assert option_place(choice, text, texts=True) == option_texts(choice).index(text)

    def test_an_objective_cannot_change_an_option(self):
        space = nr.Space(layers=nr.Choice([1], {"a": [2]}))

        def careless(layers):
            layers["a" if isinstance(layers, dict) else 0] = 9
            return 1.0

        result = nr.minimize(careless, space, trials=4, progress=False)
        assert {str(trial.parameters["layers"]) for trial in result.study.trials} == {"[1]", "{'a': [2]}"}
        assert space.parameters["layers"].options == ([1], {"a": [2]})

    def test_texts_are_short_and_differ(self):
        assert option_texts(nr.Choice((64, 32), (64,), [1, "a"], {"k": (1,)}, Adam, Adam.Inner, None)) == [
            "(64, 32)", "(64,)", "[1, a]", "{k: (1,)}", "Adam", "Inner", "null",
        ]  # fmt: skip
        assert option_texts(nr.Choice(Adam, "Adam", (1,), "(1,)")) == [
            f"{__name__}:Adam", '"Adam"', "(1,)", '"(1,)"',
        ]  # fmt: skip
        assert option_texts(nr.Choice("a", True, 1)) == ["a", "true", "1"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ((lambda: 1, 2), "All lambdas have one name: define a function with `def`"),
            ((Adam(), 2), r"offer its class, or a name for it"),
            ((Adam().step, 2), r"offer its class, or a name for it"),
            ((float("nan"), 2), "Write None or a string"),
            (((1, float("inf")), 2), "Write None or a string"),
            (({1: 2}, 3), "Names in a dict are strings"),
            ((np.zeros(2), 3), "is not a string"),
            (({1, 2}, 3), "is not a string"),
            (((1, 2), (1, 2)), "must differ"),
            ((Adam, Adam), "must differ"),
            (((64, 32),), "Options are given one by one"),
            ((2**60, 1), "option"),
        ],
    )
    def test_what_a_record_cannot_name_is_refused(self, options, words):
        with pytest.raises(nr.errors.InvalidInput, match=words):
            nr.Choice(*options)

    def test_a_list_that_holds_itself_is_refused(self):
        endless: list = [1]
        endless.append(endless)
        with pytest.raises(nr.errors.InvalidInput, match="20 levels at most"):
            nr.Choice(endless, 2)

    def test_conditions_on_options_of_any_kind(self):
        space = nr.Space(
            layers=nr.Choice((64, 32), (64,), None), optimizer=nr.Choice(Adam, sgd),
            drop=nr.when("layers", [(64, 32)], nr.Float(0, 1)), momentum=nr.when("optimizer", sgd, nr.Float(0, 1)),
        )  # fmt: skip
        assert loads(dumps(space)) == space
        assert space.decode(space.encode({"layers": (64, 32), "optimizer": Adam, "drop": 0.5})) == {
            "layers": (64, 32), "optimizer": Adam, "drop": 0.5,
        }  # fmt: skip
        with pytest.raises(nr.errors.InvalidInput, match="counts only where layers is \\(64, 32\\)"):
            space.encode({"layers": None, "optimizer": Adam, "drop": 0.5})
        with pytest.raises(nr.errors.InvalidInput, match=r"64 is not among .* A tuple is several values: write when"):
            nr.Space(layers=nr.Choice((64, 32), None), drop=nr.when("layers", (64, 32), nr.Float(0, 1)))

    def test_a_stored_study_resolves_names_against_the_space_that_is_passed(self, tmp_path):
        storage, seen = f"sqlite:///{tmp_path}/studies.db", []

        def loss(optimizer, layers):
            seen.append((optimizer, layers))
            return float(len(layers))

        for order in ((Adam, sgd), (Adam, sgd), (sgd, Adam)):
            space = nr.Space(optimizer=nr.Choice(*order), layers=nr.Choice((1,), (1, 2), [3]))
            nr.minimize(loss, space, trials=4 + 2 * (len(seen) > 3), storage=storage, name="s", progress=False)
            study = nr.Study(nr.auto(space), goal="minimize", storage=storage, name="t")
            study.tell(study.ask(), 1.0)
        for name in ("s", "t"):
            trials = nr.Study.open(storage=storage, name=name).trials
            assert all(trial.parameters["optimizer"] in (Adam, sgd) for trial in trials)  # stand-ins equal them
        assert {optimizer for optimizer, _ in seen} <= {Adam, sgd}
        assert all(type(each) in (type, type(sgd)) for each, _ in seen)
        assert all(type(layers) is (list if 3 in layers else tuple) for _, layers in seen)
        assert all(type(trial.parameters["optimizer"]) in (type, type(sgd)) for trial in study.trials)
        found = nr.Study.open(storage=storage, name="s")
        assert repr(found.trials[0].parameters["optimizer"]) in (f"<{__name__}:Adam>", f"<{__name__}:sgd>")
        with pytest.raises(nr.errors.InvalidInput, match="by its name only, since a record imports nothing"):
            found.trials[0].parameters["optimizer"]()

    def test_a_widened_space_keeps_the_objects(self, tmp_path):
        storage, space = f"sqlite:///{tmp_path}/studies.db", nr.Space(optimizer=nr.Choice(Adam, sgd), x=nr.Float(0, 1))
        study = nr.Study(nr.auto(space), storage=storage, name="s")
        study.tell(study.ask(), 1.0)
        study.widen(x=nr.Float(0, 2, step=0.5))
        for each in (study, nr.Study(nr.auto(space), storage=storage, name="s")):
            assert type(each.ask().parameters["optimizer"]) in (type, type(sgd))
            assert each.trials[-1].parameters["x"] in (0.0, 0.5, 1.0, 1.5, 2.0)

    def test_a_forged_record_imports_and_runs_nothing(self, tmp_path):
        path = tmp_path / "forged.db"
        (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
        space = nr.Space(optimizer=nr.Choice(Adam, sgd))
        study = nr.Study(nr.auto(space), storage=f"sqlite:///{path}", name="s")
        study.tell(study.ask(), 1.0)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("update studies set policy = replace(policy, ?, 'evil_module:run')", (f"{__name__}:Adam",))
            database.execute(
                "update trials set parameters = replace(parameters, ?, 'evil_module:run')", (f"{__name__}:Adam",)
            )
        sys.path.insert(0, str(tmp_path))
        try:
            opened = nr.Study.open(storage=f"sqlite:///{path}", name="s")
            assert len(opened.trials) == 1
            opened.ask()
            with pytest.raises(nr.errors.InvalidInput, match="other values: domain"):
                nr.Study(nr.auto(space), storage=f"sqlite:///{path}", name="s")
        finally:
            sys.path.remove(str(tmp_path))
        assert "evil_module" not in sys.modules
        for forged in ('{"type": "NamedOption", "name": ""}', '{"type": "NamedOption", "name": 3}',
                       '{"type": "NestedOption", "kind": "set", "items": []}',
                       '{"type": "NestedOption", "kind": "dict", "items": [1]}'):  # fmt: skip
            with pytest.raises(nr.errors.InvalidInput):
                loads(f'{{"type": "Choice", "options": [{forged}, 1]}}')

    def test_a_stored_value_that_is_not_that_of_the_point_is_refused(self, tmp_path):
        path = tmp_path / "damaged.db"
        study = nr.Study(nr.auto(nr.Space(layers=nr.Choice((1,), (2, 3)))), storage=f"sqlite:///{path}", name="s")
        study.add({"layers": (2, 3)}, 1.0)
        assert nr.Study.open(storage=f"sqlite:///{path}", name="s").trials[0].parameters == {"layers": (2, 3)}
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("update trials set parameters = ?", ('{"layers": [2, 4]}',))
        with pytest.raises(nr.errors.StorageError, match="are not those of its point"):
            _ = nr.Study.open(storage=f"sqlite:///{path}", name="s").trials

    def test_files_and_tables(self, tmp_path):
        space = nr.Space(optimizer=nr.Choice(Adam, sgd, "1"), layers=nr.Choice((1,), [1, "a"], {"b": (2,)}, 1))
        study = nr.Study(nr.auto(space))
        for arm in space.grid().points:
            study.add(space.decode(arm), 1.0)
        for ending in ("csv", "jsonl"):
            new = nr.Study(nr.auto(space))
            new.add_from(study.export(tmp_path / f"trials.{ending}"))
            assert [trial.parameters for trial in new.trials] == [trial.parameters for trial in study.trials]

    def test_pictures_and_texts(self, tmp_path):
        space = nr.Space(optimizer=nr.Choice(Adam, sgd), layers=nr.Choice((1,), [1, "a"], {"b": (2,)}, None))
        result = nr.minimize(lambda optimizer, layers: len(str(layers)), space, trials=5, progress=False)
        nr.plots.slices(result, tmp_path / "picture.svg")
        nr.plots.parallel(result)
        assert "(1,)" in (tmp_path / "picture.svg").read_text()
        text = str(result) + str(result.study.explain(result.study.trials[-1])) + result.study.trials[0]._repr_html_()
        assert "Adam" in text
        assert json.loads(json.dumps(result.study.explain(result.study.trials[-1]).to_dict()))

    def test_scikit_learn_takes_classes_and_tuples(self):
        ranges = Ranges({"hidden": [(10,), (20, 10)], "kind": [Adam, sgd], "instance": [Adam(), Adam()]})
        assert ranges.space.parameters["hidden"] == nr.Choice((10,), (20, 10))
        assert ranges.space.parameters["kind"].options == (Adam, sgd)
        assert isinstance(ranges.values({"instance": 1})["instance"], Adam)

    def test_a_thousand_options(self):
        space = nr.Space(word=nr.Choice(*[f"option {i}" for i in range(1000)]), x=nr.Float(0, 1))
        study = nr.Study(nr.auto(space))
        for i in range(6):
            trial = study.ask()
            study.tell(trial, float(i))
        assert len({trial.parameters["word"] for trial in study.trials}) == 6
        assert space.parameters["word"].find("option 999") == 999


class TestService:
    def test_steps_constants_and_options_over_http(self):
        space = {
            "layers": {"type": "choice", "options": [[64, 32], [128], None, {"a": [1]}, True, 1]},
            "drop": {"type": "float", "low": 0, "high": 0.5, "step": 0.1}, "k": {"type": "float", "low": 2, "high": 2},
            "m": {"type": "int", "low": 1, "high": 3, "when": {"layers": [[64, 32], None]}},
        }  # fmt: skip
        with Client(MemoryStorage()) as client:
            assert client.put("/v1/studies/s", {"policy": {"algorithm": "auto"}, "space": space})[0] == 201
            point = {"layers": [64, 32], "drop": 0.1 + 0.2, "k": 2, "m": 2}
            assert client.post("/v1/studies/s/enqueue", {"entries": [{"parameters": point}]})[0] == 201
            _, asked = client.post("/v1/studies/s/decisions", {})
            assert asked["decisions"][0]["parameters"] == point | {"drop": 0.3}
            for wrong, words in (({"layers": [64, 33], "drop": 0, "k": 2}, "not among the options"),
                                 ({"layers": [128], "drop": 0.15, "k": 2}, "plus a multiple of 0.1")):  # fmt: skip
                status, said = client.post("/v1/studies/s/observations", {"parameters": wrong, "reward": 1})
                assert (status, words in str(said)) == (422, True)
            for wrong, words in (({"type": "float", "low": 0, "high": 1, "step": 0.3}, "does not meet 1"),
                                 ({"type": "choice", "options": [[1], [1]]}, "must differ")):  # fmt: skip
                status, said = client.put("/v1/studies/t", {"policy": {"algorithm": "auto"}, "space": {"x": wrong}})
                assert (status, words in str(said)) == (422, True)

    def test_names_in_a_policy_are_names_over_http(self):
        domain = nr.Space(optimizer=nr.Choice(Adam, sgd)).grid()
        policy = nr.gp_ucb(domain, nr.kernel_for(domain), noise=0.1).to_json().replace(f"{__name__}:Adam", "os:system")
        with Client(MemoryStorage()) as client:
            assert client.put("/v1/studies/u", {"policy": json.loads(policy)})[0] == 201
            _, asked = client.post("/v1/studies/u/decisions", {})
            names = {"os:system", f"{__name__}:sgd"}
            assert asked["decisions"][0]["parameters"]["optimizer"] in names
            _, listed = client.get("/v1/studies/u/arms")
            assert {arm["parameters"]["optimizer"] for arm in listed["arms"]} == names

    def test_a_form_sends_options_as_json(self):
        forms, space = Forms(), nr.Space(layers=nr.Choice((64, 32), (1,), [1]), optimizer=nr.Choice(Adam, sgd))
        study = nr.Study(nr.auto(space), storage=forms.storage, name="a")
        assert "(64, 32)" in forms.open("a", "add").text
        assert forms.act("a", "add", **{"p-0": "0", "p-1": "1", "reward": "3"}).status == 200
        assert study.trials[-1].parameters == {"layers": (64, 32), "optimizer": sgd}
        alike = forms.open("a", "add")
        refused = forms.send("a", "add", forms.hidden(alike.text) | {"p-0": "1", "p-1": "1", "reward": "3"})
        assert "another option that looks like (1,) in JSON" in refused.text

    def test_a_command_gets_lists_as_json(self):
        command = filled("train {layers} {drop}", ["layers", "drop"])
        assert command({"layers": ("a b", None), "drop": 0.3}) == "train '[\"a b\", null]' '0.3'"

    def test_a_file_of_parameters(self):
        tables = tomllib.loads(
            '[layers]\ntype = "choice"\noptions = [[64, 32], "none", { a = 1 }]\n'
            '[drop]\ntype = "float"\nlow = 0.0\nhigh = 0.5\nstep = 0.1'
        )
        assert nr.Space(**{name: schema.parameter(table) for name, table in tables.items()}) == nr.Space(
            layers=nr.Choice([64, 32], "none", {"a": 1}), drop=nr.Float(0, 0.5, step=0.1)
        )
