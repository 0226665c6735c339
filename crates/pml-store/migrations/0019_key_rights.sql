-- What a key permits beyond knowing its client: role, tools, expiry and budget, as JSON. Keys from before
-- this column have none and may do everything that their principal may. `mark` vouches for it, too.
ALTER TABLE client_key ADD COLUMN rights TEXT;

-- What was done with keys, minute by minute, counted by all gateways together. `minute` counts minutes
-- since 1970.
CREATE TABLE key_use (
    number INTEGER NOT NULL REFERENCES client_key (number),
    principal TEXT NOT NULL,
    minute INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    cpu_ms INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (number, minute)
) STRICT, WITHOUT ROWID;

-- The key that a run was started with.
ALTER TABLE run ADD COLUMN client_key INTEGER;
CREATE INDEX run_client_key ON run (client_key, state) WHERE client_key IS NOT NULL;
