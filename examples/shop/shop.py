"""A small web shop whose prices are decisions of the service: one page, one article, one price for each visitor.

It knows who comes (a context), asks the service what to offer, tells it the discount at once (that is the budget) and
the profit when somebody buys. Nobody says no: an offer that is not taken in time counts as no profit, which is the
study's waiting rule and nothing that the shop does.
"""

import html
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from world import BUDGET, DISCOUNTS, HOURS, LOYALTIES, PRICES, profit

import nilregret as nr
from nilregret.client import AsyncClient, AsyncRemoteStudy, Client
from nilregret.slots.envelope import ConstantWidth

STUDY = "offers"
VISITORS = nr.Space(hour=nr.Float(HOURS[0], HOURS[-1]), loyalty=nr.Float(0, 1)).grid(
    {"hour": len(HOURS), "loyalty": len(LOYALTIES)}
)
OFFERS = nr.Space(price=nr.Float(PRICES[0], PRICES[-1]), discount=nr.Float(0, DISCOUNTS[-1])).grid(
    {"price": len(PRICES), "discount": len(DISCOUNTS)}
)


def create(url: str, token: str | None, *, expires: float) -> None:
    """The study: prices and discounts by visitor, late answers, a budget on average, a world that may switch."""
    policy = nr.gp_ucb(
        OFFERS,
        nr.SquaredExponential([0.6, 0.8, 0.35, 0.5], scale=3.0**2),  # of hour, loyalty, price and discount
        noise=5.0,
        prior_mean=6.0,
        width=ConstantWidth(value=1.0),
        context=VISITORS,
        pending="hallucinate",
        memory=nr.slots.EDetector(delta=0.01),
        constraints=nr.OnAverage(
            step=0.01, kernel=nr.SquaredExponential([9.0, 9.0, 9.0, 1.0], scale=9.0), noise=0.0, confidence=1.0
        ),
    )
    with Client(url, token=token) as client:
        client.create(STUDY, policy, deadline=expires, on_deadline="reward", default_reward=0.0)


def app(url: str, token: str | None) -> Starlette:
    """The shop, on the service at this address."""
    client = AsyncClient(url, token=token)
    offered: dict[str, dict[str, Any]] = {}  # what was offered and may still be bought
    sales: list[str] = []
    found: list[AsyncRemoteStudy] = []

    async def opened() -> AsyncRemoteStudy:
        if not found:
            found.append(await client.study(STUDY))
        return found[0]

    async def offer(who: dict[str, float]) -> dict[str, Any]:
        study = await opened()
        decision = await study.ask(who)
        await study.tell(decision, constraints=[decision.parameters["discount"] - BUDGET])
        offered[decision.id] = {"id": decision.id, **decision.parameters}
        return offered[decision.id]

    async def bought(id_: str) -> bool:
        taken = offered.pop(id_, None)
        if taken is None:
            return False
        study = await opened()
        answer = await study.tell(id_, profit(taken["price"], taken["discount"]))
        sales.append(f"{taken['price'] - taken['discount']:.2f}" + ("" if answer.counted else " (too late to count)"))
        return True

    async def make_offer(request: Request) -> Response:
        who = await request.json()
        return JSONResponse(await offer({"hour": float(who["hour"]), "loyalty": float(who["loyalty"])}))

    async def buy(request: Request) -> Response:
        done = await bought(request.path_params["id"])
        if request.headers.get("accept", "").startswith("text/html"):
            return RedirectResponse("/", status_code=303)
        return JSONResponse({"bought": done}, 200 if done else 410)

    async def page(request: Request) -> Response:
        asked = request.query_params
        who = {
            "hour": min(HOURS, key=lambda hour: abs(hour - _number(asked.get("hour"), 12.0))),
            "loyalty": min(LOYALTIES, key=lambda loyalty: abs(loyalty - _number(asked.get("loyalty"), 0.5))),
        }
        return HTMLResponse(_page(who, await offer(who), sales))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/offers", make_offer, methods=["POST"]),
            Route("/offers/{id}/buy", buy, methods=["POST"]),
        ]
    )


def _number(text: str | None, otherwise: float) -> float:
    try:
        return float(text or "")
    except ValueError:
        return otherwise


def _choice(name: str, values: tuple[float, ...], chosen: float, words: tuple[str, ...]) -> str:
    options = "".join(
        f'<option value="{value:g}"{" selected" if value == chosen else ""}>{word}</option>'
        for value, word in zip(values, words, strict=True)
    )
    return f'<select name="{name}" onchange="this.form.submit()">{options}</select>'


def _page(who: dict[str, float], offer: dict[str, Any], sales: list[str]) -> str:
    price, discount = offer["price"], offer["discount"]
    was = f"<s>{price:.2f}</s> " if discount else ""
    last = "".join(f"<li>{html.escape(sale)}</li>" for sale in reversed(sales[-8:])) or "<li>nothing yet</li>"
    hours = _choice("hour", HOURS, who["hour"], ("in the morning", "at noon", "in the afternoon", "in the evening"))
    often = _choice("loyalty", LOYALTIES, who["loyalty"], ("for the first time", "now and then", "every week"))
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The Teapot Shop</title><link rel="icon" href="data:,">
<style>
body {{ font: 1.1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 3rem auto; padding: 0 1rem }}
body {{ color: #1b1b2f; background: #faf8f4 }}
article {{ background: #fff; border-radius: 1rem; padding: 1.5rem 2rem; box-shadow: 0 .2rem 1rem #0001 }}
.price {{ font-size: 2.2rem; font-weight: 700; color: #00798c }}
s {{ color: #6b6b7b; font-weight: 400; font-size: 1.4rem }}
button {{ font: inherit; color: #fff; background: #00798c; border: 0; border-radius: .6rem; padding: .6rem 1.6rem }}
form {{ margin: 1rem 0 }} select {{ font: inherit }} li {{ color: #555 }}
</style>
<h1>The Teapot Shop</h1>
<form>You come {hours}, {often}.</form>
<article>
<h2>A stoneware teapot</h2>
<p class="price">{was}{price - discount:.2f}</p>
<form method="post" action="/offers/{html.escape(offer["id"])}/buy"><button>Buy it</button></form>
</article>
<h3>Sold lately</h3><ul>{last}</ul>
</html>"""
