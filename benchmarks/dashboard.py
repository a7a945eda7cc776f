"""How soon the pages of the dashboard are there in a real browser, and what they weigh.

    python benchmarks/dashboard.py

A study of many trials in an SQLite file, `nilregret serve` in a process of its own, and Chromium without a window. The
server opens a study when it is first asked for; then the page is loaded afresh several times. Given are the time from
the request to the frame in which the first picture is drawn (median and longest), to that in which every part of the
page is there, and the processor time for all of it: on a busy machine the others are longer. The page of an empty
study is what any page takes. The list of 1,000 studies, each tab and the grid come after that. Where there is no
browser, the server's part alone is measured.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret.serve.dashboard.files import bytes_of_scripts
from nilregret.storage import SqlStorage
from nilregret.testing.serving import in_a_process

AT_ONCE = 5000  # trials of one transaction while the study is made
TABS = ("", "explore", "trials", "worth", "health", "settings")
FIRST = "performance.getEntriesByName('nilregret-first-picture').map(each => each.startTime)[0]"
ALL_THERE = """() => !document.body.innerText.includes('looking ...') && !document.querySelector('.htmx-request')
  && [...document.querySelectorAll('[data-scene]')].every(each => each.hasAttribute('data-drawn'))"""


def make(url, name, count):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
    study, rng = nr.Study(policy, storage=url, name=name), np.random.default_rng(0)
    study.quiet = True
    for start in range(0, count, AT_ONCE):
        trials = study.ask(count=min(AT_ONCE, count - start))
        told = np.sin(6.0 * np.array([trial.point[0] for trial in trials])) + rng.normal(0.0, 0.1, len(trials))
        study.tell_many(list(zip(trials, told.tolist(), strict=True)))
    study.close()


def processors(server):
    """Seconds of processor that the server has used so far, and the browser, which is all else that this has begun."""
    used, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            used[number], parents[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK"), int(fields[1])
    mine = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in mine} - mine:
        mine |= more
    theirs = mine - {os.getpid(), server.pid}
    return np.array([used[server.pid], sum(used[number] for number in theirs)])


def make_list(url, count):
    """Studies of which each twentieth has 60 answers."""
    storage = SqlStorage(url)
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1).to_json()
    for i in range(count):
        storage.find_or_make(f"study {i}", policy=policy, goal="maximize", seed=0, about="{}")
    storage.close()
    for i in range(0, count, 20):
        with nr.Study.open(storage=url, name=f"study {i}") as study:
            study.quiet = True
            study.tell_many([(trial, 0.5) for trial in study.ask(count=60)])


def measure_live(browser, base, url, count, repeats):
    """Prints the seconds from a tell in another process until the page of a study shows it."""
    page, found = browser.new_page(), []
    page.goto(f"{base}/studies/of-{count}")
    with nr.Study.open(storage=url, name=f"of-{count}") as study:
        study.quiet = True
        for i in range(repeats):
            page.wait_for_timeout(1000)
            study.tell(study.ask(), 0.5)
            begin, wanted = time.perf_counter(), f"{count + i + 1:,}"
            while wanted not in page.inner_text("main"):
                page.wait_for_timeout(10)
            found.append(time.perf_counter() - begin)
    page.close()
    print(f"live: a tell is shown after {statistics.median(found):.2f} s (longest {max(found):.2f})")


def measure_parts(base, count):
    """Seconds until the server has answered, the least of five: of the list, of each tab and of the grid."""
    here = f"{base}/studies/of-{count}"
    grid = f"{here}/part/grid?"
    pages = {"list of 1,000 more studies": f"{base}/studies", "searched": f"{base}/studies?q=study+9&sort=-trials"}
    pages |= {f"tab {tab or 'overview'}": f"{here}/{tab}".rstrip("/") for tab in TABS}
    pages |= {
        "grid, last page": f"{grid}page={count // 50}", "grid, sorted": f"{grid}sort=reward&descending=1",
        "grid, filtered": f"{grid}from.reward=0.5&to.reward=0.6&sort=asked_at",
        "parallel axes": f"{here}/part/parallel",
    }  # fmt: skip
    for name, address in pages.items():
        first, _ = fetch(address)
        print(f"  {name}: {first:.3f} s, then {min(fetch(address)[0] for _ in range(5)):.3f} s")


def fetch(address):
    """Seconds and bytes."""
    begin = time.perf_counter()
    with urllib.request.urlopen(address) as answer:
        body = answer.read()
    return time.perf_counter() - begin, len(body)


def load(browser, address):
    """Seconds to the first picture (None where there is none) and to all, and what went wrong."""
    page, wrong, base = browser.new_page(viewport={"width": 1200, "height": 900}), [], address.split("/studies")[0]
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(base) else wrong.append(asked.url))
    page.goto(address)
    while not page.evaluate(ALL_THERE):
        page.wait_for_timeout(20)
    whole, first = page.evaluate("performance.now()"), page.evaluate(FIRST)
    drawn = page.locator("[data-drawn]").count()
    page.close()
    return (first / 1e3 if drawn else None), whole / 1e3, wrong


def measure(name, address, process, browser, repeats):
    opening, _ = fetch(address)
    alone, weight = fetch(address)
    print(f"{name}: opened in {opening:.2f} s, then the page in {alone:.3f} s, {weight / 1024:.0f} KB")
    if browser is None:
        return None
    before, found = processors(process), [load(browser, address) for _ in range(repeats)]
    served, drew = (processors(process) - before) / repeats
    firsts = [first for first, _, _ in found if first is not None]
    wholes, wrong = [whole for _, whole, _ in found], [text for _, _, texts in found for text in texts]
    shown = f"first picture {statistics.median(firsts):.2f} s (longest {max(firsts):.2f}), " if firsts else ""
    print(f"  {shown}everything {statistics.median(wholes):.2f} s; {len(wrong)} errors and foreign requests", *wrong)
    print(f"  processor time of the server {served:.2f} s, of the browser {drew:.2f} s")
    return statistics.median(firsts or wholes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print(f"scripts of a page: {bytes_of_scripts() / 1024:.0f} KB in all")
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        url = f"sqlite:///{folder}/studies.db"
        for count in (0, *given.trials):
            make(url, f"of-{count}", count)
        make_list(url, 1000)
        process, said = stack.enter_context(in_a_process("--storage", url))
        base = said["dashboard"].rstrip("/")
        browser = None
        if executable is None:
            print("No browser was found (on Debian and Ubuntu `apt-get install chromium`): the server's part alone.")
        else:
            from playwright.sync_api import sync_playwright

            playwright = stack.enter_context(sync_playwright())
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        nothing = measure("no trial", f"{base}/studies/of-0", process, browser, given.repeats)
        for count in given.trials:
            took = measure(f"{count:,} trials", f"{base}/studies/of-{count}", process, browser, given.repeats)
            if took is not None and nothing:
                print(f"  {took / nothing:.1f} times the page of an empty study")
        measure_parts(base, max(given.trials))
        if browser is not None:
            measure_live(browser, base, url, max(given.trials), given.repeats)
            measure("list of 1,000 studies", f"{base}/studies", process, browser, given.repeats)
            for tab in TABS[1:]:
                measure(f"tab {tab}", f"{base}/studies/of-{max(given.trials)}/{tab}", process, browser, given.repeats)
            browser.close()


if __name__ == "__main__":
    main()
