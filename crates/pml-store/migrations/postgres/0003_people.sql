-- What a key permits, what was done with keys, and the people who sign in.
ALTER TABLE client_key ADD COLUMN rights TEXT COLLATE "C";

CREATE TABLE key_use (
    number BIGINT NOT NULL REFERENCES client_key (number),
    principal TEXT COLLATE "C" NOT NULL,
    minute BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    cpu_ms BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (number, minute)
);

ALTER TABLE run ADD COLUMN client_key BIGINT;
CREATE INDEX run_client_key ON run (client_key, state) WHERE client_key IS NOT NULL;

CREATE TABLE person (
    principal TEXT COLLATE "C" PRIMARY KEY,
    role TEXT COLLATE "C" NOT NULL,
    passphrase TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    mark TEXT COLLATE "C" NOT NULL
);
