//! An inverted index of tools: which terms stand where, and how much each is worth.
//!
//! This is BM25F: a term counts by the field it stands in, less in long fields, with diminishing
//! returns, and more the rarer it is. All of that is known when the index is built, so the worth of a
//! term for an item is one stored number and ranking only adds numbers up. The index never keeps the
//! text it was built from, and never changes: a changed catalogue is indexed anew.

use std::collections::HashMap;
use std::mem;

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

const FIELDS: usize = 6;

/// How much a term counts in each field, in the order of [`Field`].
const WEIGHTS: [f32; FIELDS] = [2.0, 3.0, 1.0, 1.0, 0.5, 0.5];

/// Where further occurrences stop adding.
const SATURATION: f32 = 2.5;

/// How strongly long fields are held against their terms.
const LENGTH_PENALTY: f32 = 0.75;

/// Examples of results can be very long and repeat themselves.
const MAX_OUTPUT_BYTES: usize = 1500;

/// What `idf` is multiplied by for a term in a name and once in a description, both of usual length.
pub(crate) const FULL_MATCH: f32 = saturate(4.0);

/// The fields in which a term stands, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldSet(u8);

impl FieldSet {
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
#[derive(Debug, Default)]
pub struct Index {
    terms: HashMap<Box<str>, u32>,
    /// The postings of term `t` are those from `starts[t]` to `starts[t + 1]`, by rising item.
    starts: Vec<u32>,
    items: Vec<u32>,
    worths: Vec<f32>,
    fields: Vec<FieldSet>,
    /// Rarity per term.
    idf: Vec<f32>,
    /// Per item, the summed rarity of the terms of its name and of its server's name.
    name_mass: Vec<f32>,
    server_mass: Vec<f32>,
}

impl Index {
    /// Indexes `documents`.
    pub fn build<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Index {
        let mut builder = Builder::default();
        for document in documents {
            builder.add(&document);
        }
        builder.finish()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.name_mass.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.name_mass.is_empty()
    }

    /// The number of a term, where any item has it.
    pub(crate) fn term(&self, term: &str) -> Option<u32> {
        self.terms.get(term).copied()
    }

    /// How rare a term is; one that no item has is the rarest.
    pub(crate) fn idf(&self, term: Option<u32>) -> f32 {
        term.map_or_else(|| idf(self.len(), 0), |term| self.idf[term as usize])
    }

    /// Where `term` stands, by rising item.
    pub(crate) fn postings(&self, term: u32) -> impl Iterator<Item = Posting> {
        self.range(term).map(|at| self.posting(at))
    }

    /// What `term` is worth for `item`, where it stands in it.
    pub(crate) fn find(&self, term: u32, item: usize) -> Option<Posting> {
        let range = self.range(term);
        let items = &self.items[range.clone()];
        let offset = items.binary_search_by(|candidate| (*candidate as usize).cmp(&item)).ok()?;
        Some(self.posting(range.start + offset))
    }

    /// The summed rarity of the terms of an item's name.
    pub(crate) fn name_mass(&self, item: usize) -> f32 {
        self.name_mass[item]
    }

    /// The summed rarity of the terms of the name of an item's server.
    pub(crate) fn server_mass(&self, item: usize) -> f32 {
        self.server_mass[item]
    }

    fn range(&self, term: u32) -> std::ops::Range<usize> {
        self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize
    }

    fn posting(&self, at: usize) -> Posting {
        Posting { item: self.items[at] as usize, worth: self.worths[at], fields: self.fields[at] }
    }
}

/// How often a term stands in each field of an item. 255 stands for that often or more, which is
/// far beyond where more occurrences matter.
#[derive(Debug, Clone, Copy)]
struct Count {
    term: u32,
    item: u32,
    times: [u8; FIELDS],
}

#[derive(Default)]
struct Builder {
    terms: HashMap<Box<str>, u32>,
    /// The term of every folded word seen so far: stemming a word once makes building several times
    /// as fast. `None` is a stop word.
    words: HashMap<Box<str>, Option<u32>>,
    counts: Vec<Count>,
    lengths: Vec<[u32; FIELDS]>,
    /// Reused from document to document.
    seen: Vec<(u32, Field)>,
    folded: String,
}

impl Builder {
    fn add(&mut self, document: &Document<'_>) {
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
        tokens::each_word(text, |word| {
            // Put together the words of a name would count twice in what a request covers of it.
            let field = if word.compound && field == Field::Name { Field::Description } else { field };
            if let Some(term) = self.term(word.text) {
                seen.push((term, field));
            }
        });
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        tokens::fold(word, &mut self.folded);
        if let Some(known) = self.words.get(self.folded.as_str()) {
            return *known;
        }
        let term = tokens::term(&self.folded).map(|term| match self.terms.get(&*term) {
            Some(known) => *known,
            None => {
                let next = u32::try_from(self.terms.len()).expect("fewer than four billion words");
                self.terms.insert(term.into(), next);
                next
            }
        });
        self.words.insert(self.folded.as_str().into(), term);
        term
    }

    fn count(&mut self, seen: &mut [(u32, Field)]) {
        let item = u32::try_from(self.lengths.len()).expect("fewer than four billion items");
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

    fn finish(self) -> Index {
        let (items, terms) = (self.lengths.len(), self.terms.len());
        let starts = self.starts();
        let idf: Vec<f32> = starts.windows(2).map(|pair| idf(items, (pair[1] - pair[0]) as usize)).collect();
        let averages = averages(&self.lengths);
        let mut index = Index {
            items: vec![0; self.counts.len()],
            worths: vec![0.0; self.counts.len()],
            fields: vec![FieldSet(0); self.counts.len()],
            name_mass: vec![0.0; items],
            server_mass: vec![0.0; items],
            terms: self.terms,
            idf,
            starts,
        };
        index.terms.shrink_to_fit();
        let mut next = index.starts[..terms].to_vec();
        for count in &self.counts {
            let at = &mut next[count.term as usize];
            index.put(*at as usize, count, &self.lengths[count.item as usize], &averages);
            *at += 1;
        }
        index
    }

    fn starts(&self) -> Vec<u32> {
        let mut starts = vec![0_u32; self.terms.len() + 1];
        for count in &self.counts {
            starts[count.term as usize + 1] += 1;
        }
        for term in 1..starts.len() {
            starts[term] += starts[term - 1];
        }
        starts
    }
}

impl Index {
    fn put(&mut self, at: usize, count: &Count, lengths: &[u32; FIELDS], averages: &[f32; FIELDS]) {
        let (item, idf) = (count.item as usize, self.idf[count.term as usize]);
        let (mut frequency, mut fields) = (0.0, 0);
        for field in (0..FIELDS).filter(|field| count.times[*field] > 0) {
            let length = 1.0 - LENGTH_PENALTY + LENGTH_PENALTY * lengths[field] as f32 / averages[field];
            frequency += WEIGHTS[field] * f32::from(count.times[field]) / length;
            fields |= 1 << field;
        }
        self.items[at] = count.item;
        self.worths[at] = idf * saturate(frequency);
        self.fields[at] = FieldSet(fields);
        if self.fields[at].contains(Field::Name) {
            self.name_mass[item] += idf;
        }
        if self.fields[at].contains(Field::Server) {
            self.server_mass[item] += idf;
        }
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
fn averages(lengths: &[[u32; FIELDS]]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let filled = lengths.iter().map(|lengths| lengths[field]).filter(|length| *length > 0);
        let (sum, number) =
            filled.fold((0_u64, 0_u64), |(sum, number), length| (sum + u64::from(length), number + 1));
        if number == 0 { 1.0 } else { sum as f32 / number as f32 }
    })
}
