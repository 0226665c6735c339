-- Marks of the rows that decide what the program does, how often somebody tried to sign in, and which processes are
-- there. Times are milliseconds since 1970.

-- `mark` vouches for a row: it is made of the columns that count with a key that is not in the database. Rows whose
-- mark is missing or wrong are not served. Rows that were there before are marked when this migration is applied.
ALTER TABLE definition ADD COLUMN mark BLOB;
ALTER TABLE tool ADD COLUMN mark BLOB;
ALTER TABLE accepted_definition ADD COLUMN mark BLOB;
ALTER TABLE capability ADD COLUMN mark BLOB;
ALTER TABLE capability_procedure ADD COLUMN mark BLOB;
ALTER TABLE capability_intent ADD COLUMN mark BLOB;
ALTER TABLE capability_alias ADD COLUMN mark BLOB;
ALTER TABLE trace ADD COLUMN mark BLOB;
ALTER TABLE trace_body ADD COLUMN mark BLOB;
ALTER TABLE edge ADD COLUMN mark BLOB;
ALTER TABLE tool_use ADD COLUMN mark BLOB;
ALTER TABLE observed ADD COLUMN mark BLOB;
ALTER TABLE cached_result ADD COLUMN mark BLOB;
-- Here `mark` vouches for what the rule allows; this one for how often it was used and that it was revoked, too.
ALTER TABLE approval_rule ADD COLUMN row_mark BLOB;

-- Wrong passphrases in a row, by where they were given: `web` or `terminal`.
CREATE TABLE sign_in (
    door TEXT PRIMARY KEY,
    wrong INTEGER NOT NULL,
    not_before INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Processes that keep the database open for long. One that is listed and no longer runs did not end properly.
CREATE TABLE process (
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (pid, started)
) STRICT, WITHOUT ROWID;
