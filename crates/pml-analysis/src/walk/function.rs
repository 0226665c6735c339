//! Local functions, followed from their calls.

use std::rc::Rc;

use oxc_ast::ast::{
    ArrowFunctionBody, Expression, FormalParameters, Statement, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody,
};
use oxc_span::Span;
use pml_model::structure::{LoopForm, PathStep};
use smallvec::SmallVec;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::memory::{PromiseOrigin, settled_value};
use super::objects::append;
use super::parts::calls::CallFrame;
use super::parts::flow::FlowPath;
use super::repeat::{LoopExit, LoopHead};
use crate::marks::ProbePlace;
use crate::value::{
    AbstractValue, Activation, ClassValue, Closure, FunctionCode, MemberPath, ObjectMember, ObjectRecord,
    RecordKind, ValueList, one_of,
};

impl<'a> Walker<'a, '_> {
    pub(super) fn make_closure(&mut self, code: FunctionCode<'a>) -> AbstractValue<'a> {
        self.make_closure_with(code, None, None)
    }

    pub(super) fn make_closure_with(
        &mut self,
        code: FunctionCode<'a>,
        this: Option<AbstractValue<'a>>,
        class: Option<Rc<ClassValue<'a>>>,
    ) -> AbstractValue<'a> {
        let function = self.facts.survey.by_span.get(&code.span()).copied().unwrap_or(0);
        let closure = Rc::new(Closure {
            code,
            function,
            outer: Rc::clone(&self.calls.activation),
            context: self.probes.context,
            this,
            class,
        });
        if self.facts.function(function).effectful {
            self.functions.kept.push(Rc::clone(&closure));
        }
        AbstractValue::Function(closure)
    }

    /// Follows a call of a local function. `call` is the call expression; `None` when the language makes the call.
    pub(super) fn follow_call(
        &mut self,
        closure: &Rc<Closure<'a>>,
        given: CallArguments<'a>,
        call: Option<Span>,
        this: Option<AbstractValue<'a>>,
    ) -> AbstractValue<'a> {
        let function = AbstractValue::Function(Rc::clone(closure));
        let reaches = self.memory.can_reach_tool(&function, 0);
        if reaches && self.recording.ends_trial() {
            return AbstractValue::Unknown;
        }
        let own = this.as_ref().or(closure.this.as_ref());
        let own = own.filter(|_| self.facts.function(closure.function).uses_this);
        let mut may_call = given.iter().map(|(value, _, _)| value).chain(own);
        let effectful = reaches || may_call.any(|value| self.memory.can_reach_tool(value, 0));
        if let Some(active) = self.calls.frames.iter().rposition(|frame| frame.function == closure.function) {
            return self.follow_recursion(active, &given, call, effectful, closure.code.is_async());
        }
        if !self.calls.may_follow() {
            return self.skip_call(closure, &given);
        }
        let followable = effectful && !self.recording.is_quiet() && !closure.code.is_generator();
        let context = match call {
            Some(call) if followable => self.enter(call, closure),
            // The language makes the call: the context is that of the surrounding code.
            _ => closure.context,
        };
        self.run_function(closure, given, context, effectful, call, this)
    }

    /// A call that is not followed: its result is computed from its arguments. The effects of its function are known
    /// from another call, or from [`Walker::follow_uncalled`](super::finish).
    fn skip_call(&mut self, closure: &Closure<'a>, given: &[CallArgument<'a>]) -> AbstractValue<'a> {
        self.functions.left_out = true;
        let values: Vec<AbstractValue<'a>> = given.iter().map(|(value, _, _)| value.clone()).collect();
        self.memory.computed(closure.code.span(), &values)
    }

    /// Follows a function that no followed call has reached.
    pub(super) fn follow_alone(&mut self, closure: &Rc<Closure<'a>>) -> AbstractValue<'a> {
        let effectful = self.memory.can_reach_tool(&AbstractValue::Function(Rc::clone(closure)), 0);
        self.run_function(closure, CallArguments::new(), closure.context, effectful, None, None)
    }

    /// Context of a function that is passed to an operation by `name`, as if it were called there. The first such place
    /// in the surrounding code needs no own context: it has that code's, like a function written there.
    pub(super) fn context_when_handed(&mut self, closure: &Closure<'a>, name: Span) -> Option<u32> {
        let here = (name, self.probes.context);
        let first = *self.functions.handed.entry((closure.function, closure.context)).or_insert(here);
        let is_active = self.calls.is_active(closure.function);
        let follows = !self.recording.is_quiet() && self.calls.may_follow();
        let is_around = first == here && self.probes.context == closure.context;
        if is_around || is_active || !follows || closure.code.is_generator() {
            return None;
        }
        Some(self.enter(name, closure))
    }

    /// Context that a call of a local function enters.
    fn enter(&mut self, call: Span, closure: &Closure<'a>) -> u32 {
        self.probes.enter(call, closure, self.facts.function(closure.function))
    }

    /// Follows a function that the language calls, in a context of its own.
    pub(super) fn follow_in(
        &mut self,
        context: u32,
        closure: &Rc<Closure<'a>>,
        given: CallArguments<'a>,
    ) -> AbstractValue<'a> {
        self.run_function(closure, given, context, true, None, None)
    }

    /// A recursive call of a function that is being followed.
    fn follow_recursion(
        &mut self,
        active: usize,
        given: &[CallArgument<'a>],
        call: Option<Span>,
        effectful: bool,
        is_async: bool,
    ) -> AbstractValue<'a> {
        let (context, function) = (self.calls.frames[active].context, self.calls.frames[active].function);
        if let (Some(call), true) = (call, effectful && !self.recording.is_quiet()) {
            self.probes.enter_again(call, context, (function, self.facts.function(function)));
        }
        for (index, phi) in self.calls.frames[active].parameters.clone().into_iter().enumerate() {
            if let Some((value, _, _)) = given.get(index).cloned() {
                self.memory.feed_phi(phi, &value);
            }
        }
        let value = self.calls.frames[active]
            .result
            .map_or(AbstractValue::Unknown, |phi| AbstractValue::Phi(phi, MemberPath::default()));
        if !is_async {
            return value;
        }
        let pending = effectful.then(|| {
            let span = call.unwrap_or_default();
            self.memory.add_promise(span, PromiseOrigin::Function(span))
        });
        AbstractValue::Promise(Rc::new(value), pending)
    }

    fn run_function(
        &mut self,
        closure: &Rc<Closure<'a>>,
        given: CallArguments<'a>,
        context: u32,
        effectful: bool,
        call: Option<Span>,
        this: Option<AbstractValue<'a>>,
    ) -> AbstractValue<'a> {
        self.functions.visited[closure.function as usize] = true;
        let recursive = self.facts.function(closure.function).recursive;
        let is_arrow = matches!(closure.code, FunctionCode::Arrow(_));
        let activation = Rc::new(Activation {
            id: self.calls.new_activation(),
            function: closure.function,
            outer: Some(Rc::clone(&closure.outer)),
            this: if is_arrow {
                closure.this.clone()
            } else {
                Some(this.or_else(|| closure.this.clone()).unwrap_or(AbstractValue::Undefined))
            },
            class: closure.class.clone(),
        });
        // A function expression is bound to its own name.
        if let FunctionCode::Function(function) = closure.code
            && let Some(symbol) = function.id.as_ref().and_then(|id| id.symbol_id.get())
            && self.facts.survey.home[symbol.index()] == closure.function
        {
            self.memory
                .state
                .write((activation.id, symbol.index() as u32), AbstractValue::Function(Rc::clone(closure)));
        }
        let outer_activation = std::mem::replace(&mut self.calls.activation, activation);
        let outer_context = std::mem::replace(&mut self.probes.context, context);
        let outer_labels = std::mem::take(&mut self.flow.labels);
        let before = self.flow.frontier.clone();
        if !effectful {
            self.recording.enter_quiet();
        }
        let result = recursive.then(|| self.memory.new_phi(AbstractValue::Unknown, None));
        let mark = self.memory.state.mark();
        self.calls.frames.push(CallFrame {
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
        let cycle = self.facts.function(closure.function).cycle;
        let inside = self
            .calls
            .frames
            .iter()
            .rev()
            .skip(1)
            .any(|frame| cycle.is_some() && self.facts.function(frame.function).cycle == cycle);
        self.enter_function(closure, given, recursive && effectful && !self.recording.is_quiet() && !inside);
        if self.flow.live {
            let way = self.flow.path_since(&self.memory.state, mark);
            self.calls.frames.last_mut().expect("pushed above").returns.push((AbstractValue::Undefined, way));
        }
        let frame = self.calls.frames.pop().expect("pushed above");
        self.memory.state.undo(mark);
        if !effectful {
            self.recording.leave_quiet();
        }
        let mut values = ValueList::new();
        let mut ways: SmallVec<[FlowPath<'a>; 1]> = SmallVec::new();
        for (value, way) in frame.returns {
            values.push(value);
            ways.push(way);
        }
        let activation = std::mem::replace(&mut self.calls.activation, outer_activation);
        if Rc::strong_count(&activation) == 1 {
            // No function created in it is left, so its variables are never read again.
            for way in &mut ways {
                way.changes.variables.retain(|(owner, _)| owner != activation.id);
            }
        }
        if ways.is_empty() {
            // It always throws. The code after it is reached through a handler, if at all.
            self.flow.live = true;
            self.flow.frontier = before;
        } else {
            self.flow.rejoin(&mut self.memory.state, ways);
        }
        self.probes.context = outer_context;
        self.flow.labels = outer_labels;
        let value = self.returned_value(closure, values, frame.yields);
        if let Some(phi) = result {
            self.memory.feed_phi(phi, &settled_value(&value));
        }
        if !closure.code.is_async() || closure.code.is_generator() {
            return value;
        }
        let pending = effectful.then(|| {
            let span = call.unwrap_or(closure.code.span());
            self.memory.add_promise(span, call.map_or(PromiseOrigin::Callback, PromiseOrigin::Function))
        });
        AbstractValue::Promise(Rc::new(value), pending)
    }

    fn returned_value(
        &mut self,
        closure: &Closure<'a>,
        values: ValueList<'a>,
        yields: Vec<AbstractValue<'a>>,
    ) -> AbstractValue<'a> {
        if !closure.code.is_generator() {
            // Falling off the end counts only when nothing is returned anywhere.
            let is_silent = values.iter().all(|value| matches!(value, AbstractValue::Undefined));
            return if is_silent { AbstractValue::Undefined } else { one_of(values) };
        }
        let record = ObjectRecord { kind: RecordKind::Array, extra: yields, ..ObjectRecord::default() };
        self.memory.allocate(record)
    }

    fn enter_function(&mut self, closure: &Rc<Closure<'a>>, given: CallArguments<'a>, is_loop: bool) {
        let recursive = self.facts.function(closure.function).recursive;
        let parameters = match closure.code {
            FunctionCode::Function(function) => &function.params,
            FunctionCode::Arrow(arrow) => &arrow.params,
        };
        let given = if recursive { self.parameters_of_recursion(given) } else { given };
        if !is_loop {
            self.bind_parameters(parameters, given, closure.context);
            return self.walk_body(closure);
        }
        let span = closure.code.span();
        let over = match closure.code {
            FunctionCode::Function(function) => function.id.as_ref().map_or(span, |id| id.span),
            FunctionCode::Arrow(_) => Span::new(span.start, parameters.span.end),
        };
        let head = LoopHead {
            place: ProbePlace::Turn,
            span,
            over,
            form: LoopForm::Recursion,
            exit: LoopExit::AtEnd,
        };
        let closure = Rc::clone(closure);
        self.walk_loop(&head, |walk, node| {
            let frame = walk.calls.frames.last().map(|frame| (frame.parameters.clone(), frame.result));
            if let Some((parameters, result)) = frame {
                for phi in parameters.into_iter().chain(result) {
                    walk.memory.phis[phi as usize].node = node;
                }
            }
            walk.bind_parameters(parameters, given, closure.context);
            walk.walk_body(&closure);
        });
    }

    fn parameters_of_recursion(&mut self, given: CallArguments<'a>) -> CallArguments<'a> {
        let mut phis = Vec::new();
        let given = given
            .into_iter()
            .map(|(value, span, spread)| {
                let phi = self.memory.new_phi(value, None);
                phis.push(phi);
                (AbstractValue::Phi(phi, MemberPath::default()), span, spread)
            })
            .collect();
        if let Some(frame) = self.calls.frames.last_mut() {
            frame.parameters = phis;
        }
        given
    }

    /// Binds parameters. Defaults are evaluated before the function takes its context, in that of the surrounding code.
    fn bind_parameters(
        &mut self,
        parameters: &'a FormalParameters<'a>,
        given: CallArguments<'a>,
        outer: u32,
    ) {
        let context = std::mem::replace(&mut self.probes.context, outer);
        self.bind_each(parameters, given);
        self.probes.context = context;
    }

    fn bind_each(&mut self, parameters: &'a FormalParameters<'a>, given: CallArguments<'a>) {
        let spread_at = given.iter().position(|(_, _, spread)| *spread);
        for (index, parameter) in parameters.items.iter().enumerate() {
            let value = match spread_at {
                Some(at) if index >= at => {
                    self.memory.part(&given[at].0.clone(), &PathStep::Index((index - at) as u64))
                }
                _ => given.get(index).map_or(AbstractValue::Undefined, |(value, _, _)| value.clone()),
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
            let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
            for (value, span, spread) in given.into_iter().skip(parameters.items.len()) {
                if spread {
                    self.append_all(&mut record, &value);
                } else {
                    append(&mut record, value, span);
                }
            }
            let value = self.memory.allocate(record);
            self.bind(&rest.rest.argument, value);
        }
    }

    /// `constructor(private db: Db)` also sets `this.db`.
    fn parameter_property(&mut self, pattern: &oxc_ast::ast::BindingPattern<'a>, value: &AbstractValue<'a>) {
        let oxc_ast::ast::BindingPattern::BindingIdentifier(name) = pattern else { return };
        let Some(AbstractValue::Object(object)) = self.calls.activation.this.clone() else { return };
        let member = ObjectMember {
            key: PathStep::Key(name.name.as_str().to_owned()),
            value: value.clone(),
            span: name.span,
            getter: false,
        };
        self.memory.state.change(object, |record| record.fields.push(member));
    }

    fn walk_body(&mut self, closure: &Closure<'a>) {
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
                        let value = self.evaluate(expression);
                        let value = self.settle_return(value);
                        let mark = self.calls.frames.last().expect("a body is run in a frame").mark;
                        let way = self.flow.path_since(&self.memory.state, mark);
                        self.calls
                            .frames
                            .last_mut()
                            .expect("a body is run in a frame")
                            .returns
                            .push((value, way));
                        self.flow.stop();
                    }
                }
            },
        }
    }

    /// The value that `return value` passes to the caller.
    pub(super) fn settle_return(&mut self, value: AbstractValue<'a>) -> AbstractValue<'a> {
        if self.calls.frames.last().is_some_and(|frame| frame.is_async) {
            self.await_value(value)
        } else {
            value
        }
    }

    pub(super) fn yield_value(
        &mut self,
        argument: Option<&'a Expression<'a>>,
        delegate: bool,
    ) -> AbstractValue<'a> {
        let Some(argument) = argument else { return AbstractValue::Unknown };
        let value = self.evaluate(argument);
        let value = self.await_value(value);
        let value = if delegate { self.memory.part(&value, &PathStep::Any) } else { value };
        if let Some(frame) = self.calls.frames.last_mut() {
            frame.yields.push(value);
        }
        AbstractValue::Unknown
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
                Statement::ExportDeclaration(it) => self.declaration(&it.declaration),
                other => self.statement(other),
            }
        }
    }
}

/// Whether an argument is certainly given, so that a default is not used.
fn certain(value: &AbstractValue<'_>) -> bool {
    matches!(
        value,
        AbstractValue::Literal(_)
            | AbstractValue::Object(_)
            | AbstractValue::Promise(..)
            | AbstractValue::Record(_)
            | AbstractValue::Function(_)
            | AbstractValue::Template(_)
    )
}
