"""Domains of decisions: arms, boxes and spaces of named parameters."""
