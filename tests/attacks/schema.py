"""Requests that a machine makes from what the API says of itself, sound ones and broken ones, and what comes back."""

import random
import warnings
from collections import Counter
from urllib.parse import quote

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from nilregret.testing.serving import Serving

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
AT_HOME = 0.8  # of the requests that name a study: this share names one that there is
SECONDS = 120.0  # until an answer must have come; the machine may be busy
SENSIBLE = 0.5  # and of these, this share of what they say is made to fit that study
STUDIES = {
    "prices": {"space": {"price": {"type": "float", "low": 0.0, "high": 1.0}}, "grid": 8},
    "ovens": {
        "space": {"heat": {"type": "float", "low": 0.0, "high": 1.0}, "on": {"type": "choice", "options": ["a", "b"]}},
        "context": {"day": {"type": "float", "low": 0.0, "high": 7.0}}, "deadline": 100.0, "on_deadline": "abandon",
    },
    "rooms": {"arms": [[0.0], [0.5], [1.0]], "constraints": 1, "goal": "minimize"},
}  # fmt: skip


class Known:
    """What there is, so that requests do not all name what there is not."""

    def __init__(self, url, rng):
        self.url, self.rng, self.ids = url, rng, {}
        for name, body in STUDIES.items():
            requests.put(f"{url}/v1/studies/{name}", json=body, timeout=30).raise_for_status()
            body = {"count": 20} | ({"context": {"day": 3.0}} if name == "ovens" else {})
            said = requests.post(f"{url}/v1/studies/{name}/decisions", json=body, timeout=30)
            said.raise_for_status()
            self.ids[name] = [each["id"] for each in said.json()["decisions"]]

    def at_home(self, case):
        """The same request of something that there is; a study of its own name is still made now and then."""
        parameters = case.path_parameters or {}
        if "name" not in parameters or self.rng.random() > AT_HOME:
            return
        name = self.rng.choice(list(self.ids))
        case.path_parameters["name"] = name
        if "id" in parameters:
            case.path_parameters["id"] = self.rng.choice(self.ids[name])
        if self.rng.random() < SENSIBLE:
            self._sensible(case, name)

    def _sensible(self, case, name):
        """What no description can say: which values this study takes."""
        query, body = case.query, case.body
        if isinstance(query, dict) and "points" in query:
            query["points"] = '[{"heat": 0.3, "on": "b"}]' if name == "ovens" else "[[0.5]]"
        if isinstance(query, dict) and name == "ovens":
            query["context"] = '{"day": 3}'
        if not isinstance(body, dict):
            return
        if case.operation.label.endswith("/decisions"):
            for entry in ("context", "among", "exclude"):
                body.pop(entry, None)
            body |= {"context": {"day": 6.5}} if name == "ovens" else {}
        elif case.operation.label.endswith("/observations"):
            given = {"parameters": {"heat": 0.3, "on": "b"}, "context": {"day": 2.0}} if name == "ovens" else {"arm": 2}
            case.body = {"reward": self.rng.random(), "compare": self.rng.random() < 0.5} | given
            case.body |= {"constraints": [-1.0]} if name == "rooms" else {}
        elif isinstance(body.get("items"), list):
            for item in body["items"]:
                if isinstance(item, dict):
                    item["id"] = self.rng.choice(self.ids[name])


def attack_schema(count, *, seed=0):
    """So many requests, evenly over the operations, half of them broken; counts by operation, and failures.

    Args:
        count: of requests.
        seed: of what is sent.
    """
    rng = random.Random(seed)
    statuses, failures = {}, {}
    with Serving() as serving, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what makes the requests
        document = requests.get(f"{serving.url}/openapi.json", timeout=30).json()
        known = Known(serving.url, rng)
        operations = [each.ok() for each in schemathesis.openapi.from_dict(document).get_all_operations()]
        each = -(-count // (2 * len(operations)))
        session = requests.Session()
        for number, operation in enumerate(operations):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                seen = statuses.setdefault(operation.label, Counter())
                _sent(operation, mode, each, known, session, seed * 1000 + number, seen, failures)
    return statuses, failures


def _sent(operation, mode, count, known, session, seed, seen, failures):
    """One operation in one mode; where nothing about it can be broken there is nothing to send."""

    def one(case):
        if sum(seen.values()) >= (count if mode is GenerationMode.POSITIVE else 2 * count):
            return
        known.at_home(case)
        try:
            response = case.call(base_url=known.url, session=session, timeout=SECONDS)
        except requests.RequestException as error:
            failures.setdefault(
                f"{operation.label}: {error!r}"[:200], (f"{error!r}"[:600], case.as_curl_command()[:600])
            )
            return
        seen[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except (Failure, FailureGroup) as failure:
            for each in getattr(failure, "exceptions", [failure]):
                said = f"{operation.label}: {type(each).__name__}: {str(each)[:600]}"
                failures.setdefault(said.partition("\n")[0], (said, case.as_curl_command()[:600]))

    generous = settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )  # fmt: skip
    try:
        strategy = operation.as_strategy(generation_mode=mode)
        seeded(seed)(generous(given(case=strategy)(one)))()
    except Exception as error:  # which of its errors it is differs between versions
        if "negative" not in str(error).lower() and "Unsatisfiable" not in type(error).__name__:
            raise


def summary(statuses, failures):
    """For people."""
    lines = []
    for label, seen in sorted(statuses.items()):
        said = ", ".join(f"{status}: {number}" for status, number in sorted(seen.items()))
        done = sum(number for status, number in seen.items() if status < 300)
        lines.append(f"{quote(label, safe=' /{}'):<54} {done:>5} done of {sum(seen.values()):>5}   {said}")
    for said, command in failures.values():
        lines.append(f"FAULT {said}\n  {command}")
    total = sum(sum(seen.values()) for seen in statuses.values())
    wrong = sum(number for seen in statuses.values() for status, number in seen.items() if status >= 500)
    done = sum(number for seen in statuses.values() for status, number in seen.items() if status < 300)
    lines.append(
        f"{total} requests, {done} of them done, {wrong} server errors, {len(failures)} kinds of answers that do not "
        "fit"
    )
    return "\n".join(lines)
