-- How results are kept, and how everybody hears that they go.

-- JSON: what somebody set for a capability in place of what its procedure says.
ALTER TABLE capability_procedure ADD COLUMN cache TEXT;

-- How often results were dropped that might still be asked for, so that processes which keep some in memory
-- know when to drop theirs.
ALTER TABLE memory ADD COLUMN cache_drops INTEGER NOT NULL DEFAULT 0;

-- What was asked for when the result came; only in rows that are found by that.
ALTER TABLE cached_result ADD COLUMN intent TEXT;
