-- The keys by which clients are known. Of a key only the digest is kept. `mark` vouches for what the
-- key is good for, is made with a key that is not in the database, and goes when the key is revoked.
-- Times are milliseconds since 1970.
CREATE TABLE client_key (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    client TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    interactive INTEGER NOT NULL CHECK (interactive IN (0, 1)),
    asks_itself INTEGER NOT NULL CHECK (asks_itself IN (0, 1)),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    mark TEXT,
    CHECK ((mark IS NULL) = (revoked_at IS NOT NULL))
) STRICT;
