"""Optimisation from a TOML file of parameters, policy and objective, with a study on disk and a report at the end."""
