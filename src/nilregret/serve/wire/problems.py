"""Problems that a caller is told: a status, a kind for programs and a sentence, and nothing internal.

The body is `{"error": {"kind": "...", "sentence": "...", "field": "..."}}`, with `field` if one entry of the request is
wrong.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ..._utils.checks import shown
from ...algorithms.schema import in_words, nearest
from ...errors import InvalidInput, MissingExtra, NoRegretError, StorageError, TrialError, printable
from .advice import MISSING, sentence_of

STEP = re.compile(r"\[[^]]*\]|[^.[\]]+")  # a step of a place such as "items[1].reward"
ELSEWHERE = " `/openapi.json` has those there are."


def fitting(said: str, kind: Any, place: str, unknown: str | None) -> str:
    """Returns the possible names or words, or the description of the entry, with a leading space, or "".

    Args:
        said: message of msgspec.
        kind: structure of the whole body or query. None if unknown.
        place: of the wrong value in the body, "" for the whole body.
        unknown: name of an entry that does not exist, if that is the error.
    """
    kinds = [] if kind is None else list(_at(msgspec.inspect.type_info(kind), STEP.findall(place)))
    if unknown is None and "enum value" not in said:
        found = [each.extra_json_schema or {} for each in kinds if isinstance(each, msgspec.inspect.Metadata)]
        described = {each["description"] for each in found if "description" in each}
        return f" It is described so: {described.pop()}" if len(described) == 1 else ""
    if unknown is None:
        words = [word for each in kinds if isinstance(each, msgspec.inspect.LiteralType) for word in each.values]
        return f" There are: {', '.join(repr(word) for word in words)}." if words else ELSEWHERE
    names = [
        field.encode_name for each in kinds if isinstance(each, msgspec.inspect.StructType) for field in each.fields
    ]
    return f"{nearest(unknown, names)} The entries are: {', '.join(names)}." if names else ELSEWHERE


def _at(kind: msgspec.inspect.Type, steps: list[str]) -> Iterator[msgspec.inspect.Type]:
    """Yields the types that a value at a place may have, and their metadata."""
    if isinstance(kind, msgspec.inspect.Metadata):
        yield from () if steps else (kind,)
        yield from _at(kind.type, steps)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for each in kind.types:
            yield from _at(each, steps)
    elif not steps:
        yield kind
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from _at(kind.item_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from _at(kind.value_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            if field.encode_name == steps[0]:
                yield from _at(field.type, steps[1:])


R = TypeVar("R")

LOG = logging.getLogger("nilregret.serve")
AT = re.compile(r" - at `(?:\$|key in \$)\.?(.*?)`$")  # the place in a message of msgspec
ENTRY = re.compile(r"(?:unknown|required) field `(.*?)`")  # the entry in a message of msgspec
FIELD = re.compile(r"`(\w+(?:\.[^`]+)?)`")  # the entry that an error of the library begins with
TOLD = "_nilregret_told"  # attribute of an error: its problem
# Sentences about errors of the server, which any caller may read.
AWAY = "The storage could not be used just now (the server's log has more under {id}). Try again."
LACKING = "The server lacks a package that this needs (its log has more under {id})."
BROKEN = "Something went wrong in the server (its log has more under {id}). Trying again is harmless."
KINDS = {  # words for programs
    "malformed": "It is no request of this API, or no JSON.",
    "invalid": "A value cannot be used; `field` says which.",
    "refused": "What is asked for cannot be decided: everything has failed, say.",
    "key_reused": "The `Idempotency-Key` came before with another request.",
    "not_found": "There is nothing at this address.",
    "no_study": "There is no such study for this caller.",
    "no_decision": "There is no such decision in this study.",
    "no_arm": "There is no such arm in this study.",
    "no_trial": "Likewise, on a page of the dashboard.",
    "no_page": "There is no such download of the trials.",
    "method": "The address does not take this method.",
    "conflict": "It contradicts what is on record.",
    "another": "A study of this name was made with something else; `field` says with what.",
    "token": "No token, or one that opens nothing.",
    "role": "The token's role may not do this.",
    "origin": "A page of another origin sent it.",
    "proxy": "It came from elsewhere, and there are no tokens yet.",
    "host": "The service does not answer to the name in `Host`.",
    "form": "Logging in takes another form.",
    "type": "The body is said to be something else than JSON.",
    "too_large": "The body, or the headers, are too large.",
    "slow": "It came, or was answered, too slowly.",
    "rate": "Too many requests; `Retry-After` says when to go on.",
    "at_once": "Too many requests of this caller are being answered.",
    "paused": "Somebody has paused the study.",
    "pending": "Too many decisions wait for an answer.",
    "streams": "Too many streams of events of this caller are open.",
    "busy": "Too many calls wait for this study; try again.",
    "storage": "The storage could not be used just now; try again.",
    "missing": "The server lacks a package that this needs.",
    "internal": "Something went wrong in the server.",
}
PLAIN = {
    400: ("malformed", "The request is not one that this service understands."),
    404: ("not_found", "There is nothing here; `/openapi.json` lists the addresses that there are."),
    405: ("method", "This address does not take that method; `/openapi.json` lists those it takes."),
    413: ("too_large", "The request is larger than this service takes."),
}


@final
class Problem(Exception):
    """A refusal that the caller is told.

    Args:
        status: of HTTP.
        kind: a word for programs.
        sentence: for people: what happened, the usual cause, what to try.
        field: the wrong entry of the request, such as "context.day".
        headers: of the response.
    """

    def __init__(
        self, status: int, kind: str, sentence: str, *, field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        sentence = printable(sentence)
        super().__init__(sentence)
        self.status, self.kind, self.sentence, self.field = status, kind, sentence, field
        self.headers = dict(headers or {})

    def to_dict(self) -> dict[str, Any]:
        """Returns the body as plain values."""
        said = {"kind": self.kind, "sentence": self.sentence}
        return {"error": said if self.field is None else said | {"field": self.field}}

    def body(self) -> bytes:
        """Returns the body as JSON."""
        return msgspec.json.encode(self.to_dict())


def about(field: str, do: Callable[..., R], *given: Any, always: bool = False) -> R:
    """Returns `do(*given)`. An error about a value names this entry of the request.

    Args:
        field: the entry.
        do: function that may refuse the value.
        given: its arguments.
        always: whether to name this entry even if the error names another one, which the request does not have.

    Raises:
        Problem: 422, the value cannot be used.
    """
    try:
        return do(*given)
    except NoRegretError as error:
        problem = problem_of(error)
        if isinstance(error, InvalidInput):
            problem.field = field if always else problem.field or field
        raise problem from error


def problem_of(error: Exception, *, hide: Iterable[tuple[str, str]] = ()) -> Problem:
    """Returns the problem that the caller is told. Internal details go to the log, under an id that the caller is told.

    Advice to Python programs is replaced by advice in terms of HTTP: see `advice`.

    Args:
        error: of any class.
        hide: texts that no caller may see, such as the URL of the storage, each with its replacement.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, RecursionError):
        return Problem(400, "malformed", "The body has lists or objects within one another more deeply than is read.")
    if isinstance(error, msgspec.DecodeError):  # a `ValidationError` among them
        return _of_json(error)
    if isinstance(error, HTTPException):
        kind, sentence = PLAIN.get(error.status_code, ("refused", "The request was refused."))
        return Problem(error.status_code, kind, sentence, headers=error.headers)
    if isinstance(error, StorageError):
        return _logged(error, 503, "storage", AWAY)
    if isinstance(error, MissingExtra):
        return _logged(error, 501, "missing", LACKING)
    if isinstance(error, NoRegretError):
        return _refused(error, _hidden(sentence_of(error), hide))
    return _logged(error, 500, "internal", BROKEN)


def response_of(problem: Problem) -> Response:
    """Returns the problem as a response."""
    return Response(problem.body(), problem.status, problem.headers, media_type="application/json")


async def tell(_: Request, error: Exception) -> Response:
    """Returns the response to an error. This is the handler of all errors of the application."""
    return response_of(problem_of(error))


HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = dict.fromkeys(
    (Problem, NoRegretError, msgspec.DecodeError, HTTPException, Exception), tell
)


def _refused(error: NoRegretError, sentence: str) -> Problem:
    if error.topic in MISSING:
        kind, field = MISSING[error.topic]
        return Problem(404, kind, sentence, field=field)
    if isinstance(error, InvalidInput):
        return Problem(422, "invalid", sentence, field=_field(error))
    return Problem(409, "conflict", sentence) if isinstance(error, TrialError) else Problem(422, "refused", sentence)


def _field(error: InvalidInput) -> str | None:
    """Returns the entry that the error's sentence begins with, after the entries in which it was found."""
    named = FIELD.match(error.what)
    return ".".join((*error.places, named[1]) if named else error.places) or None


def unfit(what: str, error: msgspec.ValidationError, kind: Any = None) -> Problem:
    """Returns the problem that a body or a query string does not have the right entries or types.

    Args:
        what: subject of the sentence, such as "The body".
        error: of msgspec, with the place.
        kind: expected structure, whose entries and words are suggested if an entry is unknown.
    """
    said = str(error)
    found, named = AT.search(said), ENTRY.search(said)
    inner = [found[1]] if found and found[1] else []
    field = ".".join([*inner, named[1]] if named else inner)
    where = f" (`{field}`)" if field else ""
    place, unknown = found[1] if found else "", named[1] if named and "unknown" in said else None
    hint = fitting(said, kind, place, unknown)
    said = in_words(AT.sub("", said), "an object")
    return Problem(
        422,
        "invalid",
        f"{what} does not fit{where}: {said}.{hint}",
        field=field or None,
    )


def _of_json(error: msgspec.DecodeError) -> Problem:
    said = str(error)
    if isinstance(error, msgspec.ValidationError):
        return unfit("The body", error)
    return Problem(400, "malformed", f"The body is no JSON: {shown(said, length=200)[1:-1]}.")


def _logged(error: Exception, status: int, kind: str, sentence: str) -> Problem:
    told = getattr(error, TOLD, None)  # Starlette raises an error again after a handler has answered
    if isinstance(told, Problem):
        return told
    id = secrets.token_hex(6)  # noqa: A001 - the name in messages
    if isinstance(error, StorageError):  # the sentence says all, and without a database every request logs one
        LOG.error("%s %s: %s", id, kind, error)
    else:
        LOG.error("%s %s", id, kind, exc_info=error)
    problem = Problem(status, kind, sentence.format(id=id), headers={"Retry-After": "1"} if status == 503 else None)
    setattr(error, TOLD, problem)
    return problem


def _hidden(sentence: str, hide: Iterable[tuple[str, str]]) -> str:
    for text, instead in hide:
        if text:
            sentence = sentence.replace(text, instead)
    return sentence
