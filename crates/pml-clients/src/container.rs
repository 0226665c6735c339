//! Where the entries of servers stand in a tree, and what an insertion leaves beside the entry.

use crate::tree::{Error, Node, NodeValue, Plain};

/// What an insertion added beside the entry, so that taking the entry out leaves nothing behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryTrace {
    /// How many of the tables around the entry were created with it.
    pub created: usize,
    /// White space that was put before the entry.
    pub before: String,
    /// White space that was put after the entry.
    pub after: String,
}

/// Where the entries stand in a tree.
#[derive(Debug, Clone)]
pub(crate) struct Container<'s> {
    pub(crate) path: Vec<&'s str>,
    /// Whether the servers are a list of tables with a `name` each, instead of a table.
    pub(crate) named_items: bool,
}

impl Container<'_> {
    /// The node that holds the entries; `None` where it is not there.
    pub(crate) fn find<'n>(&self, text: &str, root: &'n Node) -> Result<Option<&'n Node>, Error> {
        let (node, depth) = self.deepest(text, root)?;
        Ok((depth == self.path.len() && !matches!(node.value, NodeValue::Null)).then_some(node))
    }

    /// The innermost node on the path that is there, and how many keys lead to it. The last
    /// one may be null.
    pub(crate) fn deepest<'n>(&self, text: &str, root: &'n Node) -> Result<(&'n Node, usize), Error> {
        let mut node = root;
        for (depth, key) in self.path.iter().enumerate() {
            if !matches!(node.value, NodeValue::Table(_)) {
                return Err(self.wrong_kind(text, node, depth));
            }
            let mut same = node.members().iter().filter(|member| member.key == *key);
            let Some(member) = same.next() else { return Ok((node, depth)) };
            if let Some(twice) = same.next() {
                return Err(Error::at(text, twice.key_span.start, format!("`{key}` appears twice")));
            }
            node = &member.node;
        }
        let fits = match node.value {
            NodeValue::Table(_) => !self.named_items,
            NodeValue::List(_) => self.named_items,
            NodeValue::Null => true,
            _ => false,
        };
        if fits { Ok((node, self.path.len())) } else { Err(self.wrong_kind(text, node, self.path.len())) }
    }

    fn wrong_kind(&self, text: &str, node: &Node, depth: usize) -> Error {
        let wanted = if depth == self.path.len() && self.named_items { "a list" } else { "a table" };
        let what = match depth {
            0 => "the file".to_owned(),
            _ => format!("`{}`", self.path[..depth].join(".")),
        };
        Error::at(text, node.span.start, format!("{what} must be {wanted}, not {}", node.kind()))
    }

    /// The nodes from the root to the container, which is there.
    pub(crate) fn chain<'n>(&self, root: &'n Node) -> Result<Vec<&'n Node>, Error> {
        let mut chain = vec![root];
        for key in &self.path {
            let inner = chain[chain.len() - 1].member(key).map(|member| &member.node);
            chain.push(inner.ok_or_else(|| Error::Uneditable(format!("`{key}` is gone")))?);
        }
        Ok(chain)
    }

    /// The index of the key at `depth` of the path in `node`.
    pub(crate) fn position_of_step(&self, node: &Node, depth: usize) -> usize {
        node.members().iter().position(|member| member.key == self.path[depth]).unwrap_or(0)
    }

    /// The entries with their names.
    pub(crate) fn entries<'n>(&self, node: &'n Node) -> Vec<(String, &'n Node)> {
        let named = |item: &'n Node| {
            let name = item.get("name").and_then(Node::text).unwrap_or_default().to_owned();
            (name, item)
        };
        match self.named_items {
            true => node.items().iter().map(named).collect(),
            false => node.members().iter().map(|member| (member.key.clone(), &member.node)).collect(),
        }
    }

    pub(crate) fn entry<'n>(&self, node: &'n Node, name: &str) -> Option<&'n Node> {
        self.entries(node).into_iter().find(|(entry, _)| entry == name).map(|(_, node)| node)
    }

    pub(crate) fn index_of(&self, node: &Node, name: &str) -> Option<usize> {
        self.entries(node).iter().position(|(entry, _)| entry == name)
    }

    /// What is to be inserted into the node at `depth`: a key, where that node is a table, and the value below it.
    pub(crate) fn nested(&self, depth: usize, entry: &Entry) -> (Option<String>, Plain) {
        if depth == self.path.len() {
            return match self.named_items {
                true => (None, entry.value.clone()),
                false => (Some(entry.name.clone()), entry.value.clone()),
            };
        }
        let inner = match self.nested(self.path.len(), entry) {
            (Some(key), value) => Plain::Table(vec![(key, value)]),
            (None, value) => Plain::List(vec![value]),
        };
        let value = self.path[depth + 1..]
            .iter()
            .rev()
            .fold(inner, |value, key| Plain::Table(vec![((*key).to_owned(), value)]));
        (Some(self.path[depth].to_owned()), value)
    }

    /// A whole document that holds the entry alone.
    pub(crate) fn whole(&self, entry: &Entry) -> Plain {
        let (key, value) = self.nested(0, entry);
        Plain::Table(key.map(|key| (key, value)).into_iter().collect())
    }
}

/// An entry to be written.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) value: Plain,
}
