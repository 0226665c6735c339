//! Turns the variables that a client writes into texts into those of PML.
//!
//! PML knows `${NAME}`, `${file:path}` and `$$`. What a client fills in by other means (a question to the user, a
//! default) has no counterpart, and a server that needs it cannot be imported.

/// What the variables of editors stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableValues {
    /// The user's home directory.
    pub home: String,
    /// The project's directory, for a file of a project.
    pub project: Option<String>,
}

/// How a client writes variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSyntax {
    /// None: every text stands for itself.
    Literal,
    /// `${NAME}` and `${NAME:-default}`.
    Braces,
    /// `${env:NAME}`, `${userHome}`, `${workspaceFolder}` and others.
    Editor,
    /// `$NAME` and `${NAME}`.
    Shell,
    /// `{env:NAME}` and `{file:path}`.
    Curly,
    /// `${{ secrets.NAME }}`.
    Secrets,
}

impl VariableSyntax {
    /// `text` in the syntax of PML, or the variable that it has no word for.
    pub(crate) fn translate(self, text: &str, values: &VariableValues) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '{']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match self.variable(rest, values)? {
                Some((translated, length)) => {
                    out.push_str(&translated);
                    length
                }
                // A dollar sign would start a variable of PML's.
                None if rest.starts_with("${") || rest.starts_with("$$") => {
                    out.push_str("$$");
                    1
                }
                None => {
                    out.push_str(&rest[..1]);
                    1
                }
            };
            rest = &rest[length..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The variable at the start of `text` in the syntax of PML, and its length there.
    fn variable(self, text: &str, values: &VariableValues) -> Result<Option<(String, usize)>, String> {
        let between = |open: &str, close: &str| -> Option<(String, usize)> {
            let inner = text.strip_prefix(open)?;
            let end = inner.find(close)?;
            Some((inner[..end].to_owned(), open.len() + end + close.len()))
        };
        match self {
            VariableSyntax::Literal => Ok(None),
            VariableSyntax::Braces => match between("${", "}") {
                Some((name, length)) => named(&name).map(|variable| Some((variable, length))),
                None => Ok(None),
            },
            VariableSyntax::Editor => match between("${", "}") {
                Some((name, length)) => editor_variable(&name, values).map(|value| Some((value, length))),
                None => Ok(None),
            },
            VariableSyntax::Shell => {
                if let Some((name, length)) = between("${", "}") {
                    return named(&name).map(|variable| Some((variable, length)));
                }
                let name = text.strip_prefix('$').map_or("", |rest| {
                    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    &rest[..end.unwrap_or(rest.len())]
                });
                let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                Ok(is_name.then(|| (format!("${{{name}}}"), name.len() + 1)))
            }
            VariableSyntax::Curly => {
                let file = between("{file:", "}").map(|(path, length)| (format!("${{file:{path}}}"), length));
                match between("{env:", "}") {
                    Some((name, length)) => named(&name).map(|variable| Some((variable, length))),
                    None => Ok(file),
                }
            }
            VariableSyntax::Secrets => match between("${{", "}}") {
                Some((name, length)) => {
                    let name = name.trim();
                    let name = name.strip_prefix("secrets.").or_else(|| name.strip_prefix("inputs."));
                    named(name.unwrap_or_default()).map(|variable| Some((variable, length)))
                }
                None => Ok(None),
            },
        }
    }
}

/// `${name}`, if that is the name of a variable.
fn named(name: &str) -> Result<String, String> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Ok(format!("${{{name}}}")) } else { Err(format!("${{{name}}}")) }
}

fn editor_variable(name: &str, values: &VariableValues) -> Result<String, String> {
    let unknown = || format!("${{{name}}}");
    let project = || values.project.as_deref().map(escaped).ok_or_else(unknown);
    match name {
        "userHome" => Ok(escaped(&values.home)),
        "workspaceFolder" | "workspaceRoot" => project(),
        "workspaceFolderBasename" => {
            let name = project()?;
            Ok(name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned())
        }
        "pathSeparator" | "/" => Ok(if values.home.contains('\\') { "\\" } else { "/" }.to_owned()),
        _ => match (name.strip_prefix("env:"), name.strip_prefix("file:")) {
            (Some(name), _) => named(name),
            (None, Some(path)) => Ok(format!("${{file:{path}}}")),
            (None, None) => Err(unknown()),
        },
    }
}

/// `text` so that PML takes it for itself.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}
