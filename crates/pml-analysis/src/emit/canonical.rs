//! Canonical form of a program: without names, layout and lifted literals.
//!
//! Variables become `@0`, `@1`, … in the order of first appearance, labels `@label0`, …, lifted literals `@literal`
//! with the number of their parameter. `@` cannot begin a name, so none of them can be confused with a free name or
//! capture one. Names of members, including `#private` ones, and template texts count as written. The form is hashed,
//! never run.

use rustc_hash::FxHashMap as HashMap;

use oxc_allocator::{Allocator, ArenaVec, ReplaceWith};
use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJsMut, walk_js_mut};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_semantic::{Reference, Scoping, SymbolId};
use oxc_span::GetSpan;
use oxc_syntax::identifier::is_identifier_name;

use super::EmitError;
use super::build::{TreeBuilder, digits};

/// Parts that the canonical form removed and the program needs back.
#[derive(Default)]
pub(super) struct RemovedParts<'a> {
    literals: HashMap<Span, Expression<'a>>,
    labels: Vec<Ident<'a>>,
}

const LABEL: &str = "@label";

impl<'a> RemovedParts<'a> {
    /// Restores the literal if `expression` is a placeholder.
    pub(super) fn restore_literal(&mut self, expression: &mut Expression<'a>) {
        if let Expression::Identifier(it) = expression
            && it.name.starts_with('@')
            && let Some(literal) = self.literals.remove(&it.span)
        {
            *expression = literal;
        }
    }

    /// Restores the name of a label.
    pub(super) fn restore_label(&self, label: &mut LabelIdentifier<'a>) {
        if let Some(number) = number_of(label.name) {
            label.name = self.labels[number];
        }
    }

    /// Gives uses of `label` the name of `other`.
    pub(super) fn rename_label(&mut self, label: Ident<'a>, other: Ident<'a>) {
        if let (Some(label), Some(other)) = (number_of(label), number_of(other)) {
            self.labels[label] = self.labels[other];
        }
    }
}

/// Number of the label that a canonical name stands for.
fn number_of(label: Ident<'_>) -> Option<usize> {
    label.strip_prefix(LABEL).and_then(|number| number.parse().ok())
}

/// Prints the canonical form. The tree is left with gaps that [`RemovedParts`] fills.
pub(super) fn print_canonical<'a>(
    allocator: &'a Allocator,
    program: &mut Program<'a>,
    mut scoping: Scoping,
    lifted: &HashMap<Span, u32>,
) -> Result<(String, RemovedParts<'a>), EmitError> {
    let mut names = CanonicalNames {
        build: TreeBuilder::new(allocator, ""),
        scoping: &scoping,
        lifted,
        seen: vec![false; scoping.symbols_len()],
        bound: vec![false; scoping.symbols_len()],
        order: Vec::with_capacity(scoping.symbols_len()),
        open_labels: Vec::new(),
        kept: RemovedParts::default(),
        refused: None,
    };
    names.visit_program(program);
    let CanonicalNames { bound, order, kept, refused, .. } = names;
    if let Some(error) = refused {
        return Err(error);
    }
    // A `declare const x` has a symbol but is a free name.
    let mut name = String::new();
    for (number, symbol) in order.into_iter().filter(|symbol| bound[symbol.index()]).enumerate() {
        name.clear();
        name.push('@');
        name.push_str(digits(number as u32, &mut [0; 10]));
        scoping.set_symbol_name(symbol, name.as_str().into());
    }
    let printed =
        Codegen::new().with_options(CodegenOptions::minify()).with_scoping(Some(scoping)).build(program);
    Ok((printed.code, kept))
}

/// One pass over the tree: numbers the bound names, removes what does not count, and refuses what the engine cannot
/// run.
struct CanonicalNames<'a, 'm> {
    build: TreeBuilder<'a>,
    scoping: &'m Scoping,
    lifted: &'m HashMap<Span, u32>,
    /// Whether each symbol has appeared.
    seen: Vec<bool>,
    /// Whether the program binds each symbol.
    bound: Vec<bool>,
    /// Symbols in the order of first appearance.
    order: Vec<SymbolId>,
    /// Labels of the enclosing statements.
    open_labels: Vec<(Ident<'a>, Ident<'a>)>,
    kept: RemovedParts<'a>,
    refused: Option<EmitError>,
}

impl<'a> CanonicalNames<'a, '_> {
    fn appears(&mut self, symbol: SymbolId) {
        if !std::mem::replace(&mut self.seen[symbol.index()], true) {
            self.order.push(symbol);
        }
    }

    fn refuse(&mut self, what: &'static str, instead: &'static str, at: Span) {
        self.refused.get_or_insert(EmitError::Unsupported { what, instead, at });
    }

    /// `{ "a": 1 }` becomes `{ a: 1 }`, also in the program that runs.
    fn unquote(&self, key: &mut PropertyKey<'a>, computed: bool) {
        if let PropertyKey::StringLiteral(text) = key
            && !computed
            && is_identifier_name(&text.value)
        {
            *key = self.build.key(text.span, text.value);
        }
    }

    fn lift(&mut self, expression: &mut Expression<'a>) -> bool {
        // Fast path: the most common expressions are not literals.
        if let Expression::Identifier(_)
        | Expression::StaticMemberExpression(_)
        | Expression::CallExpression(_)
        | Expression::AwaitExpression(_)
        | Expression::ArrowFunctionExpression(_) = expression
        {
            return false;
        }
        let span = expression.span();
        let Some(parameter) = self.lifted.get(&span) else { return false };
        let name = self.build.text(&format!("@literal{parameter}"));
        let literal = std::mem::replace(expression, self.build.name_at(span, name));
        self.kept.literals.insert(span, literal);
        true
    }
}

impl<'a> VisitJsMut<'a> for CanonicalNames<'a, '_> {
    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        loop {
            if !self.lifted.is_empty() && self.lift(it) {
                return;
            }
            if !matches!(it, Expression::ParenthesizedExpression(_)) {
                break;
            }
            it.replace_with(|it| match it {
                Expression::ParenthesizedExpression(it) => it.unbox().expression,
                other => other,
            });
        }
        walk_js_mut::walk_expression(self, it);
    }

    fn visit_object_property(&mut self, it: &mut ObjectProperty<'a>) {
        self.unquote(&mut it.key, it.computed);
        walk_js_mut::walk_object_property(self, it);
    }

    fn visit_binding_property(&mut self, it: &mut BindingProperty<'a>) {
        self.unquote(&mut it.key, it.computed);
        walk_js_mut::walk_binding_property(self, it);
    }

    fn visit_assignment_target_property_property(&mut self, it: &mut AssignmentTargetPropertyProperty<'a>) {
        self.unquote(&mut it.name, it.computed);
        walk_js_mut::walk_assignment_target_property_property(self, it);
    }

    fn visit_method_definition(&mut self, it: &mut MethodDefinition<'a>) {
        self.unquote(&mut it.key, it.computed);
        walk_js_mut::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &mut PropertyDefinition<'a>) {
        self.unquote(&mut it.key, it.computed);
        walk_js_mut::walk_property_definition(self, it);
    }

    fn visit_binding_identifier(&mut self, it: &mut BindingIdentifier<'a>) {
        if let Some(symbol) = it.symbol_id.get() {
            self.appears(symbol);
            self.bound[symbol.index()] = true;
        }
    }

    fn visit_identifier_reference(&mut self, it: &mut IdentifierReference<'a>) {
        let reference = it.reference_id.get().map(|id| self.scoping.get_reference(id));
        if let Some(symbol) = reference.and_then(Reference::symbol_id) {
            self.appears(symbol);
        }
    }

    fn visit_labeled_statement(&mut self, it: &mut LabeledStatement<'a>) {
        let name = self.build.text(&format!("{LABEL}{}", self.kept.labels.len())).into();
        self.kept.labels.push(it.label.name);
        self.open_labels.push((it.label.name, name));
        it.label.name = name;
        self.visit_statement(&mut it.body);
        self.open_labels.pop();
    }

    /// The label of a `break` or `continue`.
    fn visit_label_identifier(&mut self, it: &mut LabelIdentifier<'a>) {
        if let Some((_, name)) = self.open_labels.iter().rev().find(|(written, _)| *written == it.name) {
            it.name = *name;
        }
    }

    fn visit_directives(&mut self, it: &mut ArenaVec<'a, Directive<'a>>) {
        // Everything runs in strict mode anyway.
        it.retain(|directive| !directive.is_use_strict());
    }

    fn visit_statements(&mut self, it: &mut ArenaVec<'a, Statement<'a>>) {
        it.retain(|statement| !matches!(statement, Statement::EmptyStatement(_)));
        walk_js_mut::walk_statements(self, it);
    }

    fn visit_decorator(&mut self, it: &mut Decorator<'a>) {
        self.refuse("@", "there are no decorators, call the function instead", it.span);
    }

    fn visit_accessor_property(&mut self, it: &mut AccessorProperty<'a>) {
        self.refuse("accessor", "write a field, or `get` and `set`", it.span);
    }

    fn visit_import_meta(&mut self, it: &mut ImportMeta) {
        self.refuse("import.meta", "there are no modules, leave it out", it.span);
    }

    fn visit_jsx_element(&mut self, it: &mut JSXElement<'a>) {
        self.refuse("<", "there is no JSX, build a text or an object instead", it.span);
    }

    fn visit_jsx_fragment(&mut self, it: &mut JSXFragment<'a>) {
        self.refuse("<", "there is no JSX, build a text or an object instead", it.span);
    }
}
