"""Worker processes that die, hang and end: none of it keeps the parent from replacing them, or from ending."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from .waiting import LONG

# Processes do something and say who they are, each in one piece, whatever `PYTHONUNBUFFERED` is. An hour without a sign
# of life would be too long for any test.
SCRIPT = """
from functools import partial
from nilregret.serve.http.server import supervise
if __name__ == "__main__":
    said = "os.write(1, str(os.getpid()).encode() + bytes([10])); time.sleep(3600)"
    work = partial(exec, "import os, signal, time; {}; " + said)
    supervise(work, 2, hung_seconds={})
    print("ended", flush=True)
"""


@pytest.fixture
def supervised(tmp_path):
    """Begins a parent of two processes, and gives its process and what each of them says, a line each."""
    begun = []

    def begin(what, hung_seconds=3600.0):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(what, hung_seconds))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, str(script)]
        begun.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return begun[-1], lambda: begun[-1].stdout.readline().strip()

    yield begin
    for each in begun:
        each.kill()
        each.communicate(timeout=LONG)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_is_replaced_and_all_end_at_a_signal(supervised, how):
    parent, said = supervised("pass")
    pids = {int(said()), int(said())}
    os.kill(min(pids), signal.SIGKILL)
    pids.add(int(said()))
    assert len(pids) == 3
    parent.send_signal(how)
    assert said() == "ended"
    assert parent.wait(LONG) == 0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_process_that_hangs_is_replaced(supervised):
    parent, said = supervised("pass", hung_seconds=3.0)
    pids = [int(said()), int(said())]
    with suppress(ProcessLookupError):  # A machine that is busy enough has stopped it for long by now.
        os.kill(pids[0], signal.SIGSTOP)
    assert int(said()) not in pids
    parent.terminate()
    assert "ended" in iter(said, "")


def test_a_second_signal_kills(supervised):
    parent, said = supervised("signal.signal(15, lambda *_: os.write(1, b'no' + bytes([10])))")
    said(), said()
    parent.terminate()
    assert [said(), said()] == ["no", "no"]
    parent.terminate()
    assert said() == "ended"


def test_processes_end_with_their_parent(supervised):
    parent, said = supervised("pass")
    said(), said()
    parent.kill()
    assert parent.communicate(timeout=LONG)[0] == ""  # which the processes hold open, too


# A process that dies while it is unpickled never answers anything.
DYING = """
import socket, sys
from nilregret.serve.http import server
class Dying(server.Service):
    def __reduce__(self):
        return eval, ("__import__('time').sleep(0.7) or __import__('os')._exit(4)",)
if __name__ == "__main__":
    server.HUNG_SECONDS = 3600
    with server.listening("127.0.0.1", 0) as listener:
        print("begun", flush=True)
        server.run(Dying('postgresql:///none', '127.0.0.1'), listener, workers=2)
"""


def test_processes_that_die_before_they_give_a_sign_of_life_do_not_keep_a_service_from_ending(tmp_path):
    (tmp_path / "script.py").write_text(DYING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py")], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout.readline() == "begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            parent.wait(2.0)  # they have died by now, or will
        parent.terminate()
        try:
            assert parent.wait(LONG) == 0
        finally:
            parent.kill()
