"""Data of the pages: pure functions of a study, which read no request and write no markup.

A picture is a dict that JSON can hold. All pictures have a `title`, a `summary` in a sentence and a `table` for screen
readers. The axes `x` and `y` have a label, `log`, and `names` if places are categories. Unknown numbers are None.

A picture of lines has `layers`, each with its own `x` and `series`. It also has `bands` between two series of a layer,
`dots` and vertical `marks`. A map has `values` of its axes, and `mean`, `lower` and `upper` by row of y.
"""
