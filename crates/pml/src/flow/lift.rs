//! Prepares the form of a program in which the values that its intent names are parameters.
//!
//! The submitted program is what runs. The lifted form is what may be learned from the run, once a replay has shown
//! that it does the same; the capability is identified by it from the beginning, so that programs that differ only in
//! these values are one capability.

use std::collections::BTreeSet;

use pml_analysis::AnalysisCatalogue;
use serde_json::{Map, Value, json};

use crate::capability::is_same_structure;
use crate::plan::{LearningPlan, LiftedPlan, Plan, PlanLiteral, PlannedWork, remove_required};
use crate::reuse::{self, ArgumentLiteral, LiftedParameter};

/// Adds the lifted form to what is to be learned of `plan`, if there is one.
pub(super) fn lift_named_values(plan: &mut Plan, catalogue: &AnalysisCatalogue) {
    let Some(learn) = plan.learn.as_ref().filter(|learn| learn.capability.is_none()) else { return };
    let is_program = matches!(plan.work, PlannedWork::Code(_));
    if !is_program || plan.source.len() > super::SMALL_BYTES || plan.intent.is_empty() {
        return;
    }
    if let Some((identity, lifted)) = lifted(plan, learn, catalogue)
        && let Some(learn) = &mut plan.learn
    {
        learn.identity = identity;
        learn.lifted = Some(Box::new(lifted));
    }
}

/// The identity of the lifted form, and the form.
fn lifted(plan: &Plan, learn: &LearningPlan, catalogue: &AnalysisCatalogue) -> Option<(String, LiftedPlan)> {
    // A program with secrets is stored without them, which changes the places of everything else.
    let argument = |literal: &PlanLiteral| {
        let PlanLiteral { name, value, written, .. } = literal;
        Some(ArgumentLiteral { name: name.clone(), value: value.clone()?, written: written.clone() })
    };
    let arguments: Vec<ArgumentLiteral> = learn.literals.iter().map(argument).collect::<Option<_>>()?;
    let sites = pml_analysis::find_literal_sites(&plan.source).ok()?;
    let lifted = reuse::lift(&plan.source, &sites, &arguments, &names(&learn.parameters), &plan.intent)?;
    let analysis = pml_analysis::analyse(&lifted.source, catalogue).ok()?;
    if !is_same_structure(&analysis.structure, &plan.structure) {
        return None;
    }
    let mut schema = analysis.parameters.schema;
    let mut values = Map::new();
    for parameter in lifted.parameters {
        add_default(&mut schema, &parameter)?;
        values.insert(parameter.name, parameter.default);
    }
    for name in lifted.unspoken {
        if let Some(Value::Object(member)) = schema.get_mut("properties").and_then(|all| all.get_mut(&name)) {
            member.insert(reuse::UNSPOKEN.to_owned(), true.into());
        }
    }
    let literals = analysis.parameters.literals.iter().map(PlanLiteral::from).collect();
    let lifted = LiftedPlan { source: lifted.source, parameters: schema, literals, values };
    Some((analysis.identity.identity, lifted))
}

fn names(schema: &Value) -> BTreeSet<String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
}

/// Gives a parameter the value that stood in the program as its default.
fn add_default(schema: &mut Value, parameter: &LiftedParameter) -> Option<()> {
    let member = schema.get_mut("properties")?.get_mut(&parameter.name)?;
    if !member.is_object() {
        *member = json!({});
    }
    let member = member.as_object_mut()?;
    let kind = match parameter.default {
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        _ => "string",
    };
    member.entry("type").or_insert_with(|| kind.into());
    member.insert("default".to_owned(), parameter.default.clone());
    if let Some(pattern) = parameter.pattern {
        member.insert("pattern".to_owned(), pattern.into());
    }
    if !parameter.choices.is_empty() {
        member.insert("enum".to_owned(), json!(parameter.choices));
    }
    remove_required(schema, &parameter.name);
    Some(())
}
