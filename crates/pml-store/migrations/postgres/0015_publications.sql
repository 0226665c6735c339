-- The capabilities that others see beside their owner, and the project and the organisation that they were published in.
CREATE TABLE capability_publication (
    capability BIGINT NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    principal TEXT COLLATE "C" NOT NULL,
    visibility TEXT COLLATE "C" NOT NULL,
    org TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    published_by TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    uses BIGINT DEFAULT 0 NOT NULL,
    mark BYTEA,
    PRIMARY KEY (capability)
);
-- The project and the organisation of people.
CREATE TABLE membership (
    principal TEXT COLLATE "C" NOT NULL,
    org TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    mark BYTEA,
    PRIMARY KEY (principal)
);
