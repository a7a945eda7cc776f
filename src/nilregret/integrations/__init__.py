"""Integrations with Optuna and scikit-learn. Each module needs the package that it is named after."""
