"""The objectives of a study in words. A reward alone is the case of one objective."""

from __future__ import annotations

from ....plots.base import reward_label
from ....study.study import Study


def has_front(study: Study) -> bool:
    """Returns whether a study has several objectives, so that no single trial is the best."""
    return study.policy.objective_count > 1


def names_of(study: Study) -> tuple[str, ...]:
    """Returns the name of each value that a trial tells: "reward" or "loss", or the names of several objectives."""
    return study.policy.objective_names if has_front(study) else (reward_label(study),)


def said_with(study: Study) -> tuple[str, ...]:
    """Returns the names that stand before the values of an answer: none before a single one."""
    return study.policy.objective_names if has_front(study) else ()


def goals_text(study: Study) -> str:
    """Returns the goal of each objective in words."""
    named = said_with(study) or (f"the {reward_label(study)}",)
    return ", ".join(f"{goal} {name}" for goal, name in zip(study.goals, named, strict=True))


def one_reward_alone(study: Study, what: str) -> str:
    """Returns a sentence for a page that needs one reward, or "" for a study that has one.

    Args:
        study: of the page.
        what: the subject of the page, such as "What learning cost".
    """
    if not has_front(study):
        return ""
    return (
        f"{what} is a number of one reward, and this study has {study.policy.objective_count} objectives. The overview "
        "has the hypervolume of the front by trial."
    )
