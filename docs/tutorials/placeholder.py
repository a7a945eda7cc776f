"""
A placeholder
=============

This page goes when the six tutorials arrive.
"""

import nilregret as nr

result = nr.minimize(lambda x: (x - 2) ** 2, nr.Space(x=nr.Float(-5, 5)), trials=12, progress=False)
print(round(result.best_value, 3))

# %%
# The picture of the result.

result.plot()
