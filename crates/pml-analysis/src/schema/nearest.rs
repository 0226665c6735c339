//! Suggests known names for a wrong one.

/// The known names nearest to `wanted`, best first, at most three: typos (`raed`), other spellings (`readFile` for
/// `read_file`), other orders (`file_read`) and parts (`path` for `file_path`). In `server:tool` a common server does
/// not make the tools similar.
pub fn closest_names<'c>(wanted: &str, known: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
    let wanted = ComparedName::new(wanted);
    let mut scored: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| Some((wanted.distance(&ComparedName::new(candidate))?, candidate)))
        .collect();
    scored.sort_unstable();
    // Beside a name that differs only in its spelling, others are not suggested.
    if scored.first().is_some_and(|(best, _)| *best <= REORDERED) {
        scored.retain(|(distance, _)| *distance <= REORDERED);
    }
    scored.truncate(3);
    scored.into_iter().map(|(_, name)| name).collect()
}

/// Words of a name in lower case: `readFile`, `read-file` and `READ_FILE` are `read`, `file`.
pub(super) fn tokens(name: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_alphanumeric() {
            let begins = !before.is_alphanumeric() || (c.is_uppercase() && !before.is_uppercase());
            match found.last_mut() {
                Some(last) if !begins => last.extend(c.to_lowercase()),
                _ => found.push(c.to_lowercase().collect()),
            }
        }
        before = c;
    }
    found
}

/// A name, split for comparison.
struct ComparedName {
    server: Option<String>,
    tokens: Vec<String>,
    joined: String,
}

/// Distance of a different server: more than any typo within the name.
const OTHER_SERVER: usize = 100;

impl ComparedName {
    fn new(name: &str) -> ComparedName {
        let (server, own) = match name.split_once(':') {
            Some((server, own)) => (Some(server.to_lowercase()), own),
            None => (None, name),
        };
        let tokens = tokens(own);
        let joined = tokens.concat();
        ComparedName { server, tokens, joined }
    }

    /// Distance to another name; `None` when it is too far.
    fn distance(&self, other: &ComparedName) -> Option<usize> {
        let own = self.own_distance(other)?;
        match (&self.server, &other.server) {
            (Some(wanted), Some(known)) if wanted != known => match slips(wanted, known) {
                Some(slips) => Some(own + 10 * slips),
                None if own <= REORDERED => Some(own + OTHER_SERVER),
                None => None,
            },
            _ => Some(own),
        }
    }

    fn own_distance(&self, other: &ComparedName) -> Option<usize> {
        let slips = slips(&self.joined, &other.joined).map(|slips| slips * 10);
        [slips, self.shared(other)].into_iter().flatten().min()
    }

    /// Distance of names that share words.
    fn shared(&self, other: &ComparedName) -> Option<usize> {
        let (few, many) = if self.tokens.len() <= other.tokens.len() { (self, other) } else { (other, self) };
        let within = few.tokens.iter().all(|token| many.tokens.contains(token));
        let enough = few.tokens.len() * 2 >= many.tokens.len() && few.joined.chars().count() > 1;
        (within && enough).then(|| REORDERED + 20 * (many.tokens.len() - few.tokens.len()))
    }
}

/// Distance of names with the same words in another order.
const REORDERED: usize = 5;

/// Edit distance with transpositions; `None` when it is too large for names of this length.
fn slips(wanted: &str, known: &str) -> Option<usize> {
    let (a, b) = (wanted.chars().count(), known.chars().count());
    let (long, short) = (a.max(b), a.min(b));
    let limit = if short == 0 { 0 } else { (long / 3).min(4) };
    if long - short > limit {
        return None;
    }
    Some(strsim::osa_distance(wanted, known)).filter(|slips| *slips <= limit)
}
