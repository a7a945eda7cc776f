"""Examples of what is sent, one for each thing that can be said; each is sent by the tests, and answered.

They are in the OpenAPI, in the reference for people, and what programs that try the service begin with.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._utils.serialize import to_plain
from ..algorithms.srinivas import gp_ucb
from ..domains.domain import Arms
from ..kernels import Matern

PRICE: dict[str, Any] = {"price": {"type": "float", "low": 1, "high": 9}}
ID = "3q2-7_8B0LrWyJd2tKq0dQ1Yb0Zf5u8A"  # looks like one of a decision


class Example(NamedTuple):
    """A body that may be sent.

    Attributes:
        name: of the example, unique within the operation.
        summary: what it says.
        body: plain values.
        study: the example of a study that it is about; of studies themselves their name.
    """

    name: str
    summary: str
    body: dict[str, Any]
    study: str


def study(name: str, summary: str, **body: Any) -> Example:
    """One of a study."""
    return Example(name, summary, body, name)


@cache
def examples() -> dict[str, tuple[Example, ...]]:
    """By the name of the operation."""
    policy = gp_ucb(Arms(np.array([[0.0], [0.5], [1.0]])), Matern(2.5, lengthscale=0.2), noise=0.1)
    return {
        "putStudy": (
            study("prices", "A price, found by `auto`; who does not buy within an hour will not.", space=PRICE,
                  deadline=3600, on_deadline="reward", default_reward=0),
            study("clicks", "Which of three banners: rewards are clicks.", arms=[[0.0], [0.5], [1.0]],
                  policy={"algorithm": "auto", "reward": "bernoulli"}),
            study("contexts", "A price by the hour, on a grid, by an algorithm of one's own choice.", space=PRICE,
                  grid=17, context={"hour": {"type": "float", "low": 0, "high": 24}},
                  policy={"algorithm": "gp_ucb", "kernel": {"type": "for_parameters"}, "noise": 0.2,
                          "memory": "adaptive"}),
            study("oven", "A loss, under one limit; a parameter that counts for one way only.",
                  space={"heat": {"type": "int", "low": 120, "high": 250, "step": 10},
                         "fan": {"type": "choice", "options": ["off", "on"]},
                         "speed": {"type": "float", "low": 0, "high": 1, "when": {"fan": "on"}}},
                  constraints=1, goal="minimize", about={"units": "EUR"}),
            study("budget", "A price and a discount, of which so much may be given on average.",
                  space={**PRICE, "discount": {"type": "float", "low": 0, "high": 2}}, grid=9, constraints=1,
                  policy={"algorithm": "gp_ucb", "kernel": {"type": "for_parameters"}, "noise": 0.2,
                          "constraints": {"type": "on_average", "step": 0.05}}),
            study("runs", "Choices that are played many times before the next one.", arms=[[0.0], [0.5], [1.0]],
                  policy={"algorithm": "gp_ucb", "kernel": {"type": "matern", "nu": 2.5, "lengthscale": 0.3},
                          "noise": 0.1, "switching": "lazy"}),
            study("whole", "A whole policy, as Python writes it.", policy=to_plain(policy), seed=7),
        ),
        "ask": (
            Example("one", "One decision.", {}, "prices"),
            Example("context", "Where something is known before.", {"context": {"hour": 9.5}}, "contexts"),
            Example("several", "Three at once, waited for ten minutes.", {"count": 3, "deadline": 600}, "clicks"),
            Example("among", "What may be done this time.", {"among": [0, 2]}, "clicks"),
            Example("exclude", "What may not.", {"exclude": [1]}, "runs"),
            Example("worker", "What this worker has not answered is given to it again.", {"client": "till-7"}, "oven"),
            Example("propensity", "How probable was it?", {"propensity": True}, "clicks"),
        ),
        "reward": (
            Example("number", "What came of it.", {"reward": 4.5}, "prices"),
            Example("click", "A yes or a no.", {"reward": True}, "clicks"),
            Example("constraints", "With a constraint value, which is satisfied.",
                    {"reward": 3.2, "constraints": [-0.4]}, "oven"),
            Example("before", "A constraint value by itself, before the reward.", {"constraints": [0.3]}, "oven"),
            Example("plays", "The sums of several plays.",
                    {"reward": {"count": 1, "sum": 0.7, "squares": 0.49}}, "runs"),
            Example("seen", "When it was seen.", {"reward": 2.0, "observed_at": 1764000000.0}, "prices"),
            Example("correction", "Another one than was told.", {"reward": 5.0, "revise": True}, "prices"),
        ),
        "fail": (Example("failure", "It will not come.", {"reason": "the payment did not go through"}, "prices"),),
        "abandon": (Example("abandonment", "Nobody waits for it.", {"reason": "the visitor has gone"}, "prices"),),
        "rewards": (
            Example("rewards", "Two; each has a status of its own.",
                    {"items": [{"id": ID, "reward": 4.5}, {"id": ID, "reward": 0}]}, "prices"),
        ),
        "observe": (
            Example("parameters", "What was done before there was a service.",
                    {"parameters": {"price": 4.0}, "reward": 3.1}, "prices"),
            Example("apprentice", "What would the policy have done?",
                    {"parameters": {"price": 5.0}, "context": {"hour": 12}, "reward": 2.5, "compare": True},
                    "contexts"),
            Example("arm", "An arm by its number.", {"arm": 2, "reward": False}, "clicks"),
            Example("point", "A point by its coordinates.", {"point": [0.5], "reward": 0.2}, "whole"),
            Example("conditional", "A parameter that does not count is left out.",
                    {"parameters": {"heat": 200, "fan": "off"}, "reward": 1.5, "constraints": [-0.1]}, "oven"),
        ),
    }  # fmt: skip


# What may follow on an answer: the operations that take what it said, and where they find it.
NAMED = "$request.path.name"
FOLLOWING: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "putStudy": (
        {"name": "$response.body#/name"},
        (
            "study", "ask", "observe", "rewards", "predict", "bounds", "feasible", "best", "events", "export",
            "apprentice",
        ),
    ),
    "ask": (
        {"name": NAMED, "id": "$response.body#/decisions/0/id", "number": "$response.body#/decisions/0/number"},
        ("reward", "fail", "abandon", "decision", "explain", "ask", "predict", "events"),
    ),
    "reward": (
        {"name": NAMED, "id": "$request.path.id", "number": "$response.body#/number"},
        ("reward", "fail", "decision", "best", "ask", "explain", "bounds", "export"),
    ),
    "fail": ({"name": NAMED, "id": "$request.path.id"}, ("decision", "reward", "ask")),
    "abandon": ({"name": NAMED, "id": "$request.path.id"}, ("decision", "reward", "ask")),
    "observe": (
        {"name": NAMED, "number": "$response.body#/number"}, ("apprentice", "best", "ask", "explain", "predict"),
    ),
}  # fmt: skip
