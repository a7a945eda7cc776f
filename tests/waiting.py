"""Waiting for what happens: a limit on time ends a hang, and decides nothing."""

import time

LONG = 300.0  # seconds, in which a busy machine gets to anything


def until(condition, *, pause=0.02):
    """What a condition gives, once it is true of it."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("What a test waits for did not happen.")
        time.sleep(pause)
    return found
