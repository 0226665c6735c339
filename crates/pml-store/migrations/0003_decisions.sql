-- The log of questions, answers and decisions, the rules that people left standing, and what finds
-- a run that waits without looking at the others that do. Times are milliseconds since 1970.

-- Numbered from 1 without gaps. `hash` vouches for the entry and for all before it, and is made with
-- a key that is not in the database. The newest is also kept in a file beside it.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    principal TEXT NOT NULL,
    run TEXT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log only grows'); END;

-- What people allowed for later runs too. `mark` vouches for the rule, and goes when it is revoked.
CREATE TABLE approval_rule (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    definition TEXT NOT NULL,
    code_hash TEXT,
    arguments TEXT,
    expires_at INTEGER NOT NULL,
    given_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER,
    mark TEXT,
    CHECK ((mark IS NULL) = (revoked_at IS NOT NULL))
) STRICT;
CREATE INDEX approval_rule_principal ON approval_rule (principal, number);
CREATE INDEX approval_rule_in_force ON approval_rule (principal, expires_at) WHERE revoked_at IS NULL;

-- Whether what the run asks now is answered.
ALTER TABLE run ADD COLUMN answered INTEGER NOT NULL DEFAULT 0 CHECK (answered IN (0, 1));
UPDATE run SET answered = 1 WHERE EXISTS (
    SELECT 1 FROM answer WHERE answer.run = run.number AND answer.question_id = run.question_id);

DROP INDEX run_open;
CREATE INDEX run_owned ON run (owner_pid, owner_started) WHERE ended_at IS NULL AND owner_pid IS NOT NULL;
CREATE INDEX run_interrupted ON run (number) WHERE state = 'interrupted';
CREATE INDEX run_asks ON run (answered) WHERE question_id IS NOT NULL AND ended_at IS NULL;
CREATE INDEX run_wakes ON run (wake_at)
    WHERE wake_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL;
CREATE INDEX run_expires ON run (expires_at)
    WHERE expires_at IS NOT NULL AND ended_at IS NULL AND owner_pid IS NULL;
