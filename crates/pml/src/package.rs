//! Packages: capabilities in one file, for other people's PML. The content is signed as it is written, to the byte.
//!
//! Pure: reading and writing files, signing, and what becomes of a package are for others.

use pml_model::Digest;
use pml_model::capability::{CapabilitySource, CapabilityStatistics};
use pml_model::name::printable;
use pml_model::structure::Structure;
use pml_store::{PackageSignature, is_signed_by};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::problem::{ErrorCode, Problem};

/// The version of the format that this PML writes, and the latest that it reads.
const FORMAT: u64 = 1;
/// 4 MiB: the largest package that is read.
pub const MAX_PACKAGE_BYTES: usize = 4 * 1024 * 1024;
/// The largest number of capabilities in a package.
pub const MAX_PACKAGED: usize = 256;

/// What a package holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageContent {
    /// The version of PML that made it.
    pub made_by: String,
    /// The capabilities, each after those that it calls.
    pub capabilities: Vec<PackagedCapability>,
    /// The tools that they call.
    pub tools: Vec<PackagedTool>,
}

/// A capability in a package.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackagedCapability {
    /// The name in programs.
    pub name: String,
    /// Purpose, in one sentence.
    pub description: String,
    /// The intents that it served, most recent first.
    pub intents: Vec<String>,
    /// What it runs.
    pub source: CapabilitySource,
    /// JSON Schema of the parameters, with defaults.
    pub parameters_schema: Value,
    /// What analysis found in the source.
    pub structure: Structure,
    /// How often it was used and worked, if its owner tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<CapabilityStatistics>,
}

/// A tool that a packaged capability calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackagedTool {
    /// `server:tool`.
    pub id: String,
    /// Digest of the definition that it was last seen to work with.
    pub digest: Digest,
}

/// The file around the content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    signer: String,
    signature: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// The content as it is signed and written.
pub fn encode(content: &PackageContent) -> String {
    serde_json::to_string_pretty(content).expect("a package is plain data")
}

/// The text of the file for content that [`encode`] made.
pub fn seal(content: &str, signature: &PackageSignature) -> String {
    let PackageSignature { signer, signature } = signature;
    format!(
        "{{\n\"pmlPackage\": {FORMAT},\n\"signer\": \"{signer}\",\n\"signature\": \"{signature}\",\n\"content\": {content}\n}}\n"
    )
}

/// The signer and the content of a package whose signature holds.
///
/// # Errors
/// The text is no package, one of a later version, too large, or was changed since it was signed.
pub fn open(text: &str) -> Result<(String, PackageContent), Problem> {
    let refuse = |text: String| Problem::new(ErrorCode::InvalidRequest, text);
    if text.len() > MAX_PACKAGE_BYTES {
        return Err(refuse(format!("the package is larger than {} MiB", MAX_PACKAGE_BYTES >> 20)));
    }
    let no_package = |error: serde_json::Error| {
        refuse(format!("this is no package: {}", printable(&error.to_string())))
            .hint("give a file that `pml capabilities export` wrote")
    };
    let format = serde_json::from_str::<FormatOnly>(text).map_err(no_package)?.pml_package;
    if format > FORMAT {
        return Err(refuse(format!("the package is of version {format}, and this PML reads up to {FORMAT}"))
            .hint("update PML, or have the package exported by an older one"));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(no_package)?;
    let signature = PackageSignature { signer: envelope.signer, signature: envelope.signature };
    if !is_signed_by(&signature, envelope.content.get().as_bytes()) {
        return Err(refuse(
            "the signature of the package does not fit its content: it was changed".to_owned(),
        )
        .hint("get the package from its author again"));
    }
    let content: PackageContent = serde_json::from_str(envelope.content.get()).map_err(no_package)?;
    if content.capabilities.is_empty() || content.capabilities.len() > MAX_PACKAGED {
        let count = content.capabilities.len();
        return Err(refuse(format!("the package has {count} capabilities; it may have 1 to {MAX_PACKAGED}")));
    }
    Ok((signature.signer, content))
}

/// Only the version of a package, which is read before the rest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormatOnly {
    pml_package: u64,
}
