-- What lists of runs show without opening a sealed record, when processes took up a run, and how one page
-- of the calls of a run is found. Times are milliseconds since 1970.

-- `capability` is the id of the capability that the run executes, `learned` that of the one it became.
-- `error_message` is free of secrets.
ALTER TABLE run ADD COLUMN capability TEXT;
ALTER TABLE run ADD COLUMN learned TEXT;
ALTER TABLE run ADD COLUMN failed_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN speculated_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN error_message TEXT;
CREATE INDEX run_capability ON run (principal, coalesce(capability, learned), number)
    WHERE coalesce(capability, learned) IS NOT NULL;

-- One row for each time that a process began to work on a run. Runs from before this table have none.
CREATE TABLE run_claim (
    run INTEGER NOT NULL REFERENCES run (number),
    fence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (run, fence)
) STRICT, WITHOUT ROWID;

CREATE INDEX journal_call ON journal (run, call) WHERE call IS NOT NULL;

CREATE INDEX audit_run ON audit (run) WHERE run IS NOT NULL;

-- What a run saved. `call_bytes` are those of the results of its calls, `result_bytes` those of its own
-- result, which is all that the client got; `saved_ms` is what it waited less because of calls made ahead.
ALTER TABLE run ADD COLUMN saved_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN call_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN result_bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_created ON run (principal, created_at);
CREATE INDEX trace_cached ON trace (principal, created_at) WHERE cached = 1;
