-- What came of the calls that were made before their programs asked for them, by the confidence with which they were made.

CREATE TABLE speculation_confidence (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- In per cent.
    confidence INTEGER NOT NULL,
    hits INTEGER NOT NULL,
    misses INTEGER NOT NULL,
    wasted INTEGER NOT NULL,
    PRIMARY KEY (principal, tool, confidence)
) STRICT, WITHOUT ROWID;
