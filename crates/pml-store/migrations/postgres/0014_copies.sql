-- One row while another database is being copied into this one.
CREATE TABLE store_copy (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    source TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL
);
