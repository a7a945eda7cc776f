"""Widths: how far the bounds lie from the mean, one class for each theorem."""
