"""`delta.exceptions`."""

from .base import *  # noqa: F403
from .base import __all__
