//! Splits a request into the steps it asks for.
//!
//! "Read and parse a JSON file, then post it" asks for three things. Tools are searched for each step separately, so
//! its words must make sense alone: a verb without an object gets the object of the next step.

/// Words that a step can begin with.
const VERBS: &[&str] = &[
    "add",
    "analyse",
    "analyze",
    "append",
    "apply",
    "ask",
    "assign",
    "attach",
    "book",
    "build",
    "buy",
    "calculate",
    "call",
    "cancel",
    "change",
    "check",
    "clean",
    "clear",
    "clone",
    "close",
    "collect",
    "combine",
    "commit",
    "compare",
    "compress",
    "compute",
    "convert",
    "copy",
    "count",
    "create",
    "crop",
    "decode",
    "decrypt",
    "delete",
    "deploy",
    "describe",
    "detect",
    "display",
    "download",
    "draw",
    "edit",
    "email",
    "encode",
    "encrypt",
    "estimate",
    "evaluate",
    "execute",
    "export",
    "extract",
    "fetch",
    "fill",
    "filter",
    "find",
    "fix",
    "format",
    "forward",
    "generate",
    "get",
    "give",
    "group",
    "hash",
    "identify",
    "import",
    "insert",
    "install",
    "join",
    "keep",
    "list",
    "load",
    "locate",
    "log",
    "look",
    "mail",
    "make",
    "measure",
    "merge",
    "move",
    "notify",
    "open",
    "order",
    "organize",
    "parse",
    "pay",
    "pick",
    "play",
    "plot",
    "post",
    "predict",
    "prepare",
    "print",
    "publish",
    "pull",
    "push",
    "put",
    "query",
    "rank",
    "read",
    "recommend",
    "reduce",
    "remind",
    "remove",
    "rename",
    "render",
    "replace",
    "reply",
    "report",
    "request",
    "reserve",
    "resize",
    "resolve",
    "retrieve",
    "return",
    "reverse",
    "rotate",
    "round",
    "run",
    "save",
    "scan",
    "schedule",
    "score",
    "scrape",
    "search",
    "select",
    "send",
    "set",
    "share",
    "show",
    "sign",
    "simplify",
    "solve",
    "sort",
    "split",
    "start",
    "stop",
    "store",
    "subscribe",
    "suggest",
    "sum",
    "summarise",
    "summarize",
    "sync",
    "tag",
    "take",
    "tell",
    "test",
    "track",
    "transfer",
    "transform",
    "translate",
    "trim",
    "turn",
    "unzip",
    "update",
    "upload",
    "upper",
    "validate",
    "verify",
    "view",
    "write",
    "zip",
];

/// Words between steps.
const BETWEEN: &[&str] = &["and", "then", "also", "afterwards", "finally", "next", "plus", "please"];

/// The largest number of steps.
const MOST: usize = 8;

/// The steps of `text`, in its words; the whole text where it asks for one thing.
pub fn split_clauses(text: &str) -> Vec<String> {
    let mut steps: Vec<Vec<&str>> = Vec::new();
    for sentence in sentences(text) {
        let mut new = true;
        for word in sentence.split_whitespace() {
            let bare = bare(word);
            if BETWEEN.contains(&bare.as_str()) && new {
                continue;
            }
            let begins = VERBS.contains(&bare.as_str());
            match steps.last_mut() {
                Some(step) if !(new && begins) => {
                    // A word such as `and` that no step begins after belongs to the current step.
                    step.push(word);
                }
                _ => steps.push(vec![word]),
            }
            new = BETWEEN.contains(&bare.as_str()) || word.ends_with([',', ';', ':']);
        }
    }
    let mut clauses: Vec<String> = Vec::new();
    let mut object: Option<String> = None;
    for step in steps.iter().rev() {
        let mut words: Vec<&str> = step.clone();
        while words.last().is_some_and(|word| BETWEEN.contains(&bare(word).as_str())) {
            words.pop();
        }
        let clause = words.join(" ").trim_end_matches([',', ';', '.', ':']).to_owned();
        let (verb, rest) = clause.split_once(' ').map_or((clause.as_str(), ""), |(verb, rest)| (verb, rest));
        let whole = match (&object, rest.is_empty()) {
            (Some(object), true) => format!("{verb} {object}"),
            _ => clause.clone(),
        };
        if !rest.is_empty() {
            object = Some(rest.to_owned());
        }
        if !whole.is_empty() {
            clauses.push(whole);
        }
    }
    clauses.reverse();
    if clauses.len() < 2 || clauses.len() > MOST { vec![text.trim().to_owned()] } else { clauses }
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['\n', ';']).flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            // A full stop inside a word, as in a file name, ends no sentence.
            let end = rest
                .match_indices(['.', '!', '?'])
                .map(|(at, _)| at + 1)
                .find(|end| rest[*end..].chars().next().is_none_or(char::is_whitespace));
            let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            Some(sentence)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cut_where_another_step_begins() {
        for (text, expected) in [
            ("read and parse a JSON file, then post it", "read a JSON file | parse a JSON file | post it"),
            ("what time is it in Paris", "what time is it in Paris"),
            ("Read data.json. Then send it to Ann and Bob", "Read data.json | send it to Ann and Bob"),
            ("list the files, sort them and count", "list the files | sort them | count"),
            ("the search and rescue team", "the search and rescue team"),
            ("convert the PDF to text", "convert the PDF to text"),
            ("", ""),
            ("🙂", "🙂"),
        ] {
            assert_eq!(split_clauses(text).join(" | "), expected);
        }
    }

    #[test]
    fn a_long_text_is_one_request() {
        assert_eq!(split_clauses(&"read the file. ".repeat(50)).len(), 1);
    }
}
