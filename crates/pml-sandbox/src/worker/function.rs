//! Native functions that programs can call.

use rquickjs::function::IntoJsFunc;
use rquickjs::{Ctx, Function};

/// A function of this realm. The engine's bindings would give it the prototype of the first realm.
pub(super) fn native_function<'js, P, F>(
    ctx: &Ctx<'js>,
    name: &str,
    length: usize,
    function: F,
) -> rquickjs::Result<Function<'js>>
where
    F: IntoJsFunc<'js, P> + 'js,
{
    let function = Function::new(ctx.clone(), function)?.with_name(name)?.with_length(length)?;
    function.set_prototype(Some(&Function::prototype(ctx.clone())))?;
    Ok(function)
}
