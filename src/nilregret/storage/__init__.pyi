# The public names of storages, said once.

from .base import Change as Change
from .base import ListedStudy as ListedStudy
from .base import News as News
from .base import Storage as Storage
from .base import StoredStudy as StoredStudy
from .base import Summary as Summary
from .base import Writer as Writer
from .memory import MemoryStorage as MemoryStorage
from .sql import SqlStorage as SqlStorage
from .sql import opened as opened
