"""The shop of the examples, as its one command runs it: service, shop, customers, all on this machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.service_parts.servers import free_port

import nilregret as nr

from .waiting import LONG

SHOP = Path(__file__).parents[1] / "examples" / "shop"


@pytest.mark.nightly
def test_a_shop_on_the_service(tmp_path):
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    times = ["--pace", "0.01", "--expires", "90", "--thinks", "0.05"]  # no machine is too slow for these
    ports = ["--port", str(free_port()), "--shop-port", str(free_port())]
    command = [sys.executable, SHOP, "--visitors", "40", *times, *ports, "--storage", url, "--leave"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG)
    assert first.returncode == 0, first.stderr
    assert "Traceback" not in first.stderr
    assert "A competitor opens" in first.stdout
    sold = int(re.search(r"All 40 visitors: .* (\d+) sold", first.stdout)[1])
    assert 5 <= sold < 40

    again = subprocess.run(command, capture_output=True, text=True, timeout=2 * LONG)
    assert again.returncode == 0, again.stderr
    trials = nr.Study.open(storage=url, name="offers").trials
    assert len(trials) == 80
    assert all(trial.constraints is not None for trial in trials)
    bought = [trial for trial in trials if trial.state == "observed"]
    assert len(bought) > sold
    assert all(trial.reward == trial.parameters["price"] - trial.parameters["discount"] - 6.0 for trial in bought)
    assert {trial.state for trial in trials} == {"observed", "pending"}  # nobody says no: the deadline will
