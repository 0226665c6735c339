-- Who signed the package that a capability was imported from, by the name it had there. A later package with the same
-- name and another signer is refused. Times are milliseconds since 1970.
CREATE TABLE package_signer (
    principal TEXT NOT NULL,
    name TEXT NOT NULL,
    signer TEXT NOT NULL,
    at INTEGER NOT NULL,
    mark BLOB,
    PRIMARY KEY (principal, name)
) STRICT, WITHOUT ROWID;
