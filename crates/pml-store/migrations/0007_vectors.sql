-- What texts mean, as the numbers that a model gave for them, so that none is computed twice.

-- `text` is the digest of the text. `vector` is a scale (32-bit float, little endian) and one signed byte
-- for each number. Rows of different models have nothing to do with each other.
CREATE TABLE vector (
    principal TEXT NOT NULL,
    model TEXT NOT NULL,
    text TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (principal, model, text)
) STRICT, WITHOUT ROWID;
