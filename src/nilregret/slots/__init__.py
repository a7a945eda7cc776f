"""The slots of a policy: base classes for parts of your own, and the objects that their methods receive and return.

A part is a frozen dataclass that derives from the abstract class of its slot and is decorated with
`nilregret.slots.described`. `policy.using(memory=...)` puts a part into a policy. `nilregret.testing.check_policy`
tests whether the policy then keeps its promises. Methods that a part does not override are sound and prove nothing.
Worked examples are in docs/extending.md. Kernels derive from `nilregret.kernels.Stationary` or `PointKernel`.

| slot | class | must have | may have |
|---|---|---|---|
| `memory` | `Memory` | - | `cut`, `first_counted`, `watch`, `drift`, `regularization`, `keeping_ridge`, `keeps_all` |
| | | | `weighs` |
| | `Detector` | `see`, `reset`, `copy` | `predicts`, `cut`, `refitted`, `evidence` |
| `explore` | `Explore` | `due` | `score`, `places`, `forcing`, `chances`, `uniform`, `ever`, `within` |
| `pending` | `Pending` | `count_as` | `hallucinates`, `moves`, `in_time`, `counts`, `lowest`, `stand_in`, `revises` |
| | | | `check_reward`, `proves`, `waits` |
| | `Waits` | `ask`, `hear`, `forget`, `moving`, `ages`, `values`, `copy` | `shares`, `evident`, `settled` |
| | | | `over`, `worth`, `answer` |
| `objective` | `Objective` | `target` | `begin`, `charge`, `constraints`, `kernels`, `revises`, `proved` |
| | | | `looks_back`, `is_reward`, `clicks` |
| | `PenaltyState` | `hear`, `advance`, `put_back`, `copy` | `values`, `saturated`, `kernel`, `noise_factor`, `began` |
| `confidence` | `Width` | `width` | `valid_for`, `suits`, `for_all_at_once`, `guess`, `recent`, `hallucinated` |
| | | | `weighs`, `why_one_noise` |
| | `Confidence` | `bounds` | the same |
| | `Bounds` | `__call__` | `width`, `pointwise`, `moves`, `upper` |
| | `Guess` | `check`, `copy` | |
| `constraints` | `Constraints` | `judged`, `on_points` | `begin`, `placed`, `beside`, `certain`, `of_channel` |
| | | | `hallucinates`, `pending_of` |
| | `DualState` | - | `hear`, `asked`, `forget_before`, `copy`, `prices` |
| `score` | `PointwiseScore` | `__call__` | `partials`, `incumbent_in`, `in_rewards`, `placed`, `law` |
| | `Score` | `on_table`, `on_points` | `draws`, `widens`, `drawn_width`, `law`, `in_rewards`, `placed` |
| `pruning` | `Pruning` | `verdict` | `why`, `expected`, `stops` |
| `slate` | `SlateModel` | `shares` | `check_places`, `learns` |

Every part may have `check(policy)`. It raises `InvalidInput` for policies that the part does not fit, and calls
`super().check(policy)`.

The methods receive and return these objects:

| class | meaning |
|---|---|
| `Observation`, `Prediction` | an observed trial as a detector reads it, and the prediction made before it |
| `ModelInfo` | the model that a detector may build its own posterior from |
| `Restart`, `Evidence` | a cut of the memory, and the evidence for a change |
| `Situation` | information for a forced round |
| `ImputedValue`, `PendingInfo`, `Answers` | the imputed value of a pending trial, and the information it may use |
| `Change` | the effect of a new epoch on the training data |
| `Envelope`, `Symmetric` | bounds at points, and bounds mean +- width * std |
| `Progress`, `Window` | the state that a width may depend on, and the trials it depends on |
| `AcquisitionContext`, `TableView`, `PointView` | a round as a score sees it |
| `AcquisitionFunction` | the function that is maximised |
| `Courses`, `Course` | the curves of trials that report, as a pruning rule sees them |
| `Place`, `Looked` | a place of a slate, and what earlier slates say of places and arms |
| `ScoreLaw`, `DrawnLine`, `IndependentNormals`, `JointNormals` | the law of the scores of a round |
"""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
