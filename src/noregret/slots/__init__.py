"""What parts of one's own derive from: the slots of a policy, and what goes in and out of them.

A part is a frozen dataclass that derives from the abstract class of its slot and is decorated with
`noregret.serialize.described`; `policy.using(memory=...)` puts it into a policy. `noregret.testing.check_policy` tries
whether the whole keeps its promises. What is not overridden is sound and proves nothing. Worked examples are in
docs/extending.md; kernels derive from `noregret.kernels.Stationary` or `PointKernel`.

| slot | class | must have | may have |
|---|---|---|---|
| `memory` | `Memory` | - | `cut`, `first_counted`, `watch`, `drift`, `regularization`, `keeping_ridge`, `keeps_all` |
| | `Watch` | `see`, `reset`, `copy` | `predicts`, `cut`, `refitted`, `evidence` |
| `explore` | `Explore` | `due` | `score`, `places`, `forcing`, `uniform`, `ever` |
| `pending` | `Pending` | `count_as` | `hallucinates`, `moves`, `in_time`, `counts`, `lowest`, `stand_in`, `revises` |
| | | | `check_reward`, `proves`, `waits` |
| | `Waits` | `ask`, `hear`, `forget`, `moving`, `ages`, `values`, `copy` | |
| `objective` | `Objective` | `target` | `begin`, `charge`, `constraints`, `kernels`, `revises`, `proved` |
| | | | `looks_back` |
| | `Charges` | `hear`, `advance`, `put_back`, `copy` | `values`, `saturated`, `kernel`, `noise_factor`, `began` |
| `confidence` | `Width` | `width` | `valid_for`, `suits`, `for_all_at_once`, `guess`, `recent`, `hallucinated` |
| | `Confidence` | `bounds` | likewise |
| | `Bounds` | `__call__` | `width`, `pointwise`, `moves` |
| | `Guess` | `check`, `copy` | |
| `constraints` | `Constraints` | `judged`, `on_points` | `begin`, `placed`, `beside`, `certain`, `of_channel` |
| | | | `hallucinates`, `pending_of` |
| | `Books` | - | `hear`, `asked`, `forget_before`, `copy`, `prices` |
| `score` | `PointwiseScore` | `__call__` | `partials`, `incumbent_in`, `in_rewards`, `placed` |
| | `Score` | `on_table`, `on_points` | `draws`, `widens`, `drawn_width`, `in_rewards`, `placed` |

Every part may have `check(policy)`, which refuses policies that it does not suit, and calls `super().check(policy)`.
The others are what these methods are given or return: `Seen` (an answer, shown to a watch), `Prediction` (what was
believed before it), `Situation` (what a forced round may look at), `World` (what a watch may build its own picture
from), `Restart` (a cut), `Evidence` (what a watch has come to); `Pseudo` (what an unanswered trial counts as),
`Known` and `Answers` (what that may be made of); `Change` (what new charges ask for); `Envelope` (bounds at points),
`Symmetric` (mean +- width * std), `Progress` (what a width may depend on), `Window` (trials it depends on); `View`,
`TableView` and `PointView` (a round as a score sees it), `Surface` (what is maximised).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import Part
    from .books import Books
    from .constraints import Constraints
    from .envelope import Bounds, Confidence, Envelope, Guess, Progress, Symmetric, Width, Window
    from .explore import Explore, Situation
    from .memory import Evidence, Memory, Prediction, Restart, Seen, Watch, World
    from .objective import Change, Charges, Objective
    from .pending import Answers, Known, Pending, Pseudo
    from .scores import PointwiseScore, Score
    from .view import PointView, Surface, TableView, View
    from .waits import Waits

_HOME = {
    "base": "Part",
    "books": "Books",
    "constraints": "Constraints",
    "envelope": "Bounds Confidence Envelope Guess Progress Symmetric Width Window",
    "explore": "Explore Situation",
    "memory": "Evidence Memory Prediction Restart Seen Watch World",
    "objective": "Change Charges Objective",
    "pending": "Answers Known Pending Pseudo",
    "scores": "PointwiseScore Score",
    "view": "PointView Surface TableView View",
    "waits": "Waits",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = [
    "Answers",
    "Books",
    "Bounds",
    "Change",
    "Charges",
    "Confidence",
    "Constraints",
    "Envelope",
    "Evidence",
    "Explore",
    "Guess",
    "Known",
    "Memory",
    "Objective",
    "Part",
    "Pending",
    "PointView",
    "PointwiseScore",
    "Prediction",
    "Progress",
    "Pseudo",
    "Restart",
    "Score",
    "Seen",
    "Situation",
    "Surface",
    "Symmetric",
    "TableView",
    "View",
    "Waits",
    "Watch",
    "Width",
    "Window",
    "World",
]


def __getattr__(name: str) -> Any:
    # When first used: the rooms of this package import each other and those beside it, and would meet themselves here.
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE[name]}", __name__), name)
    globals()[name] = value
    return value
