"""Commands that change a table's rows, a module each; `DeltaTable` has them as methods."""
