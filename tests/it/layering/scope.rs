//! Names of a module or block: definitions, imports and re-exports.

use std::collections::HashMap;

use proc_macro2::Ident;
use syn::{Attribute, Item, ItemUse, Meta, Token, UseTree, Visibility};

/// Path as written in the source: segments and line.
///
/// The first segment of `::a::b` is empty.
#[derive(Clone, Debug)]
pub(super) struct SourcePath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

/// One leaf of a `use` declaration.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) path: SourcePath,
    /// True for `use a::*`.
    pub(super) is_glob: bool,
    /// True for `pub use` and its restricted forms.
    pub(super) is_reexport: bool,
}

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum NameMeaning {
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
    pub(super) names: HashMap<String, Vec<NameMeaning>>,
    pub(super) imports: Vec<Import>,
}

impl Scope {
    pub(super) fn add(&mut self, name: &Ident, meaning: NameMeaning) {
        self.names.entry(ident_text(name)).or_default().push(meaning);
    }

    /// Adds the names that an item declares. The caller adds modules, because it knows their files.
    pub(super) fn add_item(&mut self, item: &Item) {
        match item {
            Item::Enum(item) => self.add(&item.ident, NameMeaning::Type),
            Item::Struct(item) => self.add(&item.ident, NameMeaning::Type),
            Item::Trait(item) => self.add(&item.ident, NameMeaning::Type),
            Item::TraitAlias(item) => self.add(&item.ident, NameMeaning::Type),
            Item::Type(item) => self.add(&item.ident, NameMeaning::Type),
            Item::Union(item) => self.add(&item.ident, NameMeaning::Type),
            Item::Const(item) => self.add(&item.ident, NameMeaning::Value),
            Item::Fn(item) => self.add(&item.sig.ident, NameMeaning::Value),
            Item::Static(item) => self.add(&item.ident, NameMeaning::Value),
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.add(name, NameMeaning::Value);
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
                segments.push(ident_text(&part.ident));
                self.add_tree(&part.tree, segments, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, segments.clone(), is_reexport);
                }
            }
            UseTree::Name(leaf) => {
                let last = segments.last().cloned().unwrap_or_default();
                let line = ident_line(&leaf.ident);
                let name = if leaf.ident == "self" {
                    last
                } else {
                    segments.push(ident_text(&leaf.ident));
                    ident_text(&leaf.ident)
                };
                let path = SourcePath { segments, line };
                self.add_import(Some(name), path, is_reexport);
            }
            UseTree::Rename(leaf) => {
                if leaf.ident != "self" {
                    segments.push(ident_text(&leaf.ident));
                }
                let line = ident_line(&leaf.ident);
                let path = SourcePath { segments, line };
                self.add_import(Some(ident_text(&leaf.rename)), path, is_reexport);
            }
            UseTree::Glob(leaf) => {
                let line = leaf.star_token.spans[0].start().line;
                self.add_import(None, SourcePath { segments, line }, is_reexport);
            }
        }
    }

    /// Adds an import under a name, or a glob import.
    fn add_import(&mut self, name: Option<String>, path: SourcePath, is_reexport: bool) {
        let import = NameMeaning::Import(self.imports.len());
        self.imports.push(Import { path, is_glob: name.is_none(), is_reexport });
        if let Some(name) = name {
            self.names.entry(name).or_default().push(import);
        }
    }
}

/// Returns a path as written in the source.
pub(super) fn source_path(path: &syn::Path) -> SourcePath {
    let start = path.leading_colon.map(|_| String::new());
    let names = path.segments.iter().map(|segment| ident_text(&segment.ident));
    SourcePath {
        segments: start.into_iter().chain(names).collect(),
        line: path.segments.first().map_or(0, |first| ident_line(&first.ident)),
    }
}

/// Returns an identifier without a raw `r#` prefix.
pub(super) fn ident_text(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

pub(super) fn ident_line(ident: &Ident) -> usize {
    ident.span().start().line
}

/// Returns true if the attributes restrict the item to tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<Meta>()
                    .is_ok_and(|condition| is_test_condition(&condition))
    })
}

/// Returns true if a `cfg` condition holds only in tests: `test`, or `all(…)` with such a
/// condition.
fn is_test_condition(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated;
            let parts = list.parse_args_with(parts);
            parts.is_ok_and(|parts| parts.iter().any(is_test_condition))
        }
        _ => false,
    }
}
