//! Values that a condition would have to see to come out one way or the other, read from its text.
//!
//! A condition is taken as a list of simple tests, such as `issue.labels.length > 2` or `!args.force`. All of them are
//! made to hold, or none. That decides most conditions that people write; the others are left to chance.

use serde_json::{Value, json};

/// A chain of names, such as `issue.labels`, with the value it should have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aim {
    /// The variable.
    pub(super) root: String,
    /// The members below it.
    pub(super) path: Vec<String>,
    pub(super) value: Value,
}

/// The chains of a condition, with values that make it hold, or not.
pub(super) fn aims(condition: &str, wanted: bool) -> Vec<Aim> {
    let tokens = tokens(condition);
    let mut aims: Vec<Aim> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Chain(chain) = token else { continue };
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        let negated = matches!(before(1), Some(Token::Operator(operator)) if operator == "!");
        let kind = matches!(before(1), Some(Token::Chain(word)) if word.len() == 1 && word[0] == "typeof");
        let compared = match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(Token::Operator(operator)), Some(Token::Literal(literal))) => {
                Some((operator.as_str(), literal))
            }
            (Some(Token::Call), Some(Token::Literal(literal))) => Some(("(", literal)),
            _ => match (before(1), before(2)) {
                (Some(Token::Operator(operator)), Some(Token::Literal(literal))) => {
                    Some((mirrored(operator), literal))
                }
                _ => None,
            },
        };
        aims.extend(aim(chain, compared, wanted != negated, kind));
    }
    aims
}

/// The value that a variable, a member of a result, should equal.
pub(super) fn equal(condition: &str, value: &Value) -> Vec<Aim> {
    let chains = tokens(condition).into_iter().filter_map(|token| match token {
        Token::Chain(chain) => Some(chain),
        _ => None,
    });
    chains.filter(|chain| !is_global(&chain[0])).map(|chain| split(&chain, value.clone())).collect()
}

/// The literal that a text is.
pub(super) fn literal(text: &str) -> Option<Value> {
    match tokens(text).into_iter().next()? {
        Token::Literal(value) => Some(value),
        _ => None,
    }
}

fn split(chain: &[String], value: Value) -> Aim {
    Aim { root: chain[0].clone(), path: chain[1..].to_vec(), value }
}

fn is_global(name: &str) -> bool {
    matches!(
        name,
        "mcp"
            | "capabilities"
            | "Math"
            | "JSON"
            | "Object"
            | "Array"
            | "Number"
            | "String"
            | "Date"
            | "typeof"
            | "await"
            | "new"
            | "null"
            | "undefined"
            | "true"
            | "false"
            | "in"
            | "instanceof"
            | "Boolean"
    )
}

fn aim(chain: &[String], compared: Option<(&str, &Value)>, wanted: bool, kind: bool) -> Option<Aim> {
    if is_global(&chain[0]) {
        return None;
    }
    let (last, above) = chain.split_last()?;
    if kind && let Some((_, Value::String(name))) = compared {
        let value = match (name.as_str(), wanted) {
            ("number", true) => json!(1),
            ("boolean", true) => json!(true),
            ("object", true) => json!({}),
            ("string", false) => json!(1),
            (_, _) => json!("text"),
        };
        return Some(split(chain, value));
    }
    match (last.as_str(), compared) {
        ("length", Some((operator, Value::Number(number)))) if !above.is_empty() => {
            let length = number.as_f64()? + f64::from(step(operator, wanted));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a thousand")]
            let length = length.clamp(0.0, 1_000.0) as usize;
            Some(split(above, json!(vec![json!({}); length])))
        }
        ("length", None) if !above.is_empty() => {
            Some(split(above, if wanted { json!([{}]) } else { json!([]) }))
        }
        ("includes" | "startsWith" | "endsWith" | "has", Some(("(", literal))) if !above.is_empty() => {
            let text = literal.as_str().unwrap_or_default();
            Some(split(above, if wanted { json!(text) } else { json!("") }))
        }
        (_, Some((operator, literal))) => Some(split(chain, compared_value(operator, literal, wanted))),
        (_, None) => Some(split(chain, json!(wanted))),
    }
}

/// How far from the literal a number has to be for the comparison to come out as wanted.
fn step(operator: &str, wanted: bool) -> i8 {
    match (operator, wanted) {
        (">", true) | ("<=", false) | ("!=" | "!==", true) | ("==" | "===", false) => 1,
        ("<", true) | (">=", false) => -1,
        _ => 0,
    }
}

fn compared_value(operator: &str, literal: &Value, wanted: bool) -> Value {
    let equal = matches!(operator, "==" | "===") == wanted;
    match literal {
        Value::Number(number) => {
            match number.as_f64().map(|number| number + f64::from(step(operator, wanted))) {
                #[expect(clippy::cast_possible_truncation, reason = "whole numbers stay whole")]
                Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => json!(value as i64),
                Some(value) => json!(value),
                None => literal.clone(),
            }
        }
        Value::Bool(flag) => json!(*flag == equal),
        Value::Null if equal => Value::Null,
        Value::Null => json!("text"),
        other if equal => other.clone(),
        _ => json!("something else"),
    }
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "<" => ">",
        ">" => "<",
        "<=" => ">=",
        ">=" => "<=",
        other => other,
    }
}

#[derive(Debug, PartialEq)]
enum Token {
    Chain(Vec<String>),
    Literal(Value),
    Operator(String),
    Call,
}

fn tokens(text: &str) -> Vec<Token> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let end_of = |from: usize, fits: &dyn Fn(char) -> bool| {
        (from..characters.len()).find(|end| !fits(characters[*end])).unwrap_or(characters.len())
    };
    while let Some(character) = characters.get(at).copied() {
        if matches!(character, '"' | '\'' | '`') {
            let end = end_of(at + 1, &|c| c != character);
            tokens.push(Token::Literal(json!(characters[at + 1..end].iter().collect::<String>())));
            at = end + 1;
        } else if character.is_ascii_digit() {
            let end = end_of(at, &|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
            let digits: String = characters[at..end].iter().filter(|digit| **digit != '_').collect();
            tokens.extend(digits.parse::<f64>().ok().map(|number| Token::Literal(json!(number))));
            at = end;
        } else if character.is_alphabetic() || matches!(character, '_' | '$') {
            let end = end_of(at, &|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '?'));
            let word: String = characters[at..end].iter().collect();
            let trimmed = word.trim_end_matches(['?', '.']);
            let chain: Vec<String> =
                trimmed.split('.').map(|name| name.trim_end_matches('?').to_owned()).collect();
            let continues = at > 0 && characters[at - 1] == '.';
            at = (at + trimmed.chars().count()).max(at + 1);
            if continues {
                // `(a ?? []).length`: a member of what stands in parentheses.
                if let Some(Token::Chain(before)) = tokens.last_mut() {
                    before.extend(chain);
                }
                continue;
            }
            tokens.push(match trimmed {
                "true" => Token::Literal(json!(true)),
                "false" => Token::Literal(json!(false)),
                "null" | "undefined" => Token::Literal(Value::Null),
                _ => Token::Chain(chain),
            });
        } else if matches!(character, '!' | '=' | '<' | '>') {
            let end = end_of(at, &|c| matches!(c, '!' | '=' | '<' | '>'));
            tokens.push(Token::Operator(characters[at..end].iter().collect()));
            at = end;
        } else {
            if character == '(' && matches!(tokens.last(), Some(Token::Chain(_))) {
                tokens.push(Token::Call);
            }
            at += 1;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(condition: &str, wanted: bool) -> String {
        let aims = aims(condition, wanted);
        let text = |aim: &Aim| format!("{}/{} {}", aim.root, aim.path.join("/"), aim.value);
        aims.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn simple_tests_are_made_to_hold_or_not() {
        assert_eq!(shown("a.count > 10", true), "a/count 11");
        assert_eq!(shown("a.count > 10", false), "a/count 10");
        assert_eq!(shown("10 <= a.count", true), "a/count 10");
        assert_eq!(shown("a.ok && a.count > 7", true), "a/ok true, a/count 8");
        assert_eq!(shown("!a.user.admin", true), "a/user/admin false");
        assert_eq!(shown("a.state === 'open'", true), "a/state \"open\"");
        assert_eq!(shown("a.deleted === null", true), "a/deleted null");
        assert_eq!(shown("(r.items ?? []).length > 1", true), "r/items [{},{}]");
        assert_eq!(shown("r.items.length > 1", true), "r/items [{},{}]");
        assert_eq!(shown("typeof a.price === 'number'", true), "a/price 1");
        assert_eq!(shown("a.tags.includes('x')", true), "a/tags \"x\"");
    }
}
