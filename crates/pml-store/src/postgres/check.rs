//! Checks the marks of all rows.

use rusqlite::types::Value;

use super::PgConnection;
use crate::table::TABLES;
use crate::vouch::RowCheck;

/// Rows that are read at once: a table may be larger than memory.
const TOGETHER: usize = 2_000;

impl PgConnection {
    /// Checks every row that carries a mark, and reports the damaged ones.
    pub(crate) fn check_all_rows(&self) -> rusqlite::Result<RowCheck> {
        let mut check = RowCheck::default();
        for table in TABLES {
            let columns: Vec<&str> = std::iter::once(table.mark).chain(table.marked_columns()).collect();
            self.begin_read()?;
            self.batch_execute(&format!(
                "DECLARE every_row NO SCROLL CURSOR FOR SELECT {} FROM {}",
                columns.join(", "),
                table.name
            ))?;
            loop {
                let rows: Vec<Vec<Value>> = self.fetch(&format!("FETCH {TOGETHER} FROM every_row"))?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    check.all += 1;
                    check.damaged +=
                        u64::from(!self.authenticator()?.is_vouched(table.name, &row[0], &row[1..])?);
                }
            }
            self.commit()?;
        }
        Ok(check)
    }
}
