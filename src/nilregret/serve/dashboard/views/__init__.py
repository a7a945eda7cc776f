"""What the pages show, as plain data: pure functions of a study, which touch no request and write no markup.

A picture is a dict that JSON can hold. Of lines: `title`, `summary` (the same in a sentence), `x` and `y` (labels,
`log`, and `names` where places are categories), `layers` (each an `x` of its own and `series`), `bands` between two
series of a layer, `dots`, vertical `marks`, and a `table` with the figures for those who do not see it. Of maps: `x`
and `y` with `values`, `mean` and `half` by row of y. Numbers that are not known are None.
"""
