-- Who signed the package that a capability was imported from, by the name it had there.
CREATE TABLE package_signer (
    principal TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    signer TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal, name)
);
