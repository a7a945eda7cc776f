"""The type variable of a domain: a study of a `Space` has trials whose parameters are a dict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .domain import Domain

    D = TypeVar("D", bound=Domain, default=Any)  # a bare `Study` is of any domain
else:
    from typing import TypeVar

    D = TypeVar("D")
