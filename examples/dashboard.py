"""Four studies to look at in a browser, and what the dashboard shows of them.

    python examples/dashboard.py
    nilregret serve --storage sqlite:///dashboard.db

A shop tries prices for new and returning customers, who buy late or never, until a competitor opens in the middle; an
oven is set to waste as little as possible, and its fuse blows where it is too hot; a router spends a budget of
electricity; a model has to be both good and fast. Their stories are told in seconds. With `--pictures FOLDER` the pages
are saved as pictures, which takes playwright and Chromium (`apt-get install chromium`).
"""

import argparse
import math
import shutil
import time
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret.slots.envelope import ConstantWidth
from nilregret.testing.serving import in_a_process

MINUTES = 60.0
SHOTS = {  # picture: address, part of the page (or nothing for what is on the screen), width, height, light or dark
    "dashboard-studies": ("/studies", "", 900, 580, "light"),
    "dashboard-explore": ("/studies/oven/explore", "", 1000, 1300, "light"),
    "dashboard-trials": ("/studies/oven/trials", "", 1000, 640, "light"),
    "dashboard-worth": ("/studies/shop/worth", "#worth", 1000, 800, "light"),
    "dashboard-beliefs": ("/studies/oven/explore", "#beliefs", 1000, 800, "light"),
    "dashboard-changes": ("/studies/shop/health", "#changes", 1000, 800, "light"),
    "dashboard-budget": ("/studies/router/health", "#budgets", 1000, 800, "light"),
    "dashboard-compare": ("/compare?study=shop&study=router", "", 1000, 800, "light"),
    "dashboard-act": ("/studies/oven/actions/add", "", 1000, 700, "light"),
    "dashboard-front": ("/studies/model?w-0=2&w-1=1", "#front", 1000, 800, "light"),
    "dashboard-why": ("/studies/router/trials/40", "", 1000, 800, "light"),
    "dashboard-dark": ("/studies/shop", "", 1000, 880, "dark"),
    "dashboard-phone": ("/studies/shop", "", 375, 760, "light"),
}


class Clock:
    """Time that passes as the story tells it, and ends now."""

    def __init__(self, minutes):
        self.now = time.time() - minutes * MINUTES

    def __call__(self):
        """Unix seconds."""
        return self.now


def shop(url, days, rng):
    """Prices for two kinds of customers; answers come late, and demand moves after half of the time."""
    prices = nr.Space(price=nr.Float(8, 32)).grid(25)
    visitors = nr.Space(customer=nr.Choice("new", "returning"))
    policy = nr.gp_ucb(
        prices, nr.SquaredExponential([0.5, 0.5, 0.25], scale=9.0), noise=2.0, prior_mean=5.0, context=visitors,
        memory="adaptive", width=ConstantWidth(value=1.5),
    )  # fmt: skip
    visits = 12 * days
    clock = Clock(visits * 30.0 + 60.0)
    study = nr.Study(policy, storage=url, name="shop", clock=clock, about={"currency": "euros a visit"})
    study.quiet = True
    waiting = []
    for visit in range(visits):
        customer = "returning" if rng.random() < 0.4 else "new"
        trial = study.ask({"customer": customer})
        best = {"new": 14.0, "returning": 22.0}[customer] - 7.0 * (visit > visits / 2)
        profit = 8.0 - 0.05 * (trial.parameters["price"] - best) ** 2 + rng.normal(0.0, 2.0)
        waiting.append((clock.now + MINUTES * rng.exponential(70.0), trial, profit))
        clock.now += 30.0 * MINUTES
        due = [each for each in waiting if each[0] <= clock.now]
        waiting = [each for each in waiting if each[0] > clock.now]
        study.tell_many([(trial, profit) for _, trial, profit in sorted(due, key=lambda each: each[0])])


def oven(url, days, rng):
    """Losses over numbers, whole numbers, a choice and what hangs on it; some trials fail."""
    space = nr.Space(
        heat=nr.Float(120, 250), minutes=nr.Int(10, 90), fan=nr.Choice("off", "low", "high"),
        humidity=nr.when("fan", ["low", "high"], nr.Float(0, 1)),
    )  # fmt: skip
    clock = Clock(2 * days * 90.0)
    study = nr.Study(nr.auto(space), goal="minimize", storage=url, name="oven", clock=clock)
    study.quiet = True
    for _ in range(2 * days):
        trial = study.ask()
        clock.now += 90.0 * MINUTES
        p = trial.parameters
        if p["heat"] > 230.0:
            study.fail(trial, "the fuse blew")
            continue
        dry = 0.4 * (p.get("humidity", 1.0) - 0.6) ** 2
        waste = (
            ((p["heat"] - 190.0) / 50.0) ** 2 + ((p["minutes"] - 42.0) / 25.0) ** 2 + (p["fan"] == "off") * 0.5 + dry
        )
        study.tell(trial, waste + rng.normal(0.0, 0.05))


def router(url, days, rng):
    """Throughput under a budget of electricity that is kept on average."""
    policy = nr.gp_ucb(
        nr.Arms.grid(0, 10, 41), nr.SquaredExponential(2.0, scale=2.0), noise=0.2, constraints=nr.OnAverage(),
        width=ConstantWidth(value=1.5),
    )  # fmt: skip
    clock = Clock(6 * days * 20.0)
    study = nr.Study(policy, storage=url, name="router", clock=clock, about={"budget": "3 kW on average"})
    study.quiet = True
    for _ in range(6 * days):
        trial = study.ask()
        clock.now += 20.0 * MINUTES
        rate = float(trial.point[0])
        used = 0.6 * rate + rng.normal(0.0, 0.1)
        study.tell(trial, math.log1p(rate) + rng.normal(0.0, 0.2), constraints=[used - 3.0])


def model(url, days, rng):
    """Two objectives: the error of a model and the time that it takes, of which a smaller model needs less."""
    space = nr.Space(layers=nr.Int(1, 12), rate=nr.Float(1e-4, 1e-1, log=True))
    clock = Clock(days * 120.0)
    policy = nr.auto(space, objectives=("error", "milliseconds"))
    study = nr.Study(policy, goal="minimize", storage=url, name="model", clock=clock)
    study.quiet = True
    for _ in range(days):
        trial = study.ask()
        clock.now += 120.0 * MINUTES
        layers, rate = trial.parameters["layers"], trial.parameters["rate"]
        error = 0.08 + 0.3 / layers + 0.02 * math.log10(rate / 0.004) ** 2
        study.tell(trial, {"error": error + rng.normal(0.0, 0.004), "milliseconds": 2.0 + 1.5 * layers**1.2})


def photograph(url, folder):
    """Save the pages as pictures of few colours, which are small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with in_a_process("--storage", url) as (_, said), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (address, part, width, height, scheme) in SHOTS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(said["dashboard"].rstrip("/") + address)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(500)
            path = folder / f"{name}.png"
            (page.locator(part) if part else page).screenshot(path=path)
            page.close()
            with Image.open(path) as picture:
                small = picture.convert("RGB").quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            small.save(path, optimize=True)
            print(f"{path}: {path.stat().st_size / 1024:.0f} KB")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, default=Path("dashboard.db"), help="a file that is not there yet")
    parser.add_argument("--days", type=int, default=30, help="that the story lasts")
    parser.add_argument("--pictures", type=Path, help="a folder for pictures of the pages")
    given = parser.parse_args()
    if given.database.exists():
        parser.error(f"{given.database} is there already: give another --database, or remove it")
    address = f"sqlite:///{given.database}"
    for number, story in enumerate((shop, oven, router, model)):
        story(address, given.days, np.random.default_rng([2026, number]))
    print(f"Look at it: nilregret serve --storage {address}")
    if given.pictures is not None:
        photograph(address, given.pictures)
