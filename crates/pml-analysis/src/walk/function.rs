//! Local functions, followed into from where they are called.

use std::rc::Rc;

use oxc_ast::ast::{
    ArrowFunctionBody, Expression, FormalParameters, Statement, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody,
};
use oxc_span::Span;
use pml_model::structure::{LoopForm, Step};
use smallvec::SmallVec;

use super::call::{Given, Givens};
use super::expression::settled;
use super::repeat::{Exit, Head};
use super::value::{
    Activation, ClassValue, Closure, FunctionCode, Kind, Member, Path, Record, Value, Values, one_of,
};
use super::{Frame, MAX_CALL_DEPTH, MAX_FOLLOWED, Promised, Walk, Way};
use crate::analysis::Entry;
use crate::marks::Place;

impl<'a> Walk<'a, '_> {
    pub(super) fn closure(&mut self, code: FunctionCode<'a>) -> Value<'a> {
        self.closure_of(code, None, None)
    }

    pub(super) fn closure_of(
        &mut self,
        code: FunctionCode<'a>,
        this: Option<Value<'a>>,
        class: Option<Rc<ClassValue<'a>>>,
    ) -> Value<'a> {
        let function = self.survey.by_span.get(&code.span()).copied().unwrap_or(0);
        let closure = Rc::new(Closure {
            code,
            function,
            outer: Rc::clone(&self.activation),
            context: self.context,
            this,
            class,
        });
        if self.survey.functions[function as usize].effectful {
            self.kept.push(Rc::clone(&closure));
        }
        Value::Function(closure)
    }

    /// Calling the value, or something in it, can reach a tool.
    pub(super) fn effectful(&self, value: &Value<'a>, depth: u32) -> bool {
        if depth > 3 || self.state.budget.is_spent() {
            return false;
        }
        match value {
            Value::Function(closure) => {
                let info = &self.survey.functions[closure.function as usize];
                info.effectful
                    || info.captures.iter().any(|symbol| {
                        self.variable_from(&closure.outer, *symbol)
                            .and_then(|variable| self.state.read(variable))
                            .is_some_and(|value| self.effectful(value, depth + 1))
                    })
            }
            Value::Class(class) => self.survey.reaches(class.class.span.start, class.class.span.end),
            Value::Object(index) => {
                let record = self.state.object(*index);
                self.state.budget.spend(record.size() / 8);
                self.holds_effectful(record, depth + 1)
            }
            Value::Record(record) => {
                self.state.budget.spend(record.size() / 8);
                self.holds_effectful(record, depth + 1)
            }
            Value::Item(of, _, _) => self.effectful(of, depth + 1),
            Value::OneOf(values) => {
                self.state.budget.spend(values.len() / 8);
                values.iter().any(|value| self.effectful(value, depth))
            }
            Value::Tool(..) | Value::Capability(_) => true,
            _ => false,
        }
    }

    fn holds_effectful(&self, record: &Record<'a>, depth: u32) -> bool {
        let class = match &record.kind {
            Kind::Instance(class) => self.effectful(&Value::Class(Rc::clone(class)), depth),
            _ => false,
        };
        class
            || record.fields.iter().any(|member| self.effectful(&member.value, depth))
            || record.extra.iter().any(|value| self.effectful(value, depth))
    }

    /// Follows a call of a local function. `call` is the call as written; without one the language calls it.
    pub(super) fn follow(
        &mut self,
        closure: &Rc<Closure<'a>>,
        given: Givens<'a>,
        call: Option<Span>,
        this: Option<Value<'a>>,
    ) -> Value<'a> {
        let function = Value::Function(Rc::clone(closure));
        let reaches = self.effectful(&function, 0);
        if let (true, Some(reached)) = (reaches, &mut self.trial) {
            *reached = true;
            return Value::Unknown;
        }
        let own = this.as_ref().or(closure.this.as_ref());
        let own = own.filter(|_| self.survey.functions[closure.function as usize].uses_this);
        let mut may_call = given.iter().map(|(value, _, _)| value).chain(own);
        let effectful = reaches || may_call.any(|value| self.effectful(value, 0));
        if let Some(active) = self.frames.iter().rposition(|frame| frame.function == closure.function) {
            return self.again(active, &given, call, effectful, closure.code.is_async());
        }
        if self.frames.len() >= MAX_CALL_DEPTH || !self.follows_calls() {
            return self.not_followed(closure, &given);
        }
        let followable = effectful && self.quiet == 0 && !closure.code.is_generator();
        let context = match call {
            Some(call) if followable => self.entered(call, closure),
            // The language calls it: its context is that of the code around it.
            _ => closure.context,
        };
        self.run(closure, given, context, effectful, call, this)
    }

    /// A call that is not followed: what it gives is made from what it is given. What its function does is known all
    /// the same, from another call of it or from [`Walk::uncalled`](super::finish).
    fn not_followed(&mut self, closure: &Closure<'a>, given: &[Given<'a>]) -> Value<'a> {
        self.left_out = true;
        let values: Vec<Value<'a>> = given.iter().map(|(value, _, _)| value.clone()).collect();
        self.computed(closure.code.span(), &values)
    }

    /// Follows a function that no call has been followed into.
    pub(super) fn follow_alone(&mut self, closure: &Rc<Closure<'a>>) -> Value<'a> {
        let effectful = self.effectful(&Value::Function(Rc::clone(closure)), 0);
        self.run(closure, Givens::new(), closure.context, effectful, None, None)
    }

    /// The context a call of a local function leads to.
    fn entered(&mut self, call: Span, closure: &Closure<'a>) -> u32 {
        if self.next_context >= MAX_FOLLOWED {
            return closure.context;
        }
        let point = self.point(Place::Enter, call);
        let enters = match self.contexts.get(&(point, self.context)) {
            Some(context) => *context,
            None => {
                let context = self.next_context;
                self.next_context += 1;
                self.contexts.insert((point, self.context), context);
                context
            }
        };
        self.enter(point, call, closure.function, enters);
        enters
    }

    /// The context of its own that a function has when it is handed to an operation by `name`, as if it were called there.
    /// The first place in the code around the function needs none: it is that code's, as for a function written there.
    pub(super) fn handed(&mut self, closure: &Closure<'a>, name: Span) -> Option<u32> {
        let here = (name, self.context);
        let first = *self.handed.entry((closure.function, closure.context)).or_insert(here);
        let is_active = self.frames.iter().any(|frame| frame.function == closure.function);
        let follows = self.quiet == 0 && self.frames.len() < MAX_CALL_DEPTH && self.follows_calls();
        let is_around = first == here && self.context == closure.context;
        if is_around || is_active || !follows || closure.code.is_generator() {
            return None;
        }
        Some(self.entered(name, closure))
    }

    /// Follows a function that the language calls in a context of its own.
    pub(super) fn follow_in(
        &mut self,
        context: u32,
        closure: &Rc<Closure<'a>>,
        given: Givens<'a>,
    ) -> Value<'a> {
        self.run(closure, given, context, true, None, None)
    }

    fn enter(&mut self, point: u32, call: Span, function: u32, enters: u32) {
        let entry = Entry { point, context: self.context, function, enters, at: self.lines.position(call) };
        if self.entered.insert((point, self.context, function)) {
            self.entries.push(entry);
        }
        self.follow_mark(function);
    }

    /// A function that is being followed already calls itself.
    fn again(
        &mut self,
        active: usize,
        given: &[Given<'a>],
        call: Option<Span>,
        effectful: bool,
        is_async: bool,
    ) -> Value<'a> {
        let (context, function) = (self.frames[active].context, self.frames[active].function);
        if let (Some(call), true) = (call, effectful && self.quiet == 0) {
            let point = self.point(Place::Enter, call);
            self.enter(point, call, function, context);
        }
        for (index, phi) in self.frames[active].parameters.clone().into_iter().enumerate() {
            if let Some((value, _, _)) = given.get(index).cloned() {
                self.feed(phi, &value);
            }
        }
        let value = self.frames[active].result.map_or(Value::Unknown, |phi| Value::Phi(phi, Path::default()));
        if !is_async {
            return value;
        }
        let pending = effectful.then(|| {
            let span = call.unwrap_or_default();
            self.pending(span, Promised::Function(span))
        });
        Value::Promise(Rc::new(value), pending)
    }

    fn run(
        &mut self,
        closure: &Rc<Closure<'a>>,
        given: Givens<'a>,
        context: u32,
        effectful: bool,
        call: Option<Span>,
        this: Option<Value<'a>>,
    ) -> Value<'a> {
        self.visited[closure.function as usize] = true;
        let recursive = self.survey.functions[closure.function as usize].recursive;
        let is_arrow = matches!(closure.code, FunctionCode::Arrow(_));
        let activation = Rc::new(Activation {
            id: self.next_activation,
            function: closure.function,
            outer: Some(Rc::clone(&closure.outer)),
            this: if is_arrow {
                closure.this.clone()
            } else {
                Some(this.or_else(|| closure.this.clone()).unwrap_or(Value::Undefined))
            },
            class: closure.class.clone(),
        });
        self.next_activation += 1;
        // A function expression knows itself by its own name.
        if let FunctionCode::Function(function) = closure.code
            && let Some(symbol) = function.id.as_ref().and_then(|id| id.symbol_id.get())
            && self.survey.home[symbol.index()] == closure.function
        {
            self.state.write((activation.id, symbol.index() as u32), Value::Function(Rc::clone(closure)));
        }
        let outer_activation = std::mem::replace(&mut self.activation, activation);
        let outer_context = std::mem::replace(&mut self.context, context);
        let outer_labels = std::mem::take(&mut self.labels);
        let before = self.frontier.clone();
        if !effectful {
            self.quiet += 1;
        }
        let result = recursive.then(|| self.new_phi(Value::Unknown, None));
        let mark = self.state.mark();
        self.frames.push(Frame {
            function: closure.function,
            context,
            is_async: closure.code.is_async(),
            mark,
            returns: SmallVec::new(),
            yields: Vec::new(),
            result,
            parameters: Vec::new(),
            given: given.iter().map(|(value, _, _)| value.clone()).collect(),
        });
        let cycle = self.survey.functions[closure.function as usize].cycle;
        let inside =
            self.frames.iter().rev().skip(1).any(|frame| {
                cycle.is_some() && self.survey.functions[frame.function as usize].cycle == cycle
            });
        self.enter_function(closure, given, recursive && effectful && self.quiet == 0 && !inside);
        if self.live {
            let way = self.way(mark);
            self.frames.last_mut().expect("pushed above").returns.push((Value::Undefined, way));
        }
        let frame = self.frames.pop().expect("pushed above");
        self.state.undo(mark);
        if !effectful {
            self.quiet -= 1;
        }
        let mut values = Values::new();
        let mut ways: SmallVec<[Way<'a>; 1]> = SmallVec::new();
        for (value, way) in frame.returns {
            values.push(value);
            ways.push(way);
        }
        let activation = std::mem::replace(&mut self.activation, outer_activation);
        if Rc::strong_count(&activation) == 1 {
            // No function made in it is left, so nobody asks for its variables again.
            for way in &mut ways {
                way.changes.variables.retain(|(owner, _)| owner != activation.id);
            }
        }
        if ways.is_empty() {
            // It always throws. What follows is reached through a handler, if at all.
            self.live = true;
            self.frontier = before;
        } else {
            self.rejoin(ways);
        }
        self.context = outer_context;
        self.labels = outer_labels;
        let value = self.returned(closure, values, frame.yields);
        if let Some(phi) = result {
            self.feed(phi, &settled(&value));
        }
        if !closure.code.is_async() || closure.code.is_generator() {
            return value;
        }
        let pending = effectful.then(|| {
            let span = call.unwrap_or(closure.code.span());
            self.pending(span, call.map_or(Promised::Callback, Promised::Function))
        });
        Value::Promise(Rc::new(value), pending)
    }

    fn returned(&mut self, closure: &Closure<'a>, values: Values<'a>, yields: Vec<Value<'a>>) -> Value<'a> {
        if !closure.code.is_generator() {
            // Falling off the end counts only when nothing is returned anywhere.
            let is_silent = values.iter().all(|value| matches!(value, Value::Undefined));
            return if is_silent { Value::Undefined } else { one_of(values) };
        }
        let record = Record { kind: Kind::Array, extra: yields, ..Record::default() };
        Value::Object(self.state.new_object(record))
    }

    fn enter_function(&mut self, closure: &Rc<Closure<'a>>, given: Givens<'a>, is_loop: bool) {
        let recursive = self.survey.functions[closure.function as usize].recursive;
        let parameters = match closure.code {
            FunctionCode::Function(function) => &function.params,
            FunctionCode::Arrow(arrow) => &arrow.params,
        };
        let given = if recursive { self.parameters_of_recursion(given) } else { given };
        if !is_loop {
            self.bind_parameters(parameters, given, closure.context);
            return self.body(closure);
        }
        let span = closure.code.span();
        let over = match closure.code {
            FunctionCode::Function(function) => function.id.as_ref().map_or(span, |id| id.span),
            FunctionCode::Arrow(_) => Span::new(span.start, parameters.span.end),
        };
        let head = Head { place: Place::Turn, span, over, form: LoopForm::Recursion, exit: Exit::AtEnd };
        let closure = Rc::clone(closure);
        self.repeat(&head, |walk, node| {
            let frame = walk.frames.last().map(|frame| (frame.parameters.clone(), frame.result));
            if let Some((parameters, result)) = frame {
                for phi in parameters.into_iter().chain(result) {
                    walk.phis[phi as usize].node = node;
                }
            }
            walk.bind_parameters(parameters, given, closure.context);
            walk.body(&closure);
        });
    }

    fn parameters_of_recursion(&mut self, given: Givens<'a>) -> Givens<'a> {
        let mut phis = Vec::new();
        let given = given
            .into_iter()
            .map(|(value, span, spread)| {
                let phi = self.new_phi(value, None);
                phis.push(phi);
                (Value::Phi(phi, Path::default()), span, spread)
            })
            .collect();
        if let Some(frame) = self.frames.last_mut() {
            frame.parameters = phis;
        }
        given
    }

    /// Defaults are evaluated before the function knows its context, in that of the code around it.
    fn bind_parameters(&mut self, parameters: &'a FormalParameters<'a>, given: Givens<'a>, outer: u32) {
        let context = std::mem::replace(&mut self.context, outer);
        self.bind_each(parameters, given);
        self.context = context;
    }

    fn bind_each(&mut self, parameters: &'a FormalParameters<'a>, given: Givens<'a>) {
        let spread_at = given.iter().position(|(_, _, spread)| *spread);
        for (index, parameter) in parameters.items.iter().enumerate() {
            let value = match spread_at {
                Some(at) if index >= at => self.part(&given[at].0.clone(), &Step::Index((index - at) as u64)),
                _ => given.get(index).map_or(Value::Undefined, |(value, _, _)| value.clone()),
            };
            let value = match &parameter.initializer {
                Some(default) if !certain(&value) => self.or_default(value, default),
                _ => value,
            };
            if parameter.accessibility.is_some() || parameter.readonly {
                self.parameter_property(&parameter.pattern, &value);
            }
            self.bind(&parameter.pattern, value);
        }
        if let Some(rest) = &parameters.rest {
            let mut record = Record { kind: Kind::Array, ..Record::default() };
            for (value, span, spread) in given.into_iter().skip(parameters.items.len()) {
                if spread {
                    self.append_all(&mut record, &value);
                } else {
                    super::objects::append(&mut record, value, span);
                }
            }
            let value = Value::Object(self.state.new_object(record));
            self.bind(&rest.rest.argument, value);
        }
    }

    /// `constructor(private db: Db)` also sets `this.db`.
    fn parameter_property(&mut self, pattern: &oxc_ast::ast::BindingPattern<'a>, value: &Value<'a>) {
        let oxc_ast::ast::BindingPattern::BindingIdentifier(name) = pattern else { return };
        let Some(Value::Object(object)) = self.activation.this.clone() else { return };
        let member = Member {
            key: Step::Key(name.name.as_str().to_owned()),
            value: value.clone(),
            span: name.span,
            getter: false,
        };
        self.state.change(object, |record| record.fields.push(member));
    }

    fn body(&mut self, closure: &Closure<'a>) {
        match closure.code {
            FunctionCode::Function(function) => {
                if let Some(body) = &function.body {
                    self.statements(&body.statements);
                }
            }
            FunctionCode::Arrow(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => self.statements(&body.statements),
                expression => {
                    if let Some(expression) = expression.as_expression() {
                        let value = self.value(expression);
                        let value = self.handed_back(value);
                        let mark = self.frames.last().expect("a body is run in a frame").mark;
                        let way = self.way(mark);
                        self.frames.last_mut().expect("a body is run in a frame").returns.push((value, way));
                        self.live = false;
                        self.frontier.clear();
                    }
                }
            },
        }
    }

    /// What `return value` hands to the caller.
    pub(super) fn handed_back(&mut self, value: Value<'a>) -> Value<'a> {
        if self.frames.last().is_some_and(|frame| frame.is_async) { self.awaited(value) } else { value }
    }

    pub(super) fn yielded(&mut self, argument: Option<&'a Expression<'a>>, delegate: bool) -> Value<'a> {
        let Some(argument) = argument else { return Value::Unknown };
        let value = self.value(argument);
        let value = self.awaited(value);
        let value = if delegate { self.part(&value, &Step::Any) } else { value };
        if let Some(frame) = self.frames.last_mut() {
            frame.yields.push(value);
        }
        Value::Unknown
    }

    /// The beginning of a call, for a message.
    pub(super) fn short(&self, span: Span) -> String {
        let text = self.text(span);
        let end = text.find(['(', '\n', '=']).unwrap_or(text.len());
        text[..end].trim().chars().take(40).collect()
    }

    pub(super) fn namespace(&mut self, it: &'a TSNamespaceDeclaration<'a>) {
        match &it.body {
            TSNamespaceDeclarationBody::TSModuleBlock(block) => self.namespace_body(&block.body),
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => self.namespace(inner),
        }
    }

    fn namespace_body(&mut self, body: &'a [Statement<'a>]) {
        for statement in body {
            match statement {
                Statement::ExportDeclaration(it) => self.declared(&it.declaration),
                other => self.statement(other),
            }
        }
    }
}

/// Given for certain, so that a default is not taken.
fn certain(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Literal(_)
            | Value::Object(_)
            | Value::Promise(..)
            | Value::Record(_)
            | Value::Function(_)
            | Value::Template(_)
    )
}
