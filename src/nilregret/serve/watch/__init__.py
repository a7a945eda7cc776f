"""Metrics, signals to the operator, and the audit log."""
