//! `pml cache` and `pml capabilities cache`: cached results and the cache settings of capabilities.

use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use pml_model::capability::{CacheChange, Invalidation, KeyStrategy};
use pml_model::name::printable;
use pml_store::CacheInvalidation;
use serde_json::json;

use super::run_table::format_time;
use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::flow::{self, CapabilityRecord};
use crate::problem::Problem;

/// What to do with results that are kept.
#[derive(Debug, Subcommand)]
pub(super) enum CacheCommand {
    /// Show invalidated entries with time and reason
    Log {
        /// The number of entries
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Clear the cache, in running gateways too
    Clear,
}

pub(super) async fn cache(here: &CommandContext, cache: CacheCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = async {
        match cache {
            CacheCommand::Clear => {
                let dropped = flow::drop_results(&app, &app.principal).await?;
                if here.json {
                    out::json(&json!({ "dropped": dropped }));
                } else {
                    out::line(format!("dropped: {dropped}"));
                }
            }
            CacheCommand::Log { limit } => {
                print_invalidations(here, &flow::cache_drop_log(&app, &app.principal, limit).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    };
    let done = done.await;
    app.close().await;
    done
}

fn print_invalidations(here: &CommandContext, drops: &[CacheInvalidation]) {
    if here.json {
        let row = |drop: &CacheInvalidation| json!({ "at": drop.at, "what": drop.scope, "entries": drop.entries, "because": drop.reason });
        return out::json(&drops.iter().map(row).collect::<Vec<_>>());
    }
    if drops.is_empty() {
        return out::note("no results were dropped yet");
    }
    let row = |drop: &CacheInvalidation| {
        vec![format_time(drop.at), printable(&drop.scope), drop.entries.to_string(), printable(&drop.reason)]
    };
    out::line(out::table(
        &["when", "what", "results", "because"],
        &drops.iter().map(row).collect::<Vec<_>>(),
    ));
}

/// Arguments of `pml capabilities cache`.
#[derive(Debug, Args)]
pub(super) struct CapabilityCacheArgs {
    /// Its name or id
    name: String,
    /// How long an entry is valid
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u32>,
    /// The cache key
    #[arg(long, value_name = "STRATEGY", value_parser = words(KeyStrategy::ALL.map(KeyStrategy::as_str), KeyStrategy::parse))]
    key_strategy: Option<KeyStrategy>,
    /// What invalidates entries before they expire; without a value nothing does
    #[arg(long, value_name = "EVENT", num_args = 0.., value_delimiter = ',', value_parser = words(Invalidation::ALL.map(Invalidation::as_str), Invalidation::parse))]
    invalidate_on: Option<Vec<Invalidation>>,
    /// The number of entries
    #[arg(long, value_name = "NUMBER")]
    max_entries: Option<u32>,
    /// Switch the cache off
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Switch the cache on; refused unless the capability only reads
    #[arg(long)]
    on: bool,
}

impl CapabilityCacheArgs {
    fn change(&self) -> CacheChange {
        CacheChange {
            cacheable: (self.on || self.off).then_some(self.on),
            ttl_seconds: self.ttl,
            key_strategy: self.key_strategy,
            invalidate_on: self.invalidate_on.clone(),
            max_entries: self.max_entries,
        }
    }
}

/// A parser for one of three known words.
fn words<T: Clone + Send + Sync + 'static>(
    known: [&'static str; 3],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(known).map(move |word| parse(&word).expect("it is one of the known words"))
}

/// Shows or changes the cache settings of a capability.
pub(super) async fn change_caching(
    here: &CommandContext,
    app: &Arc<App>,
    keep: &CapabilityCacheArgs,
) -> Result<ExitCode, Problem> {
    let change = keep.change();
    if change != CacheChange::default() {
        flow::configure_result_cache(app, &app.principal, &keep.name, &change).await?;
    }
    let record = flow::capability_record(app, &app.principal, &keep.name).await?;
    if here.json {
        let config = &record.capability.procedure.cache_config;
        out::json(&json!({ "name": record.capability.name, "cacheConfig": config, "cache": record.cache }));
    } else {
        out::line(format!("{}: results are kept {}", record.capability.name, describe_caching(&record)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The cache settings of a capability, in words.
pub(super) fn describe_caching(record: &CapabilityRecord) -> String {
    let config = &record.capability.procedure.cache_config;
    if !config.is_enabled() {
        return "never".to_owned();
    }
    let events: Vec<&str> = config.invalidate_on.iter().map(|event| event.as_str()).collect();
    let events = if events.is_empty() { "nothing".to_owned() } else { events.join(", ") };
    format!(
        "for {} s, {} at most; found by {}; dropped on {events}; {} there, given {} times",
        config.ttl_seconds,
        config.max_entries,
        config.key_strategy.as_str(),
        record.cache.entries,
        record.cache.hit_count
    )
}
