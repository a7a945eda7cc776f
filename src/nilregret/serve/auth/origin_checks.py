"""Checks of `Host` and `Origin` against requests that a page of another site makes a browser send.

Any page can make its visitor's browser send requests to 127.0.0.1. The owner of a domain name can let the name point
there (DNS rebinding), so that the page even reads the answers. A browser says in `Host` which name the request was for.
It says in `Origin` and `Sec-Fetch-Site` which page sent the request. Both are checked on every request of any method.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from ..._utils.checks import is_loopback, shown
from ..._utils.dataclass import dataclass
from ...errors import InvalidInput
from ..wire.problems import Problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]{0,252}))(?::([0-9]{1,5}))?")
NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
ORIGIN = re.compile(r"(https?)://(.+)")
PORTS = {"http": ":80", "https": ":443"}  # default ports, which browsers leave out
# Headers that proxies add, besides all that begin with X-Forwarded: standard ones first, then those of vendors.
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
    """Host names of a service.

    Args:
        hosts: names besides those of loopback, as in `Host`, without a port.
        any_address: whether every IP address is accepted. DNS rebinding needs a name, not an address.
    """

    hosts: frozenset[str] = frozenset()
    any_address: bool = False

    def has(self, host: str) -> bool:
        """Returns whether the service has this host name."""
        return host in LOOPBACK or host in self.hosts or (self.any_address and _is_address(host))


def bound_to(host: str, *more: str) -> Names:
    """Returns the names of a service that is bound to this address and has further names."""
    plain = host.strip("[]").lower()
    wild = plain in ("0.0.0.0", "::", "")
    own = () if wild else (f"[{plain}]" if ":" in plain else plain,)
    return Names(frozenset({*own, *(name.lower() for name in more)}), any_address=wild)


def check_address(host: str) -> str:
    """Returns an address or a name to listen at, without the brackets of an IPv6 address.

    Raises:
        InvalidInput: `host` is neither an address nor a name.
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
    """Returns a public host name of the service.

    Raises:
        InvalidInput: `name` is no host name.
    """
    if not _is_named(name):
        raise InvalidInput(
            f"`--public-host` is {shown(name)}: write the name as it stands in the address of a page, without https:// "
            "before it and without a port: decide.example.org."
        )
    return f"[{name}]" if ":" in name else name


def check_proxies(addresses: str) -> str:
    """Returns addresses or networks of proxies, with commas.

    Raises:
        InvalidInput: one of them is no address or network.
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
    """Returns whether a service bound to this host may be open to its own machine: only names of `LOOPBACK` are."""
    plain = host.strip("[]").lower()
    return plain in LOOPBACK or f"[{plain}]" in LOOPBACK


def check(
    headers: Mapping[str, str], method: str, names: Names, *, tls: bool = False, nameless: bool = False
) -> str:  # fmt: skip
    """Returns the host of a request, without its port, and refuses requests from pages of other sites.

    Args:
        headers: by lower-case name.
        method: of HTTP.
        names: of this service.
        tls: whether the request is known to have come over TLS. If not, a proxy may have decrypted it.
        nameless: whether `Host` may be absent, as in checks of health by load balancers. Every browser sends it.

    Raises:
        Problem: 421 for a foreign `Host`, 403 for a foreign page.
    """
    host = headers.get("host", "").lower()
    found = AUTHORITY.fullmatch(host)
    name = "" if found is None else found[1]
    if not names.has(name) and not (nameless and not host):
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
    return name


def check_direct(headers: Mapping[str, str], host: str, client: str | None, *, version: str = "1.1") -> None:
    """Refuses requests that did not come directly from this machine, for a service that is open to it.

    A proxy on the same machine would let in every client of the proxy. Most proxies add a header. nginx adds none by
    default, and speaks HTTP/1.0, which no browser does.
    """
    proxy = not PROXIES.isdisjoint(headers) or f" {FORWARDED}" in " ".join(["", *headers])
    if host not in LOOPBACK or proxy or version == "1.0" or (client is not None and not is_loopback(client)):
        raise Problem(
            403, "proxy",
            "Without tokens the service answers to its own machine alone, and this request came from elsewhere or "
            "through a proxy. Make a token: `nilregret token new`.",
        )  # fmt: skip


def _foreign() -> Problem:
    return Problem(403, "origin", "A page of another site sent this request, which no site may do.")


def _is_visit(headers: Mapping[str, str], method: str) -> bool:
    """Returns whether a visitor followed a link, which changes nothing and shows the other page nothing."""
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
