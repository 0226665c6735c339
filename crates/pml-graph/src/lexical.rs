//! Inverted index of tools: which terms occur where, and their scores.
//!
//! This is BM25F: a term counts by the field it occurs in, less in long fields, with diminishing returns, and more the
//! rarer it is. All of this is computed when the index is built, so ranking only adds numbers. The index does not keep
//! the text. It is immutable: a changed catalogue gets a new index, which reuses what is unchanged and equals the one
//! that a full build would give.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crate::pairs::{PairPosting, TermPairs};
use crate::tokens;

/// Indexed texts of one tool.
#[derive(Debug, Clone, Default)]
pub struct ToolDocument<'a> {
    /// Name of its server.
    pub server: &'a str,
    /// Name of the tool.
    pub name: &'a str,
    /// Description of the tool.
    pub description: &'a str,
    /// Names of its parameters.
    pub parameter_names: Vec<&'a str>,
    /// Descriptions of its parameters.
    pub parameter_descriptions: Vec<&'a str>,
    /// Description of its result, in any form; only the first `MAX_OUTPUT_BYTES` are read.
    pub outputs: &'a str,
}

/// An item of a changed catalogue.
#[derive(Debug, Clone)]
pub enum IndexEntry<'a> {
    /// The item had this number before, and its text is unchanged.
    Kept(usize),
    /// The item is new, or its text has changed.
    New(ToolDocument<'a>),
}

/// A field of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DocumentField {
    /// Name of the server.
    Server,
    /// Name of the tool.
    Name,
    /// Description of the tool.
    Description,
    /// Name of a parameter.
    ParameterName,
    /// Description of a parameter.
    ParameterDescription,
    /// Description of the result.
    Output,
}

impl DocumentField {
    /// Whether adjacent pairs are indexed. Texts about parameters and results are long and seldom quoted in a request.
    fn has_pairs(self) -> bool {
        !matches!(self, DocumentField::ParameterDescription | DocumentField::Output)
    }

    fn is_name(self) -> bool {
        matches!(self, DocumentField::Server | DocumentField::Name)
    }
}

/// Number of variants of [`DocumentField`].
const FIELDS: usize = 6;

/// Weight of a term in each field, in the order of [`DocumentField`].
const WEIGHTS: [f32; FIELDS] = [2.0, 3.0, 1.0, 1.0, 1.0, 0.5];

/// BM25 saturation: further occurrences add less and less.
const SATURATION: f32 = 1.5;

/// BM25 length normalisation: how strongly terms of long fields are penalised.
const LENGTH_PENALTY: f32 = 0.75;

/// Average lengths are rounded to steps of this relative size, so that adding or removing a tool seldom changes the
/// scores of all others.
const LENGTH_STEP: f32 = 0.1;

/// Maximum bytes read of a result description: examples of results can be very long and repetitive.
const MAX_OUTPUT_BYTES: usize = 1500;

/// Factor of `idf` for a term in a name and once in a description, both of average length.
pub(crate) const FULL_MATCH: f32 = saturate(4.0);

/// Set of fields in which a term occurs, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldSet(u8);

impl FieldSet {
    fn of(times: &FieldCounts) -> FieldSet {
        FieldSet(times.iter().enumerate().map(|(field, times)| u8::from(*times > 0) << field).sum())
    }

    pub(crate) fn contains(self, field: DocumentField) -> bool {
        self.0 & (1 << field as u8) != 0
    }
}

/// Score of one term for one item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermPosting {
    pub(crate) item: usize,
    pub(crate) score: f32,
    pub(crate) fields: FieldSet,
}

/// Index of a catalogue. Items are numbered in the order they were given.
#[derive(Debug, Clone, Default)]
pub struct LexicalIndex {
    terms: TermTable,
    /// The postings of term `t` are `starts[t]..starts[t + 1]`, in order of item.
    starts: Vec<u32>,
    postings: PostingTable,
    pairs: TermPairs,
    /// Rarity of each term.
    idf: Vec<f32>,
    /// Number of words in each field, per item.
    lengths: Vec<FieldLengths>,
    /// Average length of each field.
    averages: [f32; FIELDS],
    /// Summed rarity of the terms of the name and of the server's name, per item.
    name_mass: Vec<f32>,
    server_mass: Vec<f32>,
}

type FieldLengths = [u32; FIELDS];

/// Occurrences of a term in each field of an item. 255 means that many or more, far beyond where more occurrences
/// matter.
type FieldCounts = [u8; FIELDS];

#[derive(Debug, Clone, Default)]
struct PostingTable {
    items: Vec<u32>,
    times: Vec<FieldCounts>,
    fields: Vec<FieldSet>,
    /// Scores of terms, in units of their rarity.
    shares: Vec<f32>,
}

impl LexicalIndex {
    /// Indexes `documents`.
    pub fn build<'a>(documents: impl IntoIterator<Item = ToolDocument<'a>>) -> LexicalIndex {
        LexicalIndex::default().with_entries(documents.into_iter().map(IndexEntry::New))
    }

    /// Index of a changed catalogue, whose items are `entries` in that order. Much cheaper than a full build when most
    /// items are kept.
    ///
    /// # Panics
    /// If an unknown item is kept, or one twice.
    pub fn with_entries<'a>(&self, entries: impl IntoIterator<Item = IndexEntry<'a>>) -> LexicalIndex {
        let mut builder = IndexBuilder::new(self);
        for entry in entries {
            builder.add(entry);
        }
        builder.finish()
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Number of a term; `None` when no item has it.
    pub(crate) fn term_number(&self, term: &str) -> Option<u32> {
        self.terms.get(term).filter(|term| !self.range(*term).is_empty())
    }

    /// Rarity of a term; one that no item has is the rarest.
    pub(crate) fn idf(&self, term: Option<u32>) -> f32 {
        term.map_or_else(|| idf(self.len(), 0), |term| self.idf[term as usize])
    }

    /// Postings of `term`, in order of item.
    pub(crate) fn postings(&self, term: u32) -> impl Iterator<Item = TermPosting> {
        self.range(term).map(move |at| self.posting(term, at))
    }

    /// Posting of `term` for `item`; `None` when it does not occur there.
    pub(crate) fn find_posting(&self, term: u32, item: usize) -> Option<TermPosting> {
        let range = self.range(term);
        let items = &self.postings.items[range.clone()];
        let offset = items.binary_search_by(|candidate| (*candidate as usize).cmp(&item)).ok()?;
        Some(self.posting(term, range.start + offset))
    }

    /// Items with `first` and `second` adjacent in that order, with the scores of the pair.
    pub(crate) fn pair_scores(&self, first: u32, second: u32) -> impl Iterator<Item = (usize, f32)> {
        let pairs = self.pairs.postings_of(first, second);
        let idf = idf(self.len(), pairs.len());
        pairs.iter().map(move |pair| (pair.item(), idf * pair.share()))
    }

    /// Summed rarity of the terms of an item's name.
    pub(crate) fn name_mass(&self, item: usize) -> f32 {
        self.name_mass[item]
    }

    /// Summed rarity of the terms of the name of an item's server.
    pub(crate) fn server_mass(&self, item: usize) -> f32 {
        self.server_mass[item]
    }

    fn range(&self, term: u32) -> Range<usize> {
        // While an index is being built, a term may be newer than the postings.
        match self.starts.get(term as usize..term as usize + 2) {
            Some(bounds) => bounds[0] as usize..bounds[1] as usize,
            None => 0..0,
        }
    }

    fn posting(&self, term: u32, at: usize) -> TermPosting {
        let worth = self.idf[term as usize] * self.postings.shares[at];
        TermPosting { item: self.postings.items[at] as usize, score: worth, fields: self.postings.fields[at] }
    }
}

/// Numbers of terms.
#[derive(Debug, Clone, Default)]
struct TermTable {
    /// Most terms; shared by an index and those derived from it.
    most: Arc<HashMap<Box<str>, u32>>,
    /// Terms added since.
    recent: HashMap<Box<str>, u32>,
}

impl TermTable {
    fn len(&self) -> usize {
        self.most.len() + self.recent.len()
    }

    fn get(&self, term: &str) -> Option<u32> {
        self.most.get(term).or_else(|| self.recent.get(term)).copied()
    }

    fn number(&mut self, term: &str) -> u32 {
        self.get(term).unwrap_or_else(|| {
            let next = u32::try_from(self.len()).expect("fewer than four billion words");
            self.recent.insert(term.into(), next);
            next
        })
    }

    /// Merges recent terms into the shared map once there are many, so that copying them stays cheap.
    fn settle(&mut self) {
        if self.recent.len() > self.most.len() / 8 {
            Arc::make_mut(&mut self.most).extend(self.recent.drain());
        }
    }
}

/// Occurrences of a term in an item of the new index.
#[derive(Debug, Clone, Copy)]
struct TermCount {
    term: u32,
    item: u32,
    times: FieldCounts,
}

struct IndexBuilder<'i> {
    before: &'i LexicalIndex,
    terms: TermTable,
    /// Term of every folded word seen so far; `None` is a stop word. Stemming each word once makes building several
    /// times as fast.
    words: HashMap<Box<str>, Option<u32>>,
    /// Terms of new items.
    counts: Vec<TermCount>,
    pairs: Vec<PairPosting>,
    /// New number of each item of the previous index; `None` when it is gone.
    moved: Vec<Option<u32>>,
    lengths: Vec<FieldLengths>,
    /// Buffer reused for each document.
    seen: Vec<(u32, DocumentField)>,
    folded: String,
}

impl<'i> IndexBuilder<'i> {
    fn new(before: &'i LexicalIndex) -> IndexBuilder<'i> {
        IndexBuilder {
            before,
            terms: before.terms.clone(),
            words: HashMap::new(),
            counts: Vec::new(),
            pairs: Vec::new(),
            moved: vec![None; before.len()],
            lengths: Vec::with_capacity(before.len()),
            seen: Vec::new(),
            folded: String::new(),
        }
    }

    fn add(&mut self, entry: IndexEntry<'_>) {
        match entry {
            IndexEntry::New(document) => self.read_all(&document),
            IndexEntry::Kept(item) => {
                let item_now = self.next();
                let earlier = self.moved[item].replace(item_now);
                assert!(earlier.is_none(), "an item is kept once");
                self.lengths.push(self.before.lengths[item]);
            }
        }
    }

    fn next(&self) -> u32 {
        u32::try_from(self.lengths.len()).expect("fewer than four billion items")
    }

    fn read_all(&mut self, document: &ToolDocument<'_>) {
        let mut seen = mem::take(&mut self.seen);
        seen.clear();
        self.read(document.server, DocumentField::Server, &mut seen);
        self.read(document.name, DocumentField::Name, &mut seen);
        self.read(document.description, DocumentField::Description, &mut seen);
        for name in &document.parameter_names {
            self.read(name, DocumentField::ParameterName, &mut seen);
        }
        for description in &document.parameter_descriptions {
            self.read(description, DocumentField::ParameterDescription, &mut seen);
        }
        self.read(
            pml_language::byte_prefix(document.outputs, MAX_OUTPUT_BYTES),
            DocumentField::Output,
            &mut seen,
        );
        self.count(&mut seen);
        self.seen = seen;
    }

    fn read(&mut self, text: &str, field: DocumentField, seen: &mut Vec<(u32, DocumentField)>) {
        let item = self.next();
        let mut before = None;
        tokens::for_each_word(text, |word| {
            // As a compound, the words of a name would count twice in the coverage of the name.
            let counted = if word.compound && field == DocumentField::Name {
                DocumentField::Description
            } else {
                field
            };
            let Some(term) = self.term(word.text) else { return };
            seen.push((term, counted));
            if word.compound || !field.has_pairs() {
                return;
            }
            if let Some(first) = before.replace(term).filter(|first| *first != term) {
                self.pairs.push(PairPosting::new(first, term, item, field.is_name()));
            }
        });
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        tokens::fold_word(word, &mut self.folded);
        if let Some(known) = self.words.get(self.folded.as_str()) {
            return *known;
        }
        let term = tokens::stem_word(&self.folded).map(|term| self.terms.number(&term));
        self.words.insert(self.folded.as_str().into(), term);
        term
    }

    fn count(&mut self, seen: &mut [(u32, DocumentField)]) {
        let item = self.next();
        let mut lengths = [0; FIELDS];
        seen.sort_unstable_by_key(|(term, _)| *term);
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let mut times = [0_u8; FIELDS];
            for (_, field) in same {
                times[*field as usize] = times[*field as usize].saturating_add(1);
                lengths[*field as usize] += 1;
            }
            self.counts.push(TermCount { term: same[0].0, item, times });
        }
        self.lengths.push(lengths);
    }

    fn finish(mut self) -> LexicalIndex {
        let (items, averages) = (self.lengths.len(), averages(&self.lengths));
        // Stable: keeps the order of items.
        self.counts.sort_by_key(|count| count.term);
        self.terms.settle();
        let mut index = LexicalIndex {
            starts: Vec::with_capacity(self.terms.len() + 1),
            idf: Vec::with_capacity(self.terms.len()),
            postings: PostingTable::default(),
            pairs: self.before.pairs.with_items(&self.moved, self.pairs),
            name_mass: vec![0.0; items],
            server_mass: vec![0.0; items],
            terms: self.terms,
            lengths: self.lengths,
            averages,
        };
        index.postings.reserve(self.before.postings.items.len() + self.counts.len());
        index.starts.push(0);
        let mut counts = self.counts.chunk_by(|a, b| a.term == b.term).peekable();
        for term in 0..index.terms.len() as u32 {
            let new = counts.next_if(|counts| counts[0].term == term).unwrap_or_default();
            index.put(term, self.before, &self.moved, new);
        }
        index.forget();
        index
    }
}

impl LexicalIndex {
    /// Appends the postings of the next term: those of kept items, and the new ones.
    fn put(&mut self, term: u32, before: &LexicalIndex, moved: &[Option<u32>], new: &[TermCount]) {
        let start = self.postings.items.len();
        for at in before.range(term) {
            let Some(item) = moved[before.postings.items[at] as usize] else { continue };
            let times = before.postings.times[at];
            let share = (before.averages == self.averages).then(|| before.postings.shares[at]);
            let share = share.unwrap_or_else(|| self.share(item, &times));
            self.postings.push(item, times, share);
        }
        for count in new {
            self.postings.push(count.item, count.times, self.share(count.item, &count.times));
        }
        self.postings.sort_from(start);
        let end = self.postings.items.len();
        self.starts.push(u32::try_from(end).expect("fewer than four billion words in all items"));
        let idf = idf(self.len(), end - start);
        self.idf.push(idf);
        for at in start..end {
            let (item, fields) = (self.postings.items[at] as usize, self.postings.fields[at]);
            if fields.contains(DocumentField::Name) {
                self.name_mass[item] += idf;
            }
            if fields.contains(DocumentField::Server) {
                self.server_mass[item] += idf;
            }
        }
    }

    fn share(&self, item: u32, times: &FieldCounts) -> f32 {
        let lengths = &self.lengths[item as usize];
        let mut frequency = 0.0;
        for field in (0..FIELDS).filter(|field| times[*field] > 0) {
            let length = 1.0 - LENGTH_PENALTY + LENGTH_PENALTY * lengths[field] as f32 / self.averages[field];
            frequency += WEIGHTS[field] * f32::from(times[field]) / length;
        }
        saturate(frequency)
    }

    /// Drops terms that no item has any more, once they are the majority.
    fn forget(&mut self) {
        let live = |term: &u32| !self.range(*term).is_empty();
        let terms = self.terms.len() as u32;
        let kept: Vec<u32> = (0..terms).filter(live).collect();
        if kept.len() * 2 >= self.terms.len() {
            return;
        }
        let mut numbers = vec![None; self.terms.len()];
        kept.iter().zip(0..).for_each(|(term, number)| numbers[*term as usize] = Some(number));
        let all = self.terms.most.iter().chain(&self.terms.recent);
        let named = all.filter_map(|(name, term)| Some((name.clone(), numbers[*term as usize]?)));
        self.pairs.renumber(|term| numbers[term as usize]);
        self.terms = TermTable { most: Arc::new(named.collect()), recent: HashMap::new() };
        self.idf = kept.iter().map(|term| self.idf[*term as usize]).collect();
        // A term without postings starts where the next one does.
        self.starts =
            kept.iter().map(|term| self.starts[*term as usize]).chain(self.starts.last().copied()).collect();
    }
}

impl PostingTable {
    fn reserve(&mut self, number: usize) {
        self.items.reserve(number);
        self.times.reserve(number);
        self.fields.reserve(number);
        self.shares.reserve(number);
    }

    fn push(&mut self, item: u32, times: FieldCounts, share: f32) {
        self.items.push(item);
        self.times.push(times);
        self.fields.push(FieldSet::of(&times));
        self.shares.push(share);
    }

    /// Sorts the postings from `start` on by item.
    fn sort_from(&mut self, start: usize) {
        if self.items[start..].is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (start..self.items.len()).collect();
        order.sort_unstable_by_key(|at| self.items[*at]);
        let sorted: Vec<(u32, FieldCounts, f32)> =
            order.iter().map(|at| (self.items[*at], self.times[*at], self.shares[*at])).collect();
        self.items.truncate(start);
        self.times.truncate(start);
        self.fields.truncate(start);
        self.shares.truncate(start);
        sorted.into_iter().for_each(|(item, times, share)| self.push(item, times, share));
    }
}

const fn saturate(frequency: f32) -> f32 {
    frequency * (SATURATION + 1.0) / (frequency + SATURATION)
}

fn idf(items: usize, having: usize) -> f32 {
    let (items, having) = (items as f32, having as f32);
    (1.0 + (items - having + 0.5) / (having + 0.5)).ln()
}

/// Average length of each field, over the items that have it.
fn averages(lengths: &[FieldLengths]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let filled = lengths.iter().map(|lengths| lengths[field]).filter(|length| *length > 0);
        let (sum, number) =
            filled.fold((0_u64, 0_u64), |(sum, number), length| (sum + u64::from(length), number + 1));
        let average = if number == 0 { 1.0 } else { sum as f32 / number as f32 };
        ((average.ln() / LENGTH_STEP).round() * LENGTH_STEP).exp()
    })
}
