"""What an operator should look at, in /metrics, on the pages, and sent to a webhook."""

import asyncio
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import re
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import suppress

import numpy as np
import pytest

import nilregret as nr
from nilregret.serve.api.app import create_app
from nilregret.serve.dashboard.pages import ROUTES
from nilregret.serve.http.server import Service
from nilregret.serve.watch.audit import note_writing
from nilregret.serve.watch.signals import KINDS, RULES, failing, overrun, pauses, signals_of, silent
from nilregret.serve.wire.settings import Settings, Webhook
from nilregret.serve.work.study_notes import StudyNotes, as_note, notes_of
from nilregret.serve.work.workers import StudyWorkers
from nilregret.storage import MemoryStorage, SqlStorage

from .dashboard import KINDS as STUDIES
from .dashboard import study_of
from .service import AT, POLICY, Client, Clock, asked, plain, told

SECRET = "a secret of the receiver"


def kinds(study, *, now):
    return [signal.kind for signal in signals_of(study, now=now)]


def timed(**more):
    clock = Clock()
    return nr.Study(POLICY, clock=clock, **more), clock


def answers(study, clock, count, *, every=10.0):
    for _ in range(count):
        clock.now += every
        study.tell(study.ask(), 0.5)


def test_each_kind_of_signal_has_a_rule_and_a_study_that_is_well_has_none():
    assert tuple(RULES) == KINDS
    study, clock = timed()
    answers(study, clock, 30)
    assert kinds(study, now=clock.now + 25.0) == []


@pytest.mark.parametrize("kind", STUDIES)
def test_signals_of_any_study_are_sentences(kind):
    study = study_of(kind)
    for signal in signals_of(study, now=2e9):
        assert signal.sentence.endswith(".")
        assert signal.kind in KINDS


def test_failures_in_a_row_are_a_signal_until_one_succeeds():
    study, clock = timed()
    answers(study, clock, 5)
    for i in range(3):
        assert kinds(study, now=clock.now) == []
        study.fail(study.ask(), f"no disk {i}")
    (signal,) = signals_of(study, now=clock.now)
    assert (signal.kind, signal.event) == ("failing", 7)
    assert signal.sentence == "The last 3 trials with an outcome failed, the latest with: no disk 2."
    study.ask()  # a pending trial ends nothing
    assert kinds(study, now=clock.now) == ["failing"]
    answers(study, clock, 1)
    assert kinds(study, now=clock.now) == []


def test_more_than_half_of_the_latest_trials_failing_is_a_signal():
    study, _ = timed()
    for i in range(22):
        trial = study.ask()
        study.fail(trial, "no disk") if i % 2 or 18 < i < 21 else study.tell(trial, 0.0)
    ended = [trial.state for trial in study.trials][-20:]
    assert (ended.count("failed") > 10) == bool(failing(study.trials[:]))


def test_a_pause_longer_than_usual_is_a_signal_and_the_end_of_a_study_is_none():
    study, clock = timed()
    waits = study.ask()
    answers(study, clock, 10, every=100.0)
    assert silent(pauses(study.trials[:]), clock.now + 1e5) == []  # too few to know what is usual
    answers(study, clock, 5, every=100.0)
    at = clock.now
    assert kinds(study, now=at + 300.0) == []
    (signal,) = signals_of(study, now=at + 301.0)
    assert (signal.kind, signal.since) == ("silent", at)
    assert signal.sentence == "Nothing has happened for 5 min; the longest of the last pauses was 100 s."
    assert kinds(study, now=at + 31 * 86_400.0) == []
    answers(study, clock, 2, every=20 * 86_400.0)  # such pauses are usual, and nothing is known of longer ones
    assert kinds(study, now=clock.now + 70 * 86_400.0) == []
    study.tell(waits, 0.5)


def test_the_end_of_a_study_that_waits_for_nothing_is_no_signal_before_a_week_of_questions():
    study, clock = timed()
    answers(study, clock, 20, every=100.0)
    assert kinds(study, now=clock.now + 1e4) == []
    waits = study.ask()
    assert kinds(study, now=clock.now + 1e4) == ["silent"]
    study.tell(waits, 0.5)
    answers(study, clock, 10, every=86_400.0)
    assert kinds(study, now=clock.now + 4 * 86_400.0) == ["silent"]


def test_pauses_of_no_time_are_said_in_words():
    study, clock = timed()
    study.ask()
    for _ in range(20):
        study.tell(study.ask(), 0.5)
    (signal,) = signals_of(study, now=clock.now + 100.0)
    assert signal.sentence.endswith("the longest of the last pauses was less than a second.")


def test_one_outage_is_one_signal_and_no_number_of_pending_trials_hides_it():
    study, clock = timed()
    asked_first = [study.ask() for _ in range(260)]
    events = []
    for i, trial in enumerate(asked_first[:120]):
        clock.now += 10.0
        study.fail(trial, "no disk") if i < 25 or i % 5 < 3 else study.tell(trial, 0.5)
        events += [signal.event for signal in signals_of(study, now=clock.now) if signal.kind == "failing"]
    assert len(events) > 60
    assert set(events) == {2}
    assert "silent" in kinds(study, now=clock.now + 100.0)
    for trial in asked_first[120:150]:
        study.tell(trial, 0.5)
    for trial in reversed(asked_first[150:153]):  # the latest answers, whatever their numbers
        study.fail(trial, "again")
    (signal,) = failing(study.trials[:])
    assert signal.event == 150


def test_a_budget_is_overrun_only_while_the_mean_stays_above_it():
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 0.2, 400)
    assert overrun(0, noise - 0.01, "ms <= 50") is None or noise.sum() > 4.0
    found = overrun(1, noise + 0.2, "ms <= 50")
    assert found is not None
    assert found.sentence.startswith("The budget of ms <= 50 is overrun by ")
    early = np.concatenate([np.full(200, 0.5), np.full(200, -0.1)])  # more than the budget is used, and it comes down
    assert early.sum() > 0.0
    assert overrun(0, early, "ms <= 50") is None


def test_a_kept_budget_is_rarely_ever_a_signal():
    """Of 400 runs of 1,000 answers whose mean is the budget, looked at after each answer that may change it."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 1.0, (400, 1200))
    dependent = noise.copy()
    for i in range(1, 1200):
        dependent[:, i] += 0.8 * dependent[:, i - 1]
    early = noise[:, :1000] + 0.5 * (np.arange(1000) < 40)

    def ever(runs, counts):
        return np.mean([any(overrun(0, run[:count], "ms <= 50") for count in counts) for run in runs])

    looks = [40, 79, 80, 160, 320, 500, 640, 1000]
    assert ever(noise[:, 200:], looks) <= 0.05  # 5% at most are promised
    assert ever(dependent[:, 200:], looks) <= 0.15  # autocorrelation 0.8, of which nothing is promised
    assert ever(early, looks[3:]) <= 0.05  # an overrun that ended at answer 40
    assert ever(noise[:, 200:] + 0.2, looks) >= 0.3


def test_a_restart_is_a_signal_for_twenty_trials_or_a_day():
    study = study_of("of_changes")
    last = study.restarts[-1]
    assert len(study.trials) - last > 20
    at = study.trials[last].asked_at
    changed = [signal for signal in signals_of(study, now=at + 86_000.0) if signal.kind == "change"]
    assert [(signal.event, signal.since) for signal in changed] == [(last, at)]
    assert changed[0].sentence == f"The policy started anew at trial {last}: {study.restart_reasons[-1]}."
    assert "change" not in kinds(study, now=at + 86_500.0)


def test_fits_that_fail_or_stay_behind_are_a_signal():
    class Executor:
        def __init__(self):
            self.made = []

        def submit(self, make):
            self.made.append((make, future := Future()))
            return future

    fitter = Executor()
    study = nr.Study(nr.auto(nr.Box([0], [1])), fits=fitter, seed=0)
    study.quiet = True
    while not fitter.made:
        study.tell(study.ask(), 0.5)
    for i in range(101):
        assert "fit" not in kinds(study, now=0.0), i
        study.add([i / 101], float(i % 7))
    (signal,) = [each for each in signals_of(study, now=0.0) if each.kind == "fit"]
    assert "under way since 101 trials" in signal.sentence
    fitter.made[0][1].set_exception(ArithmeticError("singular"))
    (signal,) = [each for each in signals_of(study, now=0.0) if each.kind == "fit"]
    assert signal.sentence == "The last fit failed, and decisions go on with the one before: singular."


class Receiver(http.server.BaseHTTPRequestHandler):
    """Refuses the first request, and takes the others."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 204)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    server.got, server.answers = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def look_and_send(client, hook):
    """Looks at the open studies once, and waits until what was found is sent."""

    async def looked():
        sender = client.service.sender(hook)
        await sender.look()
        await sender.drain()

    client.run(looked())


def failing_study(client):
    client.put(AT, {"policy": plain(POLICY)})
    for _ in range(3):
        client.post(f"{AT}/decisions/{asked(client)['id']}/failure", {"reason": "<b>no disk"})


def test_a_signal_is_sent_once_signed_and_again_until_it_is_taken(receiver, monkeypatch):
    monkeypatch.setattr("nilregret.serve.watch.signals.RETRY_PAUSES", (0.01,))
    receiver.answers = [500, 302]
    storage = MemoryStorage()
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}/hook?a=1", SECRET)
    with Client(storage, settings=Settings(webhook=hook)) as client:
        failing_study(client)
        sender = client.service.sender(hook)

        async def looked():
            await sender.look()
            await sender.drain()

        for _ in range(2):
            client.run(looked())
        assert len(receiver.got) == 3  # refused, sent elsewhere, taken; and nothing after that
        assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
        headers, body = receiver.got[-1]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
        data = json.loads(body)["data"]
        assert (data["tenant"], data["study"], data["kind"]) == ("default", "shop", "failing")
        for _ in range(20):
            told(client, asked(client), 1.0)
        for _ in range(3):
            client.post(f"{AT}/decisions/{asked(client)['id']}/failure", {"reason": "again"})
        client.run(looked())
        assert len(receiver.got) == 4  # another one, after it had been well
        again = client.service.sender(hook)  # as of a server that begins anew

        async def once():
            await again.look()
            await again.drain()

        client.run(once())
        assert len(receiver.got) == 4


def test_a_message_that_nobody_takes_is_dropped_for_good(receiver, monkeypatch, caplog):
    for name, value in (("RETRY_PAUSES", (0.01,)), ("GIVEN_UP", -1.0)):
        monkeypatch.setattr(f"nilregret.serve.watch.signals.{name}", value)
    receiver.answers = [500] * 9
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}", SECRET)
    with Client(MemoryStorage()) as client:
        failing_study(client)

        async def looked(sender):
            await sender.look()
            await sender.drain()

        for _ in range(2):
            client.run(looked(client.service.sender(hook)))
    assert len(receiver.got) == 1
    assert caplog.text.count("which is dropped") == 1


def test_an_error_of_any_class_is_an_attempt(receiver, monkeypatch):
    monkeypatch.setattr("nilregret.serve.watch.signals.RETRY_PAUSES", (0.01,))
    send, errors = Webhook.send, [UnicodeError("odd")]

    def first(self, message, body):
        if errors:
            raise errors.pop()
        return send(self, message, body)

    monkeypatch.setattr(Webhook, "send", first)
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}", SECRET)
    with Client(MemoryStorage()) as client:
        failing_study(client)
        look_and_send(client, hook)
    assert len(receiver.got) == 1


def test_a_secret_of_standard_webhooks_is_decoded():
    """The key, message and signature are those of the specification's reference libraries."""
    hook = Webhook("https://example.org/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = hook.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_that_answers_letter_by_letter_is_cut_off(monkeypatch):
    monkeypatch.setattr("nilregret.serve.wire.settings.TAKES", 0.2)
    sent = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            line, _ = server.accept()
            with line, suppress(OSError):
                line.sendall(b"HTTP/1.1 204 No Content\r\n")
                for i in range(90):
                    line.sendall(b"x%d: y\r\n" % i)
                    sent.append(i)
                    time.sleep(0.02)
                line.sendall(b"\r\n")

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        with suppress(OSError, http.client.HTTPException):
            Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", SECRET).send("msg_a", b"{}")
        dripping.join()
    assert len(sent) < 90


def test_a_service_looks_by_itself_and_ends_while_its_receiver_is_away(receiver, monkeypatch):
    storage = MemoryStorage()
    with Client(storage) as client:
        failing_study(client)
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}", SECRET)
    app = create_app(storage, Settings(webhook=hook), routes=ROUTES)

    async def lived():
        async with app.router.lifespan_context(app):
            for _ in range(1000):
                if receiver.got:
                    return
                await asyncio.sleep(0.01)

    asyncio.run(lived())
    assert len(receiver.got) == 1  # the study was opened because something had happened in it


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("http://example.org/", SECRET), ("ftp://127.0.0.1/", SECRET), ("https://", SECRET), ("", SECRET),
        ("https://a:b@example.org/", SECRET), ("https://example.org:x/", SECRET), ("https://example.org/", "short"),
        ("https://example.org/\r\nHost: a", SECRET), ("https://example.org/\u00e4", SECRET),
        ("https://ex\u00e4mple.org/", SECRET), ("https://example.org/a b", SECRET),
        ("https://example.org/", "whsec_" + "!" * 32), ("https://example.org/", "whsec_MTIzNDU2Nw=="),
    ],
)  # fmt: skip
def test_a_webhook_needs_an_address_and_a_secret(url, secret):
    with pytest.raises(nr.errors.InvalidInput, match="webhook"):
        Webhook(url, secret)


def test_no_representation_shows_a_secret():
    hook = Webhook("https://example.org/", SECRET)
    service = Service("postgresql://me:hidden@example.org/a", "127.0.0.1", Settings(webhook=hook))
    for each in (hook, service.settings, service):
        assert SECRET not in repr(each)
        assert "hidden" not in repr(each)


def test_signals_are_in_the_metrics():
    with Client(MemoryStorage()) as client:
        failing_study(client)
        lines = client.get("/metrics")[1].decode().splitlines()
    found = {line for line in lines if line.startswith("nilregret_signal{")}
    assert len(found) == len(KINDS)
    assert 'nilregret_signal{kind="failing",study="shop",tenant="default"} 1.0' in found


def test_an_error_in_one_study_stops_no_other(receiver, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("float division by zero")

    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}", SECRET)
    with Client(MemoryStorage()) as client:
        client.put("/v1/studies/ill", {"policy": plain(POLICY)})
        client.get("/v1/studies/ill")
        failing_study(client)
        ill, _ = client.service.workers.open
        monkeypatch.setattr(ill.study.replica, "sync", broken)
        status, said = client.get("/metrics")
        assert status == 200
        assert b'nilregret_signal{kind="failing",study="shop",tenant="default"} 1.0' in said
        assert b'nilregret_signal{kind="failing",study="ill"' not in said
        look_and_send(client, hook)
        assert len(receiver.got) == 1
        said = client.get("/metrics")[1].decode()
        assert re.search(r'nilregret_process_study_errors_total{study="ill",tenant="default"} [1-9]', said)
    assert caplog.text.count("Traceback") == 1
    assert "Study 'ill' of tenant 'default' was left out" in caplog.text


def test_a_study_that_cannot_be_opened_does_not_keep_others_closed(monkeypatch):
    storage = MemoryStorage()
    with Client(storage) as client:
        for name in ("ill", "shop"):
            client.put(f"/v1/studies/{name}", {"policy": plain(POLICY)})
            client.post(f"/v1/studies/{name}/decisions", {})
    get = StudyWorkers.get

    async def opened(self, tenant, name):
        if name == "ill":
            raise ZeroDivisionError
        return await get(self, tenant, name)

    monkeypatch.setattr(StudyWorkers, "get", opened)
    with Client(storage) as client:
        client.run(client.service.workers.open_recent(since=0.0))
        assert [worker.name for worker in client.service.workers.open] == ["shop"]
        assert client.service.workers.errors == {("default", "ill"): 1}


def test_a_paused_study_sends_nothing(receiver):
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}", SECRET)
    with Client(MemoryStorage()) as client:
        failing_study(client)
        (worker,) = client.service.workers.open
        worker.study.group_commit([note_writing(as_note(StudyNotes(paused=True))).prepare(worker)], seconds=1.0)
        client.run(client.service.sender(hook).look())
        assert receiver.got == []


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_notes_of_several_studies_are_read_at_once(where, tmp_path):
    storage = MemoryStorage() if where == "memory" else SqlStorage(f"sqlite:///{tmp_path}/studies.db")
    made = [nr.Study(POLICY, storage=storage, name=name) for name in "abc"]
    for study, notes in zip(made, (StudyNotes(archived=True), StudyNotes(note="<b>", tags=("x",))), strict=False):
        study.group_commit([note_writing(as_note(notes)).prepare(None)], seconds=1.0)
    stored = [storage.find(name) for name in "abc"]
    assert notes_of(storage, stored) == [StudyNotes(archived=True), StudyNotes(note="<b>", tags=("x",)), StudyNotes()]
    assert notes_of(storage, stored[1:2]) == [StudyNotes(note="<b>", tags=("x",))]
    assert notes_of(storage, []) == []
    storage.close()
