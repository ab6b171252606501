"""The layout of a table: `measure` returns it as data, `picture` draws it.

>>> from deltafast.layout import measure
>>> measure(deltafast.DeltaTable("/data/events")).files                                             # doctest: +SKIP
"""

from deltafast.layout.layout_data import Overlap, Part, Ranges, Size, State
from deltafast.layout.measure import Layout, measure

__all__ = ["Layout", "Overlap", "Part", "Ranges", "Size", "State", "measure"]
