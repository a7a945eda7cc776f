"""What would another policy have earned? A shop shows one of four banners, and evaluates others on its own log.

python examples/evaluation.py            # prints three answers, and draws one to evaluation.png
"""

import warnings

import numpy as np

import nilregret as nr

RATES = {"mobile": [0.1, 0.2, 0.6, 0.1], "web": [0.5, 0.1, 0.1, 0.2]}  # of clicks, which the shop does not know
banners = nr.Arms(np.eye(4))
devices = nr.Space(device=nr.Choice("mobile", "web"))

# A tenth of the decisions is made at random, so that every banner stays alive on the log.
kernel = nr.SquaredExponential(0.7)
policy = nr.gp_ts(banners, kernel, reward="bernoulli", v=0.5, context=devices).using(explore=nr.slots.Uniform(0.1))
study = nr.Study(policy, seed=1, propensities=True)
rng = np.random.default_rng(0)
for _ in range(300):
    device = ("mobile", "web")[rng.integers(2)]
    trial = study.ask(context={"device": device})
    study.tell(trial, float(rng.random() < RATES[device][trial.arm]))

warnings.simplefilter("ignore", nr.errors.NoRegretWarning)  # printed with the answers
for name, other in {
    "the first banner": 0,
    "banners at random": "uniform",
    "the third on mobiles, else the first": lambda context: 2 if context["device"] == "mobile" else 0,
}.items():
    result = nr.evaluate(study, other)
    print(f"{name}\n{result}\n")
result.plot("evaluation.png")
