//! Pagination of lists, and tool definitions as clients may see them.

use pml_mcp::{RpcError, code};
use pml_model::json::{self, Fields, raw};
use pml_model::name::truncate_text;
use serde_json::value::RawValue;

use crate::catalogue::CatalogueTool;

/// Items on one page.
const PAGE: usize = 500;
/// The longest description a client is shown, in characters.
const MAX_DESCRIPTION: usize = 2 * 1024;

/// One page of `items` under `key`, from the cursor in `params` on.
pub(super) fn paginate(
    items: impl Iterator<Item = Box<RawValue>>,
    key: &'static str,
    params: &RawValue,
) -> Result<Box<RawValue>, RpcError> {
    let cursor: Option<String> = Fields::parse(params.get()).unwrap_or_default().read("cursor");
    let start = match cursor {
        None => 0,
        Some(text) => text.parse::<usize>().map_err(|_| {
            RpcError::new(code::INVALID_PARAMS, format!("cursor `{text}` was not given by this server"))
        })?,
    };
    let mut items = items.skip(start);
    let page: Vec<Box<RawValue>> = items.by_ref().take(PAGE).collect();
    let mut result = Fields::default();
    result.set(key, raw(&page));
    if items.next().is_some() {
        result.set("nextCursor", raw(&(start + PAGE).to_string()));
    }
    Ok(result.to_raw())
}

/// A tool's definition under its exposed name, without invisible characters.
pub(super) fn exposed_definition(tool: &CatalogueTool) -> Box<RawValue> {
    let clean = json::strip_hidden_characters(&tool.definition.raw);
    let mut fields = Fields::parse(clean.get()).unwrap_or_default();
    let description: String = fields.read("description").unwrap_or_default();
    if description.chars().nth(MAX_DESCRIPTION).is_some() {
        fields.set("description", raw(&truncate_text(&description, MAX_DESCRIPTION)));
    }
    fields.set("name", raw(&tool.exposed_name));
    if fields.get("inputSchema").is_none() {
        fields.set("inputSchema", raw(&serde_json::json!({ "type": "object" })));
    }
    fields.to_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn pages_follow_one_another_and_end() {
        let items = || (0..1200).map(|n| raw(&n));
        let first = paginate(items(), "tools", &json("{}")).unwrap();
        let cursor: String = Fields::parse(first.get()).unwrap().read("nextCursor").unwrap();
        let last = paginate(items(), "tools", &json(r#"{"cursor":"1000"}"#)).unwrap();
        let last = Fields::parse(last.get()).unwrap();
        assert_eq!(cursor, "500");
        assert_eq!(last.read::<Vec<u32>>("tools").unwrap().len(), 200);
        assert!(last.get("nextCursor").is_none());
        assert!(paginate(items(), "tools", &json(r#"{"cursor":"x"}"#)).is_err());
    }
}
