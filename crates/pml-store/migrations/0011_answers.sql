-- Who made a rule, which tools an open question shows, and which request a run was made for.

-- `person` where a person made the rule; NULL where that was not recorded or a client made it. Under
-- `approvals.by = "human"` only rules with `person` count. The rule's mark vouches for it.
ALTER TABLE approval_rule ADD COLUMN maker TEXT CHECK (maker = 'person');

-- The tools that the open question of a run shows. Questions are sealed, so this is how the transaction that
-- records another definition of a tool finds the questions that showed the one before.
CREATE TABLE question_tool (
    run INTEGER NOT NULL REFERENCES run (number),
    tool TEXT NOT NULL,
    PRIMARY KEY (run, tool)
) STRICT, WITHOUT ROWID;
CREATE INDEX question_tool_by_tool ON question_tool (tool);

-- The tool whose definition changed while the run's question was open: the question cannot be answered any more.
ALTER TABLE run ADD COLUMN voided_by TEXT;

-- Marks what was asked for, by whom and with which arguments, so that a repeated request finds the run whose
-- question is still open. Keyed: it tells nothing about the arguments.
ALTER TABLE run ADD COLUMN request_mark TEXT;
CREATE INDEX run_request ON run (principal, request_mark) WHERE request_mark IS NOT NULL AND ended_at IS NULL;
