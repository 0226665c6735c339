//! Classes: fields and methods of instances.

use std::rc::Rc;

use oxc_ast::ast::{CallExpression, Class, ClassElement, MethodDefinitionKind, NewExpression, PropertyKey};
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::settled_value;
use super::places::MemberKey;
use super::syntax::step_of_key;
use crate::value::{
    AbstractValue, Activation, ClassValue, Closure, FunctionCode, ObjectMember, ObjectRecord, RecordKind,
};

impl<'a> Walker<'a, '_> {
    pub(super) fn define_class(&mut self, class: &'a Class<'a>) -> AbstractValue<'a> {
        let parent = class.heritage.as_ref().and_then(|heritage| match self.evaluate(&heritage.expression) {
            AbstractValue::Class(parent) => Some(parent),
            _ => None,
        });
        let statics = self.memory.state.new_object(ObjectRecord::default());
        let value = Rc::new(ClassValue {
            class,
            outer: Rc::clone(&self.calls.activation),
            context: self.probes.context,
            parent,
            statics,
        });
        // Static members may refer to the class.
        if let Some(symbol) = class.id.as_ref().and_then(|id| id.symbol_id.get()) {
            self.write_symbol(symbol, AbstractValue::Class(Rc::clone(&value)));
        }
        for element in &class.body.body {
            self.class_element(&value, element);
        }
        AbstractValue::Class(value)
    }

    fn class_element(&mut self, class: &Rc<ClassValue<'a>>, element: &'a ClassElement<'a>) {
        match element {
            ClassElement::MethodDefinition(it) => {
                let key = self.element_key(&it.key);
                let this = it.r#static.then(|| AbstractValue::Class(Rc::clone(class)));
                let closure =
                    self.make_closure_with(FunctionCode::Function(&it.value), this, Some(Rc::clone(class)));
                if let (true, Some(key)) = (it.r#static, key) {
                    let getter = it.kind == MethodDefinitionKind::Get;
                    let member = ObjectMember { key, value: closure, span: it.span, getter };
                    self.memory.state.change(class.statics, |record| record.fields.push(member));
                }
            }
            ClassElement::PropertyDefinition(it) if it.r#static => {
                let key = self.element_key(&it.key);
                let value = it.value.as_ref().map_or(AbstractValue::Undefined, |value| self.evaluate(value));
                if let Some(key) = key {
                    let member = ObjectMember { key, value, span: it.span, getter: false };
                    self.memory.state.change(class.statics, |record| record.fields.push(member));
                }
            }
            ClassElement::PropertyDefinition(it) if it.computed => {
                self.element_key(&it.key);
            }
            ClassElement::StaticBlock(it) => self.statements(&it.body),
            ClassElement::AccessorProperty(it) => {
                if let Some(value) = &it.value {
                    self.evaluate(value);
                }
            }
            ClassElement::PropertyDefinition(_) | ClassElement::TSIndexSignature(_) => {}
        }
    }

    fn element_key(&mut self, key: &'a PropertyKey<'a>) -> Option<PathStep> {
        match self.evaluate_property_key(key) {
            MemberKey::Known(step) => Some(step),
            MemberKey::Computed(_) => None,
        }
    }

    pub(super) fn static_member(&mut self, class: &Rc<ClassValue<'a>>, key: &PathStep) -> AbstractValue<'a> {
        let mut at = Some(Rc::clone(class));
        while let Some(class) = at {
            let found = self.memory.state.object(class.statics).field(key).cloned();
            match found {
                Some(ObjectMember { value: AbstractValue::Function(getter), getter: true, .. }) => {
                    return self.follow_call(
                        &getter,
                        CallArguments::new(),
                        None,
                        Some(AbstractValue::Class(class)),
                    );
                }
                Some(member) => return member.value,
                None => at = class.parent.clone(),
            }
        }
        AbstractValue::Unknown
    }

    /// A method or getter of a class or its base classes.
    pub(super) fn inherited_member(
        &mut self,
        class: &Rc<ClassValue<'a>>,
        key: &PathStep,
        this: &AbstractValue<'a>,
    ) -> Option<AbstractValue<'a>> {
        let mut at = Some(Rc::clone(class));
        while let Some(class) = at {
            for element in &class.class.body.body {
                let ClassElement::MethodDefinition(it) = element else { continue };
                if it.r#static || it.computed || step_of_key(&it.key).as_ref() != Some(key) {
                    continue;
                }
                match it.kind {
                    MethodDefinitionKind::Method => return Some(self.bind_method(&class, &it.value, this)),
                    MethodDefinitionKind::Get => {
                        let AbstractValue::Function(getter) = self.bind_method(&class, &it.value, this)
                        else {
                            continue;
                        };
                        return Some(self.follow_call(
                            &getter,
                            CallArguments::new(),
                            None,
                            Some(this.clone()),
                        ));
                    }
                    MethodDefinitionKind::Set | MethodDefinitionKind::Constructor => {}
                }
            }
            at = class.parent.clone();
        }
        None
    }

    /// A setter of a class or its base classes.
    pub(super) fn inherited_setter(
        &mut self,
        class: &Rc<ClassValue<'a>>,
        key: &PathStep,
        this: &AbstractValue<'a>,
    ) -> Option<Rc<Closure<'a>>> {
        let mut at = Some(Rc::clone(class));
        while let Some(class) = at {
            for element in &class.class.body.body {
                if let ClassElement::MethodDefinition(it) = element
                    && it.kind == MethodDefinitionKind::Set
                    && !it.r#static
                    && step_of_key(&it.key).as_ref() == Some(key)
                    && let AbstractValue::Function(setter) = self.bind_method(&class, &it.value, this)
                {
                    return Some(setter);
                }
            }
            at = class.parent.clone();
        }
        None
    }

    fn bind_method(
        &mut self,
        class: &Rc<ClassValue<'a>>,
        function: &'a oxc_ast::ast::Function<'a>,
        this: &AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let index = self.facts.survey.by_span.get(&function.span).copied().unwrap_or(0);
        AbstractValue::Function(Rc::new(Closure {
            code: FunctionCode::Function(function),
            function: index,
            outer: Rc::clone(&class.outer),
            context: class.context,
            this: Some(this.clone()),
            class: Some(Rc::clone(class)),
        }))
    }

    pub(super) fn new_expression(&mut self, it: &'a NewExpression<'a>) -> AbstractValue<'a> {
        let callee = self.evaluate_raw(&it.callee);
        let callee = self.note_escape(callee, it.callee.span());
        let given = self.evaluate_arguments(&it.arguments);
        match callee {
            AbstractValue::Class(class) => {
                let record =
                    ObjectRecord { kind: RecordKind::Instance(Rc::clone(&class)), ..ObjectRecord::default() };
                let object = self.memory.state.new_object(record);
                if !self.calls.may_construct() {
                    self.functions.left_out = true;
                    return AbstractValue::Object(object);
                }
                self.calls.constructing += 1;
                self.construct(&class, object, given, Some(it.span));
                self.calls.constructing -= 1;
                AbstractValue::Object(object)
            }
            AbstractValue::Function(closure) => {
                let object = self.memory.state.new_object(ObjectRecord::default());
                self.follow_call(&closure, given, Some(it.span), Some(AbstractValue::Object(object)));
                AbstractValue::Object(object)
            }
            AbstractValue::Global(name) => self.new_global(&name, it.span, given),
            other => self.call_unknown(it.span, &[other], &given),
        }
    }

    fn new_global(&mut self, name: &str, span: Span, given: CallArguments<'a>) -> AbstractValue<'a> {
        match name {
            "Promise" => {
                let holder = self
                    .memory
                    .state
                    .new_object(ObjectRecord { kind: RecordKind::Collection, ..ObjectRecord::default() });
                let resolve = AbstractValue::Global(format!("#resolve:{holder}").into());
                if let Some((AbstractValue::Function(executor), _, _)) = given.first() {
                    let executor = Rc::clone(executor);
                    let arguments = smallvec![(resolve, span, false), (AbstractValue::Unknown, span, false)];
                    self.follow_call(&executor, arguments, None, None);
                }
                let value = self.memory.part(&AbstractValue::Object(holder), &PathStep::Any);
                AbstractValue::Promise(Rc::new(settled_value(&value)), None)
            }
            "Map" | "Set" | "WeakMap" | "WeakSet" | "Array" => {
                let kind = if name == "Array" { RecordKind::Array } else { RecordKind::Collection };
                let mut record = ObjectRecord { kind, ..ObjectRecord::default() };
                if matches!(name, "Map" | "WeakMap")
                    && let Some((pairs, _, _)) = given.first()
                    && self.memory.can_reach_tool(pairs, 0)
                {
                    let map = self.memory.state.new_object(record);
                    self.put_pairs(map, &pairs.clone(), span);
                    return AbstractValue::Object(map);
                }
                for (value, _, _) in &given {
                    let item = self.memory.part(value, &PathStep::Any);
                    record.extra.push(item);
                }
                if given.is_empty() {
                    record.extra.clear();
                }
                self.memory.allocate(record)
            }
            _ => self.call_unknown(span, &[], &given),
        }
    }

    fn construct(
        &mut self,
        class: &Rc<ClassValue<'a>>,
        object: u32,
        given: CallArguments<'a>,
        call: Option<Span>,
    ) {
        let constructor = class.class.body.body.iter().find_map(|element| match element {
            ClassElement::MethodDefinition(it)
                if it.kind == MethodDefinitionKind::Constructor && it.value.body.is_some() =>
            {
                Some(&it.value)
            }
            _ => None,
        });
        if class.parent.is_none() || constructor.is_none() {
            if let Some(parent) = class.parent.clone() {
                self.construct(&parent, object, given.clone(), None);
            }
            self.initialise_fields(class, object);
        }
        if let Some(constructor) = constructor
            && let AbstractValue::Function(closure) =
                self.bind_method(class, constructor, &AbstractValue::Object(object))
        {
            self.follow_call(&closure, given, call, Some(AbstractValue::Object(object)));
        }
    }

    /// Initialises the fields of a new instance.
    fn initialise_fields(&mut self, class: &Rc<ClassValue<'a>>, object: u32) {
        let activation = Rc::new(Activation {
            id: class.outer.id,
            function: class.outer.function,
            outer: class.outer.outer.clone(),
            this: Some(AbstractValue::Object(object)),
            class: Some(Rc::clone(class)),
        });
        let outer = std::mem::replace(&mut self.calls.activation, activation);
        for element in &class.class.body.body {
            let ClassElement::PropertyDefinition(it) = element else { continue };
            if it.r#static || it.declare {
                continue;
            }
            let value = it.value.as_ref().map_or(AbstractValue::Undefined, |value| self.evaluate(value));
            if let Some(key) = step_of_key(&it.key) {
                let member = ObjectMember { key, value, span: it.span, getter: false };
                self.memory.state.change(object, |record| record.fields.push(member));
            }
        }
        self.calls.activation = outer;
    }

    pub(super) fn super_call(&mut self, it: &'a CallExpression<'a>) -> AbstractValue<'a> {
        let given = self.evaluate_arguments(&it.arguments);
        let this = self.calls.this_object();
        let Some(class) = self.calls.class() else { return self.call_unknown(it.span, &[], &given) };
        match (class.parent.clone(), this) {
            (Some(parent), Some(object)) => {
                self.construct(&parent, object, given, None);
                self.initialise_fields(&class, object);
            }
            (None, Some(object)) => {
                self.call_unknown(it.span, &[], &given);
                self.initialise_fields(&class, object);
            }
            _ => {}
        }
        AbstractValue::Undefined
    }

    pub(super) fn super_method(&mut self, it: &'a CallExpression<'a>, name: &str) -> AbstractValue<'a> {
        let given = self.evaluate_arguments(&it.arguments);
        let key = PathStep::Key(name.to_owned());
        let method =
            match (self.calls.class().and_then(|class| class.parent.clone()), self.calls.this_object()) {
                (Some(parent), Some(object)) => {
                    self.inherited_member(&parent, &key, &AbstractValue::Object(object))
                }
                (Some(parent), None) => Some(self.static_member(&parent, &key)),
                _ => None,
            };
        match method {
            Some(AbstractValue::Function(closure)) => {
                let this = self.calls.this();
                self.follow_call(&closure, given, Some(it.span), Some(this))
            }
            _ => self.call_unknown(it.span, &[], &given),
        }
    }
}
