-- The versions of capabilities that have more than one.
CREATE TABLE capability_release (
    principal TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    capability BIGINT NOT NULL UNIQUE REFERENCES capability (number) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    offered_because TEXT COLLATE "C",
    mark BYTEA,
    PRIMARY KEY (principal, name, number)
);
