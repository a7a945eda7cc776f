"""Requests that follow one another as the API says they may: a study, decisions, rewards, and what is seen of them.

schemathesis follows the links of the API's own description. Most bodies are its examples, or these with an entry taken
out or put in from a generated one; the rest is generated, and a tenth of it broken. So studies are made, and go on.
"""

import copy
import random
import warnings
from collections import Counter
from contextlib import suppress

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as seeded
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.core.failures import Failure, FailureGroup

from nilregret.serve.api.openapi import examples
from nilregret.testing.serving import Serving

from .schema import CHECKS, SECONDS

FITTING = 0.75  # of the bodies: examples as they are
MUTATED = 0.15  # likewise: examples with an entry of the generated body, or without one
KNOWN = 0.85  # of studies and decisions that no link names: those that there are
STEPS = 40  # of one chain
STUDIES = {each.name: each.body for each in examples()["putStudy"]}
SEEN = {  # what may be asked of a study by the address
    "prices": {"points": '[{"price": 3}]'}, "clicks": {"points": "[[0.5]]"}, "runs": {}, "whole": {},
    "contexts": {"points": '[{"price": 3}]', "context": '{"hour": 8}'},
    "oven": {"points": '[{"heat": 200, "fan": "off"}]'},
}  # fmt: skip


LOOKS = ("predict", "bounds", "feasible")


class EnoughError(Exception):
    """So many requests have been sent."""


class World:
    """What has come about so far, and what is sent next."""

    def __init__(self, url, count, rng):
        self.url, self.left, self.rng = url, count, rng
        self.kinds, self.ids, self.made = {}, {}, 0  # studies by name, decisions by study
        self.statuses, self.failures, self.session = {}, {}, requests.Session()

    def begin(self, operation):
        """A study for a chain to begin with, of one kind after the other."""
        case = operation.Case(path_parameters={"name": "x"}, body={}, media_type="application/json")
        self.fit(case)
        case.body = copy.deepcopy(
            STUDIES[self.kinds.setdefault(case.path_parameters["name"], self.rng.choice(sorted(STUDIES)))]
        )
        self.heard(case.call(base_url=self.url, session=self.session, timeout=SECONDS), case)

    def fit(self, case):
        """Make of a generated request one that the service may well take."""
        if not self.left:
            raise EnoughError
        self.left -= 1
        name = case.operation.definition.raw["operationId"]
        if name == "putStudy":
            self._study(case)
        elif "name" in (case.path_parameters or {}):
            self._place(case, ["oven"] if name == "feasible" else list(STUDIES))
            self._body(case, name)

    def _study(self, case):
        kind = self.rng.choice(sorted(STUDIES))
        again = self.kinds and self.rng.random() < 0.2
        case.path_parameters["name"] = self.rng.choice(sorted(self.kinds)) if again else f"s{self.made}"
        self.made += 1
        draw = self.rng.random()
        if draw < FITTING:
            kind = self.kinds.get(case.path_parameters["name"], kind)
            case.body = copy.deepcopy(STUDIES[kind])
        elif draw < FITTING + MUTATED:
            case.body = self._mutated(STUDIES[kind], case.body)
        else:
            return
        case.media_type = "application/json"
        self.kinds.setdefault(case.path_parameters["name"], kind)

    def _place(self, case, kinds):
        """Of what there is of these kinds, where no link has led there."""
        place = case.path_parameters
        there = sorted(name for name, kind in self.kinds.items() if kind in kinds)
        if self.kinds.get(place["name"]) not in kinds and there and self.rng.random() < KNOWN:
            place["name"] = self.rng.choice(there)
        ids = self.ids.get(place["name"])
        if "id" in place and ids and place["id"] not in ids and self.rng.random() < KNOWN:
            place["id"] = self.rng.choice(ids)

    def _body(self, case, operation):
        kind = self.kinds.get(case.path_parameters["name"])
        seen = SEEN.get(kind, {})
        if isinstance(case.query, dict) and self.rng.random() < FITTING:
            for entry in [each for each in ("points", "context", "channel") if each in case.query]:
                case.query.pop(entry)
            case.query |= {entry: value for entry, value in seen.items() if operation in LOOKS}
            case.query |= {"context": seen["context"]} if operation == "best" and "context" in seen else {}
        fitting = [each.body for each in examples().get(operation, ()) if each.study == kind]
        if operation == "ask" and not fitting:
            fitting = [{"count": 2}]
        draw = self.rng.random()
        if not fitting or draw >= FITTING + MUTATED:
            return
        body = copy.deepcopy(self.rng.choice(fitting))
        for item in body.get("items", ()):
            item["id"] = self.rng.choice(self.ids.get(case.path_parameters["name"]) or [item["id"]])
        case.body = body if draw < FITTING else self._mutated(body, case.body)
        case.media_type = "application/json"

    def _mutated(self, body, generated):
        body = copy.deepcopy(body)
        if isinstance(generated, dict) and generated and self.rng.random() < 0.7:
            entry = self.rng.choice(sorted(generated))
            return body | {entry: generated[entry]}
        if body:
            body.pop(self.rng.choice(sorted(body)))
        return body

    def heard(self, response, case):
        """Count it, keep what it says of decisions, and hold it against the description."""
        label = case.operation.label
        self.statuses.setdefault(label, Counter())[response.status_code] += 1
        name = (case.path_parameters or {}).get("name")
        if response.status_code == 201 and label.endswith("/decisions"):
            self.ids.setdefault(name, []).extend(each["id"] for each in response.json()["decisions"])
        try:
            case.validate_response(response, checks=CHECKS)
        except (Failure, FailureGroup) as failure:
            for each in getattr(failure, "exceptions", [failure]):
                said = f"{label}: {type(each).__name__}: {str(each)[:600]}"
                self.failures.setdefault(said.partition("\n")[0], (said, case.as_curl_command()[:600]))


def attack_chains(count, *, seed=0):
    """So many requests in chains; counts by operation, and failures.

    Args:
        count: of requests.
        seed: of what is sent.
    """
    with Serving() as serving, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what makes the requests
        document = requests.get(f"{serving.url}/openapi.json", timeout=30).json()
        world = World(serving.url, count, random.Random(seed))
        described = schemathesis.openapi.from_dict(document)
        machine, put = described.as_state_machine(), described["/v1/studies/{name}"]["PUT"]

        class Chain(machine):
            def setup(self):
                world.begin(put)

            def before_call(self, case):
                world.fit(case)

            def get_call_kwargs(self, case):
                del case
                return {"base_url": world.url, "session": world.session, "timeout": SECONDS}

            def validate_response(self, response, case, **more):
                del more
                world.heard(response, case)

        while world.left:
            _run(Chain, seed + world.left)
    return world.statuses, world.failures


def _run(chain, seed):
    """Chains until enough has been sent, or until their maker notices that the service remembers other chains."""
    wanted = settings(
        max_examples=100, stateful_step_count=STEPS, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False, verbosity=Verbosity.quiet,
    )  # fmt: skip
    with suppress(EnoughError, Flaky):
        run_state_machine_as_test(seeded(seed)(chain), settings=wanted)
