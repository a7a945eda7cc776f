"""A live web shop, the service that sets its prices, its customers and the dashboard: all at once.

    python examples/shop

Open the two addresses that it prints: the shop, where you may be a customer yourself, and the dashboard, where you see
what is learned. Customers come by themselves, many a second; some buy, most of them some time later, and most never
do. Half-way through, a competitor opens, and nobody says so. The discounts given may be 2 on average. Ctrl-C ends it;
the record stays in shop.db, and the same command goes on with it.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import shop
import uvicorn
from world import BUDGET, chance, profit, visitor


def free_port():
    """One that nobody uses just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def served(storage, port):
    """The service, as anybody would start it; its address once it is ready."""
    command = [sys.executable, "-m", "nilregret", "serve", "--storage", storage, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        if process.poll() is not None:
            sys.exit("The service did not start; what it said is above.")
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{url}/readyz", timeout=5):
            return process, url
        time.sleep(0.05)
    sys.exit("The service did not become ready.")


def post(url, body, *, patience=30.0):
    """What a customer's browser does; None where the offer is gone, or none comes in time."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=patience) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
    except OSError:  # nobody listens, or the answer takes too long
        pass
    return None


class Customers:
    """They come, think, and buy or do not."""

    def __init__(self, address, options):
        self.address, self.options = address, options
        self.luck = random.Random(options.seed)
        self.profits, self.discounts, self.bought, self.gone = [], [], 0, 0

    async def one(self, number):
        """From coming to buying, or not."""
        who, mood, wait = visitor(self.luck), self.luck.random(), self.luck.expovariate(1.0 / self.options.thinks)
        competitor = number >= self.options.visitors // 2
        offer = await asyncio.to_thread(post, f"{self.address}/offers", who)
        if offer is None:
            self.gone += 1
            return
        likely = chance(who, offer["price"], offer["discount"], competitor=competitor)
        self.profits.append(likely * profit(offer["price"], offer["discount"]))
        self.discounts.append(offer["discount"])
        if mood < likely:
            await asyncio.sleep(wait)
            if await asyncio.to_thread(post, f"{self.address}/offers/{offer['id']}/buy", {}):
                self.bought += 1

    async def all(self):
        """All of them, at their pace; a line now and then."""
        tasks, said = set(), time.monotonic()
        for number in range(self.options.visitors):
            tasks.add(asyncio.create_task(self.one(number)))
            await asyncio.sleep(self.options.pace)
            while len(tasks) > 500:  # a slow machine: customers queue at the door
                _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if number == self.options.visitors // 2:
                print("A competitor opens, and nobody says so.", flush=True)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                self.say(f"{number + 1:6d} visitors")
        await asyncio.gather(*tasks)

    def say(self, who):
        """How it goes."""
        latest = self.profits[-200:]
        mean = sum(self.discounts) / max(len(self.discounts), 1)
        print(
            f"{who}: expected profit of the last {len(latest)} {sum(latest) / max(len(latest), 1):.2f} each, "
            f"{self.bought} sold, discounts {mean:.2f} on average (budget {BUDGET:g})"
            + (f", {self.gone} left without an offer" if self.gone else ""), flush=True,
        )  # fmt: skip


async def live(url, options):
    """The shop and its customers."""
    address = f"http://127.0.0.1:{options.shop_port}"
    server = uvicorn.Server(uvicorn.Config(shop.app(url, options.token), port=options.shop_port, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    print(f"The shop:      {address}\nThe dashboard: {url}/\nCtrl-C ends both.", flush=True)
    customers = Customers(address, options)
    try:
        await customers.all()
        customers.say(f"All {options.visitors} visitors")
        if options.stay:
            await serving
    finally:
        server.should_exit = True
        await serving


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=4000, help="how many customers come by themselves")
    parser.add_argument("--pace", type=float, default=0.1, help="seconds between two of them")
    parser.add_argument("--expires", type=float, default=4.0, help="seconds for which an offer stands")
    parser.add_argument(
        "--thinks", type=float, default=1.0, help="seconds, on average, until those who buy have bought"
    )
    parser.add_argument("--storage", default=f"sqlite:///{Path(__file__).parent / 'shop.db'}", help="of the record")
    parser.add_argument("--port", type=int, default=None, help="of the service; a free one unless given")
    parser.add_argument("--shop-port", type=int, default=None, help="likewise of the shop")
    parser.add_argument("--seed", type=int, default=0, help="of the customers")
    parser.add_argument("--leave", dest="stay", action="store_false", help="end after the last customer")
    options = parser.parse_args()
    options.shop_port = options.shop_port or free_port()
    options.token = os.environ.get("NILREGRET_TOKEN")
    process, url = served(options.storage, options.port or free_port())
    try:
        shop.create(url, options.token, expires=options.expires)
        asyncio.run(live(url, options))
    except KeyboardInterrupt:
        print("Closed.")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:  # what it is busy with is on nobody's screen any more
            process.kill()


if __name__ == "__main__":
    main()
