"""What theorems promise, as numbers: information gain, its rates, bounds of regret and violation."""
