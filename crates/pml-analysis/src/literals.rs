//! Lifts literals of a program or document to parameters.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use oxc_span::Span;
use pml_model::structure::{Argument, Node, NodeId, NodeKind, PathStep, Position};
use rustc_hash::FxHashSet;
use serde_json::Value as Json;

use crate::analysis::{Complaint, ComplaintCode, FilledArgument, LiteralParameter, Parameters, Severity};
use crate::budget::WorkBudget;
use crate::lines::SourceLines;
use crate::schema;
use crate::uses::type_name;
use crate::value::{AbstractValue, ObjectRecord, RecordKind};

/// Names of parameters whose text is code, not data.
const CODE_LIKE: &[&str] =
    &["sql", "query", "command", "code", "script", "pattern", "regex", "template", "expression", "prompt"];

/// Collects the literals that become parameters.
pub(crate) struct LiteralLifter<'w> {
    decided: &'w FxHashSet<Span>,
    taken: HashSet<String>,
    /// Number of parameters with the same name apart from their number.
    numbers: HashMap<String, u32>,
    found: Vec<LiftedLiteral>,
    by_span: HashMap<Span, usize>,
    by_text: HashMap<(String, String), usize>,
    /// Maximum number of members of one call's arguments that are visited: parts may be shared, and each occurrence
    /// counts.
    most: usize,
    left: usize,
    budget: &'w WorkBudget,
}

struct LiftedLiteral {
    name: String,
    value: Json,
    secret: bool,
    spans: Vec<Span>,
    fills: Vec<FilledArgument>,
    schema: Json,
}

/// Result of lifting.
pub(crate) struct LiftedParameters {
    pub(crate) parameters: Parameters,
    /// Parameter index of each lifted literal.
    pub(crate) spans: HashMap<Span, u32>,
    /// Name and span of each secret.
    pub(crate) secrets: Vec<(String, Span)>,
}

impl<'w> LiteralLifter<'w> {
    /// A lifter that visits `most` members of the arguments of each call. `named` are existing parameters. Literals in
    /// `decided` stay, unless they are secrets.
    pub(crate) fn new<'n>(
        named: impl Iterator<Item = &'n str>,
        decided: &'w FxHashSet<Span>,
        budget: &'w WorkBudget,
        most: usize,
    ) -> LiteralLifter<'w> {
        LiteralLifter {
            decided,
            taken: named.map(str::to_owned).collect(),
            numbers: HashMap::default(),
            found: Vec::new(),
            by_span: HashMap::default(),
            by_text: HashMap::default(),
            most,
            left: most,
            budget,
        }
    }

    /// Visits the arguments of one call.
    pub(crate) fn lift_call(&mut self, node: NodeId, arguments: &AbstractValue<'_>, input: Option<&Json>) {
        let open = Json::Bool(true);
        let root = input.unwrap_or(&open);
        self.left = self.most;
        if let AbstractValue::Record(record) = arguments {
            self.record(node, record, &mut Vec::new(), None, root, root);
        }
    }

    fn record<'r>(
        &mut self,
        node: NodeId,
        record: &'r ObjectRecord<'_>,
        path: &mut Vec<&'r PathStep>,
        name: Option<&str>,
        root: &Json,
        at: &Json,
    ) {
        if let (Some(name), Some(span)) = (name, record.written)
            && let Some(list) = plain_list(record)
            && !self.stays(name, &list, root, at, record)
        {
            return self.lift(node, name, list, span, path, root, at);
        }
        let open = Json::Bool(true);
        for member in &record.fields {
            if self.left == 0 || self.budget.is_spent() {
                return;
            }
            self.left -= 1;
            self.budget.spend(1 + member.value.text().map_or(0, str::len) / 16);
            let own = match &member.key {
                PathStep::Key(key) => Some(key.as_str()),
                _ => name,
            };
            let inner = match schema::step_into(root, at, &member.key) {
                schema::MemberLookup::Found(inner) => inner,
                _ => &open,
            };
            path.push(&member.key);
            match (&member.value, own) {
                (AbstractValue::Literal(literal), Some(own)) if literal.whole => {
                    let secret = is_secret(own, &literal.value);
                    if secret || !self.literal_stays(own, literal.span, &literal.value, root, inner) {
                        self.lift(node, own, literal.value.clone(), literal.span, path, root, inner);
                    }
                }
                (AbstractValue::Record(inner_record), own) => {
                    self.record(node, inner_record, path, own, root, inner);
                }
                _ => {}
            }
            path.pop();
        }
    }

    fn stays(&self, name: &str, list: &Json, root: &Json, at: &Json, record: &ObjectRecord<'_>) -> bool {
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        let open = Json::Bool(true);
        record.fields.iter().zip(items).any(|(member, value)| {
            let inner = match schema::step_into(root, at, &member.key) {
                schema::MemberLookup::Found(inner) => inner,
                _ => &open,
            };
            let span = match &member.value {
                AbstractValue::Literal(literal) => literal.span,
                _ => Span::default(),
            };
            self.literal_stays(name, span, value, root, inner)
        })
    }

    /// Whether a literal must stay: another value would make another program.
    fn literal_stays(&self, name: &str, span: Span, value: &Json, root: &Json, at: &Json) -> bool {
        value.is_boolean()
            || value.is_null()
            || schema::is_enum(root, at)
            || is_code_like(name)
            || value.as_str().is_some_and(|text| text.contains('\n'))
            || self.decided.contains(&span)
    }

    #[expect(clippy::too_many_arguments, reason = "one literal and all that is known of its place")]
    fn lift(
        &mut self,
        node: NodeId,
        name: &str,
        value: Json,
        span: Span,
        path: &[&PathStep],
        root: &Json,
        at: &Json,
    ) {
        let filled = FilledArgument { node, path: path.iter().map(|step| (*step).clone()).collect() };
        let text = value.as_str().map(|text| (name.to_owned(), text.to_owned()));
        let same = self.by_span.get(&span).or_else(|| self.by_text.get(text.as_ref()?)).copied();
        if let Some(index) = same {
            let lifted = &mut self.found[index];
            if self.by_span.insert(span, index).is_none() {
                lifted.spans.push(span);
            }
            return lifted.fills.push(filled);
        }
        self.by_span.insert(span, self.found.len());
        if let Some(text) = text {
            self.by_text.insert(text, self.found.len());
        }
        let secret = is_secret(name, &value);
        let own = self.free_name(name);
        let mut described = schema::parameter_schema(root, at);
        if described.as_object().is_none_or(|object| !object.contains_key("type"))
            && let Some(kind) = type_name(&value)
        {
            described = serde_json::json!({ "type": kind });
        }
        self.taken.insert(own.clone());
        self.found.push(LiftedLiteral {
            name: own,
            value,
            secret,
            spans: vec![span],
            fills: vec![filled],
            schema: described,
        });
    }

    fn free_name(&mut self, name: &str) -> String {
        if !self.taken.contains(name) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{name}_{number}");
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    /// The parameters; `schema` is that of the existing ones.
    pub(crate) fn finish(self, mut schema: Json, position: impl Fn(Span) -> Position) -> LiftedParameters {
        let (mut literals, mut spans, mut secrets) = (Vec::new(), HashMap::default(), Vec::new());
        for (index, lifted) in self.found.into_iter().enumerate() {
            let mut described = lifted.schema;
            if lifted.secret {
                secrets.extend(lifted.spans.iter().map(|span| (lifted.name.clone(), *span)));
                if let Some(required) = schema["required"].as_array_mut() {
                    required.push(lifted.name.clone().into());
                }
            } else if let Some(object) = described.as_object_mut() {
                object.insert("default".to_owned(), lifted.value.clone());
            }
            schema["properties"][&lifted.name] = described;
            spans.extend(lifted.spans.iter().map(|span| (*span, index as u32)));
            literals.push(LiteralParameter {
                name: lifted.name,
                default: (!lifted.secret).then_some(lifted.value),
                written: lifted.spans.iter().map(|span| position(*span)).collect(),
                fills: lifted.fills,
            });
        }
        LiftedParameters { parameters: Parameters { schema, literals }, spans, secrets }
    }
}

/// An array of plain values, as written.
fn plain_list(record: &ObjectRecord<'_>) -> Option<Json> {
    if !matches!(record.kind, RecordKind::Array) || !record.extra.is_empty() || !record.spreads.is_empty() {
        return None;
    }
    let items: Option<Vec<Json>> = record
        .fields
        .iter()
        .map(|member| match &member.value {
            AbstractValue::Literal(literal) if !literal.value.is_object() => Some(literal.value.clone()),
            _ => None,
        })
        .collect();
    items.filter(|items| !items.is_empty()).map(Json::Array)
}

/// Replaces secrets in the arguments of nodes by their parameter.
pub(crate) fn hide_secrets(nodes: &mut [Node], parameters: &Parameters) {
    let secrets = parameters.literals.iter().filter(|literal| literal.default.is_none());
    let mut hidden: HashMap<NodeId, Vec<(&[PathStep], &str)>> = HashMap::default();
    for literal in secrets {
        for filled in &literal.fills {
            hidden.entry(filled.node).or_default().push((&filled.path, &literal.name));
        }
    }
    for node in nodes {
        let (NodeKind::Task { arguments, .. } | NodeKind::Capability { arguments, .. }) = &mut node.kind
        else {
            continue;
        };
        for (path, name) in hidden.get(&node.id).into_iter().flatten() {
            if let Some(place) = argument_at(arguments, path) {
                *place = Argument::Parameter { name: (*name).to_owned(), path: Vec::new() };
            }
        }
    }
}

fn argument_at<'t>(argument: &'t mut Argument, path: &[PathStep]) -> Option<&'t mut Argument> {
    let Some((step, rest)) = path.split_first() else { return Some(argument) };
    let inner = match (argument, step) {
        (Argument::Object { fields, .. }, PathStep::Key(name)) => {
            &mut fields.iter_mut().find(|field| field.name == *name)?.value
        }
        (Argument::Array { items }, PathStep::Index(index)) => {
            items.get_mut(usize::try_from(*index).ok()?)?
        }
        _ => return None,
    };
    argument_at(inner, rest)
}

/// The complaint about a secret in a program.
pub(crate) fn secret_complaint(name: &str, span: Span, lines: &SourceLines<'_>) -> Complaint {
    let at = lines.position(span);
    Complaint {
        severity: Severity::Warning,
        code: ComplaintCode::Secret,
        message: format!(
            "the program contains a secret; a capability learned from it takes `{name}` as a parameter instead"
        ),
        hint: Some(format!("pass it as an argument: `args{}`", member(name))),
        at,
        // No excerpt: the line contains the secret.
        excerpt: String::new(),
        node: None,
    }
}

/// Source text of the access to member `name`.
fn member(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) {
        format!(".{name}")
    } else {
        format!("[{name:?}]")
    }
}

/// Whether the text of an argument of this name is code, not data.
pub fn is_code_like(name: &str) -> bool {
    if is_one_word(name) {
        return CODE_LIKE.contains(&name);
    }
    let last = words(name).pop().unwrap_or_default();
    CODE_LIKE.contains(&last.as_str())
}

/// Fast path: most names are one word in lower case.
fn is_one_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Words of `searchQuery`, `search_query`, `search-query`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let starts = c.is_uppercase() && was_lower;
        if (!c.is_alphanumeric() || starts) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut()
            && c.is_alphanumeric()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a text is a secret, by its name or by its shape.
fn is_secret(name: &str, value: &Json) -> bool {
    let text = match value {
        Json::String(text) => text.as_str(),
        Json::Array(items) => return items.iter().any(|item| is_secret(name, item)),
        _ => return false,
    };
    let plain = !text.contains(char::is_whitespace);
    let by_shape = plain && text.len() >= 20 && SHAPES.iter().any(|shape| text.starts_with(shape))
        || text.starts_with("-----BEGIN ") && text.contains("PRIVATE KEY")
        || text.strip_prefix("Bearer ").is_some_and(|rest| rest.len() >= 16)
        || is_web_token(text);
    by_shape || text.len() >= 6 && opens_something(name)
}

/// Whether a name is one that credentials have.
fn opens_something(name: &str) -> bool {
    const ONE: &[&str] =
        &["password", "passwd", "passphrase", "secret", "apikey", "credential", "credentials"];
    if is_one_word(name) {
        return ONE.contains(&name);
    }
    let words = words(name);
    let [.., last] = words.as_slice() else { return false };
    let last_two = match words.as_slice() {
        [.., before, _] => [before, "_", last].concat(),
        _ => String::new(),
    };
    ONE.contains(&last.as_str())
        || matches!(
            last_two.as_str(),
            "api_key"
                | "access_key"
                | "secret_key"
                | "private_key"
                | "access_token"
                | "auth_token"
                | "bearer_token"
                | "api_token"
        )
}

const SHAPES: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "SG.",
    "dop_v1_",
    "shpat_",
    "lin_api_",
];

/// Whether the text is a JWT: `header.payload.signature` with a header that is base64 of `{"`.
fn is_web_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.split('.').count() == 3 && text.len() >= 40
}
