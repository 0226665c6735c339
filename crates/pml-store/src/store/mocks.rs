//! Recorded results.

use pml_model::mocks::{MockId, MockOutcome};
use pml_model::{Digest, Principal, ToolId};
use serde_json::Value;

use super::Store;
use crate::{BlockingStore, Error, FoundMock, MockLookups, MockScope, MockTotals, NewMock, StoredMock};

impl Store {
    /// Records real results.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::record_mocks`].
    pub async fn record_mocks(&self, mocks: Vec<NewMock>, now: i64) -> Result<(), Error> {
        self.ask(move |store| store.record_mocks(mocks, now)).await
    }

    /// The mock for a call.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::find_mock`].
    pub async fn find_mock(
        &self,
        principal: &Principal,
        tool: &ToolId,
        definition: &Digest,
        arguments: &Value,
    ) -> Result<Option<FoundMock>, Error> {
        let (principal, tool) = (principal.clone(), tool.clone());
        let (definition, arguments) = (definition.clone(), arguments.clone());
        self.ask(move |store| store.find_mock(&principal, &tool, &definition, &arguments)).await
    }

    /// Counts uses of mocks.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::report_mock_uses`].
    pub async fn report_mock_uses(
        &self,
        uses: Vec<(Principal, MockId, MockOutcome)>,
        now: i64,
    ) -> Result<(), Error> {
        self.ask(move |store| store.report_mock_uses(uses, now)).await
    }

    /// Adds to the numbers of lookups, by tool.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::add_mock_lookups`].
    pub async fn add_mock_lookups(
        &self,
        lookups: Vec<(Principal, String, MockLookups)>,
    ) -> Result<(), Error> {
        self.ask(move |store| store.add_mock_lookups(lookups)).await
    }

    /// How often mocks of each tool were looked for.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::mock_lookups`].
    pub async fn mock_lookups(&self, principal: &Principal) -> Result<Vec<(String, MockLookups)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.mock_lookups(&principal)).await
    }

    /// What the mocks of all principals were worth together.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::mock_totals`].
    pub async fn mock_totals(&self) -> Result<MockTotals, Error> {
        self.ask(BlockingStore::mock_totals).await
    }

    /// The principal's mocks.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::mocks`].
    pub async fn mocks(&self, principal: &Principal) -> Result<Vec<StoredMock>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.mocks(&principal)).await
    }

    /// A mock by id.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::mock`].
    pub async fn mock(&self, principal: &Principal, id: &MockId) -> Result<Option<StoredMock>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.mock(&principal, &id)).await
    }

    /// Pins a mock, and returns whether there is one.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::pin_mock`].
    pub async fn pin_mock(&self, principal: &Principal, id: &MockId) -> Result<bool, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.pin_mock(&principal, &id)).await
    }

    /// Drops mocks, and returns their number.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::drop_mocks`].
    pub async fn drop_mocks(&self, principal: &Principal, scope: MockScope) -> Result<usize, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.drop_mocks(&principal, scope)).await
    }
}
