"""The recipes of docs/deployment.md, tried: restarts of the database, a pooler, a proxy, two machines, copies, a unit.

    apt-get install nginx-light pgbouncer
    python benchmarks/deployment.py --restarts 4 --kills 4 --copies 5 --seconds 2.0 --clients 4
    python benchmarks/deployment.py --restarts 6 --kills 20 --copies 10 --seconds 3

What is not installed here is left out, and said to be. All of it listens at 127.0.0.1 alone.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import bench

HOME = Path(__file__).parents[1]

from benchmarks.deployment_parts import databases, machines, proxies
from tests.postgres import Server


def tried(given, page, folder):
    """What is wrong; each part says what it has found."""
    more = {"seconds": given.seconds, "clients": given.clients}
    with Server() as postgres:
        facts, slowest, wrong = databases.restarts(postgres, count=given.restarts, **more)
        print(f"{given.restarts} restarts of PostgreSQL, {said(facts)}: ready {slowest:.1f} s after it at most")
        yield from wrong
        for mode, connections in (("transaction", 4), ("session", 32)):
            if there("pgbouncer"):
                place = folder / mode
                place.mkdir(mode=0o755)
                folder.chmod(0o755)
                facts, wrong = databases.pooled(postgres, place, mode=mode, connections=connections, **more)
                print(f"PgBouncer by {mode}, {connections} connections for two processes: {said(facts)}")
                yield from wrong
        if there("nginx"):
            place = folder / "machines"
            place.mkdir()
            more_of = {"count": given.kills, "seconds": given.seconds, "clients": 1}
            facts, slowest, wrong = machines.killed(page, postgres.url(), place, **more_of)
            print(
                f"{given.kills} kills of either of two processes, {said(facts)}: all answered {slowest:.1f} s after it"
            )
            yield from wrong
    facts, sizes, wrong = databases.copies(folder, count=given.copies, **more)
    print(f"{len(sizes)} copies of an SQLite file in use, of {min(sizes)} to {max(sizes)} trials, {said(facts)}")
    yield from wrong
    if there("nginx"):
        site = folder / "site"
        site.mkdir()
        with proxies.Site(page, site) as running:
            results = list(proxies.checks(running))
        print(f"nginx: {len(results)} checks")
        yield from (f"nginx, {what}: {came} and not {due}" for what, came, due in results if came != due)
    if there("systemd-analyze"):
        exposure, wrong = databases.unit(page, folder)
        print(f"systemd: the unit is exposed to {exposure} of 10")
        yield from wrong


def there(program):
    """Whether it is installed; says so where it is not."""
    found = shutil.which(program) is not None
    if not found:
        print(f"{program} is not installed: left out.")
    return found


def said(facts):
    """As a line has it."""
    return ", ".join(f"{count} {what}" for what, count in facts.items())


@bench.command(__doc__)
def main(given):
    page = (HOME / "docs" / "deployment.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(tried(given, page, Path(folder)))
    for each in wrong:
        print(f"WRONG: {each}")
    print(f"{len(wrong)} wrong in all")
    sys.exit(bool(wrong))
