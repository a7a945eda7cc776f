"""The order of parameters and options does not matter on resuming, and a changed space is refused with a way out."""

import itertools
import json

import pytest

import nilregret as nr
from nilregret.client import Client
from nilregret.study.definition import differing, in_order_of
from nilregret.testing.serving import Serving

K = nr.Matern
SPACE = nr.Space(
    x=nr.Float(0, 1), kind=nr.Choice("a", "b", True, 1), n=nr.Int(1, 5), rate=nr.when("kind", ["a", 1], nr.Float(0, 9))
)


def in_order(space, names, turn=1):
    """The space with its parameters in another order, and its options turned by some places."""
    made = {}
    for name in names:
        declared = space.declared[name]
        if isinstance(declared, nr.Choice):
            declared = nr.Choice(*declared.options[turn:], *declared.options[:turn])
        if name == "rate":
            declared = nr.when("kind", [1, "a"], nr.Float(0, 9))
        made[name] = declared
    return nr.Space(**made)


ORDERS = [names for names in itertools.permutations(SPACE.declared) if names.index("kind") < names.index("rate")]
CONTEXT = nr.Space(hour=nr.Float(0, 24), day=nr.Choice("mon", "tue", "wed"))
POLICIES = {
    "auto": lambda space, _: nr.auto(space, budget=30),
    "in context": lambda space, context: nr.auto(space, context=context),
    "overlap": lambda space, _: nr.expected_improvement(space, nr.kernel_for(space, choices="overlap"), noise=0.1),
    "overlap in context": lambda space, context: nr.expected_improvement(
        space, nr.kernel_for(space, context=context, choices="overlap"), noise=0.1, context=context
    ),
    "width": lambda space, _: nr.gp_ucb(space, nr.kernel_for(space), noise=0.1),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_order_is_put_into_the_one_on_record(name):
    then = POLICIES[name](SPACE, CONTEXT)
    recorded = json.loads(then.to_json())
    for names, turn in itertools.product(ORDERS, range(4)):
        now = POLICIES[name](in_order(SPACE, names, turn), in_order(CONTEXT, ("day", "hour"), turn % 3))
        plain = json.loads(now.to_json())
        assert (plain == recorded) == (now == then)
        assert not list(differing(recorded, in_order_of(recorded, plain)))


def scaled(space, lengths):
    """A kernel with a lengthscale of its own for each column, by parameter or option."""
    named = [name for name, each in space.parameters.items() for name in getattr(each, "options", [name])]
    return nr.gp_ucb(space, K(2.5, [lengths[name] for name in named]), noise=0.1)


def test_numbers_of_columns_move_with_them():
    then = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
    now = nr.Space(kind=nr.Choice("b", "a"), x=nr.Float(0, 1))
    lengths = {"x": 0.1, "a": 0.2, "b": 0.3}
    for made, same in ((scaled(now, lengths), True), (nr.gp_ucb(now, K(2.5, [0.1, 0.2, 0.3]), noise=0.1), False)):
        recorded = json.loads(scaled(then, lengths).to_json())
        assert (not list(differing(recorded, in_order_of(recorded, json.loads(made.to_json()))))) is same
    part = nr.gp_ucb(now, K(2.5, [0.2, 0.1]).on(1, 2), noise=0.1)  # of option a, and of x
    recorded = json.loads(nr.gp_ucb(then, K(2.5, [0.1, 0.2]).on(0, 1), noise=0.1).to_json())
    assert not list(differing(recorded, in_order_of(recorded, json.loads(part.to_json()))))


def loss(x, kind, n, rate=0.0):
    return x + (kind == "a") + n + rate


def test_a_study_goes_on_in_its_own_order(tmp_path):
    where = f"sqlite:///{tmp_path}/a.db"
    runs = []
    for name, second in (("same", SPACE), ("other", in_order(SPACE, ORDERS[-1], 2))):
        for trials, space in ((6, SPACE), (12, second)):
            result = nr.minimize(loss, space, trials=trials, storage=where, name=name, progress=False)
        runs.append([trial.parameters for trial in result.trials])
    assert runs[0] == runs[1]
    study = nr.Study(nr.auto(in_order(SPACE, ORDERS[3])), storage=where, name="live")
    study.tell(study.ask(), 1.0)
    other = nr.Study(nr.auto(SPACE), storage=where, name="live")
    assert other.policy == study.policy
    assert other.trials[0].parameters == study.trials[0].parameters


def test_a_changed_space_is_refused_with_a_way_out(tmp_path):
    where = f"sqlite:///{tmp_path}/a.db"
    nr.minimize(lambda x: x, nr.Space(x=nr.Float(0, 1)), trials=3, storage=where, name="s", progress=False)
    wider = nr.Space(x=nr.Float(0, 2))
    with pytest.raises(nr.errors.InvalidInput, match=r"of other parameters.*like = \"sqlite:.*a.db#s\""):
        nr.minimize(lambda x: x, wider, trials=3, storage=where, name="s", progress=False)
    with pytest.raises(nr.errors.InvalidInput, match=r"other values: domain.*`like='sqlite:.*a.db#s'`"):
        nr.Study(nr.auto(wider), goal="minimize", storage=where, name="s")
    result = nr.minimize(lambda x: x, wider, trials=3, storage=where, name="t", like=f"{where}#s", progress=False)
    assert len(result.study.policy.refit.studies[0].points) == 3


def test_arms_keep_their_numbers(tmp_path):
    """The number of an arm follows the order, so another order is another study."""
    where = f"sqlite:///{tmp_path}/a.db"
    nr.Study(nr.auto(nr.Space(kind=nr.Choice("a", "b")).grid()), storage=where, name="s")
    with pytest.raises(nr.errors.InvalidInput, match="other values: domain"):
        nr.Study(nr.auto(nr.Space(kind=nr.Choice("b", "a")).grid()), storage=where, name="s")


def test_the_service_takes_another_order():
    with Serving() as service:
        client = Client(service.url)
        for options in (["a", "b", "c"], ["c", "a", "b"]):
            study = client.create("s", nr.auto(nr.Space(k=nr.Choice(*options))))
        assert study.ask().parameters["k"] in ("a", "b", "c")
        with pytest.raises(
            nr.errors.NoRegretError, match=r'other values: policy.domain.k.options\[2\] \("c" then, nothing now\)'
        ):
            client.create("s", nr.auto(nr.Space(k=nr.Choice("a", "b"))))
