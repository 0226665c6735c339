-- Sign-ins to remote servers, one for each person and server. `body` holds the tokens, sealed with a key that is not in
-- the database. `version` grows with each change. Until `renewing_until` one process renews the tokens and all others
-- wait, since a refresh token is good for one use. Times are milliseconds since 1970.
CREATE TABLE server_sign_in (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    version INTEGER NOT NULL,
    renewing_until INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (principal, server)
) STRICT, WITHOUT ROWID;
