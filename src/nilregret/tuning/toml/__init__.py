"""Tuning from a file: parameters, policy and objective in TOML, a study on disk, a table and a picture at the end."""
