"""The evaluation of a file's objective: a Python function, or a shell command that prints its answer last."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import string
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO, Any, NamedTuple, cast, final

from ..._utils.checks import shown
from ..._utils.dataclass import dataclass
from ...algorithms.registry import imported
from ...domains.domain import Space
from ...domains.options import json_of
from ...domains.parameters import Choice
from ...errors import SHOWN, InvalidInput, exception_text, one_line
from ...storage.trial import Trial
from ...study.study import Study
from ..objective import LONGEST, Evaluation, Task, TimeLimited, check_objective, current_trial
from ..open_study import check_constraint_count, check_objectives, named_goals
from ..outcome import ConstraintReader, Malformed, Outcome, Unusable, answer_reader
from ..run_options import check_no_context
from . import config

# A shell command with fields for parameters, in which each value is one word.
#
# Every value is quoted. Quotes protect a value only where the shell would read a word. Inside quotes, backquotes,
# arithmetic, here-documents and comments a quote is an ordinary character, and `$(...)` in a value would run. Fields
# in such places are therefore refused when the file is loaded.

BRACES = "Write {{ and }} for braces meant for the shell."
FIELD = "\0"  # It represents a value while a template is checked. No command can contain it.

# The constructs between fields, as POSIX shells and bash read them. Each has an opening, the whole construct without a
# field, and the remedy if a field stands inside. The content of a whole construct is skipped.
_NONE = r"(?!)"
_CONSTRUCTS: list[tuple[str, str, str]] = [
    (r"\\[\s;&|()<>]#", _NONE, "a field stands after an escaped space and a #: leave the # out"),
    (r"\\", r"\\[^\0]", "a backslash stands before a field: leave it out, the value is quoted already"),
    (r"'", r"'[^'\0]*'", "a field stands inside quotes: write {name} without quotes, the value is quoted already"),
    (
        r'"',
        r'"(?:[^"\\$`\0]|\\[^\0]|\$\{\w+\}|\$(?![({\0\[]))*"',
        "a field stands inside double quotes, or after quotes with $(...) or `...` in them: write {name} without "
        "quotes, the value is quoted already, and take $(...) out of the quotes or put it into a script",
    ),
    (r"`", r"`[^`\\\0]*`", "a field stands inside backquotes: write $(...) instead"),
    (
        r"\$\(\(|\$\[|\(\(|\[\[|\w\[(?=[^\]\s]*\0)",
        r"\$?\(\([^()'\"`\\\0]*\)\)",
        "a field stands in or after arithmetic or [[ ]], where the shell evaluates what it holds: give the value to a "
        "script instead",
    ),
    (r"\$\{", r"\$\{\w+\}", "a field stands in or after ${...} that is more than a name: do that in a script"),
    (r"\$'", _NONE, "a field stands after $'...': write the quotes without $"),
    (r"\$\0", _NONE, "a $ stands before a field: write {name}, not ${name}"),
    (r"<<", _NONE, "a field stands in or after a here-document (<<): put it into a script"),
    (r"(?:(?<=[\s;&|()<>])|\A)#", r"#[^\n\0]*(?:\n|\Z)", "a field stands in a comment: leave it out"),
    (r"(?<![\w./-])eval(?![\w./-])", _NONE, "a field stands after eval, which would run what it holds: leave eval out"),
]
_OPENINGS = re.compile("|".join(f"(?P<_{i}>{opening})" for i, (opening, _, _) in enumerate(_CONSTRUCTS)))


def filled(template: str, names: Iterable[str], *, options: Iterable[str] = ()) -> Callable[[Mapping[str, Any]], str]:
    """Returns the function from parameters to a command, or raises an error if a value could do harm.

    A parameter that its conditions leave out is an empty word.

    Args:
        template: the command with {name} for parameters.
        names: names of the parameters.
        options: texts that are values of parameters.
    """
    if not template.strip():
        raise InvalidInput("[objective] `command` is empty.")
    if any("\0" in text for text in (template, *options)):
        raise InvalidInput("[objective] a `command` cannot be given a NUL character.")
    known = list(names)
    awkward = [name for name in known if not name.isidentifier()]
    if awkward:
        raise InvalidInput(
            f"[objective] a `command` can only take parameters named with letters, digits and _, not {awkward[0]!r}."
        )
    pieces = _pieces(template.strip(), known)
    _check_places("".join(literal + (FIELD if name is not None else "") for literal, name in pieces))
    return lambda parameters: "".join(
        literal + ("" if name is None else quoted(_word(parameters.get(name, "")))) for literal, name in pieces
    )


def _word(value: Any) -> str:
    """Returns a value as text: a list or dict as JSON, which every language reads."""
    return json_of(value) if isinstance(value, list | dict | tuple) else str(value)


def quoted(value: str) -> str:
    """Returns a value as one word of a shell, always in quotes, since `PATH=x` or `2` have special meanings."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _pieces(template: str, known: list[str]) -> list[tuple[str, str | None]]:
    """Returns pairs of text and the parameter that follows. None at the end and around doubled braces."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidInput(f"[objective] `command` {shown(template)}: {error}. {BRACES}") from error
    for _, name, specification, conversion in parsed:
        if name is None:
            continue
        if specification or conversion:
            raise InvalidInput(
                f"[objective] `command` has {{{name}{'!' + conversion if conversion else ''}"
                f"{':' + specification if specification else ''}}}: a value cannot be converted or formatted, as its "
                f"quotes would go; write {{{re.split(r'[.[]', name)[0] or known[0]}}}."
            )
        if name not in known:
            raise InvalidInput(
                f"[objective] `command` names {name!r}; the parameters are {', '.join(known)}, each written as "
                f"{{{known[0]}}}, without a part of it or anything else in the braces. {BRACES}"
            )
    return [(literal, name) for literal, name, _, _ in parsed]


def _check_places(text: str) -> None:
    """Raises an error for a field in a place where a quoted value would not be one word."""
    position = 0
    while FIELD in text[position:]:
        opening = _OPENINGS.search(text, position)
        if opening is None:
            return
        _, whole, remedy = _CONSTRUCTS[int(str(opening.lastgroup)[1:])]
        construct = re.compile(whole).match(text, opening.start())
        if construct is None:
            if FIELD in text[opening.start() :]:
                raise InvalidInput(f"[objective] in `command` {remedy}.")
            return
        position = construct.end()


POLL = 0.05  # Seconds between two looks at a growing output.
READ = 1 << 20  # The number of bytes that are read at the end of an output.
# This command ends its process group when its input ends. The input ends when the process at the other end of the pipe
# has ended for any reason. Signals of a terminal do not reach a process group of its own.
WATCH = "read -r _; kill -s KILL 0"


class Ended(NamedTuple):
    """The result of a command.

    Attributes:
        status: its exit status.
        output: the end of its output.
        errors: the end of its error output.
    """

    status: int
    output: str
    errors: str


TRIAL = "NILREGRET_TRIAL"  # The environment variable of a command with the number of its trial.


def run(
    command: str, folder: Path, timeout: float | None, number: int = 0, *, by_lines: bool = False
) -> Generator[str, None, Ended]:
    """Runs a command to its end. An interrupt of the wait, or a `kill -9` of this process, ends the process group.

    Output goes to files, because a pipe would stay open for processes that the command leaves running. These processes
    end with the command if they are in its process group.

    Args:
        command: the command, for a shell.
        folder: the working directory.
        timeout: seconds that the command may take, or None.
        number: of the trial, which the command has in its environment.
        by_lines: whether each line is yielded when it has been printed. Python then prints lines at once.

    Raises:
        InvalidInput: lines are wanted on a system that cannot read a file which another process writes.
        subprocess.TimeoutExpired: the command took longer than the timeout.
        OSError: the command could not be started.
        ValueError: the command could not be encoded.
    """
    if by_lines and not hasattr(os, "pread"):
        raise InvalidInput(
            "This system cannot read the lines of a command while it runs, since it has no `os.pread`, as on Windows. "
            "Take `function` in place of `command`: a Python generator that yields its value after each step."
        )
    environment = os.environ | {TRIAL: str(number)} | ({"PYTHONUNBUFFERED": "1"} if by_lines else {})
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _group() as group:
            process = subprocess.Popen(
                command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                process_group=group, env=environment,
            )  # fmt: skip
            try:
                if by_lines:
                    yield from _lines(process, output, timeout)
                status = process.wait(timeout)
            except BaseException:
                _end(group, process)
                process.wait()
                raise
        return Ended(status, _end_of(output), _end_of(errors))


def _lines(process: subprocess.Popen[bytes], output: IO[bytes], timeout: float | None) -> Iterator[str]:
    """Yields the lines of a growing output until the process has ended."""
    until, at, rest, ended = math.inf if timeout is None else monotonic() + timeout, 0, b"", False
    while not ended:
        try:
            process.wait(POLL)
            ended = True
        except subprocess.TimeoutExpired:
            if timeout is not None and monotonic() > until:
                raise subprocess.TimeoutExpired(process.args, timeout) from None
        while found := os.pread(output.fileno(), READ, at):
            at += len(found)
            *whole, rest = (rest + found).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in whole)
    if rest:
        yield rest.decode("utf-8", "replace")


@contextmanager
def _group() -> Iterator[int | None]:
    """Yields a process group that ends with this block or this process. None if there are no process groups."""
    if not hasattr(os, "killpg"):
        yield None
        return
    watch = subprocess.Popen(
        ["/bin/sh", "-c", WATCH], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        process_group=0,
    )  # fmt: skip
    try:
        yield watch.pid
    finally:
        _end(watch.pid, watch)  # This comes before `communicate`, after which the number may belong to another process.
        watch.communicate()


def _end(group: int | None, process: subprocess.Popen[bytes]) -> None:
    if group is None or not hasattr(os, "killpg"):
        process.kill()
        return
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS raises this for a group whose processes have ended.
        process.kill()


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - READ, 0))
    return file.read().decode("utf-8", "replace")


def evaluator(job: config.TuningFile, executor: Executor | None = None) -> Task:
    """Returns the task of a tuning file, for this process or for an executor, after all checks that need no trial.

    With an executor of threads each evaluation runs in a process of its own. So evaluations run in parallel and can be
    ended.
    """
    objective = job.objective
    apart = isinstance(executor, ThreadPoolExecutor)
    if objective.function is None:
        command = _command(
            objective, job.folder, job.space, job.reader, by_lines=job.reports
        )  # It has a time limit of its own.
        return TimeLimited(command, LONGEST) if apart else command
    task = _function(objective.function, job.folder, job.space, job.reader)
    if executor is not None:
        task = ImportedFunction(objective.function, job.folder, job.reader)
    if objective.timeout is not None:
        return TimeLimited(task, objective.timeout)
    return TimeLimited(task, LONGEST) if apart else task


def task_of(study: Study, reference: str, *, timeout: float | None) -> Task:
    """Returns the task that evaluates a study's trials.

    Args:
        study: the study.
        reference: "module:function", with a module in the current folder or an installed one. Or the path of a tuning
            file.
        timeout: seconds that an evaluation may take. Unless given, that of the tuning file.
    """
    check_no_context(study.policy)
    if reference.endswith(".toml"):
        return _of_file(study, Path(reference), timeout)
    module, _, name = reference.partition(":")
    if not module or not name:
        raise InvalidInput(
            f"The objective is {shown(reference)}: it must be 'module:function', such as 'svm:accuracy', or a tuning "
            "file, which ends in .toml."
        )
    function = imported("The objective", reference, module, name, Path.cwd())
    check_objective(function, study.policy.domain, what=f"The objective {reference!r}")
    task = Evaluation(function, answer_reader(study.policy.constraint_count or None, None, named_goals(study)))
    return task if timeout is None else TimeLimited(task, timeout)


def _of_file(study: Study, path: Path, timeout: float | None) -> Task:
    job = config.load(path)
    if job.domain != study.policy.domain or job.goals != study.goals:
        raise InvalidInput(
            f"{path} is of other parameters, or another goal, than study {study.name!r}: it must be the file that the "
            "study was made from."
        )
    check_objectives(study.policy, job.reader)
    check_constraint_count(study.policy, job.reader)
    task = evaluator(job)
    return task if timeout is None or isinstance(task, TimeLimited) else TimeLimited(task, timeout)


@final
@dataclass(frozen=True)
class ImportedFunction:
    """A task that a remote worker imports by itself, from the folder of the file on a shared disk.

    Attributes:
        reference: "module:function".
        folder: folder of the file.
        reader: reads the constraint values of answers.
    """

    reference: str
    folder: Path
    reader: ConstraintReader

    def __call__(self, trial: Trial) -> Outcome:
        """Returns the outcome of one evaluation."""
        module, _, name = self.reference.partition(":")
        function = imported("[objective] `function`", self.reference, module, name, self.folder)
        return Evaluation(function, self.reader)(trial)._replace(error=None)


def _function(reference: str, folder: Path, space: Space, reader: ConstraintReader) -> Task:
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise InvalidInput(f"[objective] `function` is {reference!r}: write 'module:function', such as 'svm:accuracy'.")
    function = imported("[objective] `function`", reference, module_name, function_name, folder)
    check_objective(function, space, what=f"[objective] `function` {reference!r}")
    return Evaluation(function, reader)


def _command(
    objective: config.Evaluation, folder: Path, space: Space, reader: ConstraintReader, *, by_lines: bool
) -> Task:
    choices = [p.options for p in space.parameters.values() if isinstance(p, Choice)]
    texts = [option for options in choices for option in options if isinstance(option, str)]
    command = filled(objective.command or "", space.parameters, options=texts)

    def printed(**parameters: Any) -> object:
        *_, ended = _printed(command(parameters), folder, objective.timeout)
        lines = cast(Ended, ended).output.strip().splitlines()
        if not lines:
            raise Malformed("it printed nothing; its last line must be a number or JSON")
        return _parsed(lines[-1].strip())

    def reported(**parameters: Any) -> Iterator[object]:
        none = True
        with contextlib.closing(_printed(command(parameters), folder, objective.timeout, by_lines=True)) as lines:
            for line in lines:
                answer = _step(line) if isinstance(line, str) else None
                if answer is not None:
                    none = False
                    yield answer
        if none:
            raise Malformed("it printed no line that is a number or a JSON object, which a trial with steps must do")

    return Evaluation(reported if by_lines else printed, reader, waits=False)  # A command does not wait.


def _printed(
    command: str, folder: Path, timeout: float | None, *, by_lines: bool = False
) -> Generator[str | Ended, None, None]:
    """Yields the lines of a command's output if they are wanted, and the end."""
    try:
        ended = yield from run(command, folder, timeout, current_trial().number, by_lines=by_lines)
    except subprocess.TimeoutExpired:
        raise Unusable(f"no answer within {timeout:g} s") from None
    except (OSError, ValueError) as error:
        raise Unusable(f"it could not be started: {exception_text(error)}") from error
    if ended.status != 0:
        message = one_line(ended.errors) or one_line(ended.output) or "it said nothing"
        raise Unusable(f"exit status {ended.status}: {message}")
    yield ended


def _step(line: str) -> object:
    """Returns the answer in a line, a number or a JSON object. None for other lines, which people read."""
    with contextlib.suppress(Malformed):
        answer = _parsed(line.strip())
        return answer if isinstance(answer, float | int | dict) and not isinstance(answer, bool) else None
    return None


def _parsed(line: str) -> object:
    with contextlib.suppress(ValueError):
        return float(line)  # It also reads .5, 5. and +0.5, which are not JSON.
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise Malformed(f"its last line is neither a number nor JSON: {line[:SHOWN]!r}") from None
