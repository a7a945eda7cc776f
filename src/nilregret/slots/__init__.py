"""What parts of one's own derive from: the slots of a policy, and what goes in and out of them.

A part is a frozen dataclass that derives from the abstract class of its slot and is decorated with
`nilregret.slots.described`; `policy.using(memory=...)` puts it into a policy.
`nilregret.testing.check_policy` tries
whether the whole keeps its promises. What is not overridden is sound and proves nothing. Worked examples are in
docs/extending.md; kernels derive from `nilregret.kernels.Stationary` or `PointKernel`.

| slot | class | must have | may have |
|---|---|---|---|
| `memory` | `Memory` | - | `cut`, `first_counted`, `watch`, `drift`, `regularization`, `keeping_ridge`, `keeps_all` |
| | `Detector` | `see`, `reset`, `copy` | `predicts`, `cut`, `refitted`, `evidence` |
| `explore` | `Explore` | `due` | `score`, `places`, `forcing`, `uniform`, `ever` |
| `pending` | `Pending` | `count_as` | `hallucinates`, `moves`, `in_time`, `counts`, `lowest`, `stand_in`, `revises` |
| | | | `check_reward`, `proves`, `waits` |
| | `Waits` | `ask`, `hear`, `forget`, `moving`, `ages`, `values`, `copy` | |
| `objective` | `Objective` | `target` | `begin`, `charge`, `constraints`, `kernels`, `revises`, `proved` |
| | | | `looks_back` |
| | `PenaltyState` | `hear`, `advance`, `put_back`, `copy` | `values`, `saturated`, `kernel`, `noise_factor`, `began` |
| `confidence` | `Width` | `width` | `valid_for`, `suits`, `for_all_at_once`, `guess`, `recent`, `hallucinated` |
| | `Confidence` | `bounds` | likewise |
| | `Bounds` | `__call__` | `width`, `pointwise`, `moves` |
| | `Guess` | `check`, `copy` | |
| `constraints` | `Constraints` | `judged`, `on_points` | `begin`, `placed`, `beside`, `certain`, `of_channel` |
| | | | `hallucinates`, `pending_of` |
| | `DualState` | - | `hear`, `asked`, `forget_before`, `copy`, `prices` |
| `score` | `PointwiseScore` | `__call__` | `partials`, `incumbent_in`, `in_rewards`, `placed` |
| | `Score` | `on_table`, `on_points` | `draws`, `widens`, `drawn_width`, `in_rewards`, `placed` |

Every part may have `check(policy)`, which refuses policies that it does not suit, and calls `super().check(policy)`.
The others are what these methods are given or return: `Observation` (an answer, shown to a watch), `Prediction` (what
was
believed before it), `Situation` (what a forced round may look at), `ModelInfo` (what a watch may build its own picture
from), `Restart` (a cut), `Evidence` (what a watch has come to); `ImputedValue` (what an unanswered trial counts as),
`PendingInfo` and `Answers` (what that may be made of); `Change` (what new charges ask for); `Envelope` (bounds at
points),
`Symmetric` (mean +- width * std), `Progress` (what a width may depend on), `Window` (trials it depends on);
`AcquisitionContext`,
`TableView` and `PointView` (a round as a score sees it), `AcquisitionFunction` (what is maximised).
"""

from __future__ import annotations

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
