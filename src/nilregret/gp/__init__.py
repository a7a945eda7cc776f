"""Gaussian-process posteriors, exact but for sketches. What their cost a round grows with, the table says.

Each interface adds to the one before. `Posterior` appends and predicts. `RevisablePosterior` changes and removes single
observations. `WeighingPosterior` has a noise variance for each. `CountingPosterior` takes many plays at the cost of
one. `ArmPosterior` knows points by index and keeps mean and variance of all. `AtPoints` knows points by coordinates and
has gradients. A `Belief` holds the posterior of the answered trials, and one of all trials if pending ones count.

| domain | posterior | used if | grows with | cost of a round |
|---|---|---|---|---|
| arms | `LowRankPosterior` | the kernel matrix has rank r <= 128 | - | N r + r^2 |
| | `DistinctArmsPosterior` | otherwise | u arms played | N u + u^2 |
| | `RatePosterior` | rewards are clicks, counts or bounded | - | N r + r^2 |
| | `DriftingPosterior`, `BankPosterior` | f drifts at one rate, or at one of J | - | J (N r + r^2) |
| | `OutOfSequencePosterior` | either of these, with late answers | log t copies | 2 n + 4 steps, n rounds back |
| both | `TidalPosterior` | a common level moves, of rates or linear models | t / 10 periods | as its arms |
| | `AveragedArms` | several lengthscales are compared | as its parts | the sum of its parts |
| | `ArmBatch` | many worlds of low rank advance together | - | as each alone |
| rows | `PointPosterior` | otherwise | n points observed | n^2 |
| | `WeightSpacePosterior` | the kernel has rank r <= 2048, or a sketch is asked for | - | r^2 |
| | the same | f is an independent function for each of K arms | - | p^2, a question K p^2 |
| | `ContextPosterior` | linear models of K arms under contexts are averaged | - | p^2 a model, a question K p^2 |
| | `AveragedPoints` | several lengthscales, or earlier studies | as its parts | the sum of its parts |

`posterior_on_arms` and `posterior_at_points` choose by the kernel. The engines (`policy.engines`) choose by the policy.
"""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
