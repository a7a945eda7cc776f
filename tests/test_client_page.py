"""The curl and JavaScript of the pages on the service do what the pages say, against a real server on this machine."""

import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import playwright
import pytest

from nilregret.client import Client
from nilregret.testing.serving import Serving

from .waiting import LONG

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [(DOCS / name).read_text() for name in ("service.md", "client.md")]  # curl, then JavaScript
BLOCKS = [block for page in PAGES for block in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)]
CURL = shutil.which("curl")
NODE = Path(playwright.__file__).parent / "driver" / "node"  # no other is needed for the tests


@pytest.fixture
def url():
    with Serving() as service:
        yield service.url


def sent(command, url):
    """What curl gets; without curl, what it would: the pages' commands use -X, -H and -d."""
    parts = shlex.split(command.replace("http://127.0.0.1:8000", url))
    if CURL is not None:
        done = subprocess.run(
            [CURL, "-s", "-w", "\n%{http_code}", *parts[1:]], capture_output=True, text=True, timeout=LONG, check=True
        )
        text, _, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text)
    words = iter(parts)
    assert next(words) == "curl"
    method, place, headers, body = "GET", "", {}, None
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, value = next(words).split(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words)
        else:
            place = word
    parts = urlsplit(place)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=LONG)
    connection.request(method, parts.path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def commands():
    joined = "\n".join(text for language, text in BLOCKS if language == "sh").replace("\\\n", "")
    return re.findall(r"^curl .*?(?=^\w|\Z)", joined, re.M | re.S)  # a body may have several lines


def test_rank_and_reward_of_those_who_come_from_personalizer(url):
    page = (DOCS / "from-personalizer.md").read_text().replace("\\\n", "")
    make, ask, tell = re.findall(r"^curl .*?(?=^\w|^`)", page, re.M | re.S)
    assert sent(make, url)[0] == 201
    status, said = sent(ask, url)
    assert (status, said, said["decisions"][0]["event"]) == (*sent(ask, url), "visit-1")
    status, answer = sent(tell, url)
    assert (status, answer["reward"], answer["id"]) == (200, 1.0, said["decisions"][0]["id"])


def test_curl_and_javascript(url, tmp_path):
    make, ask, tell, *_ = commands()
    assert sent(make, url)[0] == 201
    assert sent(make, url)[0] == 200
    status, said = sent(ask, url)
    assert status == 201
    assert said == sent(ask, url)[1]
    assert 1 <= said["decisions"][0]["parameters"]["price"] <= 9
    status, answer = sent(tell.replace("ID", said["decisions"][0]["id"]), url)
    assert (status, answer["reward"], answer["counted"]) == (200, 4.5, True)

    (script,) = [text for language, text in BLOCKS if language == "javascript"]
    (tmp_path / "page.mjs").write_text(script.replace("http://127.0.0.1:8000", url))
    done = subprocess.run(
        [NODE, tmp_path / "page.mjs"], capture_output=True, text=True, timeout=LONG, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"charge \d\S*\n", done.stdout)
    assert Client(url).study("prices").status().trials == {"all": 2, "observed": 2}
