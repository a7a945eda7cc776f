"""The promises of a storage that keeps the cached states of studies (`noregret.storage.States`)."""

from __future__ import annotations

from typing import Any

from ..storage import States, Storage, StoredState, opened
from .base import promise

CONTENT = bytes(range(256)) * 5
MOST = 10_000  # bytes


def check_cached_states(storage: Any) -> None:
    """Raise an `AssertionError` where a storage breaks one; one that keeps no states breaks none.

    Args:
        storage: what is passed to `Study(storage=...)`, new and empty.
    """
    place: Storage = opened(storage)
    if not isinstance(place, States):
        return
    study, other = (place.find_or_make(name, policy="{}", goal="maximize", seed=0, about="{}") for name in "ab")
    promise(place.state(study, key="k", most=MOST) is None, "There is a state in a storage that is new.")
    promise(not place.drop_state(study), "A state that there is not can be dropped.")
    state = StoredState("k", "r", 10, "d", CONTENT)
    promise(place.keep_state(study, state), "The first state of a study is not kept.")
    promise(place.state(study, key="k", most=MOST) == state, "A state does not come out of the storage as it went in.")
    promise(place.state(study, key="l", most=MOST) is None, "A state is found under another key than its own.")
    promise(place.state(study, key="k", most=100) is None, "A state is given back that is larger than was asked for.")
    promise(place.state(other, key="k", most=MOST) is None, "A state is found in another study than its own.")
    for order in (9, 10):
        kept = place.keep_state(study, state._replace(order=order, record="new"))
        promise(not kept, "A state takes the place of one of the same key that has as many events, or more.")
    promise(place.state(study, key="k", most=MOST) == state, "A state that was not to be kept was.")
    for later in (state._replace(order=11), state._replace(key="l", order=1)):
        promise(place.keep_state(study, later), "A state of more events, or of another key, is not kept.")
        promise(place.state(study, key=later.key, most=MOST) == later, "The state that was kept last is not the one.")
    place.keep_state(other, state)
    place.rename("a", "c")
    promise(place.state(study, key="l", most=MOST) is not None, "A study loses its state with its old name.")
    place.delete("c")
    again = place.find_or_make("c", policy="{}", goal="maximize", seed=0, about="{}")
    promise(place.state(again, key="l", most=MOST) is None, "A deleted study's state is found in one of its name.")
    promise(place.drop_state(other) and not place.drop_state(other), "A state is dropped twice, or not at all.")
    place.close()
