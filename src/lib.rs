//! deltafast: Delta Lake tables of any size.
