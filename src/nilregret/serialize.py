"""Descriptions as JSON, for kernels, domains and parts of your own: decorate a frozen dataclass with `described`."""

from ._utils.serialize import described, described_by, dumps, entries, from_plain, is_described, loads, to_plain

__all__ = ["described", "described_by", "dumps", "entries", "from_plain", "is_described", "loads", "to_plain"]
