"""A batch on paper: asked, rounded, printed, filled in, and read back."""

import itertools
import re
import warnings
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.study.sheet import rounded

SPACE = nr.Space(
    heat=nr.Float(20, 90), rate=nr.Float(0.01, 1, log=True), n=nr.Int(1, 9), drop=nr.Float(0, 0.5, step=0.1),
    kind=nr.Choice("a", "b"), p=nr.when("kind", "a", nr.Float(0, 1)),
)  # fmt: skip

OF_FIRST = {(0, "value"): "1", (0, "constraints.0"): "-1", (0, "metrics.euros"): "2"}


def made(space=SPACE, **more):
    return nr.Study(nr.auto(space, **more), name="lab", goal="minimize")


def filled(sheet, cells, decimal=".", extra=""):
    """Returns the CSV of a sheet after a person wrote into cells: (row, column) to text."""
    lines = sheet.to_csv(decimal=decimal).splitlines()
    separator = ";" if decimal == "," else ","
    table = [line.split(separator) for line in lines]
    for (row, column), text in cells.items():
        table[row + 1][sheet.columns.index(column)] = text
    return "\n".join(separator.join(row) for row in table) + "\n" + extra


def read(study, text, tmp_path, encoding="utf-8"):
    path = tmp_path / "filled.csv"
    path.write_bytes(text.encode(encoding))
    return study.add_from(path)


class TestAsking:
    def test_the_trial_is_what_stands_on_the_sheet(self):
        study = made()
        sheet = study.sheet(4)
        assert sheet.columns == ["number", *SPACE.parameters, "value", "std", "remarks", "sheet"]
        for row, trial in zip(sheet.rows, study.trials, strict=True):
            cells = dict(zip(sheet.columns, row, strict=True))
            assert {name: cells[name] for name in trial.parameters} == trial.parameters
            assert (trial.state, trial.enqueued, cells["sheet"]) == ("pending", True, "lab")
            heat, rate = trial.parameters["heat"], trial.parameters["rate"]
            assert heat == round(heat, 2)
            assert rate == float(f"{rate:.3g}")
            assert cells["p"] == trial.parameters.get("p", "")
        assert {row.count("") for row in sheet.rows} == {3, 4}  # value, std, remarks, and `p` where it does not count

    def test_digits(self):
        study = made(nr.Space(x=nr.Float(0, 60), y=nr.Float(1, 1000, log=True)))
        (row,) = study.sheet(1, digits=1).rows
        assert row[1] == round(row[1])
        assert row[2] == float(f"{row[2]:.1g}")
        cells = made(nr.Space(x=nr.Float(0, 60), y=nr.Float(1, 1000, log=True))).sheet(1, digits=6).rows[0]
        assert (cells[1], cells[2]) == (round(cells[1], 5), float(f"{cells[2]:.6g}"))
        assert (cells[1], cells[2]) != (round(cells[1], 3), float(f"{cells[2]:.4g}"))
        for digits in (0, 13, 1.5):
            with pytest.raises(nr.errors.InvalidInput, match="`digits`"):
                study.sheet(1, digits=digits)
        with pytest.raises(nr.errors.InvalidInput, match="`count`"):
            study.sheet(-1)

    def test_rounded_points_keep_limits_and_are_new(self):
        space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1)).where("a + b + c == 1", "a <= 0.3333")
        study = made(space)
        for trial in study.sheet(6).trials:
            assert sum(trial.parameters.values()) == pytest.approx(1.0, abs=1e-12)
            assert trial.parameters["a"] <= 0.3333
        box = nr.Box([0.0], [1.0])
        assert rounded(box, np.array([0.50004]), [], 3) == [0.5]
        assert rounded(box, np.array([0.50004]), [np.array([0.5])], 3) == [0.501]  # 0.5 was tried
        assert rounded(box, np.array([0.50004]), [np.array([0.5]), np.array([0.501])], 3) == [0.5001]
        assert rounded(box, np.array([0.50004]), [np.array([0.50004])], 3) == [0.50004]  # a repetition is meant
        narrow = nr.Box([0.10001], [0.10002])
        assert 0.10001 <= rounded(narrow, np.array([0.100014]), [], 1)[0] <= 0.10002

    def test_constraints_cost_no_digits(self):
        study = made(nr.Space(a=nr.Float(0, 100), b=nr.Float(0, 100)), constraints=1)
        for _ in range(3):
            for trial in study.sheet(4, digits=1).trials:
                a, b = trial.parameters.values()
                assert trial.enqueued
                assert (a, b) == (round(a, 1), round(b, 1))  # The second digit where the first one is less sure.
                study.tell(trial, (a - 60) ** 2 + (b - 30) ** 2, constraints=[(a + b - 110) / 50])

    def test_an_equality_costs_no_digits(self):
        recipe = nr.Mixture(cement=(250, 450), water=(140, 220), sand=(600, 900), gravel=(800, 1200), total=2350)
        space = nr.Space(mix=recipe, heat=nr.Float(5, 40), dose=nr.Float(0.01, 10, log=True))
        study = made(space.where("water / cement <= 0.55"))
        for trial in study.sheet(6).trials:
            at = trial.parameters
            decimals = {"cement": 1, "water": 2, "sand": 1, "gravel": 2, "heat": 2, "dose": 4}
            assert at == {name: round(value, decimals[name]) for name, value in at.items()}
            assert sum(list(at.values())[:4]) == pytest.approx(2350, abs=1e-9)
            assert at["water"] <= 0.55 * at["cement"]
        two = nr.Space(**{name: nr.Float(0, 10) for name in "abcd"}).where("a + b == 7", "b + c - d == 2")
        for trial in made(two).sheet(4).trials:
            assert trial.parameters == {name: round(value, 2) for name, value in trial.parameters.items()}

    def test_what_a_person_enqueued_comes_first_as_it_is(self):
        study = made()
        study.enqueue({"heat": 33.123456, "rate": 0.02, "n": 2, "drop": 0.1, "kind": "b"})
        assert study.sheet(2).rows[0][1] == 33.123456
        assert study.enqueued == []

    def test_what_the_policy_chose_beside_named_parameters_is_rounded(self, tmp_path):
        storage = f"sqlite:///{tmp_path}/lab.db"
        study = nr.Study(nr.auto(SPACE.where("heat * rate <= 60")), storage=storage, name="lab")
        study.enqueue([{"heat": 33.123456}, {"kind": "b", "n": 2}])
        first, second, third = study.sheet(3).trials
        assert first.parameters["heat"] == 33.123456
        for trial in (first, second, third):
            assert trial.parameters["rate"] == float(f"{trial.parameters['rate']:.3g}")
        for trial in (second, third):
            assert trial.parameters["heat"] == round(trial.parameters["heat"], 2)
        for each in (study, nr.Study.open(storage=storage, name="lab")):
            assert [each.explain(n).repeated for n in range(3)] == [True] * 3
            assert each.explain(0).enqueued == {"heat": 33.123456}

    def test_a_recipe_of_which_a_part_is_named_is_rounded(self):
        space = nr.Space(**{name: nr.Float(0, 10) for name in "abc"}).where("a + b + c == 7")
        study = made(space)
        study.enqueue({"a": 1.23456})
        (trial,) = study.sheet(1, digits=2).trials
        a, b, c = trial.parameters.values()
        assert (a, b) == (1.23456, round(b, 1)) or (a, c) == (1.23456, round(c, 1))
        assert a + b + c == pytest.approx(7.0, abs=1e-11)

    def test_a_sheet_is_rounded_while_named_parameters_wait_for_a_certificate(self):
        space = nr.Space(x=nr.Float(0, 10), y=nr.Float(0, 10))
        safe = nr.Safe(start=[{"x": 1.0, "y": 1.0}], slope={"x": 1.0, "y": 1.0}, noise=0.0, caution=1.0)
        study = nr.Study(nr.auto(space, constraints=safe))
        study.enqueue({"x": 9.87654321})
        for _ in range(4):
            (trial,) = study.sheet(1, digits=2).trials
            assert trial.parameters == {name: round(value, 1) for name, value in trial.parameters.items()}
            study.tell(trial, trial.parameters["x"], constraints=[sum(trial.parameters.values()) - 6.05])
        assert len(study.enqueued) == 1

    def test_a_safe_policy_plays_certified_points_alone(self):
        safe = nr.Safe(start=[[0.50001]], scale=1.0, noise=0.1)
        study = nr.Study(nr.gp_ucb(nr.Box(0, 1), nr.SquaredExponential(0.3), noise=0.1, constraints=safe))
        (trial,) = study.sheet(1).trials
        assert (trial.point[0], trial.enqueued) == (0.50001, False)

    @pytest.mark.parametrize("caution", [1.0, 4.0])
    def test_a_rounded_point_has_its_own_certificate(self, caution):
        """Slopes are exact, so a point without a certificate may violate the constraint."""
        space = nr.Space(current=nr.Float(0, 5), duty=nr.Float(0, 2))
        safe = nr.Safe(start=[{"current": 1.0, "duty": 0.5}], slope={"current": 10, "duty": 40}, noise=0.0,
                       caution=caution)  # fmt: skip
        study, rounds = nr.Study(nr.auto(space, constraints=safe), seed=4), 0
        for _ in range(10):
            (trial,) = study.sheet(1, digits=1).trials
            current, duty = trial.parameters.values()
            assert study.feasible([trial.point])[0] == 1.0
            assert "not certified" not in str(study.explain(trial))
            rounds += (current, duty) == (round(current, 1), round(duty, 1))
            study.tell(trial, current * duty, constraints=[10 * current + 40 * duty - 80])
        assert rounds > 2

    def test_arms_contexts_and_boxes(self):
        study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 7), nr.SquaredExponential(0.2), noise=0.1), name="arms")
        sheet = study.sheet(2)
        assert sheet.columns == ["number", "arm", "point.0", "value", "std", "remarks", "sheet"]
        assert sheet.rows[0][1] == study.trials[0].arm
        assert not study.trials[0].enqueued
        seen = nr.Study(nr.auto(nr.Box(0, 1), context=nr.Space(day=nr.Int(0, 6))), name="seen")
        sheet = seen.sheet(1, context={"day": 3})
        assert (sheet.columns[:3], sheet.rows[0][2]) == (["number", "point.0", "context.day"], 3)

    def test_names_that_are_columns(self, tmp_path):
        study = made(nr.Space(number=nr.Float(0, 1), value=nr.Int(1, 3), sheet=nr.Choice("x", "y")))
        sheet = study.sheet(1)
        assert sheet.columns[:5] == ["number", "parameters.number", "parameters.value", "parameters.sheet", "reward"]
        read(study, filled(sheet, {(0, "reward"): "0.5"}), tmp_path)
        assert study.trials[0].reward == 0.5

    def test_a_resumed_study_and_its_audit(self, tmp_path):
        storage = f"sqlite:///{tmp_path}/lab.db"
        study = nr.Study(nr.auto(SPACE), storage=storage, name="lab")
        for _ in range(2):
            sheet = study.sheet(3)
            read(study, filled(sheet, {(i, "value"): str(i) for i in range(3)}), tmp_path)
        again = nr.Study.open(storage=storage, name="lab")
        assert [trial.parameters for trial in again.trials] == [trial.parameters for trial in study.trials]
        assert again.ask().parameters == study.trials[-1].parameters
        why = again.explain(again.trials[0])
        assert "Part of the initial design: its next point, rounded for a sheet." in str(why)
        assert (why.repeated, why.runner_up, why.propensity) == (True, None, None)

    def test_a_rounded_point_is_explained_by_what_the_policy_chose(self):
        study, other = (nr.Study(nr.gp_ucb(nr.Box(0, 1), nr.Matern(2.5, 0.3), noise=0.1), seed=1) for _ in range(2))
        for each in (study, other, study, other):
            for trial in each.sheet(1, digits=2).trials:
                each.tell(trial, 9 - 99 * (trial.point[0] - 0.637) ** 2)
        chosen, _ = other.ask(), study.sheet(1, digits=2)
        why, plain = study.explain(2), other.explain(2)
        assert why.why == plain.why.replace(" found.", " found, rounded for a sheet.")
        assert (why.repeated, why.unrounded.point, why.rule) == (True, tuple(chosen.point), plain.rule)
        assert (why.score, why.propensity) == (pytest.approx(why.bounds[1]), None)
        assert why.score <= plain.score
        assert "\nunrounded" in str(why)
        assert why.to_dict()["unrounded"]["point"] == list(chosen.point)
        study.enqueue([0.25])
        study.ask()
        assert "Asked for by `enqueue` or `sheet`: the point as it was named." in str(study.explain(3))
        assert "unrounded" not in study.explain(3).to_dict()

    def test_a_named_point_is_none_of_a_sheet_though_the_policy_would_choose_it(self):
        space = nr.Space(n=nr.Int(1, 9))
        study, other = (nr.Study(nr.auto(space), clock=itertools.count().__next__) for _ in range(2))
        study.enqueue(other.ask().parameters)
        why = study.explain(study.ask())
        assert (why.unrounded, why.enqueued) == (None, why.trial.parameters)


class TestFiles:
    def test_paths_are_checked_before_a_trial_is_asked_for(self, tmp_path):
        study = made()
        (tmp_path / "folder.csv").mkdir()
        for path, words in (
            (tmp_path / "a.pdf", r"must end in one of \.csv, \.html"),
            (tmp_path / "no" / "a.csv", "does not exist: make it first"),
            (tmp_path / "folder.csv", "cannot be written: it is a folder"),
        ):
            with pytest.raises(nr.errors.InvalidInput, match=words):
                study.sheet(1, path)
        with pytest.raises(nr.errors.InvalidInput, match="`decimal`"):
            study.sheet().write(tmp_path / "a.csv", decimal=";")
        for more, words in (({"decimal": ";"}, "`decimal` is ';'"), ({"decimal": ","}, "`path` is missing")):
            with pytest.raises(nr.errors.InvalidInput, match=words):
                study.sheet(1, **more)
        assert len(study.trials) == 0
        study.sheet(2, tmp_path / "a.csv", decimal=",")
        assert (tmp_path / "a.csv").read_bytes().startswith(b"\xef\xbb\xbfnumber;heat")
        assert [row[0] for row in study.sheet().rows] == [0, 1]  # printed again, and nothing is asked
        assert len(study.trials) == 2

    def test_what_people_wrote_on_a_sheet_is_not_overwritten(self, tmp_path):
        study, path = made(), tmp_path / "a.csv"
        path.write_text("number,value\n0,7\n")
        for write in (partial(study.sheet, 1), study.sheet().write):
            with pytest.raises(nr.errors.InvalidInput, match=r"is there already.*Read it first.*name another file"):
                write(path)
        assert (len(study.trials), path.read_text()) == (0, "number,value\n0,7\n")

    def test_a_page_to_print(self, tmp_path):
        study = nr.Study(nr.auto(nr.Space(**{"<b>": nr.Float(1, 2)}), constraints=1), name="<lab>",
                         about={"constraints": "cost <= 5"})  # fmt: skip
        page = study.sheet(2, tmp_path / "a.html")
        text = (tmp_path / "a.html").read_text()
        assert text == page.to_html() == page._repr_html_()
        assert "<b>" not in text
        assert "&lt;lab&gt;, 2 trials" in text
        head = re.findall(r"<th(?: class='\w+'| class=.\w+.)?>(.*?)</th>", text)
        limit = "constraints.0 (cost &lt;= 5: at most 0 if met)"
        assert head == ["number", "&lt;b&gt;", "value", limit, "std (optional)", "remarks (optional)"]
        assert repr(page) == "Sheet(2 trials of study '<lab>')"

    def test_no_number_is_broken_between_lines_of_a_page(self):
        text = (
            made(nr.Space(long_name=nr.Float(0, 900), kind=nr.Choice("some words", "other words"))).sheet(1).to_html()
        )
        assert "td { white-space: nowrap; }" in text
        assert re.search(r'<td>0</td><td>[\d.]+</td><td class="text">\w+ words</td><td></td>', text)
        assert "<th>long_<wbr>name</th>" in text


class TestReading:
    @pytest.mark.parametrize("decimal", [".", ","])
    def test_what_was_filled_in(self, tmp_path, decimal):
        study = made(constraints=1)
        sheet = study.sheet(3)
        cells = {
            (0, "kind"): f"  {sheet.rows[0][sheet.columns.index('kind')]} ",
            (0, "value"): f" 1{decimal}5 ",
            (0, "constraints.0"): "\u00a0-1",
            (0, "std"): f"0{decimal}25 ",
            (1, "value"): "  ",
            (2, "value"): "failed",
            (2, "remarks"): "burnt",
        }
        for encoding in ("utf-8", "utf-8-sig"):  # the second time nothing changes
            read(study, filled(sheet, cells, decimal), tmp_path, encoding)
            assert [trial.state for trial in study.trials] == ["observed", "pending", "failed"]
        assert (study.trials[0].reward, study.trials[0].constraints.tolist(), study.trials[0].std) == (
            1.5,
            [-1.0],
            0.25,
        )
        assert study.trials[2].reason == "burnt"

    def test_a_value_that_was_set_by_hand(self, tmp_path):
        study = made()
        sheet = study.sheet(3)
        cells = {(0, "value"): "1", (0, "heat"): "55.5", (1, "value"): "2"}
        for _ in range(2):
            read(study, filled(sheet, cells), tmp_path)
            first, second, third, added = study.trials
            assert (first.state, second.reward, third.state) == ("abandoned", 2.0, "pending")
            assert first.abandoned.reason == "done by hand at other values, as trial 3"
            assert (added.reward, added.parameters) == (1.0, first.parameters | {"heat": 55.5})
        with pytest.raises(nr.errors.InvalidInput, match=r"Line 2 .* it is abandoned already, done by hand"):
            read(study, filled(sheet, cells | {(0, "value"): "9"}), tmp_path)
        assert len(study.trials) == 4

    def test_rows_that_a_person_added(self, tmp_path):
        study = made()
        sheet = study.sheet(1)
        read(study, filled(sheet, {}, extra=",50,0.5,3,0.2,b,,7,,by the way,lab\n"), tmp_path)
        assert study.trials[1].reward == 7.0
        assert study.trials[1].parameters["heat"] == 50.0

    @pytest.mark.parametrize(
        ("cells", "words"),
        [
            ({(1, "value"): "good"}, "Line 3 .*good.* in column value: it must be a number"),
            (OF_FIRST | {(0, "heat"): "hot"}, "Line 2 .*hot.* in column heat"),
            (OF_FIRST | {(0, "heat"): "99"}, "Line 2 .*heat.*99.*`study.widen.heat=nr.Float.* changes the range"),
            (OF_FIRST | {(0, "drop"): "0.15"}, "Line 2 .*drop.*plus a multiple of 0.1"),
            (OF_FIRST | {(0, "kind"): "z"}, "Line 2 .*in column kind"),
            (OF_FIRST | {(0, "sheet"): "other"}, "Line 2 .*other.* 'lab', the study of the sheet"),
            (
                {(0, "value"): "1"},
                "Line 2 .*`value` has a value and `constraints.0` has none: fill in both, or neither",
            ),
            (
                {(0, "value"): "1", (0, "metrics.euros"): "2"},
                "Line 2 .*`value` has a value and `constraints.0` has none",
            ),
            (OF_FIRST | {(0, "metrics.euros"): ""}, "Line 2 .*`metrics.euros` has none: fill in both, or neither"),
            (OF_FIRST | {(0, "metrics.euros"): "0"}, "Line 2 .*column metrics.euros: it must be a number above 0"),
            ({(0, "constraints.0"): "1"}, "Line 2 .*`constraints.0` has a value and `value` has none: fill in both"),
            ({(0, "value"): "failed", (0, "heat"): "44"}, "Line 2 .*failed at other values than asked"),
            ({(0, "value"): "failed", (0, "number"): ""}, "Line 2 .*no number of a trial that could fail"),
            ({(0, "value"): "Abandoned ", (0, "number"): "99"}, "Line 2 .*no trial 99"),
            (OF_FIRST | {(0, "number"): "99"}, "Line 2.*no trial 99. A row without"),
            ({}, "no row has a reward"),
        ],
    )
    def test_nonsense_is_answered_with_row_and_column(self, tmp_path, cells, words):
        study = made(constraints=1, cost="euros")
        sheet = study.sheet(2)
        with pytest.raises(nr.errors.InvalidInput, match=words) as said:
            read(study, filled(sheet, cells), tmp_path)
        assert str(said.value).casefold().count("nothing was re") == 1
        assert [trial.state for trial in study.trials] == ["pending", "pending"]

    @pytest.mark.parametrize("of", ["a sheet", "another table"])
    def test_a_lost_week_is_abandoned(self, of, tmp_path):
        study = made()
        sheet = study.sheet(3)
        cells = {(0, "value"): " ABANDONED", (0, "remarks"): "heater broke", (1, "value"): "Failed ", (2, "value"): "1"}
        text = filled(sheet, cells)
        if of == "a sheet":
            text = filled(sheet, cells | {(0, "heat"): "44"})
        else:
            text = text.replace(",sheet", ",of").replace(" (optional)", "")
        for _ in range(2):  # Read again, it changes nothing.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*not read: 'of'")
                read(study, text, tmp_path)
            first, second, third = study.trials
            assert [trial.state for trial in study.trials] == ["abandoned", "failed", "observed"]
            assert (first.abandoned.reason, second.reason, third.reward) == ("heater broke", "failed", 1.0)

    @pytest.mark.parametrize("row", ["8,50,failed", "0,33.3,abandoned"])
    def test_words_of_no_trial_of_the_study_record_nothing(self, row, tmp_path):
        study = made(nr.Space(heat=nr.Float(20, 90)))
        study.ask()
        with pytest.raises(nr.errors.InvalidInput, match=r"Line 2 .*(no trial 8|of another point)"):
            read(study, f"number,heat,value\n{row}\n", tmp_path)
        assert [trial.state for trial in study.trials] == ["pending"]

    def test_rows_without_an_answer_and_columns_that_were_not_read_are_counted(self, tmp_path):
        study = made(nr.Space(heat=nr.Float(20, 90)))
        text = "week,heat,value,remarks\n30,50,1,\n31,60,,broken\n,,,\n32,70, abandoned,\n"
        with pytest.warns(nr.errors.NoRegretWarning) as said:
            assert len(read(study, text.replace("abandoned", ""), tmp_path)) == 1
        notes = [str(each.message) for each in said]
        assert "not read: 'week', 'remarks'" in notes[0]
        assert re.search(
            "^2 of 3 rows of .* have no answer in column `value`, and were left out: lines 3, 5.$", notes[1]
        )
        with pytest.warns(nr.errors.NoRegretWarning) as said:
            read(study, text.replace("50", "51"), tmp_path)
        assert ["not read: 'week'." in str(said[0].message), "2 of 3" in str(said[1].message)] == [True, True]

    def test_units_in_titles(self, tmp_path):
        study = made(nr.Space(**{"heat": nr.Float(20, 90), "rate (1/s)": nr.Float(0, 1)}), constraints=1)
        text = "heat [°C],rate (1/s),value [kg],constraints.0 (at most 0)\n50,0.5,7,-1\n"
        with pytest.warns(nr.errors.NoRegretWarning, match=r"without them: 'heat \[°C\]' as 'heat', 'value \[kg\]' as"):
            (trial,) = read(study, text, tmp_path)
        assert (trial.parameters["heat"], trial.reward, trial.constraints.tolist()) == (50.0, 7.0, [-1.0])
        with pytest.raises(nr.errors.InvalidInput, match="no column heat"):
            read(study, "heat [°C],heat (F),rate (1/s),value\n50,122,0.5,7\n", tmp_path)

    def test_answers_without_constraint_values_are_said(self, tmp_path):
        study = made(nr.Space(heat=nr.Float(20, 90)), constraints=1)
        with pytest.warns(
            nr.errors.NoRegretWarning, match="^1 of 2 rows of .* has no constraint values: line 3. Such a"
        ):
            read(study, "heat,value,constraints.0\n50,1,-1\n60,0.5,\n", tmp_path)
        assert (study.best().number, study.tell(1, constraints=[-2.0]).feasible, study.best().number) == (0, True, 1)
        with pytest.raises(nr.errors.InvalidInput, match=r"Line 2 .*`constraints.0` has a value and `value` has none"):
            read(study, "heat,value,constraints.0\n50,,-1\n", tmp_path)

    def test_readings_in_place_of_constraint_values_are_said(self, tmp_path):
        study = made(nr.Space(heat=nr.Float(20, 90)), constraints=1)
        read(study, "heat,value,constraints.0\n50,1,23.8\n", tmp_path)  # One trial may well violate the constraint.
        for text, place in (("60,1,29.1\n", "csv and on record"), ("61,1,29.1\n62,1,23\n", "csv")):
            words = f"^All 2 values of `constraints.0` in .*{place} are above 0.*the reading less the limit"
            with pytest.warns(nr.errors.NoRegretWarning, match=words):
                read(study, f"heat,value,constraints.0\n{text}", tmp_path)
        read(study, "heat,value,constraints.0\n63,1,-2\n64,1,3\n", tmp_path)

    @pytest.mark.parametrize("column", ["heat", "value"])
    def test_a_misspelt_column(self, tmp_path, column):
        study = made()
        words = rf"^\S+filled.csv has the columns .*Did you mean column '{column}x'. Nothing was recorded"
        text = filled(study.sheet(1), {(0, "value"): "1"}).replace(column, f"{column}x", 1)
        with pytest.raises(nr.errors.InvalidInput, match=words):
            read(study, text, tmp_path)

    def test_a_table_that_is_no_sheet_is_read_as_before(self):
        study = made(nr.Space(x=nr.Float(0, 1)))
        trial = study.ask()
        with pytest.raises(nr.errors.InvalidInput, match="the row is of another point"):
            study.add_from([{"number": trial.number, "x": 0.123, "loss": 1.0}])
        with pytest.raises(nr.errors.InvalidInput, match=r"'lost' in .*: it must be a number, 'failed' or 'abandoned'"):
            study.add_from([{"number": trial.number, "loss": "lost"}])
        limited = made(nr.Space(x=nr.Float(0, 1)), constraints=2)
        rows = [{"x": 0.5, "loss": 1.0}, {"x": 0.2, "loss": 1.0, "constraints.0": 1, "constraints.1": None}]
        with pytest.raises(nr.errors.InvalidInput, match=r"Row 2 .*`constraints.0` has a value and `constraints.1`"):
            limited.add_from(rows)


class TestCommand:
    def test_ask_fill_in_import(self, tmp_path):
        storage, path = f"sqlite:///{tmp_path}/lab.db", tmp_path / "batch.csv"
        nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), storage=storage, name="lab").close()

        def command(*words):
            return CliRunner().invoke(main, list(map(str, words)))

        assert "Wrote 2 trials" in command("sheet", storage, "lab", path, "--count", 2, "--decimal", ",").output
        assert "is there already" in command("sheet", storage, "lab", path).output
        lines = path.read_text("utf-8-sig").splitlines()
        path.write_text("\n".join([lines[0], lines[1].replace(";;;;", ";0,5;;;"), *lines[2:]]))
        path.write_text("\n".join([*path.read_text().splitlines(), path.read_text().splitlines()[1]]))  # twice
        known = command("import", storage, "lab", path).output
        assert "Added 0 trials, read 1 answer to trials that were there, 1 was there already;" in known
        assert "Added 0 trials, 2 were there already;" in command("import", storage, "lab", path).output
        printed = command("sheet", storage, "lab", "--html").output
        assert "lab, 1 trial<" in printed
        assert command("sheet", storage, "lab").output.startswith(
            "number,x,value,std (optional),remarks (optional),sheet"
        )
        refused = command("sheet", storage, "lab", tmp_path / "a.doc", "--count", 1)
        assert refused.exit_code != 0
        assert len(nr.Study.open(storage=storage, name="lab").trials) == 2


@pytest.mark.parametrize("change", [
    {"n": nr.Int(20, 30), "kind": nr.Choice("a", "c")},
    {"m": nr.Float(0, 1), "was": {"m": 0.5}},
    {"context": {"day": nr.Choice("c", "d")}},
])  # fmt: skip
def test_a_pending_trial_is_printed_and_told_as_it_was_asked_after_the_space_has_changed(change, tmp_path):
    space = nr.Space(n=nr.Int(1, 9), kind=nr.Choice("a", "b"))
    study = nr.Study(nr.auto(space, context=nr.Space(day=nr.Choice("a", "b"))), name="lab", seed=1)
    first = study.sheet(3, context={"day": "a"})
    study.widen(**change)
    again = study.sheet()
    for row, trial in zip(again.rows, study.trials, strict=True):
        cells = dict(zip(again.columns, row, strict=True))
        assert cells["context.day"] == "a"
        assert {name: cells[name] for name in space.parameters} == trial.parameters
    for sheet, row, said in ((first, 0, "1"), (again, 1, "2"), (first, 2, "failed"), (first, 0, "1")):
        read(study, filled(sheet, {(row, "value"): said}), tmp_path)
    study.export(tmp_path / "all.csv")
    study.add_from(tmp_path / "all.csv")
    assert [(trial.state, trial.reward) for trial in study.trials] == [
        ("observed", 1),
        ("observed", 2),
        ("failed", None),
    ]
