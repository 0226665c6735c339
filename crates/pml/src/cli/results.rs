//! `pml cache` and `pml capabilities cache`: results that are kept, and how.

use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use pml_model::capability::{CacheChange, Invalidation, KeyStrategy};
use pml_model::name::printable;
use pml_store::CacheDrop;
use serde_json::json;

use super::runs::when;
use super::{Here, out};
use crate::app::{App, Role};
use crate::flow::{self, Record};
use crate::problem::Problem;

/// What to do with results that are kept.
#[derive(Debug, Subcommand)]
pub(super) enum Cache {
    /// Show invalidated entries with time and reason
    Log {
        /// The number of entries
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Clear the cache, in running gateways too
    Clear,
}

pub(super) async fn cache(here: &Here, cache: Cache) -> Result<ExitCode, Problem> {
    let app = here.open(Role::Command).await?;
    let done = async {
        match cache {
            Cache::Clear => {
                let dropped = flow::drop_results(&app, &app.principal).await?;
                if here.json {
                    out::json(&json!({ "dropped": dropped }));
                } else {
                    out::line(format!("dropped: {dropped}"));
                }
            }
            Cache::Log { limit } => dropped(here, &flow::dropped_results(&app, &app.principal, limit).await?),
        }
        Ok(ExitCode::SUCCESS)
    };
    let done = done.await;
    app.close().await;
    done
}

fn dropped(here: &Here, drops: &[CacheDrop]) {
    if here.json {
        let row = |drop: &CacheDrop| json!({ "at": drop.at, "what": drop.what, "entries": drop.entries, "because": drop.because });
        return out::json(&drops.iter().map(row).collect::<Vec<_>>());
    }
    if drops.is_empty() {
        return out::note("no results were dropped yet");
    }
    let row = |drop: &CacheDrop| {
        vec![when(drop.at), printable(&drop.what), drop.entries.to_string(), printable(&drop.because)]
    };
    out::line(out::table(
        &["when", "what", "results", "because"],
        &drops.iter().map(row).collect::<Vec<_>>(),
    ));
}

/// Arguments of `pml capabilities cache`.
#[derive(Debug, Args)]
pub(super) struct Keep {
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

impl Keep {
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

/// One of the known words, as what it stands for.
fn words<T: Clone + Send + Sync + 'static>(
    known: [&'static str; 3],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(known).map(move |word| parse(&word).expect("it is one of the known words"))
}

/// Shows or sets how results of a capability are kept.
pub(super) async fn keep(here: &Here, app: &Arc<App>, keep: &Keep) -> Result<ExitCode, Problem> {
    let change = keep.change();
    if change != CacheChange::default() {
        flow::keep_results(app, &app.principal, &keep.name, &change).await?;
    }
    let record = flow::record(app, &app.principal, &keep.name).await?;
    if here.json {
        let config = &record.capability.procedure.cache_config;
        out::json(&json!({ "name": record.capability.name, "cacheConfig": config, "cache": record.cache }));
    } else {
        out::line(format!("{}: results are kept {}", record.capability.name, kept(&record)));
    }
    Ok(ExitCode::SUCCESS)
}

/// How results are kept, in words.
pub(super) fn kept(record: &Record) -> String {
    let config = &record.capability.procedure.cache_config;
    if !config.keeps() {
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
