"""Advice of a service in the words of the client, instead of those of HTTP."""

from __future__ import annotations

from ...study.inputs import NO_REWARD
from ..advice import ADVICE

REVISE = "With `revise=True` it corrects what was told, and the first answer is kept."
WORDS = {
    "`GET /v1/studies` lists those there are; `PUT /v1/studies/NAME` makes one.": (
        "`client.studies()` lists those there are, and `client.create` makes one."
    ),
    ADVICE["answered"]: f"{REVISE} Another reward of the same point is told by `study.add`.",
    ADVICE["failed"]: f"Constraint values are told before `study.fail`. {REVISE}",
    ADVICE["unusable"]: NO_REWARD.replace("trial", "decision"),
    ADVICE["more_plays"]: "More plays of it are told by `study.add`.",
    ADVICE["all_failed"]: "`study.trials()` has the reasons.",
    ADVICE["retired"]: "`study.add_arms` adds some, and `study.restore_arm` brings one back.",
    ADVICE["no_arm"]: "`study.arms()` lists them.",
}


def in_words(said: str) -> str:
    """Returns the sentence of a refusal with advice that names calls of the client."""
    for http, ours in WORDS.items():
        said = said.replace(http, ours)
    return said
