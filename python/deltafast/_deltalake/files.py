"""The class with the name `deltalake.fs.DeltaStorageHandler`, whose behaviour differs; see `table`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from deltafast.filesystem import DeltaStorageHandler as PlainHandler

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

__all__ = ["DeltaStorageHandler"]

#: The smallest part of a multipart upload that stores accept.
_SMALLEST = 5 * 1024 * 1024


class DeltaStorageHandler(PlainHandler):
    """`deltafast.DeltaStorageHandler` that warns about buffers that are too small for an upload."""

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.PythonFile:
        """Create a file; its parts have the size that stores need, regardless of `max_buffer_size`."""
        given = (self._options or {}).get("max_buffer_size", "")
        if given.isdigit() and int(given) < _SMALLEST:
            message = (
                f"You specified a `max_buffer_size` of {given} bits less than {_SMALLEST} bits, "
                "the smallest part of an upload: it has no effect"
            )
            warnings.warn(message, UserWarning, stacklevel=2)
        return super().open_output_stream(path, metadata)
