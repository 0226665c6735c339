-- The runs with which a capability is tested. Their records are kept as long as the capability is there.
CREATE TABLE capability_golden (
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    run TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    mark BYTEA,
    PRIMARY KEY (capability, run)
);

CREATE INDEX capability_golden_run ON capability_golden (run);
