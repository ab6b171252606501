"""The layout of a table: `measure` returns it as data, `picture` draws it.

>>> from deltafast import DeltaTable, write_deltalake
>>> from deltafast.layout import measure
>>> write_deltalake("numbers", {"id": [1, 2]})
>>> measure(DeltaTable("numbers")).files
1
"""

from deltafast._layout.layout_data import Overlap, Part, Ranges, Size, State
from deltafast._layout.measure import Layout, measure

__all__ = ["Layout", "Overlap", "Part", "Ranges", "Size", "State", "measure"]
