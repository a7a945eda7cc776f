"""Who comes, and what they pay: reality, in your case. The service knows nothing of it."""

import random

PRICES, DISCOUNTS = (10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0), (0.0, 1.5, 3.0, 4.5, 6.0)
HOURS, LOYALTIES = (8.0, 12.0, 16.0, 20.0), (0.0, 0.5, 1.0)
COST, BUDGET = 6.0, 2.0  # of an article; of discounts, for an average visitor


def visitor(luck: random.Random) -> dict[str, float]:
    """Somebody comes: at what hour, and how often before, from 0 to 1."""
    return {"hour": luck.choice(HOURS), "loyalty": luck.choice(LOYALTIES)}


def chance(who: dict[str, float], price: float, discount: float, *, competitor: bool) -> float:
    """The probability that they buy."""
    evening, loyal = (who["hour"] - 8) / 12, who["loyalty"]
    worth = 14.0 + 5.0 * evening + 2.0 * loyal
    charm = 0.5 + 1.8 * (1.0 - loyal)  # new customers like a discount more than a low price
    if competitor:  # opens in the evening, and is cheap
        worth, charm = 16.0 - 5.0 * evening + 1.0 * loyal, 0.5 + 1.8 * loyal
    return 1.0 / (1.0 + 2.718281828 ** (-(worth - price + charm * discount) / 1.5))


def profit(price: float, discount: float) -> float:
    """What a sale leaves."""
    return price - discount - COST
