-- The bytes that the records of the runs of a key take, kept up to date with each of them: budgets are compared with the
-- sum several times a minute. Only runs that were started with a key count.
CREATE TABLE key_storage (
    number BIGINT PRIMARY KEY,
    principal TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL
);

INSERT INTO key_storage (number, principal, bytes)
SELECT client_key, min(principal), sum(bytes)::bigint FROM (
    SELECT run.client_key, run.principal, length(journal.body) AS bytes
    FROM run JOIN journal ON journal.run = run.number WHERE run.client_key IS NOT NULL
    UNION ALL
    SELECT run.client_key, run.principal, length(run_body.body)
    FROM run JOIN run_body ON run_body.run = run.number WHERE run.client_key IS NOT NULL) AS record
GROUP BY client_key;

CREATE FUNCTION count_key_storage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_run BIGINT;
    more BIGINT;
BEGIN
    IF TG_OP = 'INSERT' THEN
        of_run := NEW.run;
        more := length(NEW.body);
    ELSIF TG_OP = 'DELETE' THEN
        of_run := OLD.run;
        more := -length(OLD.body);
    ELSE
        of_run := NEW.run;
        more := length(NEW.body) - length(OLD.body);
    END IF;
    INSERT INTO key_storage (number, principal, bytes)
    SELECT client_key, principal, more FROM run WHERE number = of_run AND client_key IS NOT NULL
    ON CONFLICT (number) DO UPDATE SET bytes = key_storage.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER journal_is_counted AFTER INSERT OR DELETE OR UPDATE OF body ON journal
    FOR EACH ROW EXECUTE FUNCTION count_key_storage();
CREATE TRIGGER run_body_is_counted AFTER INSERT OR DELETE OR UPDATE OF body ON run_body
    FOR EACH ROW EXECUTE FUNCTION count_key_storage();
