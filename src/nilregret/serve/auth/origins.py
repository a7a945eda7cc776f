"""Which requests a browser was made to send by a page of somebody else's.

A page anywhere can make the browser of whoever looks at it send requests to 127.0.0.1; and the owner of a name can let
it point there (DNS rebinding), so that the page even reads the answers. Browsers say by `Host` which name the request
was for, by `Origin` and `Sec-Fetch-Site` whose page sent it. Both are checked on every request, whatever its method.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..._utils.checks import shown
from ..._utils.errors import InvalidInput
from ..problems import Problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]{0,252}))(?::([0-9]{1,5}))?")
NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
ORIGIN = re.compile(r"(https?)://(.+)")
PORTS = {"http": ":80", "https": ":443"}  # which browsers leave out
# Headers that a proxy leaves, besides all that begin with X-Forwarded: those of the standards, then those of makers.
PROXIES = frozenset({
    "forwarded", "via", "cdn-loop",
    "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-forwarded-for", "x-original-host", "x-proxyuser-ip",
    "true-client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "cf-ray", "cf-visitor", "fastly-client-ip",
    "fly-client-ip", "x-appengine-user-ip", "x-azure-clientip", "x-azure-socketip", "x-envoy-external-address",
    "x-amzn-trace-id", "x-arr-ssl", "x-vercel-forwarded-for", "client-ip",
})  # fmt: skip
FORWARDED = "x-forwarded"


@dataclass(frozen=True)
class Names:
    """The names that a service answers to.

    Args:
        hosts: besides those of loopback; as in `Host`, without a port.
        any_address: whether to every address of the machine too. A name that points somewhere else is no address.
    """

    hosts: frozenset[str] = frozenset()
    any_address: bool = False

    def has(self, host: str) -> bool:
        """Whether this is one of them."""
        return host in LOOPBACK or host in self.hosts or (self.any_address and _is_address(host))


def bound_to(host: str, *more: str) -> Names:
    """Those of a service that is bound to this address, and known under more names."""
    plain = host.strip("[]").lower()
    wild = plain in ("0.0.0.0", "::", "")
    own = () if wild else (f"[{plain}]" if ":" in plain else plain,)
    return Names(frozenset({*own, *(name.lower() for name in more)}), any_address=wild)


def check_address(host: str) -> str:
    """An address or a name to listen at, without the brackets that an IPv6 one has in a URL.

    Raises:
        InvalidInput: it is neither.
    """
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not _is_named(plain):
        raise InvalidInput(
            f"`--host` is {shown(host)}: write an address of this machine, such as 127.0.0.1 or ::1, or its name, "
            "without http:// before it and without a port (that is --port). Sockets of Unix are not supported: put a "
            "proxy before the service."
        )
    return plain


def check_name(name: str) -> str:
    """A name by which a service may be called.

    Raises:
        InvalidInput: it is none.
    """
    if not _is_named(name):
        raise InvalidInput(
            f"`--public-host` is {shown(name)}: write the name as it stands in the address of a page, without https:// "
            "before it and without a port: decide.example.org."
        )
    return f"[{name}]" if ":" in name else name


def check_proxies(addresses: str) -> str:
    """Addresses or networks of proxies, with commas.

    Raises:
        InvalidInput: one of them is neither.
    """
    for each in addresses.split(","):
        try:
            ipaddress.ip_network(each.strip(), strict=False)
        except ValueError:
            raise InvalidInput(
                f"`--proxy` is {shown(addresses)}: write the address that its requests come from, such as 127.0.0.1, "
                "or a network, such as 10.0.0.0/8. Whoever else says for whom it speaks is not believed."
            ) from None
    return addresses


def is_own(host: str) -> bool:
    """Whether a service that is bound to it may be open to its own machine: under the names of `LOOPBACK` alone."""
    plain = host.strip("[]").lower()
    return plain in LOOPBACK or f"[{plain}]" in LOOPBACK


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether an address is of the machine itself."""
    plain = host.strip("[]").lower()
    if plain == "localhost":
        return True
    try:
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return False


def check(headers: Mapping[str, str], method: str, names: Names, *, tls: bool = False) -> str:
    """Refuse what a page of somebody else's sent; returns the host that the request was for, without its port.

    Args:
        headers: by their names in small letters; each once.
        method: of HTTP.
        names: of this service.
        tls: whether it is known to have come over TLS; where it is not, a proxy may have ended it.

    Raises:
        Problem: 421 for a foreign `Host`, 403 for a foreign page.
    """
    host = headers.get("host", "").lower()
    found = AUTHORITY.fullmatch(host)
    if found is None or not names.has(found[1]):
        raise Problem(
            421, "host",
            "The service does not answer to the name in `Host`. Ask it by the address it was started for, or start it "
            "with --public-host NAME.",
        )  # fmt: skip
    origin = headers.get("origin")
    if origin is not None:
        of = ORIGIN.fullmatch(origin.lower())
        if (
            of is None
            or (tls and of[1] != "https")
            or of[2].removesuffix(PORTS[of[1]]) != host.removesuffix(PORTS[of[1]])
        ):
            raise _foreign()
    elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not _is_visit(headers, method):
        raise _foreign()
    return found[1]


def check_direct(headers: Mapping[str, str], host: str, client: str | None, *, version: str = "1.1") -> None:
    """Refuse, where the service is open to its own machine, what did not come from it directly.

    A proxy on the same machine would let in whoever reaches the proxy. Most say that they are one; nginx, unless told
    to, does not, and speaks HTTP/1.0, which no browser does.
    """
    proxy = any(name in PROXIES or name.startswith(FORWARDED) for name in headers)
    if host not in LOOPBACK or proxy or version == "1.0" or (client is not None and not is_loopback(client)):
        raise Problem(
            403, "proxy",
            "Without tokens the service answers to its own machine alone, and this request came from elsewhere or "
            "through a proxy. Make a token: `nilregret token new`.",
        )  # fmt: skip


def _foreign() -> Problem:
    return Problem(403, "origin", "A page of another site sent this request, which no site may do.")


def _is_visit(headers: Mapping[str, str], method: str) -> bool:
    """Somebody followed a link to us: it changes nothing, and the other page does not see what comes."""
    return (
        method == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest", "document") == "document"
    )


def _is_named(host: str) -> bool:
    return bool(NAME.fullmatch(host)) or (":" in host and "[" not in host and _is_address(host))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
