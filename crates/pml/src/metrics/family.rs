//! Counters and histograms with labels.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The label values of one family that are counted apart; the others are counted together. Each histogram has a dozen
/// lines, and a scrape should stay small.
pub(super) const MOST_SERIES: usize = 100;

/// The label value that stands for all values beyond [`MOST_SERIES`].
const OTHER: &str = "other";

/// Counters that differ in their labels.
#[derive(Debug)]
pub(super) struct CounterFamily {
    labels: &'static [&'static str],
    values: Mutex<BTreeMap<Vec<String>, u64>>,
}

impl CounterFamily {
    pub(super) fn new(labels: &'static [&'static str]) -> CounterFamily {
        CounterFamily { labels, values: Mutex::default() }
    }

    /// Counters of one label whose values are known, so that they are there before anything is counted.
    pub(super) fn of_values(label: &'static [&'static str; 1], values: &[&str]) -> CounterFamily {
        let family = CounterFamily::new(label);
        values.iter().for_each(|value| family.add(&[value], 0));
        family
    }

    /// Adds to the counter with these label values.
    pub(super) fn add(&self, labels: &[&str], more: u64) {
        let mut values = self.values.lock();
        let known = |labels: &[&str]| labels.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let mut key = known(labels);
        if values.len() >= MOST_SERIES && !values.contains_key(&key) {
            OTHER.clone_into(&mut key[0]);
        }
        *values.entry(key).or_default() += more;
    }

    /// The counters, each with its labels.
    pub(super) fn read(&self) -> Vec<(Vec<(&'static str, String)>, u64)> {
        let values = self.values.lock();
        let series = |(key, value): (&Vec<String>, &u64)| {
            (self.labels.iter().copied().zip(key.iter().cloned()).collect(), *value)
        };
        values.iter().map(series).collect()
    }
}

/// Histograms that differ in one label.
#[derive(Debug)]
pub(super) struct HistogramFamily {
    label: &'static str,
    bounds: &'static [f64],
    values: Mutex<BTreeMap<String, HistogramValues>>,
}

/// The observations of one histogram.
#[derive(Debug, Clone, Default)]
pub(super) struct HistogramValues {
    /// How many observations are above the bound before and not above this one; the last one has no bound.
    counts: Vec<u64>,
    pub(super) sum: f64,
}

/// A histogram as it is written.
pub(super) struct HistogramSeries {
    pub(super) label: (&'static str, String),
    /// The bounds, each with the number of observations not above it.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum: f64,
}

impl HistogramFamily {
    pub(super) fn new(label: &'static str, bounds: &'static [f64]) -> HistogramFamily {
        HistogramFamily { label, bounds, values: Mutex::default() }
    }

    /// Records an observation.
    pub(super) fn observe(&self, label: &str, value: f64) {
        let mut values = self.values.lock();
        let label = if values.len() < MOST_SERIES || values.contains_key(label) { label } else { OTHER };
        if !values.contains_key(label) {
            let empty = HistogramValues { counts: vec![0; self.bounds.len() + 1], sum: 0.0 };
            values.insert(label.to_owned(), empty);
        }
        if let Some(histogram) = values.get_mut(label) {
            histogram.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
            histogram.sum += value;
        }
    }

    /// The histograms, each with its label.
    pub(super) fn read(&self) -> Vec<HistogramSeries> {
        let series = |(label, values): (&String, &HistogramValues)| {
            let mut count = 0;
            let mut below = values.counts.iter().map(|more| {
                count += more;
                count
            });
            let buckets = self.bounds.iter().copied().zip(below.by_ref()).collect();
            below.for_each(drop);
            HistogramSeries { label: (self.label, label.clone()), buckets, count, sum: values.sum }
        };
        self.values.lock().iter().map(series).collect()
    }
}
