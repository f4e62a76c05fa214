//! Names of a module or block: definitions, imports and re-exports.

use std::collections::HashMap;

use proc_macro2::Ident;
use syn::{Attribute, Item, ItemUse, Meta, Token, UseTree, Visibility};

/// Path as written in the source: segments and line.
///
/// The first segment of `::a::b` is empty.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

/// One leaf of a `use` declaration.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) path: Path,
    /// True for `use a::*`.
    pub(super) is_glob: bool,
    /// True for `pub use` and its restricted forms.
    pub(super) is_reexport: bool,
}

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum Name {
    /// An item that can precede `::`, such as a type or a trait.
    Type,
    /// A function, a constant, a static or a macro.
    Value,
    /// A module, as its index in the workspace.
    Module(usize),
    /// An import, as its index in `Scope::imports`.
    Import(usize),
}

/// Names that a module or block declares.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<String, Vec<Name>>,
    pub(super) imports: Vec<Import>,
}

impl Scope {
    pub(super) fn add(&mut self, name: &Ident, meaning: Name) {
        self.names.entry(text(name)).or_default().push(meaning);
    }

    /// Adds the names that an item declares. The caller adds modules, because it knows their files.
    pub(super) fn add_item(&mut self, item: &Item) {
        match item {
            Item::Enum(item) => self.add(&item.ident, Name::Type),
            Item::Struct(item) => self.add(&item.ident, Name::Type),
            Item::Trait(item) => self.add(&item.ident, Name::Type),
            Item::TraitAlias(item) => self.add(&item.ident, Name::Type),
            Item::Type(item) => self.add(&item.ident, Name::Type),
            Item::Union(item) => self.add(&item.ident, Name::Type),
            Item::Const(item) => self.add(&item.ident, Name::Value),
            Item::Fn(item) => self.add(&item.sig.ident, Name::Value),
            Item::Static(item) => self.add(&item.ident, Name::Value),
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.add(name, Name::Value);
                }
            }
            Item::Use(item) => self.add_use(item),
            _ => {}
        }
    }

    fn add_use(&mut self, item: &ItemUse) {
        let start = match item.leading_colon {
            Some(_) => vec![String::new()],
            None => Vec::new(),
        };
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.add_tree(&item.tree, start, is_reexport);
    }

    fn add_tree(&mut self, tree: &UseTree, mut segments: Vec<String>, is_reexport: bool) {
        match tree {
            UseTree::Path(part) => {
                segments.push(text(&part.ident));
                self.add_tree(&part.tree, segments, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, segments.clone(), is_reexport);
                }
            }
            UseTree::Name(leaf) => {
                let last = segments.last().cloned().unwrap_or_default();
                let line = line(&leaf.ident);
                let name = if leaf.ident == "self" {
                    last
                } else {
                    segments.push(text(&leaf.ident));
                    text(&leaf.ident)
                };
                let path = Path { segments, line };
                self.add_import(Some(name), path, is_reexport);
            }
            UseTree::Rename(leaf) => {
                if leaf.ident != "self" {
                    segments.push(text(&leaf.ident));
                }
                let line = line(&leaf.ident);
                let path = Path { segments, line };
                self.add_import(Some(text(&leaf.rename)), path, is_reexport);
            }
            UseTree::Glob(leaf) => {
                let line = leaf.star_token.spans[0].start().line;
                self.add_import(None, Path { segments, line }, is_reexport);
            }
        }
    }

    /// Adds an import under a name, or a glob import.
    fn add_import(&mut self, name: Option<String>, path: Path, is_reexport: bool) {
        let import = Name::Import(self.imports.len());
        self.imports.push(Import {
            path,
            is_glob: name.is_none(),
            is_reexport,
        });
        if let Some(name) = name {
            self.names.entry(name).or_default().push(import);
        }
    }
}

/// Returns a path as written in the source.
pub(super) fn written(path: &syn::Path) -> Path {
    let start = path.leading_colon.map(|_| String::new());
    let names = path.segments.iter().map(|segment| text(&segment.ident));
    Path {
        segments: start.into_iter().chain(names).collect(),
        line: path.segments.first().map_or(0, |first| line(&first.ident)),
    }
}

/// Returns an identifier without a raw `r#` prefix.
pub(super) fn text(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

pub(super) fn line(ident: &Ident) -> usize {
    ident.span().start().line
}

/// Returns true if the attributes restrict the item to tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<Meta>()
                    .is_ok_and(|condition| needs_test(&condition))
    })
}

/// Returns true if a `cfg` condition holds only in tests: `test`, or `all(…)` with such a condition.
fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated;
            let parts = list.parse_args_with(parts);
            parts.is_ok_and(|parts| parts.iter().any(needs_test))
        }
        _ => false,
    }
}
