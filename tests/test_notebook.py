"""Tables that notebooks show of studies, results and trials."""

import re

import nilregret as nr

SPACE = nr.Space(rate=nr.Float(0, 1), model=nr.Choice("<script>alert(1)</script>", "b"))


def shown(trials):
    return nr.minimize(lambda rate, model: rate, SPACE, trials=trials, progress=False)


def test_tables_escape_everything_and_have_no_colours_of_their_own():
    study = nr.Study(nr.auto(SPACE), name="<script>evil</script>")
    for reason in ("<img src=x>", "<b>"):
        study.fail(study.ask(), reason)
    study.tell(study.ask(), 1.0)
    study.add({"rate": 0.2, "model": "<script>alert(1)</script>"}, 3.0)
    texts = [table._repr_html_() for table in (study, study.trials[0], shown(3), study.trials[3])]
    for text in texts:
        assert not re.search(r"<(script|img|b)\b", text)
        assert not re.search(r"(?<!-)color:(?!inherit)|background:(?!transparent)", text)
    assert "&lt;img src=x&gt;" in texts[0]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in texts[3]


def test_a_long_study_shows_its_last_trials_and_the_best_one_in_bold():
    study = nr.Study(nr.algorithms.greedy_variance(nr.Arms.grid(0, 1, 30), nr.Matern(2.5, 0.3), noise=0.1))
    study.quiet = True
    for i in range(15):
        study.tell(study.ask(), 9.0 if i == 2 else float(i % 5))
    text = study._repr_html_()
    numbers = [int(found) for found in re.findall(r"<tr><td[^>]*>(?:<strong>)?(\d+)", text)]
    assert numbers == [2, *range(5, 15)]
    assert re.findall(r"<strong>(\d+)</strong>", text)[0] == "2"
    assert "last 10 of 15 trials" in text


def test_a_study_without_trials_and_a_pending_one_are_shown():
    study = nr.Study(nr.auto(nr.Box([0], [1])))
    assert "0 trials" in study._repr_html_()
    trial = study.ask()
    assert "pending" in study._repr_html_()
    assert "pending" in trial._repr_html_()


def test_a_wide_space_is_cut():
    space = nr.Space(**{f"p{i}": nr.Float(0, 1) for i in range(12)})
    study = nr.Study(nr.auto(space))
    study.ask()
    assert "p7" in study._repr_html_()
    assert "p8" not in study._repr_html_()
