"""Every page of the dashboard for every kind of study: no error, no dead link, nothing that people cannot read.

In this process and without a browser: every address that a page names is fetched, whether a browser would or not.
"""

import re
import warnings
from urllib.parse import quote, urljoin

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.baselines import admmbo, bandit_oco
from nilregret.testing.driver import Driver

from .composition.fillings import FILLINGS, base, play
from .conformance.test_policies import POLICIES
from .dashboard import KERNEL, PARTS, Clock, Pages
from .test_dashboard_pages import Checker

UNREADABLE = re.compile(r"\b(?:nan|NaN|inf|Infinity|None(?! of)|True|False|null|undefined|np\.\w+|array)\b")
LINKS = re.compile(r'(?:href|src|action|hx-get)="([^"#]*)')
pytestmark = pytest.mark.usefixtures("few_draws")
MOST, FEWER = 60, 24  # addresses of one study that are followed; fewer where there are many studies
ONES = re.compile(r"(?<![\d.,\u2212-])1 (?:trials|answers|studies|plays|arms|constraints|times|questions|contexts)\b")


class Reader(Checker):
    """What a page says to who reads it, and to who hears it."""

    def handle_starttag(self, tag, attributes):
        super().handle_starttag(tag, attributes)
        given = dict(attributes)
        self.text += [given[name] for name in ("aria-label", "title", "value", "placeholder") if given.get(name)]

    def handle_data(self, data):
        if "pre" not in self.open:  # code has words of its own
            super().handle_data(data)


def words(text):
    """A bar between what stands in different elements."""
    return " | ".join(Reader(text).text)


def looked_at(study_of, name="a study", most=MOST):
    """Fetch a study's pages, and all that they name."""
    pages, seen = Pages(), {"/docs": 200}  # the page of the API shows code, and has tests of its own
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", nr.errors.NoRegretWarning
        )  # that a toy's scales are wrong is not what is tested
        study = study_of(pages.storage, name)
    here = f"/studies/{quote(name, safe='')}"
    todo = [here + part for part in PARTS] + ["/studies"]
    trials = study.trials
    todo += [f"{here}/trials/{number}{why}" for number in {0, len(trials) - 1} for why in ("", "/why") if trials]
    while todo and len(seen) < most:
        address = todo.pop(0)
        if address in seen:
            continue
        answer = pages.get(address)
        seen[address] = answer.status
        added = address.endswith("/why") and answer.status == 409  # nobody chose what was added
        assert answer.status in (200, 204, 303) or added, f"{address}: {answer.status} {answer.text}"
        if answer.headers.get("content-type", "").startswith("text/html"):
            said = words(answer.text)
            assert not UNREADABLE.findall(said), f"{address}: {said}"
            assert not ONES.findall(said), f"{address}: {said}"
            assert "NaN" not in answer.text
            todo += [
                urljoin(address, each.replace("&amp;", "&"))
                for each in LINKS.findall(answer.text)
                if each[:1] in "/?" and each
            ]
    assert len(trials) == len(study.trials)
    return seen


@pytest.mark.parametrize("filling", FILLINGS, ids=[filling.name.strip("`") for filling in FILLINGS])
def test_a_study_of_every_part_can_be_looked_at(filling):
    where = filling.name if filling.slot == "domain" else "arms"
    driver = Driver(filling.put(base(where), ""), seed=0, reward=None)

    def made(storage, name):
        driver.study = lambda: nr.Study(driver.policy, seed=0, storage=storage, name=name, clock=lambda: driver._now)
        return play(driver, 8)

    seen = looked_at(made, most=FEWER)
    assert any(address.endswith("/why") for address in seen)


@pytest.mark.parametrize("name", POLICIES)
def test_a_study_of_every_algorithm_can_be_looked_at(name):
    driver = Driver(POLICIES[name](domain=nr.Arms.grid(0, 1, 9)), seed=0, reward=None)

    def made(storage, name):
        driver.study = lambda: nr.Study(driver.policy, seed=0, storage=storage, name=name, clock=lambda: driver._now)
        return play(driver, 8)

    looked_at(made, most=FEWER)


def told(policy, rewards, *, goal="maximize", **more):
    """A study with these rewards."""

    def made(storage, name):
        study = nr.Study(policy, storage=storage, name=name, goal=goal, clock=Clock())
        for i, reward in enumerate(rewards):
            trial = study.ask(**{key: give(i) for key, give in more.items() if key == "context"})
            limits = {"constraints": more["constraints"](i)} if "constraints" in more else {}
            study.tell(trial, [reward] * trial.repeats if trial.repeats > 1 else reward, **limits)
        return study

    return made


ARMS = nr.gp_ucb(nr.Arms.grid(0, 1, 9), KERNEL, noise=0.1)
TWENTY = nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(20)})
MIXED = nr.Space(
    rate=nr.Float(1e-4, 1, log=True), depth=nr.Int(2, 8, step=2), kind=nr.Choice("plain", "gated"),
    share=nr.when("kind", "gated", nr.Float(0, 1)),
)  # fmt: skip
DAYS = nr.Space(load=nr.Float(0, 1), day=nr.Choice("weekday", "weekend"))
MADE = {
    "no trial": told(ARMS, []),
    "one trial": told(ARMS, [0.3]),
    "two trials": told(ARMS, [0.3, 0.4]),
    "a constant reward": told(ARMS, [0.0] * 6),
    "huge rewards": told(ARMS, [1e99, -1e99, 3e98]),
    "huge losses": told(ARMS, [1e99, -1e99, 3e98], goal="minimize"),
    "tiny rewards": told(ARMS, [1e-300, -1e-300, 5e-324]),
    "one arm": told(nr.gp_ucb(nr.Arms([[0.5]]), KERNEL, noise=0.1), [0.1, 0.2]),
    "two arms": told(nr.gp_ucb(nr.Arms([[0.1], [0.5]]), KERNEL, noise=0.1), [0.1, 0.2, 0.3]),
    "one dimension": told(nr.gp_ucb(nr.Box(0, 1), KERNEL, noise=0.1), [0.1, 0.2, 0.3]),
    "two dimensions": told(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1), [0.1, 0.2, 0.3], goal="minimize"),
    "twenty dimensions": told(nr.auto(TWENTY), [0.1, 0.2, 0.3]),
    "mixed parameters": told(nr.auto(MIXED), [0.1, 0.2, 0.3, 0.4]),
    "mixed losses": told(nr.auto(MIXED), [0.1, 0.2, 0.3, 0.4], goal="minimize"),
    "contexts": told(
        nr.gp_ucb(nr.Arms.grid(0, 1, 5), KERNEL, noise=0.1, context=DAYS), [0.1, 0.2, 0.3],
        context=lambda i: {"load": i / 3, "day": "weekend"},
    ),
    "contexts and constraints": told(
        nr.gp_ucb(nr.Arms.grid(0, 1, 5), KERNEL, noise=0.1, context=DAYS, constraints=nr.OnAverage(count=2)),
        [0.1, 0.2, 0.3], goal="minimize",
        context=lambda i: {"load": i / 3, "day": "weekend"}, constraints=lambda i: [0.2, i - 1.0],
    ),
    "no point within the constraints": told(
        nr.gp_ucb(nr.Arms.grid(0, 1, 3), KERNEL, noise=0.1, constraints=nr.EveryRound()), [0.1] * 8,
        constraints=lambda i: [50.0],
    ),
    "huge constraint values": told(
        nr.gp_ucb_noisy_constraints(
            nr.Arms.grid(0, 1, 5), KERNEL, noise=0.1, norm_bound=1.0, epoch=2, epochs=5, constraints=3
        ), [0.1] * 8, constraints=lambda i: [1e90, 0.0, -1e90],
    ),
    "few decisions": told(ARMS.using(switching=nr.slots.Lazy(factor=2.0)), [0.1 * i for i in range(12)]),
    "few decisions on losses": told(ARMS.using(switching="lazy"), [0.1 * i for i in range(9)], goal="minimize"),
    "a script": told(
        bandit_oco(nr.Box([0, 0], [1, 1]), step=0.1, constraints=2), [0.1] * 7, constraints=lambda i: [0.1, -0.2]
    ),
    "a script with multipliers of its own": told(admmbo(nr.Box(0, 1)), [0.1] * 4, constraints=lambda i: [0.1]),
}  # fmt: skip


@pytest.mark.parametrize("kind", MADE)
def test_a_study_of_any_size_and_shape_can_be_looked_at(kind):
    looked_at(MADE[kind], kind)


def mixed_up(storage, name):
    """Pending, failed, given up, late, corrected, added."""
    study = nr.Study(ARMS, storage=storage, name=name, clock=Clock())
    trials = study.ask(count=7)
    study.tell(trials[0], 0.1)
    study.tell(trials[0], 0.2, revise=True)
    study.fail(trials[1], "no power")
    study.abandon(trials[2])
    study.abandon(trials[3])
    study.tell(trials[3], 0.4)
    study.tell(trials[6], 0.4)
    study.add([0.5], 0.3)
    study.ask(lease=60.0)
    return study


def all_waiting(storage, name):
    study = nr.Study(ARMS, storage=storage, name=name, clock=Clock())
    study.ask(count=3)
    return study


def one_failed(storage, name):
    study = nr.Study(ARMS, storage=storage, name=name, clock=Clock())
    study.fail(study.ask(), "no power")
    return study


def added_alone(storage, name):
    study = nr.Study(ARMS, storage=storage, name=name, clock=Clock())
    study.add([0.5], 0.3)
    return study


@pytest.mark.parametrize("made", [mixed_up, all_waiting, one_failed, added_alone])
@pytest.mark.parametrize(
    "name", [".", "..", "~~2e2e", "a\\b", "%2e%2e", "a?b#c&d", "\u00fc \U0001f680", "a:b@c", "team/model-a", "x" * 158]
)
def test_a_study_of_any_name_can_be_reached(made, name):
    pages = Pages()
    made(pages.storage, name)
    text = pages.get("/studies").text
    (address,) = {each for each in LINKS.findall(text) if re.fullmatch(r"/studies/[^/]+", each)}
    assert pages.get(address).status == 200
    assert f"<h1><bdi>{name.replace('&', '&amp;')}</bdi></h1>" in pages.get(address).text
    # What browsers and proxies make of an address: steps within it are taken, a backslash is a slash.
    assert urljoin("http://host" + address, address.replace("\\", "/")) == "http://host" + address
    segment = address.removeprefix("/studies/")
    assert segment.lower().replace("%2e", ".") not in (".", "..")
    for link in LINKS.findall(pages.get(address).text):
        if link.startswith("/studies/"):
            assert pages.get(link.replace("&amp;", "&")).status in (200, 204), link


@pytest.mark.parametrize("made", [mixed_up, all_waiting, one_failed, added_alone])
def test_a_study_in_any_state_can_be_looked_at(made):
    looked_at(made)


@pytest.mark.parametrize(("trials", "said"), [(1, "1 trial |"), (2, "2 trials |")])
def test_a_line_of_the_list_counts_in_english(trials, said):
    """On a phone there are no heads of columns, and the words stand in the line."""
    pages = Pages()
    told(ARMS, [0.1] * trials)(pages.storage, "a")
    assert said in words(pages.get("/studies").text).replace(" |  ", " ")


def test_the_weight_of_a_run_is_its_plays():
    """Of 2 plays of 0 and 8 plays of 1 the mean is 0.8, which is not that of the two runs."""
    policy = ARMS.using(switching=nr.slots.Lazy(factor=3.0))
    pages, study = Pages(), None
    study = nr.Study(policy, storage=pages.storage, name="runs", clock=Clock())
    while max((trial.repeats for trial in study.trials), default=1) < 4:
        trial = study.ask()
        study.tell(trial, np.full(trial.repeats, 1.0 * trial.number))
    plays = sum(trial.times for trial in study.trials)
    mean = sum(trial.times * trial.reward for trial in study.trials) / plays
    assert mean != np.mean([trial.reward for trial in study.trials])
    said = words(pages.get("/studies/runs/part/progress").text)
    assert f"of {plays} plays in all; each play counts once" in said
    last = study.trials[-1]
    assert f"(mean of {last.times} plays)" in words(pages.get(f"/studies/runs/trials/{last.number}").text)
    assert f"({plays} plays)" in words(pages.get("/studies/runs/part/standing").text)
