"""The probability of a decision is recorded with it, and is the share of other seeds that decide so."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import ndtr
from scipy.stats import binomtest

import nilregret as nr
from nilregret.__main__ import main
from nilregret.policy.availability import available
from nilregret.slots import DrawnLine, IndependentNormals, JointNormals, Uniform
from nilregret.slots.scores import GaussianDraws, ThompsonSample

ARMS, KERNEL = nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.3)
REWARDS = (0.3, -0.2, 0.5, 0.4)


def ts(**more):
    return nr.gp_ts(ARMS, KERNEL, noise=0.3, norm_bound=1.0, **more)


def test_it_is_on_record_and_comes_back(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(ts(), storage=url, propensities=True, about={"units": "kg"})
    for reward in REWARDS:
        expected = study.probabilities()
        trial = study.ask()
        assert trial.propensity == pytest.approx(expected[trial.arm], abs=0.01)
        assert study.tell(trial, reward).propensity == trial.propensity
    again = nr.Study.open(storage=url)
    assert again.propensities
    assert list(again.trials) == list(study.trials)
    assert again.ask().propensity is not None
    assert again.about == {"units": "kg", "propensities": True}
    assert json.loads(json.dumps(again.about)) == again.about
    with pytest.raises(nr.errors.InvalidInput, match="propensities"):
        nr.Study(ts(), storage=url, about={"units": "kg"})
    assert study.to_pandas()["propensity"].tolist() == [trial.propensity for trial in study.trials]


def test_the_command_line_and_files_have_it(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(ts(), storage=url, propensities=True)
    trial = study.ask()
    run = CliRunner().invoke(main, ["trials", url, "study"])
    assert "propensity" in run.output
    said = json.loads(CliRunner().invoke(main, ["trials", url, "study", "--json"]).output)
    assert [each["propensity"] for each in said] == [trial.propensity]
    for kind in ("csv", "jsonl"):
        study.export(tmp_path / f"trials.{kind}")
    with (tmp_path / "trials.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["propensity"]) == trial.propensity
    assert json.loads((tmp_path / "trials.jsonl").read_text())["propensity"] == trial.propensity


def test_it_changes_no_decision_and_is_none_unless_asked_for():
    plain, recorded = nr.Study(ts(), seed=3), nr.Study(ts(), seed=3, propensities=True)
    for reward in REWARDS:
        one, other = plain.ask(), recorded.ask()
        assert one.propensity is None
        assert one == other._replace(propensity=None, asked_at=one.asked_at)
        plain.tell(one, reward)
        recorded.tell(other, reward)
    assert plain.add([0.5], 1.0).propensity is None
    assert "propensity" not in plain.to_pandas()


def test_a_floor_is_under_every_arm():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(explore=Uniform(0.2)), propensities=True)
    for number in range(12):
        found = study.probabilities()
        assert found.min() >= 0.2 / 5 - 1e-15
        assert found.sum() == pytest.approx(1.0)
        trial = study.ask()
        assert trial.propensity == pytest.approx(found[trial.arm])
        study.tell(trial, np.sin(9.0 * number))
    assert {trial.explored for trial in study.trials} == {True, False}


@pytest.mark.parametrize("rate", [0.0, 1.1, -1.0, "often"])
def test_a_rate_that_is_none(rate):
    with pytest.raises(nr.errors.InvalidInput, match="rate"):
        Uniform(rate)


def test_on_a_box_only_points_that_are_listed_have_one():
    box = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 4))
    study = nr.Study(nr.auto(box).using(explore=nr.slots.InitialDesign(2)), propensities=True)
    assert study.ask().propensity is None
    with pytest.raises(nr.errors.InvalidInput, match="among"):
        study.probabilities()
    listed = [{"x": 0.2, "n": 1}, {"x": 0.4, "n": 2}, {"x": 0.2, "n": 1}]
    study.tell(0, 0.3)
    np.testing.assert_allclose(study.probabilities(among=listed).sum(), 1.0)
    assert study.ask(among=listed).propensity is not None
    script = nr.Study(nr.algorithms.bandit_oco(nr.Box([0, 0], [1, 1]), step=0.1), propensities=True)
    assert script.ask().propensity is None


# -- against the shares of other random numbers -----------------------------------------------------------------------

CONTEXTS = nr.Box([0.0], [1.0])
SIX = nr.Arms(np.array([[0.0], [0.2], [0.2], [0.5], [0.7], [1.0]]))  # two of them at one point
CASES = {
    "draws": (ts(), {}),
    "draws at one point": (nr.gp_ts(SIX, KERNEL, noise=0.3, norm_bound=1.0), {}),
    "draws among some": (ts(), {"among": [0, 2, 3]}),
    "draws with pending trials": (ts(pending="hallucinate"), {}),
    "draws under contexts": (ts(context=CONTEXTS), {"context": [0.4]}),
    "draws under finite contexts": (ts(context=nr.Arms.grid(0, 1, 3)), {"context": [0.5]}),
    "draws within constraints": (ts(constraints=nr.EveryRound()), {}),
    "draws less prices": (ts(constraints=nr.OnAverage(step=0.5)), {}),
    "draws of several kernels": (ts(refit=nr.slots.LengthscaleBank()), {}),
    "draws of drifting functions": (ts(memory=nr.slots.Discount(0.05)), {}),
    "clicks": (nr.auto(ARMS, reward="bernoulli").using(score=ThompsonSample(width=0.6)), {}),
    "draws of each arm": (nr.gp_ucb(ARMS, KERNEL, noise=0.3).using(score=GaussianDraws(width=0.8)), {}),
    "draws of each arm under contexts": (
        nr.gp_ucb(ARMS, KERNEL, noise=0.3, context=CONTEXTS).using(score=GaussianDraws(width=0.8)),
        {"context": [0.4]},
    ),
    "widths": (nr.irgp_ucb(ARMS, KERNEL, noise=0.3), {}),
    "widths among some": (nr.irgp_ucb(ARMS, KERNEL, noise=0.3), {"exclude": [4]}),
    "widths under contexts": (nr.irgp_ucb(ARMS, KERNEL, noise=0.3, context=CONTEXTS), {"context": [0.4]}),
    "a floor": (nr.irgp_ucb(ARMS, KERNEL, noise=0.3).using(explore=Uniform(0.3)), {}),
    "shares": (ts().using(explore=nr.slots.Shares({1: 0.3, 3: 0.2})), {}),
    "shares of an arm that is left out": (ts().using(explore=nr.slots.Shares({1: 0.3, 3: 0.2})), {"exclude": [1]}),
    "a floor among some": (ts().using(explore=Uniform(0.3)), {"among": [1, 4]}),
    "a floor after a design": (
        nr.gp_ucb(ARMS, KERNEL, noise=0.3).using(explore=nr.slots.InTurn((nr.slots.InitialDesign(3), Uniform(0.5)))),
        {},
    ),
    "a design": (nr.gp_ucb(nr.Arms.grid(0, 1, 30), KERNEL, noise=0.3).using(explore=nr.slots.InitialDesign(9)), {}),
    "uniform rounds": (ts().detecting_changes(exploration=5.0, threshold=3.0), {}),
    "a floor within constraints": (ts(constraints=nr.EveryRound()).using(explore=Uniform(0.3)), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_share_of_other_random_numbers(name):
    """Each comparison fails with probability 1e-11 for other seeds, 1e-9 all together, where laws are exact."""
    policy, asked = CASES[name]
    context = asked.get("context")
    study = nr.Study(policy, seed=1, propensities=True)
    study.quiet = True
    for reward in REWARDS:
        trial = study.ask(context)
        limit = {"constraints": [reward - 0.3]} if policy.constraint_count else {}
        study.tell(trial, float(reward > 0.0) if name == "clicks" else reward, **limit)
    study.fail(study.ask(context), "broken")
    study.ask(context)
    found = study.probabilities(**asked)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    offered = (
        available(policy.domain, asked.get("among"), asked.get("exclude"))
        if len(asked) - ("context" in asked)
        else None
    )
    state, seen = study.replica.state, study.inputs.context(context)
    draws, counts = 1500, np.zeros(len(found), dtype=int)
    for seed in range(draws):
        if name != "a design":  # which is drawn by the seed
            state.rounds.seed = seed
        counts[state.decide(seen, available=offered).arm] += 1
    for share, count in zip(found, counts, strict=True):
        error = 0.01 if name.startswith(("draws", "clicks")) else 0.0
        near = min(max(count / draws, share - error), share + error)
        assert binomtest(int(count), draws, min(max(near, 0.0), 1.0)).pvalue > 1e-11
    chosen = study.ask(**asked)
    assert chosen.propensity == pytest.approx(found[chosen.arm], abs=0.01)


def test_a_batch_has_those_of_decisions_one_by_one():
    together, alone = (nr.Study(ts(pending="hallucinate"), seed=2, propensities=True) for _ in range(2))
    several = together.ask(count=5)
    assert [trial.propensity for trial in several] == [alone.ask().propensity for _ in several]


def test_an_arm_that_is_retired_or_new_is_counted_so():
    study = nr.Study(nr.irgp_ucb(ARMS, KERNEL, noise=0.3).using(explore=Uniform(0.5)), propensities=True)
    study.retire_arm(2)
    assert study.probabilities()[2] == 0.0
    assert study.probabilities().min() == 0.0
    for reward in REWARDS:
        expected = study.probabilities()
        trial = study.ask()
        assert trial.propensity == pytest.approx(expected[trial.arm])
        study.tell(trial, reward)
    study.add_arms([[0.77]])
    assert study.probabilities().shape == (6,)
    np.testing.assert_allclose(study.probabilities().sum(), 1.0)
    assert study.probabilities()[5] >= 0.1


def test_the_share_of_an_arm_that_is_retired_is_the_policys():
    study = nr.Study(ts().using(explore=nr.slots.Shares({0: 0.4})), propensities=True)
    for reward in REWARDS:
        study.tell(study.ask(), reward)
    floor = study.probabilities()
    assert floor[0] >= 0.4
    plain = (floor - 0.4 * (np.arange(5) == 0)) / 0.6
    study.retire_arm(0)
    assert study.probabilities()[0] == 0.0
    np.testing.assert_allclose(study.probabilities()[1:].sum(), 1.0)
    study.restore_arm(0)
    np.testing.assert_allclose(study.probabilities(), floor, atol=0.01)
    assert (plain >= 0.0).all()


def test_shares_of_arms_by_number_by_text_and_by_option():
    banners = nr.Space(banner=nr.Choice("control", "sale", 3)).grid()
    for given in ({"control": 0.05}, {0: 0.05}, {"0": 0.05}, [("control", 0.05)]):
        policy = nr.auto(banners, reward="bernoulli").using(explore=nr.slots.Shares(given))
        assert policy.explore == nr.slots.Shares({0: 0.05})
        assert nr.Policy.from_json(policy.to_json()) == policy
    design = nr.slots.InTurn((nr.slots.Shares({"sale": 0.1}), nr.slots.InitialDesign(3)))
    assert nr.auto(banners).using(explore=design).explore.parts[0] == nr.slots.Shares({1: 0.1})


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        ({}, "must have the share of an arm at least"),
        (3, "`shares` is 3: it must have the share"),
        ({0: 1.0}, "leave nothing to the policy"),
        ({0: 0.5, 1: 0.6}, "leave nothing to the policy"),
        ({0: 0.0}, "must lie in"),
        ({0: "half"}, "must be a number"),
        ({5: 0.1}, "has arm 5, and there are 5 arms"),
        ({-1: 0.1}, "at least 0"),
        ({"control": 0.1}, "arms have names in a study, and numbers in its policy"),
        ({"0": 0.1, 0: 0.1}, "names an arm twice"),
    ],
)
def test_shares_that_cannot_be(shares, sentence):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        ts().using(explore=nr.slots.Shares(shares))


def test_arms_that_no_share_can_name():
    shares = nr.slots.Shares({"control": 0.1})
    with pytest.raises(nr.errors.InvalidInput, match="the policy has none: it plays a Box"):
        nr.auto(nr.Box(0, 1)).using(explore=shares)
    with pytest.raises(nr.errors.InvalidInput, match=r"the options are \['old', 'new'\]"):
        nr.auto(nr.Space(banner=nr.Choice("old", "new")).grid()).using(explore=shares)
    twins = nr.auto(nr.Arms([[0.0], [1.0], [0.0]]), reward="bernoulli")
    with pytest.raises(nr.errors.InvalidInput, match="whose point is that of arm 0"):
        twins.using(explore=nr.slots.Shares({2: 0.1}))


def test_nothing_uncertified_has_a_floor():
    with pytest.raises(nr.errors.InvalidInput, match="certified"):
        nr.gp_ucb(ARMS, KERNEL, noise=0.1, constraints=nr.Safe(start=[[0.5]], scale=1.0)).using(explore=Uniform(0.1))
    certified = nr.gp_ucb(ARMS, KERNEL, noise=0.1, constraints=nr.Safe(start=[[0.5]], scale=1.0))
    assert nr.Study(certified, propensities=True).ask().propensity == 1.0


@pytest.mark.parametrize("name", ["draws", "widths under contexts", "a floor after a design", "clicks"])
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_an_explanation_says_what_is_recorded(name, goal):
    policy, asked = CASES[name]
    study = nr.Study(policy, seed=5, goal="maximize" if name == "clicks" else goal, propensities=True)
    for reward in REWARDS:
        trial = study.ask(asked.get("context"))
        study.tell(trial, float(reward > 0.0) if name == "clicks" else reward)
    for trial in study.trials:
        said = study.explain(trial).propensity
        assert (said.draws, said.standard_error) == (0, 0.0)
        assert said.value == pytest.approx(trial.propensity, rel=1e-9)


# -- laws --------------------------------------------------------------------------------------------------------------


def test_independent_normals_are_exact():
    """Two arms against the closed form, and many against a finer quadrature of each arm by itself."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        mean, std = rng.normal(size=2), 10.0 ** rng.uniform(-4, 1, size=2)
        first = ndtr((mean[0] - mean[1]) / np.hypot(*std))
        np.testing.assert_allclose(IndependentNormals(mean, std).probabilities(1.0), [first, 1 - first], atol=1e-8)
    mean, std = rng.normal(size=7), np.exp(rng.normal(size=7))
    t = np.linspace(-9, 9, 40_001)
    slow = []
    for i in range(7):
        others = [ndtr((mean[i] + std[i] * t - mean[j]) / std[j]) for j in range(7) if j != i]
        slow.append(np.trapezoid(np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi) * np.prod(others, axis=0), t))
    np.testing.assert_allclose(IndependentNormals(mean, std).probabilities(1.0), slow, atol=1e-8)
    certain = IndependentNormals(np.array([1.0, 2.0, 2.0]), np.zeros(3))
    assert certain.probabilities(1.0).tolist() == [0.0, 0.5, 0.5]


def test_a_drawn_line_has_the_mass_of_its_interval():
    """Against the highest line on a fine grid of w, with lines that coincide up to rounding and atoms at the start."""
    rng = np.random.default_rng(1)
    for least, size in ((0.0, 3), (0.7, 12), (1.2, 60)):
        a, b = rng.normal(size=size), np.abs(rng.normal(size=size))
        a[-1], b[-1] = a[0] + 1e-15, b[0]  # one line twice
        law = DrawnLine(a, b, lambda x, least=least: 0.8 * np.exp(least - x), least)
        found = law.probabilities(1.0)
        edges = np.append(-np.log(np.linspace(1.0, 1e-6, 200_001)), 60.0)
        highest = (a + (least + 0.5 * (edges[1:] + edges[:-1]))[:, None] * b).argmax(axis=1)
        slow = np.bincount(highest, weights=-0.8 * np.diff(np.exp(-edges)), minlength=size)
        slow[(a + least * b).argmax()] += 0.2
        slow[[0, -1]] = 0.5 * (slow[0] + slow[-1])
        np.testing.assert_allclose(found, slow, atol=2e-5)


def test_a_lower_line_does_not_tie_where_only_rounding_makes_it_steeper():
    law = DrawnLine(np.array([0.6, 0.2, 0.7]), np.array([0.5, np.nextafter(0.5, 1.0), 0.4]), lambda x: np.exp(-x))
    np.testing.assert_allclose(law.probabilities(1.0), [np.exp(-1.0), 0.0, 1.0 - np.exp(-1.0)], atol=1e-12)


def test_joint_normals_are_near_closed_forms():
    rng = np.random.default_rng(2)
    for count in (3, 12, 40):
        mean, std = rng.normal(size=count), np.exp(rng.normal(size=count))
        exact = IndependentNormals(mean, std).probabilities(1.0)
        alone = JointNormals(mean, np.diag(std**2))
        shared = JointNormals(mean, np.diag(std**2) + 4.0)  # what all have in common decides nothing
        for law in (alone, shared):
            np.testing.assert_allclose(law.probabilities(1.0), exact, atol=0.01)
            np.testing.assert_allclose(law.probability(1, 1.0), exact[1], atol=0.01)
    twins = JointNormals(np.zeros(4), np.kron(np.eye(2), np.ones((2, 2))))
    np.testing.assert_allclose(twins.probabilities(1.0), 0.25, atol=1e-9)
    known = JointNormals(np.array([0.0, 1.0]), np.diag([1.0, 0.0]))
    np.testing.assert_allclose(known.probabilities(1.0), [ndtr(-1.0), ndtr(1.0)], atol=0.01)


def test_a_score_that_overrides_another_says_nothing_of_it():
    class Doubled(GaussianDraws):
        def on_table(self, view):
            return 2.0 * super().on_table(view)

    class Rarely(Uniform):
        def due(self, uniform, history, randomness):
            return super().due(uniform, history, randomness) and history % 2 == 0

    assert Doubled.law is nr.slots.Score.law
    assert Rarely.chances is nr.slots.Explore.chances


def test_lines_that_tie_at_the_start_share_the_mass_there():
    """Where w has an atom at 0 and means are equal, as before any reward."""
    law = DrawnLine(np.zeros(4), np.array([1.0, 0.5, 0.5, 0.0]), lambda x: 0.6 * np.exp(-x))
    np.testing.assert_allclose(law.probabilities(1.0), [0.7, 0.1, 0.1, 0.1], atol=1e-12)


@pytest.mark.parametrize("count", [300, 4096])
def test_many_equal_draws_and_means_far_from_zero_are_no_less_exact(count):
    equal = IndependentNormals(np.zeros(count), np.ones(count)).probabilities(1.0)
    np.testing.assert_allclose(equal, 1.0 / count, atol=1e-8 / count**0.5)
    mean, std = np.array([0.0, 0.002, -0.001]), np.array([1e-3, 2e-3, 4e-3])
    near, far = (IndependentNormals(mean + center, std).probabilities(1.0) for center in (0.0, 2.0**20))
    np.testing.assert_allclose(far, near, atol=3e-7)  # the means themselves are rounded to 1e-10
    assert far.sum() == pytest.approx(1.0, abs=1e-9)
