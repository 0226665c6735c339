-- The sessions of people at the dashboard. `cookie`, `csrf` and `passphrase` are digests. `mark` vouches for the row and is
-- made with a key that is not in the database; it does not cover `used_at`.
CREATE TABLE dashboard_session (
    cookie TEXT COLLATE "C" PRIMARY KEY,
    principal TEXT COLLATE "C" NOT NULL,
    csrf TEXT COLLATE "C" NOT NULL,
    passphrase TEXT COLLATE "C",
    started_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    mark TEXT COLLATE "C" NOT NULL
);
