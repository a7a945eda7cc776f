"""Settings of trials that the policy chooses: `nr.Fidelity`, BOCA and `auto(fidelity=)`."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots.fidelity import Levels, boca, most_telling

ROWS = nr.Fidelity("rows", 100, 100_000)
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))


def loss(x, y, rows):
    gap = 1.0 - math.log(rows / 100) / math.log(1000)
    return 3 * (x - 0.3) ** 2 + 2 * (y - 0.6) ** 2 + 0.15 * math.sin(8 * x) * gap + 0.3 * gap


def played(policy, trials, *, seed=0, storage=None):
    study = nr.Study(policy, goal="minimize", seed=seed, storage=storage, name="a")
    for _ in range(trials - len(study.trials)):
        trial = study.ask()
        study.tell(trial, loss(**trial.parameters, **trial.context_parameters))
    return study


def cost(study):
    return sum(study.policy.fidelity.cost_at(trial.context) for trial in study.trials)


def test_settings_are_whole_and_logarithmic_where_they_span_decades():
    values = [ROWS.space.decode(row)["rows"] for row in ROWS.grid]
    assert values == [100, 237, 562, 1334, 3162, 7499, 17783, 42170, 100_000]
    np.testing.assert_allclose(ROWS.costs, np.array(values) / 100_000)
    share = nr.Fidelity("share", 0.2, 1.0, cost=2, levels=3)
    assert [share.space.decode(row)["share"] for row in share.grid] == pytest.approx([0.2, 0.6, 1.0])
    np.testing.assert_allclose(share.costs, [0.04, 0.36, 1.0])


def test_the_set_of_boca_is_that_of_the_paper():
    """Z_t(x) by its three conditions, one setting at a time."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, d, kappa, width = 6, 2, rng.uniform(0.5, 2), rng.uniform(0.5, 3)
        costs = np.append(np.sort(rng.uniform(0.01, 0.99, m - 1)), 1.0)
        std, alike = rng.uniform(0, math.sqrt(kappa), m), np.append(np.sort(rng.uniform(0, 1, m - 1)), 1.0)
        gap = [math.sqrt(1 - phi**2) for phi in alike]
        allowed = [
            z
            for z in range(m)
            if z == m - 1
            or (
                std[z] > math.sqrt(kappa) * gap[z] * (costs[z] / costs[-1]) ** (1 / (1 + d + 2))
                and gap[z] > max(gap) / width
            )
        ]
        found = boca(Levels(costs, std, std, 0.01, kappa, alike, width, d))
        assert found == min(allowed, key=lambda z: costs[z])


def test_the_most_telling_setting_shrinks_the_full_variance_most_for_its_cost():
    costs, std = np.array([0.01, 0.1, 1.0]), np.ones(3)
    found = [
        most_telling(Levels(costs, std, np.array([rho, 0.9, 1.0]), 0.0, 1.0, std, 2.0, 1)) for rho in (0.05, 0.5, 0.95)
    ]
    assert found == [1, 0, 0]  # .0025 / .01, .81 / .1, 1 / 1; then .25 / .01
    known = Levels(costs, np.array([0.01, 0.5, 0.6]), np.array([0.001, 0.2, 0.36]), 0.04, 1.0, std, 2.0, 1)
    assert most_telling(known) == int(np.argmax(known.shared**2 / (known.std**2 + 0.04) / costs))


def test_cheap_settings_find_the_optimum_of_the_full_one():
    study = played(nr.auto(SPACE, fidelity=ROWS, budget=40), 40)
    best = study.best()
    assert best.context_parameters == {"rows": 100_000}
    assert best.reward < 0.01
    assert cost(study) < 15.0
    assert [trial.context_parameters["rows"] for trial in study.trials[-3:]] == [100_000] * 3
    assert study.predict(best.parameters)[0] == study.predict(best.parameters, context={"rows": 100_000})[0]
    plain = nr.Policy.from_json(study.policy.to_json())
    assert plain == study.policy
    assert study.explain(25).repeated
    assert study.explain(39).repeated


def test_a_study_goes_on_as_if_it_had_not_been_closed(tmp_path):
    policy = nr.auto(SPACE, fidelity=ROWS, budget=20)
    whole = played(policy, 20)
    url = f"sqlite:///{tmp_path}/a.db"
    played(policy, 9, storage=url).close()
    found = played(policy, 20, storage=url)
    assert [(t.point.tolist(), t.context.tolist()) for t in found.trials] == [
        (t.point.tolist(), t.context.tolist()) for t in whole.trials
    ]


def test_before_a_trial_at_the_full_setting_all_are_compared_there():
    study = nr.Study(nr.auto(SPACE, fidelity=ROWS), goal="minimize")
    study.add({"x": 0.3, "y": 0.6}, 0.3, context={"rows": 100})
    study.add({"x": 0.9, "y": 0.1}, 1.5, context={"rows": 100})
    assert study.best().number == 0
    added = study.add({"x": 0.9, "y": 0.1}, 1.4)  # without a context at the full setting
    assert added.context_parameters == {"rows": 100_000}
    assert study.best().number == 2


def test_a_setting_that_is_asked_for_is_kept():
    study = nr.Study(nr.auto(SPACE, fidelity=ROWS))
    assert study.ask(context={"rows": 500}).context_parameters == {"rows": 500}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nr.Fidelity("rows", 0, 10), "`low`"),
        (lambda: nr.Fidelity("rows", 10, 10), "the full setting"),
        (lambda: nr.Fidelity("a b", 1, 10), "name of an argument"),
        (lambda: nr.Fidelity("rows", 1, 10, cost="seconds"), "`cost`"),
        (lambda: nr.auto(SPACE, fidelity="rows"), "Make it with `nr.Fidelity"),
        (lambda: nr.auto(SPACE, fidelity=ROWS, objectives=2), "`objectives` and `fidelity`"),
        (lambda: nr.auto(SPACE, fidelity=ROWS, constraints=1), "`constraints` and `fidelity`"),
        (lambda: nr.auto(SPACE, fidelity=ROWS, pruning="median"), "`pruning` and `fidelity`"),
        (lambda: nr.auto(nr.Space(rows=nr.Float(0, 1)), fidelity=ROWS), "rename one"),
        (lambda: nr.auto(SPACE).using(fidelity=ROWS), "the contexts of a policy are the settings"),
    ],
)
def test_what_does_not_go_together_is_refused(make, said):
    with pytest.raises(nr.NoRegretError, match=said):
        make()


def test_boca_plays_on_arms_and_in_a_box():
    for domain in (nr.Arms.grid(0, 1, 21), nr.Box(0, 1)):
        policy = nr.algorithms.boca(domain, nr.SquaredExponential([1.0, 0.2]), fidelity=ROWS, noise=0.05)
        study = nr.Study(policy, seed=1)
        for _ in range(25):
            trial = study.ask()
            study.tell(trial, -loss(trial.point[0], 0.6, trial.context_parameters["rows"]))
        rows = [trial.context_parameters["rows"] for trial in study.trials]
        assert (policy.fidelity.rule, policy.algorithm) == ("boca", "boca")
        assert rows[0] == 100
        assert abs(study.best().point[0] - 0.3) < 0.2


def test_a_call_gives_the_setting_to_the_objective(tmp_path, capsys):
    run = {"trials": 16, "fidelity": ROWS, "storage": f"sqlite:///{tmp_path}/a.db", "name": "loss"}
    result = nr.minimize(loss, SPACE, **run)
    assert result.best_trial.context_parameters == {"rows": 100_000}
    assert {trial.context_parameters["rows"] for trial in result.study.trials} > {100, 100_000}
    said = capsys.readouterr().err
    assert f"best so far {result.best_value:.3g}"[:14] in said
    assert nr.minimize(loss, SPACE, progress=False, **run).best_trial == result.best_trial
    with pytest.raises(nr.NoRegretError, match="`fidelity` is"):
        nr.minimize(loss, SPACE, **{**run, "fidelity": nr.Fidelity("rows", 100, 1000)})
    with pytest.raises(nr.NoRegretError, match="and the setting rows"):
        nr.minimize(lambda x, y: x + y, SPACE, trials=5, fidelity=ROWS)
    with pytest.raises(nr.NoRegretError, match="'x' is a parameter of the space and the name of the setting"):
        nr.minimize(lambda x, y: x, SPACE, trials=5, fidelity=nr.Fidelity("x", 1, 9))
    again = nr.run(nr.Study(nr.auto(SPACE, fidelity=ROWS, budget=5), goal="minimize"), loss, trials=5, progress=False)
    assert len(again.study.trials) == 5


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_the_last_trial_of_the_shortest_run_is_at_the_full_setting(trials: int) -> None:
    policy = nr.auto(SPACE, fidelity=ROWS, budget=trials)
    study = played(policy, trials)
    assert study.trials[-1].context_parameters == {"rows": ROWS.high}
    assert study.best().number == trials - 1


def steep(x, y, rows):
    return (x - 0.3) ** 2 + (y - 0.6) ** 2 - 2.0 * (1.0 - rows / 100_000)  # Reduced settings look far better.


@pytest.mark.parametrize("trials", [8, 16])
def test_values_of_reduced_settings_are_neither_the_best_nor_noise(trials: int) -> None:
    policy = nr.auto(SPACE, fidelity=ROWS, budget=16 if trials == 16 else None)
    result = nr.run(nr.Study(policy, goal="minimize"), steep, trials=trials, progress=False)
    points = [trial.point.tobytes() for trial in result.trials]
    assert (len(set(points)) < trials) == (trials == 16)  # Some points were played at two settings, or none was.
    full = [trial for trial in result.trials if trial.context_parameters == {"rows": 100_000}]
    assert result.best_trial == min(full, key=lambda trial: trial.reward)
    assert "noisy" not in repr(result)


def test_the_propensity_of_an_arm_is_that_at_the_full_setting() -> None:
    study = nr.Study(nr.auto(SPACE.grid(5), fidelity=ROWS, budget=16), goal="minimize", propensities=True)
    for _ in range(16):
        trial = study.ask()
        study.tell(trial, loss(**trial.parameters, **trial.context_parameters))
    assert [trial.propensity for trial in study.trials] == [1.0] * 16
