-- The bytes that the records of the runs of a key take, kept up to date with each of them: budgets are compared with the
-- sum several times a minute. Only runs that were started with a key count.
CREATE TABLE key_storage (
    number INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;

INSERT INTO key_storage (number, principal, bytes)
SELECT client_key, min(principal), sum(bytes) FROM (
    SELECT run.client_key, run.principal, length(journal.body) AS bytes
    FROM run JOIN journal ON journal.run = run.number WHERE run.client_key IS NOT NULL
    UNION ALL
    SELECT run.client_key, run.principal, length(run_body.body)
    FROM run JOIN run_body ON run_body.run = run.number WHERE run.client_key IS NOT NULL)
GROUP BY client_key;

CREATE TRIGGER journal_is_stored AFTER INSERT ON journal BEGIN
    INSERT INTO key_storage (number, principal, bytes)
    SELECT client_key, principal, 0 FROM run WHERE number = NEW.run AND client_key IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM key_storage WHERE key_storage.number = run.client_key);
    UPDATE key_storage SET bytes = bytes + length(NEW.body)
    WHERE number = (SELECT client_key FROM run WHERE number = NEW.run);
END;

CREATE TRIGGER journal_is_deleted AFTER DELETE ON journal BEGIN
    UPDATE key_storage SET bytes = bytes - length(OLD.body)
    WHERE number = (SELECT client_key FROM run WHERE number = OLD.run);
END;

CREATE TRIGGER journal_is_replaced AFTER UPDATE OF body ON journal BEGIN
    UPDATE key_storage SET bytes = bytes - length(OLD.body) + length(NEW.body)
    WHERE number = (SELECT client_key FROM run WHERE number = NEW.run);
END;

-- `INSERT OR REPLACE` deletes the earlier body without a trigger, so its bytes are taken away beforehand.
CREATE TRIGGER run_body_is_replaced BEFORE INSERT ON run_body BEGIN
    UPDATE key_storage SET bytes = bytes - coalesce(
        (SELECT length(body) FROM run_body WHERE run = NEW.run AND part = NEW.part), 0)
    WHERE number = (SELECT client_key FROM run WHERE number = NEW.run);
END;

CREATE TRIGGER run_body_is_stored AFTER INSERT ON run_body BEGIN
    INSERT INTO key_storage (number, principal, bytes)
    SELECT client_key, principal, 0 FROM run WHERE number = NEW.run AND client_key IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM key_storage WHERE key_storage.number = run.client_key);
    UPDATE key_storage SET bytes = bytes + length(NEW.body)
    WHERE number = (SELECT client_key FROM run WHERE number = NEW.run);
END;

CREATE TRIGGER run_body_is_changed AFTER UPDATE OF body ON run_body BEGIN
    UPDATE key_storage SET bytes = bytes - length(OLD.body) + length(NEW.body)
    WHERE number = (SELECT client_key FROM run WHERE number = NEW.run);
END;

CREATE TRIGGER run_body_is_deleted AFTER DELETE ON run_body BEGIN
    UPDATE key_storage SET bytes = bytes - length(OLD.body)
    WHERE number = (SELECT client_key FROM run WHERE number = OLD.run);
END;
