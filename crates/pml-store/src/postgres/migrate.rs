//! Opens a database: refuses those that cannot be used, and brings older ones to the current version.

use std::sync::Arc;

use tokio_postgres::Client;

use super::schema::{COLUMNS, ColumnRow, Schema};
use super::{Failure, Patience, Server, wait_unless};
use crate::Error;
use crate::vouch::RowAuthenticator;

/// Migrations go forward only: a released one is never edited, a later one is added after it.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_store.sql"),
    include_str!("../../migrations/postgres/0002_packages.sql"),
    include_str!("../../migrations/postgres/0003_people.sql"),
    include_str!("../../migrations/postgres/0004_key_storage.sql"),
    include_str!("../../migrations/postgres/0005_dashboard_sessions.sql"),
    include_str!("../../migrations/postgres/0010_server_sign_ins.sql"),
    include_str!("../../migrations/postgres/0011_versions.sql"),
    include_str!("../../migrations/postgres/0012_goldens.sql"),
    include_str!("../../migrations/postgres/0013_speculation_confidence.sql"),
    include_str!("../../migrations/postgres/0014_copies.sql"),
    include_str!("../../migrations/postgres/0015_publications.sql"),
];

/// Identifies the lock under which migrations are applied.
const MIGRATION_LOCK: i64 = 0x504d_4c31_4d49_4752;

impl Server {
    /// Prepares the database for use, and makes sure that it was filled with the key that this machine has.
    pub(crate) fn prepare(&self, authenticator: &Arc<RowAuthenticator>) -> Result<(), Error> {
        let explain = |failure: Failure| Error::sqlite(self.name(), &failure.into());
        let client = self.connect_patiently(Patience::Opening).map_err(explain)?;
        self.refuse_unusable(&client)?;
        self.migrate(&client)?;
        self.compare_key(&client, authenticator)?;
        self.forget_ended(&client)
    }

    /// Prepares the tables, whatever key they were filled with.
    pub(crate) fn prepare_tables(&self) -> Result<(), Error> {
        let explain = |failure: Failure| Error::sqlite(self.name(), &failure.into());
        let client = self.connect_patiently(Patience::Opening).map_err(explain)?;
        self.refuse_unusable(&client)?;
        self.migrate(&client)
    }

    /// Deletes what gateways left that ended long ago.
    fn forget_ended(&self, client: &Client) -> Result<(), Error> {
        let long_ago = "(extract(epoch FROM now()) * 1000)::bigint - 86400000";
        self.ask(client.batch_execute(&format!(
            "DELETE FROM gateway WHERE seen_at < {long_ago}; DELETE FROM committed_batch WHERE at < {long_ago}"
        )))
    }

    fn ask<T>(&self, question: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Error> {
        self.explained(self.answer(question))
    }

    /// As `ask`, however long it takes: a migration of a large database may take many minutes, and one that another
    /// gateway applies is waited for. A server that is gone is noticed by the connection.
    fn ask_patiently<T>(
        &self,
        question: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.explained(wait_unless(question, || false))
    }

    fn explained<T>(&self, answer: Option<Result<T, tokio_postgres::Error>>) -> Result<T, Error> {
        let answer =
            answer.ok_or_else(Failure::silent).and_then(|answer| answer.map_err(|error| Failure::of(&error)));
        answer.map_err(|failure| Error::sqlite(self.name(), &failure.into()))
    }

    fn refuse_unusable(&self, client: &Client) -> Result<(), Error> {
        let sql = "SELECT pg_is_in_recovery(), current_setting('server_encoding'),
                          current_setting('server_version_num')::int, current_schema()::text";
        let row = self.ask(client.query_one(sql, &[]))?;
        let why = if row.get::<_, bool>(0) {
            "it is a read-only replica; name the primary"
        } else if row.get::<_, &str>(1) != "UTF8" {
            "its encoding is not UTF8; create another one with `ENCODING 'UTF8'`"
        } else if row.get::<_, i32>(2) < 130_000 {
            "it is older than PostgreSQL 13; use a newer one"
        } else if row.get::<_, Option<&str>>(3).is_none() {
            "there is no schema to create tables in; create it, or name another one with `?options=-csearch_path%3D…`"
        } else {
            return Ok(());
        };
        Err(Error::Sql { path: self.name().to_owned(), detail: why.to_owned() })
    }

    fn migrate(&self, client: &Client) -> Result<(), Error> {
        // The limits of a session are for its usual statements.
        let begin = format!(
            "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
             SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
        );
        self.ask_patiently(client.batch_execute(&begin))?;
        let migrated = self.migrate_locked(client);
        let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
        migrated.and(self.ask_patiently(client.batch_execute(end)))?;
        self.read_schema(client)
    }

    fn migrate_locked(&self, client: &Client) -> Result<(), Error> {
        let known = MIGRATIONS.len();
        let exists = "SELECT to_regclass('schema_version') IS NOT NULL";
        let version = match self.ask(client.query_one(exists, &[]))?.get::<_, bool>(0) {
            true => self.ask(client.query_one("SELECT version FROM schema_version", &[]))?.get::<_, i64>(0),
            false => {
                let create = "CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version VALUES (0)";
                self.ask(client.batch_execute(create))?;
                0
            }
        };
        let Some(version) = usize::try_from(version).ok().filter(|version| *version <= known) else {
            return Err(Error::NewerVersion {
                path: self.name().to_owned(),
                found: version,
                known: known as i64,
            });
        };
        for migration in &MIGRATIONS[version..] {
            self.ask_patiently(client.batch_execute(migration))?;
        }
        if version < known {
            self.ask(client.batch_execute(&format!("UPDATE schema_version SET version = {known}")))?;
        }
        Ok(())
    }

    fn read_schema(&self, client: &Client) -> Result<(), Error> {
        let rows = self.ask(client.query(COLUMNS, &[]))?;
        let columns = rows.iter().map(|row| ColumnRow {
            table: row.get(0),
            column: row.get(1),
            kind: row.get(2),
            is_generated: row.get(3),
            has_default: row.get(4),
            place: row.get(5),
        });
        self.schema.get_or_init(|| Schema::from_rows(columns.collect()));
        Ok(())
    }

    /// All gateways of a database have the same key file. The database keeps its fingerprint, which tells nothing
    /// about the key.
    fn compare_key(&self, client: &Client, authenticator: &Arc<RowAuthenticator>) -> Result<(), Error> {
        let stored = "SELECT key_fingerprint FROM store";
        let expected: Option<String> = self.ask(client.query_one(stored, &[]))?.get(0);
        let is_used = expected.is_some();
        let own = authenticator.master.keys(|| Ok(is_used))?.fingerprint.clone();
        let expected = match expected {
            Some(expected) => expected,
            None => {
                // Of several gateways that come first, one is the first.
                let put = "UPDATE store SET key_fingerprint = $1 WHERE key_fingerprint IS NULL";
                self.ask(client.execute(put, &[&own]))?;
                self.ask(client.query_one(stored, &[]))?.get(0)
            }
        };
        match expected == own {
            true => Ok(()),
            false => Err(Error::KeyMismatch {
                path: self.name().to_owned(),
                key: authenticator.master.path().to_owned(),
            }),
        }
    }
}
