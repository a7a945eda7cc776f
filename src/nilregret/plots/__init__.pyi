# The public names of the pictures, said once.

from .base import style as style
from .contour_picture import contour as contour
from .curves_picture import curves as curves
from .figures import panels as panels
from .front_picture import front as front
from .history_picture import history as history
from .overview_picture import importance as importance
from .overview_picture import overview as overview
from .parallel_picture import parallel as parallel
from .posterior_picture import posterior as posterior
from .regret_picture import regret as regret
from .restarts import changes as changes
from .restarts import evidence as evidence
from .several import compare as compare
from .several import edf as edf
from .slices_picture import slices as slices
from .timeline_picture import timeline as timeline
