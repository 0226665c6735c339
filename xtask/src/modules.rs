//! Module imports of a crate, and import cycles among sibling modules.
//!
//! Modules are read as text. A path that starts with `crate::`, `super::`, `self::` or the name of a child module is an
//! edge. A re-exported name (`pub use child::Name`) counts as the child's. Children and parents may use each other, so
//! only edges between siblings are checked, at every level of the tree. Tests do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// Path of a module within its crate: `["execute", "driver"]`; empty for the crate root.
type Module = Vec<String>;

/// Modules of one crate with the names they use.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    /// All modules.
    all: BTreeSet<Module>,
    /// For each module the names it uses, as paths within the crate.
    names: BTreeMap<Module, BTreeSet<Module>>,
    /// Re-exports: from the path of a name to the path it refers to.
    passed_on: HashMap<Module, Module>,
}

/// Edges between the children of one module.
pub(crate) type Siblings = BTreeMap<String, BTreeSet<String>>;

impl Modules {
    /// Reads the crate with sources in `src`: its library, or the binary when there is no library.
    pub(crate) fn read(src: &Path) -> Result<Modules, String> {
        let mut modules = Modules::default();
        let library = src.join("lib.rs");
        let root = if library.exists() { library } else { src.join("main.rs") };
        let mut open = vec![(root, src.to_owned(), Module::new())];
        while let Some((file, children, module)) = open.pop() {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
            let mut reader = Reader { module: module.clone(), ..Reader::default() };
            reader.visit_file(&parsed);
            modules.all.insert(module.clone());
            modules.names.entry(module.clone()).or_default().extend(reader.names);
            modules.passed_on.extend(reader.passed_on);
            for child in reader.children {
                let inside = children.join(&child);
                let nested = inside.join("mod.rs");
                let beside = children.join(format!("{child}.rs"));
                let file = if nested.exists() { nested } else { beside };
                let path = module.iter().cloned().chain([child]).collect();
                open.push((file, inside, path));
            }
        }
        Ok(modules)
    }

    /// For each module with children, the imports among them.
    pub(crate) fn siblings(&self) -> BTreeMap<Module, Siblings> {
        let mut all: BTreeMap<Module, Siblings> = BTreeMap::new();
        for module in self.all.iter().filter(|module| !module.is_empty()) {
            let (child, parent) = module.split_last().expect("it is not the crate");
            all.entry(parent.to_vec()).or_default().entry(child.clone()).or_default();
        }
        for (from, names) in &self.names {
            for to in names.iter().filter_map(|name| self.module_of(name)) {
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                    let siblings = all.entry(from[..common].to_vec()).or_default();
                    siblings.entry(one.clone()).or_default().insert(other.clone());
                }
            }
        }
        all
    }

    /// The module that defines a name.
    fn module_of(&self, name: &Module) -> Option<Module> {
        let mut name = name.clone();
        // Bounded, because two modules may re-export each other's names.
        for _ in 0..8 {
            let passed = (1..=name.len()).rev().find_map(|length| {
                let onward = self.passed_on.get(&name[..length])?;
                Some(onward.iter().chain(&name[length..]).cloned().collect::<Module>())
            });
            match passed {
                Some(onward) if onward != name => name = onward,
                _ => break,
            }
        }
        (0..=name.len()).rev().map(|length| name[..length].to_vec()).find(|module| self.all.contains(module))
    }

    /// Import cycles among siblings, in words.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let mut cycles = Vec::new();
        for (parent, siblings) in self.siblings() {
            for group in strongly_connected(&siblings) {
                let inside = |child: &String| {
                    let to: Vec<&String> = siblings[child].iter().filter(|to| group.contains(*to)).collect();
                    let to: Vec<&str> = to.into_iter().map(String::as_str).collect();
                    format!("{child} → {}", to.join(", "))
                };
                let edges: Vec<String> = group.iter().map(inside).collect();
                let parent = if parent.is_empty() { "the crate".to_owned() } else { parent.join("::") };
                cycles.push(format!("in {parent}: {}", edges.join("; ")));
            }
        }
        cycles
    }
}

/// Strongly connected components of more than one node.
fn strongly_connected(edges: &Siblings) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for to in edges.get(at).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|from| (from, reach(from))).collect();
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    for (from, to) in &reached {
        let group: BTreeSet<String> = to
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*from)))
            .cloned()
            .collect();
        if group.len() > 1 && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Collects the names that one file uses.
#[derive(Debug, Default)]
struct Reader {
    module: Module,
    names: BTreeSet<Module>,
    children: BTreeSet<String>,
    passed_on: Vec<(Module, Module)>,
}

impl Reader {
    fn resolve(&self, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Module::new(),
            "self" => self.module.clone(),
            "super" => self.module.split_last()?.1.to_vec(),
            child if self.children.contains(child) => {
                return Some(self.module.iter().chain(path).cloned().collect());
            }
            _ => return None,
        };
        for part in rest {
            match part.as_str() {
                "super" => drop(base.pop()),
                part => base.push(part.to_owned()),
            }
        }
        Some(base)
    }

    fn name(&mut self, path: &[String]) {
        self.names.extend(self.resolve(path));
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

fn leaves(tree: &UseTree, before: &[String], all: &mut Vec<(Vec<String>, String)>) {
    let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(path.ident.to_string()), all),
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, before, all)),
        UseTree::Glob(_) => all.push((before.to_vec(), "*".to_owned())),
        UseTree::Name(name) if name.ident == "self" => {
            all.push((before.to_vec(), before.last().cloned().unwrap_or_default()));
        }
        UseTree::Name(name) => all.push((with(name.ident.to_string()), name.ident.to_string())),
        UseTree::Rename(name) => all.push((with(name.ident.to_string()), name.rename.to_string())),
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_file(&mut self, file: &'ast syn::File) {
        for item in &file.items {
            if let Item::Mod(ItemMod { attrs, content: None, ident, .. }) = item
                && !is_test(attrs)
            {
                self.children.insert(ident.to_string());
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() && !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_test(&item.attrs) {
            return;
        }
        let mut all = Vec::new();
        leaves(&item.tree, &[], &mut all);
        for (path, name) in all {
            self.name(&path);
            if let Some(onward) = self.resolve(&path) {
                let here = self.module.iter().cloned().chain([name]).collect::<Module>();
                if here != onward {
                    self.passed_on.push((here, onward));
                }
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if parts.len() > 1 {
            self.name(&parts);
        }
        visit::visit_path(self, path);
    }
}
