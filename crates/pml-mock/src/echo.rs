//! Values of the arguments that come back in the result.
//!
//! Asked for `{"owner": "acme"}`, a service answers with `"owner": "acme"` and not with another owner. A value is
//! repeated under the same name, however the name is written, and under the name of an object and its field together
//! (`user_id` in `{"user": {"id": …}}`).

use std::collections::HashMap;

use serde_json::Value;

use crate::names;

/// Names that identify one thing. In the elements of a list they differ, so they are repeated outside lists only.
const IDENTIFIES: &[&str] = &[
    "id", "ids", "name", "path", "title", "key", "url", "uri", "number", "sha", "slug", "uuid", "email",
    "content",
];
/// Names of arguments that limit how many elements are listed.
const LIMITS: &[&str] =
    &["limit", "perpage", "pagesize", "maxresults", "count", "top", "topk", "n", "first", "max", "maxitems"];

/// The values of the arguments by name.
#[derive(Debug, Default)]
pub(crate) struct Echo<'a> {
    by_name: HashMap<String, &'a Value>,
}

impl<'a> Echo<'a> {
    /// The values of `arguments` and of the objects in them.
    pub(crate) fn of(arguments: &'a Value) -> Echo<'a> {
        let mut echo = Echo::default();
        let objects = arguments.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_object());
        for (name, value) in objects.flatten() {
            echo.by_name.entry(joined(name)).or_insert(value);
        }
        // Those of the top win over those of the same name within.
        for (name, value) in arguments.as_object().into_iter().flatten() {
            echo.by_name.insert(joined(name), value);
        }
        echo
    }

    /// The value that a field `name` of an object `parent` repeats.
    pub(crate) fn value(&self, parent: &str, name: &str, in_list: bool, depth: usize) -> Option<&'a Value> {
        let own = joined(name);
        let qualified = format!("{}{own}", joined(parent));
        if in_list {
            // In a list of issues every issue has the repository that was asked for, but its own number.
            return if is_identifying(name) { None } else { self.by_name.get(&own).copied() };
        }
        let plain = (depth <= 2 || !is_identifying(name)).then(|| self.by_name.get(&own)).flatten();
        self.by_name.get(&qualified).or(plain).copied()
    }

    /// The number of elements that the caller asked for at most.
    pub(crate) fn limit(&self) -> Option<usize> {
        let limit = LIMITS.iter().find_map(|name| self.by_name.get(*name)?.as_u64())?;
        usize::try_from(limit).ok()
    }

    /// The text of an argument, for templates.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.by_name.get(&joined(name))? {
            Value::String(text) => Some(text.clone()),
            number @ Value::Number(_) => Some(number.to_string()),
            _ => None,
        }
    }
}

fn joined(name: &str) -> String {
    names::words(name).concat()
}

fn is_identifying(name: &str) -> bool {
    names::words(name).last().is_some_and(|word| IDENTIFIES.contains(&word.as_str()))
}
