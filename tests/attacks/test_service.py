"""The small forms of `benchmarks/attack_service.py` and `benchmarks/attack_schema.py`."""

import pytest

from .schema import attack_schema
from .schema import summary as of_schema
from .service import attack, summary
from .shots import KINDS


@pytest.mark.slow
def test_nobody_gets_in_and_the_server_goes_on(tmp_path):
    report = attack(30 * len(KINDS), tmp_path, seed=1, threads=6, slow_lines=0)
    assert not report.faults, summary(report)
    assert report.decided > 0
    for kind, statuses in report.statuses.items():
        assert sum(statuses.values()) >= 30, kind
    assert report.statuses["tokens"].keys() == {401}
    assert report.statuses["pages"].keys() <= {403, 421}
    assert "Traceback" not in report.log


@pytest.mark.slow
def test_every_answer_is_as_the_api_describes_it():
    statuses, failures = attack_schema(110, seed=1)
    assert not failures, of_schema(statuses, failures)
    assert sum(sum(seen.values()) for seen in statuses.values()) > 70
    assert {200, 201, 400, 404, 422} <= {status for seen in statuses.values() for status in seen}
