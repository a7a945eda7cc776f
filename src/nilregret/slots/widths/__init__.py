"""Widths of bounds: multipliers of the standard deviation, one class for each theorem."""
