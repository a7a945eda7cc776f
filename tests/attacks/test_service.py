"""The small form of `benchmarks/attack.py service`; that of `schema` runs with the other benchmarks."""

import pytest

from .service import attack, summary
from .shots import KINDS


@pytest.mark.parametrize("each", [6, pytest.param(30, marks=pytest.mark.nightly)])
def test_nobody_gets_in_and_the_server_goes_on(tmp_path, each):
    report = attack(each * len(KINDS), tmp_path, seed=1, threads=6, slow_lines=0)
    assert not report.faults, summary(report)
    assert report.decided > 0
    for kind, statuses in report.statuses.items():
        assert sum(statuses.values()) >= each, kind
    assert report.statuses["tokens"].keys() == {401}
    assert report.statuses["pages"].keys() <= {403, 421}
    assert "Traceback" not in report.log
