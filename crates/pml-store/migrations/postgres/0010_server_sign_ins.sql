-- Sign-ins to remote servers.
CREATE TABLE server_sign_in (
    principal TEXT COLLATE "C" NOT NULL,
    server TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    renewing_until BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (principal, server)
);
