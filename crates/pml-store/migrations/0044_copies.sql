-- One row while another database is being copied into this one: where that is, and up to where it was copied. A database
-- with a row is not complete, so it is not used.
CREATE TABLE store_copy (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    source TEXT NOT NULL,
    -- JSON: the table, and the key of its last row that is there.
    place TEXT NOT NULL
) STRICT;
