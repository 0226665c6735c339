//! Stack of the local function calls that are being followed.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::memory::state::StateMark;
use super::flow::FlowPath;
use crate::survey::FunctionIndex;
use crate::value::{AbstractValue, Activation, ClassValue, ValueList};

/// Number of expressions after which calls of local functions are no longer followed: functions that call each other
/// twice would otherwise double the work with each of them. Each byte of the program adds one.
const MAX_STEPS: u32 = 50_000;
/// Maximum depth of followed calls.
const MAX_CALL_DEPTH: usize = 48;

/// A followed call of a local function.
pub(crate) struct CallFrame<'a> {
    pub(crate) function: FunctionIndex,
    pub(crate) context: u32,
    pub(crate) is_async: bool,
    pub(crate) mark: StateMark,
    pub(crate) returns: SmallVec<[(AbstractValue<'a>, FlowPath<'a>); 1]>,
    pub(crate) yields: Vec<AbstractValue<'a>>,
    /// Phis of the result and of the parameters, for recursive calls.
    pub(crate) result: Option<u32>,
    pub(crate) parameters: Vec<u32>,
    /// Values of `arguments`.
    pub(crate) given: ValueList<'a>,
}

/// Stack of followed functions, the program itself first.
pub(crate) struct CallStack<'a> {
    pub(crate) frames: Vec<CallFrame<'a>>,
    pub(crate) activation: Rc<Activation<'a>>,
    next_activation: u32,
    /// Nesting depth of class instances under construction, each for a field of the one before.
    pub(crate) constructing: usize,
    /// Expressions walked so far, counted each time.
    steps: u32,
    max_steps: u32,
}

impl<'a> CallStack<'a> {
    pub(crate) fn new(source: &str) -> CallStack<'a> {
        let top =
            Activation { id: 0, function: 0, outer: None, this: Some(AbstractValue::Undefined), class: None };
        CallStack {
            frames: Vec::new(),
            activation: Rc::new(top),
            next_activation: 1,
            constructing: 0,
            steps: 0,
            max_steps: MAX_STEPS.saturating_add(source.len() as u32),
        }
    }

    /// Pushes the program itself.
    pub(crate) fn enter_program(&mut self, mark: StateMark) {
        self.frames.push(CallFrame {
            function: 0,
            context: 0,
            is_async: true,
            mark,
            returns: SmallVec::new(),
            yields: Vec::new(),
            result: None,
            parameters: Vec::new(),
            given: SmallVec::new(),
        });
    }

    /// Counts one more expression.
    pub(crate) fn step(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }

    pub(crate) fn new_activation(&mut self) -> u32 {
        self.next_activation += 1;
        self.next_activation - 1
    }

    /// Whether one more call of a local function may be followed.
    pub(crate) fn may_follow(&self) -> bool {
        self.frames.len() < MAX_CALL_DEPTH && self.steps < self.max_steps
    }

    /// Whether the constructor of one more instance may be followed.
    pub(crate) fn may_construct(&self) -> bool {
        self.constructing < MAX_CALL_DEPTH && self.steps < self.max_steps
    }

    /// Whether `function` is on the stack.
    pub(crate) fn is_active(&self, function: FunctionIndex) -> bool {
        self.frames.iter().any(|frame| frame.function == function)
    }

    pub(crate) fn this(&self) -> AbstractValue<'a> {
        let mut at = Some(&self.activation);
        while let Some(activation) = at {
            if let Some(this) = &activation.this {
                return this.clone();
            }
            at = activation.outer.as_ref();
        }
        AbstractValue::Undefined
    }

    /// The class of the current method.
    pub(crate) fn class(&self) -> Option<Rc<ClassValue<'a>>> {
        let mut at = Some(&self.activation);
        while let Some(activation) = at {
            if let Some(class) = &activation.class {
                return Some(Rc::clone(class));
            }
            at = activation.outer.as_ref();
        }
        None
    }

    pub(crate) fn this_object(&self) -> Option<u32> {
        let mut at = Some(&self.activation);
        while let Some(activation) = at {
            match &activation.this {
                Some(AbstractValue::Object(object)) => return Some(*object),
                Some(_) => return None,
                None => at = activation.outer.as_ref(),
            }
        }
        None
    }
}
