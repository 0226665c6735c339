//! Which values can reach a tool when they are called.

use std::rc::Rc;

use super::ProgramMemory;
use crate::value::{AbstractValue, ObjectRecord, RecordKind};

impl<'a> ProgramMemory<'a, '_> {
    /// Whether calling the value, or something in it, can reach a tool.
    pub(crate) fn can_reach_tool(&self, value: &AbstractValue<'a>, depth: u32) -> bool {
        if depth > 3 || self.state.budget.is_spent() {
            return false;
        }
        match value {
            AbstractValue::Function(closure) => {
                let info = self.survey.function(closure.function);
                info.effectful
                    || info.captures.iter().any(|symbol| {
                        self.variable(&closure.outer, *symbol)
                            .and_then(|variable| self.state.read(variable))
                            .is_some_and(|value| self.can_reach_tool(value, depth + 1))
                    })
            }
            AbstractValue::Class(class) => {
                self.survey.reaches_tool(class.class.span.start, class.class.span.end)
            }
            AbstractValue::Object(index) => {
                let record = self.state.object(*index);
                self.state.budget.spend(record.size() / 8);
                self.holds_reaching(record, depth + 1)
            }
            AbstractValue::Record(record) => {
                self.state.budget.spend(record.size() / 8);
                self.holds_reaching(record, depth + 1)
            }
            AbstractValue::Item(of, _, _) => self.can_reach_tool(of, depth + 1),
            AbstractValue::OneOf(values) => {
                self.state.budget.spend(values.len() / 8);
                values.iter().any(|value| self.can_reach_tool(value, depth))
            }
            AbstractValue::Tool(..) | AbstractValue::Capability(_) => true,
            _ => false,
        }
    }

    pub(crate) fn holds_reaching(&self, record: &ObjectRecord<'a>, depth: u32) -> bool {
        let class = match &record.kind {
            RecordKind::Instance(class) => {
                self.can_reach_tool(&AbstractValue::Class(Rc::clone(class)), depth)
            }
            _ => false,
        };
        class
            || record.fields.iter().any(|member| self.can_reach_tool(&member.value, depth))
            || record.extra.iter().any(|value| self.can_reach_tool(value, depth))
    }

    /// Whether calling the value leads to a tool.
    pub(crate) fn leads_to_tool(&self, value: &AbstractValue<'a>) -> bool {
        match value {
            AbstractValue::Mcp
            | AbstractValue::Server(_)
            | AbstractValue::Tool(..)
            | AbstractValue::Capabilities
            | AbstractValue::Capability(_) => true,
            other => self.can_reach_tool(other, 0),
        }
    }
}
