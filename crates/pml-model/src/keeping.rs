//! Cache configuration: whether and how the results of a capability are cached.

use serde::{Deserialize, Serialize};

/// Cache configuration of a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", default)]
pub struct CacheConfig {
    /// Whether results may be cached at all.
    pub cacheable: bool,
    /// Time to live in seconds.
    pub ttl_seconds: u32,
    /// How an entry is looked up.
    pub key_strategy: KeyStrategy,
    /// Events that invalidate entries, beside their age.
    pub invalidate_on: Vec<Invalidation>,
    /// Maximum number of entries.
    pub max_entries: u32,
}

impl Default for CacheConfig {
    fn default() -> CacheConfig {
        CacheConfig {
            cacheable: true,
            ttl_seconds: 30 * 60,
            key_strategy: KeyStrategy::ParamsHash,
            invalidate_on: vec![Invalidation::ToolSchemaChange],
            max_entries: 10,
        }
    }
}

/// How a cache entry is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStrategy {
    /// By the digest of the arguments.
    ParamsHash,
    /// By the digest of the arguments. For a similar intent the entry is also shown, but never returned instead of a
    /// run.
    IntentSimilarity,
    /// Not at all: nothing is cached.
    None,
}

/// An event that invalidates cache entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Invalidation {
    /// The definition of a tool that the capability calls changed.
    ToolSchemaChange,
    /// The end of the day, in UTC.
    Daily,
    /// Only a person's request and the age of an entry: neither a changed or missing tool nor failures.
    ManualOnly,
}

impl KeyStrategy {
    /// Every strategy.
    pub const ALL: [KeyStrategy; 3] =
        [KeyStrategy::ParamsHash, KeyStrategy::IntentSimilarity, KeyStrategy::None];

    /// The name of the strategy, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyStrategy::ParamsHash => "params_hash",
            KeyStrategy::IntentSimilarity => "intent_similarity",
            KeyStrategy::None => "none",
        }
    }

    /// The strategy with this name.
    pub fn parse(word: &str) -> Option<KeyStrategy> {
        KeyStrategy::ALL.into_iter().find(|strategy| strategy.as_str() == word)
    }
}

impl Invalidation {
    /// Every event.
    pub const ALL: [Invalidation; 3] =
        [Invalidation::ToolSchemaChange, Invalidation::Daily, Invalidation::ManualOnly];

    /// The name of the event, as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Invalidation::ToolSchemaChange => "tool_schema_change",
            Invalidation::Daily => "daily",
            Invalidation::ManualOnly => "manual_only",
        }
    }

    /// The event with this name.
    pub fn parse(word: &str) -> Option<Invalidation> {
        Invalidation::ALL.into_iter().find(|event| event.as_str() == word)
    }
}

/// A change of a cache configuration; a field that is `None` leaves the value as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", default, deny_unknown_fields)]
pub struct CacheChange {
    /// Whether results may be cached at all.
    pub cacheable: Option<bool>,
    /// Time to live in seconds.
    pub ttl_seconds: Option<u32>,
    /// How an entry is looked up.
    pub key_strategy: Option<KeyStrategy>,
    /// Events that invalidate entries, beside their age.
    pub invalidate_on: Option<Vec<Invalidation>>,
    /// Maximum number of entries.
    pub max_entries: Option<u32>,
}

/// One day in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl CacheConfig {
    /// Whether anything is cached.
    pub fn is_enabled(&self) -> bool {
        self.cacheable
            && self.ttl_seconds > 0
            && self.max_entries > 0
            && self.key_strategy != KeyStrategy::None
    }

    /// Whether this event invalidates entries.
    pub fn is_invalidated_by(&self, event: Invalidation) -> bool {
        self.invalidate_on.contains(&event)
    }

    /// When an entry stored at `now` expires. Both times are in milliseconds since the Unix epoch.
    pub fn expires_at(&self, now: i64) -> i64 {
        let aged = now.saturating_add(i64::from(self.ttl_seconds) * 1000);
        let midnight = (now.div_euclid(DAY_MS) + 1).saturating_mul(DAY_MS);
        if self.is_invalidated_by(Invalidation::Daily) { aged.min(midnight) } else { aged }
    }

    /// This configuration with the change applied.
    #[must_use]
    pub fn with_change(&self, change: &CacheChange) -> CacheConfig {
        CacheConfig {
            cacheable: change.cacheable.unwrap_or(self.cacheable),
            ttl_seconds: change.ttl_seconds.unwrap_or(self.ttl_seconds),
            key_strategy: change.key_strategy.unwrap_or(self.key_strategy),
            invalidate_on: change.invalidate_on.clone().unwrap_or_else(|| self.invalidate_on.clone()),
            max_entries: change.max_entries.unwrap_or(self.max_entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_there_was_more_to_say_is_read() {
        let old: CacheConfig =
            serde_json::from_str(r#"{"cacheable":false,"ttl_seconds":60,"max_entries":3}"#).unwrap();
        assert_eq!(
            old,
            CacheConfig { cacheable: false, ttl_seconds: 60, max_entries: 3, ..CacheConfig::default() }
        );
        assert_eq!(
            serde_json::to_string(&CacheConfig::default()).unwrap(),
            r#"{"cacheable":true,"ttl_seconds":1800,"key_strategy":"params_hash","invalidate_on":["tool_schema_change"],"max_entries":10}"#
        );
    }

    #[test]
    fn words_are_written_as_they_are_read() {
        for strategy in KeyStrategy::ALL {
            assert_eq!(serde_json::to_value(strategy).unwrap(), strategy.as_str());
            assert_eq!(KeyStrategy::parse(strategy.as_str()), Some(strategy));
        }
        for event in Invalidation::ALL {
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
            assert_eq!(Invalidation::parse(event.as_str()), Some(event));
        }
    }

    #[test]
    fn a_result_counts_for_its_time_and_not_beyond_a_day_where_that_is_wanted() {
        let hour = CacheConfig { ttl_seconds: 3600, ..CacheConfig::default() };
        let daily = CacheConfig { invalidate_on: vec![Invalidation::Daily], ..hour.clone() };
        let late = 5 * DAY_MS - 1000;
        assert_eq!((hour.expires_at(late), daily.expires_at(late)), (late + 3_600_000, 5 * DAY_MS));
        assert_eq!(daily.expires_at(5 * DAY_MS), 5 * DAY_MS + 3_600_000, "the day has just begun");
    }

    #[test]
    fn nothing_is_kept_for_no_time_in_no_place_or_by_nothing() {
        let config = CacheConfig::default;
        assert!(config().is_enabled());
        for none in [
            CacheConfig { cacheable: false, ..config() },
            CacheConfig { ttl_seconds: 0, ..config() },
            CacheConfig { max_entries: 0, ..config() },
            CacheConfig { key_strategy: KeyStrategy::None, ..config() },
        ] {
            assert!(!none.is_enabled(), "{none:?}");
        }
    }
}
