-- Which intents count for a capability and which have been checked; what kept results depend on.

-- Whether the intent of a trace tells what its capability is good for. It does not where it names a value
-- that the procedure has no place for, or where somebody had it forgotten.
ALTER TABLE trace ADD COLUMN tells INTEGER NOT NULL DEFAULT 1 CHECK (tells IN (0, 1));

-- The version of the analysis with which the intent was last compared with the constants of the procedure.
ALTER TABLE capability_intent ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX capability_intent_checked ON capability_intent (checked);

-- Intents that somebody had forgotten: later runs do not bring them back.
CREATE TABLE forgotten_intent (
    capability INTEGER NOT NULL REFERENCES capability (number) ON DELETE CASCADE,
    text TEXT NOT NULL,
    PRIMARY KEY (capability, text)
) STRICT, WITHOUT ROWID;

-- JSON: the files and directories that a kept result was made of, as they were. What was kept before nobody can
-- compare with the files there are now.
DELETE FROM cached_result;
ALTER TABLE cached_result ADD COLUMN stamps TEXT NOT NULL DEFAULT '[]';
