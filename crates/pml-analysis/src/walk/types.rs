//! The only use of types: which members of `args` are optional.

use oxc_ast::ast::{Program, PropertyKey, Statement, TSSignature, TSType, TSTypeName};
use pml_model::structure::PathStep;
use rustc_hash::FxHashMap;

use super::Walker;
use crate::value::{AbstractValue, MemberPath};

/// Maximum nesting of types that is read.
const MAX_DEPTH: u32 = 4;

/// Object types at the top level of a program, by name.
pub(super) type NamedTypes<'a> = FxHashMap<&'a str, &'a [TSSignature<'a>]>;

/// Interfaces and object type aliases at the top level of `program`.
pub(super) fn named_types<'a>(program: &'a Program<'a>) -> NamedTypes<'a> {
    let mut types = NamedTypes::default();
    for statement in &program.body {
        match statement {
            Statement::TSInterfaceDeclaration(it) => {
                types.insert(it.id.name.as_str(), &it.body.body);
            }
            Statement::TSTypeAliasDeclaration(it) => {
                if let TSType::TSTypeLiteral(literal) = &it.type_annotation {
                    types.insert(it.id.name.as_str(), &literal.members);
                }
            }
            _ => {}
        }
    }
    types
}

impl<'a> Walker<'a, '_> {
    /// `args as { name?: string }`: `name` is optional.
    pub(super) fn note_optional_members(&mut self, value: &AbstractValue<'a>, annotation: &'a TSType<'a>) {
        if let AbstractValue::Parameter(path) = value {
            self.typed_at(path, annotation, 0);
        }
    }

    fn typed_at(&mut self, path: &MemberPath, annotation: &'a TSType<'a>, depth: u32) {
        let members = match annotation {
            TSType::TSTypeLiteral(literal) => literal.members.as_slice(),
            TSType::TSTypeReference(reference) => match &reference.type_name {
                TSTypeName::IdentifierReference(name) => {
                    self.facts.types.get(name.name.as_str()).copied().unwrap_or_default()
                }
                _ => return,
            },
            TSType::TSArrayType(list) if depth < MAX_DEPTH => {
                return self.typed_at(&path.then(PathStep::Any), &list.element_type, depth + 1);
            }
            _ => return,
        };
        for member in members {
            let TSSignature::TSPropertySignature(property) = member else { continue };
            let name = match &property.key {
                PropertyKey::StaticIdentifier(name) => name.name.as_str(),
                PropertyKey::StringLiteral(text) => text.value.as_str(),
                _ => continue,
            };
            let at = path.then(PathStep::Key(name.to_owned()));
            if let (Some(inner), true) = (&property.type_annotation, depth < MAX_DEPTH) {
                self.typed_at(&at, &inner.type_annotation, depth + 1);
            }
            if property.optional {
                self.uses.note_declared_optional(at);
            }
        }
    }
}
