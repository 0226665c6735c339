//! Every use of `mcp`, `capabilities` and `globalThis`, read from the syntax tree alone.
//!
//! The walk (`walk`) tells what happens to values; this module tells what is written, reachable or not. A tool that is
//! written out is declared. A server, or `mcp` itself, that the walk never reached makes the program opaque.

use std::rc::Rc;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    BinaryOperator, BindingPattern, Expression, IdentifierReference, Program, PropertyKey,
    VariableDeclaration, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::{GetSpan, Span};
use rustc_hash::FxHashMap;

/// What a chain of names refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolRoot {
    Mcp,
    Server(Rc<str>),
    Tool(Rc<str>, Rc<str>),
    Capabilities,
    Capability(Rc<str>),
    Global,
}

/// Uses of the roots in a program.
#[derive(Debug, Default)]
pub(crate) struct ToolRoots {
    /// Variables that always refer to a root.
    pub(crate) aliases: FxHashMap<SymbolId, ToolRoot>,
    /// Variables with a constant text.
    constants: FxHashMap<SymbolId, String>,
    /// Tools and capabilities that are written out.
    pub(crate) named: Vec<(ToolRoot, Span)>,
    /// Spans that may refer to more than one tool.
    pub(crate) open: Vec<Span>,
}

/// The variable a name refers to; `declare const mcp: Tools` creates none.
pub(crate) fn resolve_variable(scoping: &Scoping, name: &IdentifierReference<'_>) -> Option<SymbolId> {
    let symbol = scoping.get_reference(name.reference_id.get()?).symbol_id()?;
    (!scoping.symbol_flags(symbol).is_ambient()).then_some(symbol)
}

/// Maximum bytes of a text that can be a name.
const MAX_NAME_BYTES: usize = 4 * 1024;

impl ToolRoots {
    /// Scans `program`.
    pub(crate) fn of<'a>(program: &'a Program<'a>, scoping: &Scoping) -> ToolRoots {
        let mut names = RootVisitor { scoping, roots: ToolRoots::default(), declarations: Vec::new() };
        names.visit_program(program);
        let RootVisitor { roots, declarations, .. } = names;
        let mut aliases = AliasFinder { scoping, roots, found: false };
        // An alias of an alias may precede it, so several passes are made.
        for _ in 0..4 {
            aliases.found = false;
            declarations.iter().for_each(|declaration| aliases.declaration(declaration));
            if !aliases.found {
                break;
            }
        }
        let mut roots = aliases.roots;
        if roots.aliases.is_empty() && roots.constants.is_empty() {
            return roots;
        }
        // With the aliases known, the scan is repeated, because more names resolve.
        roots.named.clear();
        roots.open.clear();
        let mut names = RootVisitor { scoping, roots, declarations: Vec::new() };
        names.visit_program(program);
        names.roots
    }

    /// What an expression refers to, as written.
    pub(crate) fn resolve(&self, scoping: &Scoping, expression: &Expression<'_>) -> Option<ToolRoot> {
        match expression {
            Expression::Identifier(name) => match resolve_variable(scoping, name) {
                Some(symbol) => self.aliases.get(&symbol).cloned(),
                None => match name.name.as_str() {
                    "mcp" => Some(ToolRoot::Mcp),
                    "capabilities" => Some(ToolRoot::Capabilities),
                    "globalThis" => Some(ToolRoot::Global),
                    _ => None,
                },
            },
            Expression::StaticMemberExpression(it) => {
                step(self.resolve(scoping, &it.object)?, it.property.name.as_str())
            }
            Expression::ComputedMemberExpression(it) => {
                let root = self.resolve(scoping, &it.object)?;
                step(root, &self.constant(scoping, &it.expression)?)
            }
            Expression::ChainExpression(it) => match &it.expression {
                oxc_ast::ast::ChainElement::StaticMemberExpression(it) => {
                    step(self.resolve(scoping, &it.object)?, it.property.name.as_str())
                }
                oxc_ast::ast::ChainElement::ComputedMemberExpression(it) => {
                    let root = self.resolve(scoping, &it.object)?;
                    step(root, &self.constant(scoping, &it.expression)?)
                }
                oxc_ast::ast::ChainElement::TSNonNullExpression(it) => self.resolve(scoping, &it.expression),
                _ => None,
            },
            Expression::TSAsExpression(it) => self.resolve(scoping, &it.expression),
            Expression::TSSatisfiesExpression(it) => self.resolve(scoping, &it.expression),
            Expression::TSTypeAssertion(it) => self.resolve(scoping, &it.expression),
            Expression::TSNonNullExpression(it) => self.resolve(scoping, &it.expression),
            Expression::TSInstantiationExpression(it) => self.resolve(scoping, &it.expression),
            Expression::ParenthesizedExpression(it) => self.resolve(scoping, &it.expression),
            _ => None,
        }
    }

    /// The text of an expression that is the same in every run.
    pub(crate) fn constant(&self, scoping: &Scoping, expression: &Expression<'_>) -> Option<String> {
        // No name is longer, and texts concatenated from themselves would grow without bound.
        self.text(scoping, expression).filter(|text| text.len() <= MAX_NAME_BYTES)
    }

    fn text(&self, scoping: &Scoping, expression: &Expression<'_>) -> Option<String> {
        match expression {
            Expression::StringLiteral(it) => Some(it.value.as_str().to_owned()),
            Expression::NumericLiteral(it) if it.value.fract() == 0.0 => Some(format!("{}", it.value)),
            Expression::TemplateLiteral(it) => {
                let mut text = String::new();
                for (index, quasi) in it.quasis.iter().enumerate() {
                    text.push_str(quasi.value.cooked.as_ref()?.as_str());
                    if let Some(part) = it.expressions.get(index) {
                        text.push_str(&self.constant(scoping, part)?);
                    }
                }
                Some(text)
            }
            Expression::BinaryExpression(it) if it.operator == BinaryOperator::Addition => {
                let is_text = |side: &Expression<'_>| !matches!(side, Expression::NumericLiteral(_));
                if !is_text(&it.left) && !is_text(&it.right) {
                    return None;
                }
                Some(self.constant(scoping, &it.left)? + &self.constant(scoping, &it.right)?)
            }
            Expression::Identifier(name) => self.constants.get(&resolve_variable(scoping, name)?).cloned(),
            Expression::TSAsExpression(it) => self.constant(scoping, &it.expression),
            Expression::TSSatisfiesExpression(it) => self.constant(scoping, &it.expression),
            Expression::TSNonNullExpression(it) => self.constant(scoping, &it.expression),
            Expression::ParenthesizedExpression(it) => self.constant(scoping, &it.expression),
            _ => None,
        }
    }
}

fn step(root: ToolRoot, name: &str) -> Option<ToolRoot> {
    match root {
        ToolRoot::Mcp => Some(ToolRoot::Server(name.into())),
        ToolRoot::Server(server) => Some(ToolRoot::Tool(server, name.into())),
        ToolRoot::Capabilities => Some(ToolRoot::Capability(name.into())),
        ToolRoot::Global => match name {
            "mcp" => Some(ToolRoot::Mcp),
            "capabilities" => Some(ToolRoot::Capabilities),
            "globalThis" => Some(ToolRoot::Global),
            _ => None,
        },
        // For a member of a tool, the tool counts.
        tool @ (ToolRoot::Tool(..) | ToolRoot::Capability(_)) => Some(tool),
    }
}

/// Finds variables that always refer to a root or a constant text.
struct AliasFinder<'s> {
    scoping: &'s Scoping,
    roots: ToolRoots,
    found: bool,
}

impl AliasFinder<'_> {
    fn bind(&mut self, pattern: &BindingPattern<'_>, root: &ToolRoot) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => {
                if let Some(symbol) = name.symbol_id.get()
                    && !self.scoping.symbol_is_mutated(symbol)
                    && self.roots.aliases.insert(symbol, root.clone()).is_none()
                {
                    self.found = true;
                }
            }
            BindingPattern::ObjectPattern(it) => {
                for property in &it.properties {
                    let key = match &property.key {
                        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str().to_owned()),
                        other => other.as_expression().and_then(|key| self.roots.constant(self.scoping, key)),
                    };
                    if let Some(part) = key.and_then(|key| step(root.clone(), &key)) {
                        self.bind(&property.value, &part);
                    }
                }
            }
            BindingPattern::ArrayPattern(_) | BindingPattern::AssignmentPattern(_) => {}
        }
    }
}

impl AliasFinder<'_> {
    fn declaration(&mut self, it: &VariableDeclaration<'_>) {
        if it.declare || it.kind == VariableDeclarationKind::Var {
            return;
        }
        for declarator in &it.declarations {
            let Some(init) = &declarator.init else { continue };
            if let Some(root) = self.roots.resolve(self.scoping, init) {
                self.bind(&declarator.id, &root);
            } else if let BindingPattern::BindingIdentifier(name) = &declarator.id
                && let Some(symbol) = name.symbol_id.get()
                && !self.scoping.symbol_is_mutated(symbol)
                && let Some(text) = self.roots.constant(self.scoping, init)
                && self.roots.constants.insert(symbol, text).is_none()
            {
                self.found = true;
            }
        }
    }
}

/// Finds all uses.
struct RootVisitor<'a, 's> {
    scoping: &'s Scoping,
    roots: ToolRoots,
    /// Declarations of variables, inner ones first.
    declarations: Vec<&'a VariableDeclaration<'a>>,
}

impl<'a> Visit<'a> for RootVisitor<'a, '_> {
    fn leave_node(&mut self, kind: AstKind<'a>) {
        if let AstKind::VariableDeclaration(it) = kind {
            self.declarations.push(it);
        }
    }

    fn visit_expression(&mut self, it: &Expression<'a>) {
        let Some(root) = self.roots.resolve(self.scoping, it) else {
            return walk::walk_expression(self, it);
        };
        match root {
            ToolRoot::Tool(..) | ToolRoot::Capability(_) => self.roots.named.push((root, it.span())),
            ToolRoot::Mcp | ToolRoot::Server(_) | ToolRoot::Capabilities | ToolRoot::Global => {
                self.roots.open.push(start(it));
            }
        }
    }
}

/// Span of the name at the start of a chain.
fn start(expression: &Expression<'_>) -> Span {
    match expression {
        Expression::Identifier(name) => name.span,
        Expression::StaticMemberExpression(it) => start(&it.object),
        Expression::ComputedMemberExpression(it) => start(&it.object),
        Expression::TSAsExpression(it) => start(&it.expression),
        Expression::TSSatisfiesExpression(it) => start(&it.expression),
        Expression::TSTypeAssertion(it) => start(&it.expression),
        Expression::TSNonNullExpression(it) => start(&it.expression),
        Expression::ParenthesizedExpression(it) => start(&it.expression),
        other => other.span(),
    }
}
