//! Texts that match a regular expression.
//!
//! The syntax tree of the expression is walked and every choice is drawn. Look-around and back references have no such
//! tree; the validator that PML uses does not know them either.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::random::Random;

/// Repetitions beyond the minimum that are drawn where there is no maximum.
const EXTRA_REPETITIONS: u32 = 8;
/// Maximum number of characters of one text; repetitions of repetitions would grow without it.
const MAX_CHARS: usize = 4_096;

/// A parsed regular expression.
pub(crate) struct Pattern(Hir);

impl Pattern {
    /// Parses the expression; `None` if it is not one that texts can be drawn from.
    pub(crate) fn parse(pattern: &str) -> Option<Pattern> {
        regex_syntax::Parser::new().parse(pattern).ok().map(Pattern)
    }

    /// A text that matches, of at least `min` and at most `max` characters if a few draws find one.
    pub(crate) fn draw(&self, random: &mut Random, min: usize, max: usize) -> String {
        let mut best = String::new();
        let mut best_distance = usize::MAX;
        // Short texts first, then longer and longer ones: whichever bound is tight is met on the way.
        for extra in [EXTRA_REPETITIONS / 2, 1, 0, EXTRA_REPETITIONS, 24, 64, 256, 1024] {
            for _ in 0..6 {
                let mut text = String::new();
                let mut left = MAX_CHARS;
                draw(&self.0, random, extra, &mut left, &mut text);
                let length = text.chars().count();
                let distance = min.saturating_sub(length).max(length.saturating_sub(max));
                if distance < best_distance {
                    (best, best_distance) = (text, distance);
                }
                if best_distance == 0 {
                    return best;
                }
            }
        }
        best
    }
}

fn draw(hir: &Hir, random: &mut Random, extra: u32, left: &mut usize, out: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            *left = left.saturating_sub(text.len());
            out.push_str(&text);
        }
        HirKind::Class(class) => {
            *left = left.saturating_sub(1);
            out.extend(draw_class(class, random));
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(extra));
            let count = random.between(i64::from(repetition.min), i64::from(most));
            for _ in 0..count {
                if *left == 0 {
                    break;
                }
                draw(&repetition.sub, random, extra, left, out);
            }
        }
        HirKind::Capture(capture) => draw(&capture.sub, random, extra, left, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| draw(part, random, extra, left, out)),
        HirKind::Alternation(options) => {
            if let Some(option) = options.get(random.below(options.len())) {
                draw(option, random, extra, left, out);
            }
        }
    }
}

/// A character of the class: an ASCII letter or digit if there is one, else a printable ASCII one, else any.
fn draw_class(class: &Class, random: &mut Random) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
    };
    let holds = |c: char| ranges.iter().any(|(start, end)| (*start..=*end).contains(&c));
    let among =
        |keep: fn(char) -> bool| -> Vec<char> { (' '..='~').filter(|c| keep(*c) && holds(*c)).collect() };
    let plain = among(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let choices = [plain, among(|c| c.is_ascii_alphanumeric()), among(|_| true)];
    match choices.iter().find(|choice| !choice.is_empty()) {
        Some(choice) => Some(random.pick(choice)),
        None => ranges.first().map(|(start, _)| *start),
    }
}
