//! Variables that choose between ways: `const order = "desc"; … order === "asc" ? … : …`.
//!
//! What the variable is compared with is what it may be. The comparisons are the program, and only what is stored in the
//! variable may come from `args`.

use pml_analysis::{LiteralSite, SiteForm};

/// Whether the literal is what a variable or a field is set to.
pub(super) fn is_stored(source: &str, site: &LiteralSite) -> bool {
    let before = source.get(..site.start as usize).unwrap_or_default().trim_end();
    let compares = ["==", "!=", "<=", ">="].iter().any(|end| before.ends_with(end));
    site.form == SiteForm::Expression && before.ends_with('=') && !compares
}

/// Whether the literal is compared with something.
pub(super) fn is_compared(source: &str, site: &LiteralSite) -> bool {
    let before = source.get(..site.start as usize).unwrap_or_default().trim_end();
    let after = source.get(site.end as usize..).unwrap_or_default().trim_start();
    let is_case = before.strip_suffix("case").is_some_and(|rest| !rest.ends_with(char::is_alphanumeric));
    site.form == SiteForm::Expression
        && (before.ends_with("==")
            || before.ends_with("!=")
            || after.starts_with("==")
            || after.starts_with("!=")
            || is_case && after.starts_with(':'))
}

/// The texts that the variable is compared with in which the literal is stored, its own among them; `None` unless there
/// are several.
pub(super) fn choices(source: &str, sites: &[LiteralSite], at: usize) -> Option<Vec<String>> {
    let site = sites.get(at).filter(|site| is_stored(source, site))?;
    let (name, own) = (site.name.as_ref()?, site.value.as_str()?);
    let compared =
        sites.iter().filter(|other| other.name.as_ref() == Some(name) && is_compared(source, other));
    let mut found: Vec<String> =
        compared.filter_map(|other| other.value.as_str().map(str::to_owned)).collect();
    if found.is_empty() {
        return None;
    }
    found.push(own.to_owned());
    found.sort();
    found.dedup();
    (found.len() > 1).then_some(found)
}
