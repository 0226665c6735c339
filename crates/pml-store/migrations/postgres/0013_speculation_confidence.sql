-- What came of the calls that were made before their programs asked for them, by the confidence with which they were made.
CREATE TABLE speculation_confidence (
    principal TEXT COLLATE "C" NOT NULL,
    tool TEXT COLLATE "C" NOT NULL,
    confidence BIGINT NOT NULL,
    hits BIGINT NOT NULL,
    misses BIGINT NOT NULL,
    wasted BIGINT NOT NULL,
    PRIMARY KEY (principal, tool, confidence)
);
