"""Kills writers while they work on one table, and checks with a reader of its own that nothing was lost or doubled.

    python -m tests.crash --minutes 60 --seed 7      # from the project's folder, as `make crash` does

`herd` is the process that the writers are forked from, that kills them (SIGKILL) at random times, half of them while
they have a file of the log in the making, and starts new ones. A writer (`operations`) does what a seeded random number
says: every operation that changes a table or looks after it. Before each it notes in a journal what it is going to do,
after it how it ended (`journal`). `replay` reads the log as plain JSON, and `model` says what rows each noted operation
must leave, so that every single version is compared: its rows, files, sizes, statistics, checksum, checkpoint. `run`
puts this together and collects violations. None of `replay`, `model`, `run` and `journal` imports deltafast. `readers`
has deltafast and `deltalake` read the table.

`mini` is a small independent writer that can be right or wrong in a named way. The tests run it under the same checks:
they must find nothing in the right one and something in every wrong one.
"""
