"""Tables that have names in catalogs: their handles, and what a write to them needs."""
