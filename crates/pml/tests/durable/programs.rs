//! The programs during which the gateway is killed.

use std::collections::HashSet;

/// A program; each returns what it believes to have done.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    OneByOne,
    AtOnce,
    Deciding,
    Pausing,
}

impl Shape {
    /// Its source.
    pub fn code(self) -> &'static str {
        match self {
            Shape::OneByOne => {
                "const added = [];
                 for (let i = 0; i < args.n; i++) {
                   const { id } = await mcp.ledger.add({ id: `${args.p}.${i}`, before: args.before, after: args.after });
                   added.push(id);
                 }
                 return added;"
            }
            Shape::AtOnce => {
                "const add = async (i) => {
                   const id = `${args.p}.${i}`;
                   try { return (await mcp.ledger.add({ id, before: args.before, after: args.after * i })).id; }
                   catch (error) { return `failed ${id}`; }
                 };
                 const put = (i) => mcp.ledger.put({ key: `${args.p}/${i}`, value: i, before: args.before });
                 const numbers = Array.from({ length: args.n }, (_, i) => i);
                 await mcp.ledger.get({ key: args.p });
                 const [added] = await Promise.all([Promise.all(numbers.map(add)), Promise.all(numbers.map(put))]);
                 return added;"
            }
            Shape::Deciding => {
                "const added = [];
                 await mcp.ledger.put({ key: args.p, value: 0 });
                 for (;;) {
                   const { value } = await mcp.ledger.get({ key: args.p });
                   if (value >= args.n) break;
                   if (value % 2 === 0) {
                     const { id } = await mcp.ledger.add({ id: `${args.p}.${value}`, after: args.after });
                     added.push(id);
                   }
                   await mcp.ledger.put({ key: args.p, value: value + 1, before: args.before });
                 }
                 return added;"
            }
            Shape::Pausing => {
                "const added = [];
                 for (let i = 0; i < args.n; i++) {
                   added.push((await mcp.ledger.add({ id: `${args.p}.${i}` })).id);
                   await new Promise((wake) => setTimeout(wake, args.before + args.after));
                 }
                 return added;"
            }
        }
    }

    /// What it returns where the calls of `failed` failed; nothing where that ends it.
    pub fn result(self, name: &str, n: u64, failed: &HashSet<String>) -> Option<Vec<String>> {
        let ids: Vec<String> = (0..n)
            .filter(|i| !matches!(self, Shape::Deciding) || i % 2 == 0)
            .map(|i| format!("{name}.{i}"))
            .collect();
        match self {
            Shape::AtOnce => {
                let told =
                    |id: &String| if failed.contains(id) { format!("failed {id}") } else { id.clone() };
                Some(ids.iter().map(told).collect())
            }
            Shape::OneByOne | Shape::Deciding | Shape::Pausing => failed.is_empty().then_some(ids),
        }
    }
}
