"""Peers that are told limits beforehand, each as far as it takes them: linear ones, functions, or none.

A total is eliminated where a peer has no equalities: the last ingredient is what the others leave. What a peer cannot
be told it learns (Optuna, Ax), or it is not run (BayBE).
"""

from functools import partial

import numpy as np
from limits_parts.known import gap, linear, total
from limits_parts.methods import Policy
from tuning_parts.peers import Open, Optuna

from nilregret import Choice, Float, Int, Space

BUDGET = 40  # trials that Nevergrad is told it has


class Random:
    """Uniform points that keep the limits; shares of a total are uniform, too."""

    def __init__(self, problem, seed):
        self.problem, self.rng, self.total = problem, np.random.default_rng([5, seed]), total(problem)

    def drawn(self):
        parameters, rng = self.problem.space.parameters, self.rng
        if self.total:
            shares = (self.total * rng.dirichlet(np.ones(len(parameters)))).tolist()
            return dict(zip(parameters, shares, strict=True))
        return {
            name: p.options[rng.integers(len(p.options))] if isinstance(p, Choice)
            else p.decode(p.spread(rng.random(1)) if isinstance(p, Int) else rng.random(1))
            for name, p in parameters.items()
        }  # fmt: skip

    def suggest(self):
        while max(self.problem.told(point := self.drawn())[1]) > 1e-12:
            pass
        return point

    def tell(self, parameters, value, limits):
        pass


class Learned(Optuna):
    """A sampler of Optuna, which learns limits; a total is shared as its FAQ has it, by -log u."""

    def __init__(self, problem, seed, sampler):
        self.total, space = total(problem), problem.space
        super().__init__(
            space if not self.total else Space(**dict.fromkeys(space.parameters, Float(1e-6, 1 - 1e-6))), seed, sampler
        )

    def suggest(self):
        given = super().suggest()
        if not self.total:
            return given
        parts = {name: -np.log(u) for name, u in given.items()}
        shares = {name: float(self.total * part / sum(parts.values())) for name, part in parts.items()}
        return self.open.add(shares, self.open.close(given))

    def tell(self, parameters, value, limits):
        trial = self.open.close(parameters)
        for j, limit in enumerate(limits[1:] if self.total else limits):
            trial.set_constraint(f"g{j}", limit)
        self.study.tell(trial, value)


class Eliminated:
    """A peer without equalities: of a mixture it sees all ingredients but the last."""

    def __init__(self, problem):
        self.problem, self.total = problem, total(problem)
        self.parameters = dict(problem.space.parameters)
        if self.total:
            self.last, self.range = self.parameters.popitem()
        self.open = Open()

    def full(self, seen):
        """Returns all parameters."""
        return {**seen, self.last: self.total - sum(seen.values())} if self.total else dict(seen)

    def linear(self):
        """Returns the linear limits as (weights, side), each `weights @ x <= side`, and the texts of the others."""
        found, others = [], []
        for text in self.problem.limits:
            form = None if "==" in text else linear(self.problem, text)
            if form:
                found.append(form)
            elif "==" not in text:
                others.append(text)
        if self.total:
            one = {self.last: 1.0}
            found += [(one, self.range.high), ({self.last: -1.0}, -self.range.low)]
            for i, (weights, side) in enumerate(found):
                last = weights.get(self.last, 0.0)
                reduced = {name: weights.get(name, 0.0) - last for name in self.parameters}
                found[i] = ({name: w for name, w in reduced.items() if w}, side - last * self.total)
        return found, others


class Ax(Eliminated):
    """Ax with its defaults: linear limits as parameter constraints, the others as outcome constraints, learned."""

    def __init__(self, problem, seed):
        import logging
        import warnings

        import torch
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        super().__init__(problem)
        warnings.simplefilter("ignore")
        for name in [name for name in logging.root.manager.loggerDict if name.startswith("ax")]:
            logging.getLogger(name).setLevel(logging.ERROR)
        torch.set_num_threads(1)
        self.client = Client(random_seed=seed)
        made = []
        for name, p in self.parameters.items():
            if isinstance(p, Choice):
                made.append(ChoiceParameterConfig(name=name, values=list(p.options), parameter_type="str"))
                continue
            kind, scaling = "int" if isinstance(p, Int) else "float", "log" if p.log else "linear"
            made.append(RangeParameterConfig(name=name, bounds=(p.low, p.high), parameter_type=kind, scaling=scaling))
        forms, self.others = self.linear()
        texts = [
            " + ".join(f"{w!r} * {name}" for name, w in weights.items()) + f" <= {side!r}" for weights, side in forms
        ]
        self.client.configure_experiment(made, parameter_constraints=[text.replace("+ -", "- ") for text in texts])
        outcomes = [f"g{j} <= 0" for j in range(len(self.others))]
        self.client.configure_optimization("y", outcome_constraints=outcomes or None)

    def suggest(self):
        ((index, seen),) = self.client.get_next_trials(1).items()
        return self.open.add(self.full(seen), index)

    def tell(self, parameters, value, limits):  # noqa: ARG002 - those that it learns are made anew
        told = {f"g{j}": gap(text, parameters) for j, text in enumerate(self.others)}
        self.client.complete_trial(self.open.close(parameters), raw_data={"y": value, **told})


class BayBE:
    """BayBE with its defaults, which takes linear limits, equalities too, of real parameters."""

    def __init__(self, problem, seed):
        import warnings

        import torch
        from baybe import Campaign
        from baybe.constraints import ContinuousLinearConstraint
        from baybe.parameters import NumericalContinuousParameter
        from baybe.searchspace import SearchSpace
        from baybe.settings import Settings
        from baybe.targets import NumericalTarget

        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        Settings(random_seed=seed).activate()
        made = [NumericalContinuousParameter(name, (p.low, p.high)) for name, p in problem.space.parameters.items()]
        limits = []
        for text in problem.limits:
            weights, side = linear(problem, text.replace("==", "<="))
            sign, flip = ("=", 1.0) if "==" in text else (">=", -1.0)
            limits.append(
                ContinuousLinearConstraint(list(weights), sign, [flip * w for w in weights.values()], flip * side)
            )
        self.campaign, self.open = Campaign(SearchSpace.from_product(made, limits), NumericalTarget("y")), Open()

    @staticmethod
    def takes(problem):
        reals = all(isinstance(p, Float) for p in problem.space.parameters.values())
        return reals and all(linear(problem, text.replace("==", "<=")) for text in problem.limits)

    def suggest(self):
        row = self.campaign.recommend(1)
        return self.open.add({name: float(row[name].iloc[0]) for name in row.columns}, row)

    def tell(self, parameters, value, limits):  # noqa: ARG002
        row = self.open.close(parameters)
        self.campaign.add_measurements(row.assign(y=value))


class Nevergrad(Eliminated):
    """Nevergrad's NGOpt with a cheap constraint, the largest of the limits."""

    def __init__(self, problem, seed):
        import warnings

        import nevergrad as ng

        super().__init__(problem)
        warnings.simplefilter("ignore")
        made = {}
        for name, p in self.parameters.items():
            if isinstance(p, Choice):
                made[name] = ng.p.Choice(list(p.options))
                continue
            made[name] = ng.p.Log(lower=p.low, upper=p.high) if p.log else ng.p.Scalar(lower=p.low, upper=p.high)
            if isinstance(p, Int):
                made[name].set_integer_casting()
        space = ng.p.Dict(**made)
        space.random_state.seed(seed)
        space.register_cheap_constraint(lambda seen: -max(problem.told(self.full(seen))[1][bool(self.total) :]))
        self.optimizer = ng.optimizers.NGOpt(space, budget=BUDGET)

    def suggest(self):
        asked = self.optimizer.ask()
        return self.open.add(self.full(asked.value), asked)

    def tell(self, parameters, value, limits):  # noqa: ARG002
        self.optimizer.tell(self.open.close(parameters), -value)


METHODS = {
    "auto": Policy, "random": Random, "gpsampler": partial(Learned, sampler="GPSampler"), "ax": Ax, "baybe": BayBE,
    "tpe": partial(Learned, sampler="TPESampler"), "nevergrad": Nevergrad,
}  # fmt: skip
