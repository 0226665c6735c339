-- How often tools were called, and how often they failed for a reason of their own. Learned from traces, like everything
-- beside it.
CREATE TABLE tool_use (
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (principal, tool)
) STRICT, WITHOUT ROWID;
