//! An inverted index of tools: which terms stand where, and how much each is worth.
//!
//! This is BM25F: a term counts by the field it stands in, less in long fields, with diminishing
//! returns, and more the rarer it is. All of that is known when the index is built, so ranking only adds
//! numbers up. The index never keeps the text it was built from. It never changes: a changed catalogue
//! gets an index of its own, which takes over what is still the same and is the very one that building
//! it anew would give.

use std::collections::HashMap;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use crate::pairs::{Pair, Pairs};
use crate::tokens;

/// What is indexed of one tool.
#[derive(Debug, Clone, Default)]
pub struct Document<'a> {
    /// The server it belongs to.
    pub server: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// Names of its parameters.
    pub parameter_names: Vec<&'a str>,
    /// What its parameters mean.
    pub parameter_descriptions: Vec<&'a str>,
    /// What it gives back, in any form; only the beginning is read.
    pub outputs: &'a str,
}

/// An item of a changed catalogue.
#[derive(Debug, Clone)]
pub enum Entry<'a> {
    /// Was this item before, and has the same words.
    Kept(usize),
    /// Is new, or has other words.
    New(Document<'a>),
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    /// The server's name.
    Server,
    /// The tool's name.
    Name,
    /// The description.
    Description,
    /// A parameter's name.
    ParameterName,
    /// A parameter's description.
    ParameterDescription,
    /// The result.
    Output,
}

impl Field {
    /// Whether words side by side are looked for here. What is written about parameters and results is
    /// long, and seldom said by a request.
    fn has_pairs(self) -> bool {
        !matches!(self, Field::ParameterDescription | Field::Output)
    }

    fn is_name(self) -> bool {
        matches!(self, Field::Server | Field::Name)
    }
}

const FIELDS: usize = 6;

/// How much a term counts in each field, in the order of [`Field`].
const WEIGHTS: [f32; FIELDS] = [2.0, 3.0, 1.0, 1.0, 1.0, 0.5];

/// Where further occurrences stop adding.
const SATURATION: f32 = 1.5;

/// How strongly long fields are held against their terms.
const LENGTH_PENALTY: f32 = 0.75;

/// Usual lengths are known in steps of a tenth: then a tool more or less seldom changes what the words of
/// all the others are worth.
const LENGTH_STEP: f32 = 0.1;

/// Examples of results can be very long and repeat themselves.
const MAX_OUTPUT_BYTES: usize = 1500;

/// What `idf` is multiplied by for a term in a name and once in a description, both of usual length.
pub(crate) const FULL_MATCH: f32 = saturate(4.0);

/// The fields in which a term stands, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldSet(u8);

impl FieldSet {
    fn of(times: &Times) -> FieldSet {
        FieldSet(times.iter().enumerate().map(|(field, times)| u8::from(*times > 0) << field).sum())
    }

    pub(crate) fn contains(self, field: Field) -> bool {
        self.0 & (1 << field as u8) != 0
    }
}

/// What one term is worth for one item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) item: usize,
    pub(crate) worth: f32,
    pub(crate) fields: FieldSet,
}

/// A catalogue of tools, ready to be ranked. Items are numbered in the order they were given.
#[derive(Debug, Clone, Default)]
pub struct Index {
    terms: Terms,
    /// The postings of term `t` are those from `starts[t]` to `starts[t + 1]`, by rising item.
    starts: Vec<u32>,
    postings: Postings,
    pairs: Pairs,
    /// Rarity per term.
    idf: Vec<f32>,
    /// Per item, the number of words in each field.
    lengths: Vec<Lengths>,
    /// Usual lengths.
    averages: [f32; FIELDS],
    /// Per item, the summed rarity of the terms of its name and of its server's name.
    name_mass: Vec<f32>,
    server_mass: Vec<f32>,
}

type Lengths = [u32; FIELDS];

/// How often a term stands in each field of an item. 255 stands for that often or more, which is
/// far beyond where more occurrences matter.
type Times = [u8; FIELDS];

#[derive(Debug, Clone, Default)]
struct Postings {
    items: Vec<u32>,
    times: Vec<Times>,
    fields: Vec<FieldSet>,
    /// What a term is worth, in units of its rarity.
    shares: Vec<f32>,
}

impl Index {
    /// Indexes `documents`.
    pub fn build<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Index {
        Index::default().updated(documents.into_iter().map(Entry::New))
    }

    /// The index of a changed catalogue, whose items are `entries` in that order. Costs much less than
    /// building it, where most items are kept.
    ///
    /// # Panics
    /// If an item is kept that is not there, or twice.
    pub fn updated<'a>(&self, entries: impl IntoIterator<Item = Entry<'a>>) -> Index {
        let mut builder = Builder::new(self);
        for entry in entries {
            builder.add(entry);
        }
        builder.finish()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The number of a term, where any item has it.
    pub(crate) fn term(&self, term: &str) -> Option<u32> {
        self.terms.get(term).filter(|term| !self.range(*term).is_empty())
    }

    /// How rare a term is; one that no item has is the rarest.
    pub(crate) fn idf(&self, term: Option<u32>) -> f32 {
        term.map_or_else(|| idf(self.len(), 0), |term| self.idf[term as usize])
    }

    /// Where `term` stands, by rising item.
    pub(crate) fn postings(&self, term: u32) -> impl Iterator<Item = Posting> {
        self.range(term).map(move |at| self.posting(term, at))
    }

    /// What `term` is worth for `item`, where it stands in it.
    pub(crate) fn find(&self, term: u32, item: usize) -> Option<Posting> {
        let range = self.range(term);
        let items = &self.postings.items[range.clone()];
        let offset = items.binary_search_by(|candidate| (*candidate as usize).cmp(&item)).ok()?;
        Some(self.posting(term, range.start + offset))
    }

    /// Which items have `first` and `second` side by side in that order, and what that is worth for each.
    pub(crate) fn side_by_side(&self, first: u32, second: u32) -> impl Iterator<Item = (usize, f32)> {
        let pairs = self.pairs.of(first, second);
        let idf = idf(self.len(), pairs.len());
        pairs.iter().map(move |pair| (pair.item(), idf * pair.share()))
    }

    /// The summed rarity of the terms of an item's name.
    pub(crate) fn name_mass(&self, item: usize) -> f32 {
        self.name_mass[item]
    }

    /// The summed rarity of the terms of the name of an item's server.
    pub(crate) fn server_mass(&self, item: usize) -> f32 {
        self.server_mass[item]
    }

    fn range(&self, term: u32) -> Range<usize> {
        // A term may be younger than the postings while an index is being made.
        match self.starts.get(term as usize..term as usize + 2) {
            Some(bounds) => bounds[0] as usize..bounds[1] as usize,
            None => 0..0,
        }
    }

    fn posting(&self, term: u32, at: usize) -> Posting {
        let worth = self.idf[term as usize] * self.postings.shares[at];
        Posting { item: self.postings.items[at] as usize, worth, fields: self.postings.fields[at] }
    }
}

/// The numbers of terms.
#[derive(Debug, Clone, Default)]
struct Terms {
    /// Most of them; shared by an index and those made from it.
    most: Arc<HashMap<Box<str>, u32>>,
    /// Those that came since.
    recent: HashMap<Box<str>, u32>,
}

impl Terms {
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

    /// Puts recent terms to the others once they are many, so that copying them stays cheap.
    fn settle(&mut self) {
        if self.recent.len() > self.most.len() / 8 {
            Arc::make_mut(&mut self.most).extend(self.recent.drain());
        }
    }
}

/// A term in an item of the new index.
#[derive(Debug, Clone, Copy)]
struct Count {
    term: u32,
    item: u32,
    times: Times,
}

struct Builder<'i> {
    before: &'i Index,
    terms: Terms,
    /// The term of every folded word seen so far: stemming a word once makes building several times
    /// as fast. `None` is a stop word.
    words: HashMap<Box<str>, Option<u32>>,
    /// The terms of new items.
    counts: Vec<Count>,
    pairs: Vec<Pair>,
    /// What has become of each item of the index before.
    moved: Vec<Option<u32>>,
    lengths: Vec<Lengths>,
    /// Reused from document to document.
    seen: Vec<(u32, Field)>,
    folded: String,
}

impl<'i> Builder<'i> {
    fn new(before: &'i Index) -> Builder<'i> {
        Builder {
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

    fn add(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::New(document) => self.read_all(&document),
            Entry::Kept(item) => {
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

    fn read_all(&mut self, document: &Document<'_>) {
        let mut seen = mem::take(&mut self.seen);
        seen.clear();
        self.read(document.server, Field::Server, &mut seen);
        self.read(document.name, Field::Name, &mut seen);
        self.read(document.description, Field::Description, &mut seen);
        for name in &document.parameter_names {
            self.read(name, Field::ParameterName, &mut seen);
        }
        for description in &document.parameter_descriptions {
            self.read(description, Field::ParameterDescription, &mut seen);
        }
        self.read(tokens::beginning(document.outputs, MAX_OUTPUT_BYTES), Field::Output, &mut seen);
        self.count(&mut seen);
        self.seen = seen;
    }

    fn read(&mut self, text: &str, field: Field, seen: &mut Vec<(u32, Field)>) {
        let item = self.next();
        let mut before = None;
        tokens::each_word(text, |word| {
            // Put together the words of a name would count twice in what a request covers of it.
            let counted = if word.compound && field == Field::Name { Field::Description } else { field };
            let Some(term) = self.term(word.text) else { return };
            seen.push((term, counted));
            if word.compound || !field.has_pairs() {
                return;
            }
            if let Some(first) = before.replace(term).filter(|first| *first != term) {
                self.pairs.push(Pair::new(first, term, item, field.is_name()));
            }
        });
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        tokens::fold(word, &mut self.folded);
        if let Some(known) = self.words.get(self.folded.as_str()) {
            return *known;
        }
        let term = tokens::term(&self.folded).map(|term| self.terms.number(&term));
        self.words.insert(self.folded.as_str().into(), term);
        term
    }

    fn count(&mut self, seen: &mut [(u32, Field)]) {
        let item = self.next();
        let mut lengths = [0; FIELDS];
        seen.sort_unstable_by_key(|(term, _)| *term);
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let mut times = [0_u8; FIELDS];
            for (_, field) in same {
                times[*field as usize] = times[*field as usize].saturating_add(1);
                lengths[*field as usize] += 1;
            }
            self.counts.push(Count { term: same[0].0, item, times });
        }
        self.lengths.push(lengths);
    }

    fn finish(mut self) -> Index {
        let (items, averages) = (self.lengths.len(), averages(&self.lengths));
        // The sort keeps the order of items.
        self.counts.sort_by_key(|count| count.term);
        self.terms.settle();
        let mut index = Index {
            starts: Vec::with_capacity(self.terms.len() + 1),
            idf: Vec::with_capacity(self.terms.len()),
            postings: Postings::default(),
            pairs: self.before.pairs.updated(&self.moved, self.pairs),
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

impl Index {
    /// Adds the postings of the next term: what is left of those before, and the new ones.
    fn put(&mut self, term: u32, before: &Index, moved: &[Option<u32>], new: &[Count]) {
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
            if fields.contains(Field::Name) {
                self.name_mass[item] += idf;
            }
            if fields.contains(Field::Server) {
                self.server_mass[item] += idf;
            }
        }
    }

    fn share(&self, item: u32, times: &Times) -> f32 {
        let lengths = &self.lengths[item as usize];
        let mut frequency = 0.0;
        for field in (0..FIELDS).filter(|field| times[*field] > 0) {
            let length = 1.0 - LENGTH_PENALTY + LENGTH_PENALTY * lengths[field] as f32 / self.averages[field];
            frequency += WEIGHTS[field] * f32::from(times[field]) / length;
        }
        saturate(frequency)
    }

    /// Forgets the terms that no item has any more, once they are most of them.
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
        self.terms = Terms { most: Arc::new(named.collect()), recent: HashMap::new() };
        self.idf = kept.iter().map(|term| self.idf[*term as usize]).collect();
        // A term without postings starts where the next one does.
        self.starts =
            kept.iter().map(|term| self.starts[*term as usize]).chain(self.starts.last().copied()).collect();
    }
}

impl Postings {
    fn reserve(&mut self, number: usize) {
        self.items.reserve(number);
        self.times.reserve(number);
        self.fields.reserve(number);
        self.shares.reserve(number);
    }

    fn push(&mut self, item: u32, times: Times, share: f32) {
        self.items.push(item);
        self.times.push(times);
        self.fields.push(FieldSet::of(&times));
        self.shares.push(share);
    }

    /// Puts those from `start` on in the order of their items.
    fn sort_from(&mut self, start: usize) {
        if self.items[start..].is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (start..self.items.len()).collect();
        order.sort_unstable_by_key(|at| self.items[*at]);
        let sorted: Vec<(u32, Times, f32)> =
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

/// The usual length of each field, over the items that have the field at all.
fn averages(lengths: &[Lengths]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let filled = lengths.iter().map(|lengths| lengths[field]).filter(|length| *length > 0);
        let (sum, number) =
            filled.fold((0_u64, 0_u64), |(sum, number), length| (sum + u64::from(length), number + 1));
        let average = if number == 0 { 1.0 } else { sum as f32 / number as f32 };
        ((average.ln() / LENGTH_STEP).round() * LENGTH_STEP).exp()
    })
}
