"""Dataclasses whose methods are made at first use behave like those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
import re
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, get_type_hints

import pytest

from nilregret._utils import dataclass as lean
from nilregret.kernels import Matern, SquaredExponential

D = TypeVar("D")


def defined(decorator):
    """Returns classes that are defined with a decorator."""

    class Base(ABC):
        """A base without fields."""

        @property
        @abstractmethod
        def size(self) -> int:
            """A number."""

    @decorator(frozen=True)
    class Part(Base):
        """A part."""

        kind: ClassVar[str] = "part"

        a: int
        b: "tuple[float, ...]" = (1.0,)
        size: int = field(default=3, compare=False)

    @decorator(frozen=True, kw_only=True)
    class Below(Part, Generic[D]):
        """A part below it."""

        c: "list[int]" = field(default_factory=list, hash=False)
        a: str = "again"
        hidden: int = field(default=0, repr=False)
        worked_out: int = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "worked_out", 2 * self.hidden)

    @decorator(frozen=True)
    class Own:
        """With methods of its own."""

        a: int

        def __eq__(self, other):
            return isinstance(other, Own) and abs(self.a) == abs(other.a)

        def __repr__(self):
            return "own"

    @decorator(frozen=True, eq=False, repr=False, init=False)
    class Bare:
        """With no methods."""

        a: int = 1

    class Derived(Part):
        """A class that is not decorated."""

    return {each.__name__: each for each in (Part, Below, Own, Bare, Derived)}


LEAN, STANDARD = defined(lean.dataclass), defined(dataclasses.dataclass)
MADE = {
    "Part": lambda cls: [cls(1), cls(1, (2.0,)), cls(1, size=9), cls(a=2)],
    "Below": lambda cls: [cls(), cls(c=[1]), cls(b=(), a="x", hidden=4)],
    "Own": lambda cls: [cls(1), cls(-1), cls(2)],
    "Bare": lambda cls: [cls(), cls()],
    "Derived": lambda cls: [cls(1), cls(2)],
}


def shown(value):
    """Returns a text without the address of an object."""
    return repr(value).split(" at 0x")[0]


@pytest.mark.parametrize("name", MADE)
def test_they_are_made_compared_shown_and_changed_like_the_standard_ones(name):
    seen = []
    for classes in (LEAN, STANDARD):
        cls, made = classes[name], MADE[name](classes[name])
        equal = [[one == other for other in made] for one in made]
        hashed = [[hash(one) == hash(other) for other in made] for one in made]
        copies = [copy.deepcopy(each) for each in made]
        said = [(f.name, f.type, f.init, f.compare, f.repr, f.kw_only, f.default) for f in fields(cls)]
        errors = []
        for act in (lambda x: setattr(x, "a", 5), lambda x: delattr(x, "a"), lambda x: setattr(x, "new", 1)):
            try:
                act(made[0])
                errors.append(None)
            except FrozenInstanceError as error:
                errors.append(str(error))
        seen.append(
            (list(map(shown, made)), equal, hashed, [vars(each) for each in copies], said, errors, asdict(made[-1]))
        )
        seen[-1] += (str(inspect.signature(cls)), cls.__match_args__, is_dataclass(cls), cls.__doc__)
        seen[-1] += (get_type_hints(cls.__init__), getattr(cls, "size", None), hasattr(cls, "c"))
        seen[-1] += (str(cls.__dataclass_params__), cls.__init__.__qualname__.replace("defined.<locals>.", ""))
    assert seen[0] == seen[1]


def test_a_value_equals_itself_on_every_version_of_python():
    part, nan = LEAN["Part"], float("nan")
    assert part(nan) == part(nan)
    assert part(nan) != part(float("nan"))


def test_a_class_is_as_good_before_its_first_use_as_after():
    fresh = defined(lean.dataclass)
    assert isinstance(vars(fresh["Part"])["__init__"], lean._Later)
    assert str(inspect.signature(fresh["Part"])) == str(inspect.signature(STANDARD["Part"]))
    assert [f.name for f in fields(defined(lean.dataclass)["Below"])] == [f.name for f in fields(STANDARD["Below"])]
    unpickled = object.__new__(defined(lean.dataclass)["Part"])
    vars(unpickled).update(a=1, b=(), size=3)
    assert unpickled == replace(unpickled, a=1)
    with pytest.raises(FrozenInstanceError):
        unpickled.a = 2

    @dataclasses.dataclass(frozen=True)
    class Mine(defined(lean.dataclass)["Part"]):
        mine: int = 7

    assert Mine(1, (), 2, 8).mine == 8
    assert [f.name for f in fields(Mine)] == ["a", "b", "size", "mine"]


def test_classes_of_the_package_are_pickled_and_replaced():
    kernel = SquaredExponential(0.2)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(replace(kernel, lengthscale=0.3)) == hash(SquaredExponential(0.3))
    if sys.version_info >= (3, 13):
        assert copy.replace(kernel, lengthscale=0.3) == SquaredExponential(0.3)
    match Matern(2.5, 0.2):
        case Matern(smoothness):
            assert smoothness == 2.5


def test_threads_use_a_class_at_once():
    for _ in range(20):
        cls, start, found = defined(lean.dataclass)["Below"], threading.Barrier(8), []

        def use(cls=cls, start=start, found=found):
            start.wait()
            found.append((cls(hidden=2), hash(cls(hidden=2)), repr(cls())))

        threads = [threading.Thread(target=use) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(found) == 8
        assert len(set(found)) == 1


def test_the_package_has_no_frozen_dataclass_that_is_made_at_import():
    texts = {path: path.read_text("utf-8") for path in Path(lean.__file__).parents[1].rglob("*.py")}
    eager = {path for path, text in texts.items() if re.search(r"^from dataclasses import .*\bdataclass$", text, re.M)}
    assert {path.name for path in eager if re.search(r"^@dataclass\(frozen=True", texts[path], re.M)} == set()
