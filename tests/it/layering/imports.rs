//! Imports of a workspace: references between files, with line numbers.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};

use super::resolve::{Found, Resolver, Site};
use super::scope::{Import, Path, Scope, is_for_tests, text, written};
use super::tokens::{self, GivenTo};
use super::workspace::{Crate, Workspace, is_test_item};

/// Reference from one file to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// Referring file.
    pub(super) from: usize,
    pub(super) line: usize,
    /// File that defines the item, or file of a module on the path.
    pub(super) to: usize,
    /// False if `to` is only on the path: it re-exports the item or contains its module.
    pub(super) is_definer: bool,
    /// Path as written in the source.
    pub(super) path: String,
}

/// The files and crates of a workspace, and the references between the files.
pub(super) struct Imports {
    pub(super) crates: Vec<Crate>,
    /// Files of the module trees, as paths relative to the workspace root.
    pub(super) files: Vec<PathBuf>,
    /// Sorted references without duplicates.
    pub(super) references: Vec<Reference>,
}

impl Imports {
    /// Reads the workspace whose `Cargo.toml` is in `top`.
    pub(super) fn read(top: &std::path::Path) -> Self {
        let workspace = Workspace::read(top);
        let mut references = Vec::new();
        for module in 0..workspace.modules.len() {
            let mut reader = Reader::new(&workspace, module);
            reader.read_module();
            references.append(&mut reader.found);
        }
        references.sort();
        references.dedup();
        Self {
            crates: workspace.crates,
            files: workspace.files,
            references,
        }
    }

    /// Returns the folder of the crate of a file.
    pub(super) fn crate_of(&self, file: usize) -> &str {
        let path = &self.files[file];
        let folders = self.crates.iter().map(|c| c.folder.as_str());
        let holders = folders.filter(|folder| path.starts_with(folder));
        holders.max_by_key(|folder| folder.len()).unwrap()
    }

    /// `from:line → to (path)`.
    pub(super) fn shown(&self, reference: &Reference) -> String {
        let [from, to] = [reference.from, reference.to].map(|file| self.files[file].display());
        format!("{from}:{} → {to} ({})", reference.line, reference.path)
    }
}

/// Reads one module.
struct Reader<'a> {
    workspace: &'a Workspace,
    resolver: Resolver<'a>,
    module: usize,
    /// Enclosing blocks of the current position.
    blocks: Vec<Scope>,
    /// Variables of the enclosing functions.
    locals: Vec<Vec<String>>,
    found: Vec<Reference>,
}

impl<'a> Reader<'a> {
    fn new(workspace: &'a Workspace, module: usize) -> Self {
        Self {
            workspace,
            resolver: Resolver::new(workspace),
            module,
            blocks: Vec::new(),
            locals: Vec::new(),
            found: Vec::new(),
        }
    }

    fn read_module(&mut self) {
        let module = &self.workspace.modules[self.module];
        self.read_imports(&module.scope.imports);
        for item in &module.items {
            self.visit_item(item);
        }
    }

    /// Records the imports of a scope. A module that re-exports items of its child modules does not
    /// count as their user.
    fn read_imports(&mut self, imports: &[Import]) {
        for import in imports {
            let found = self.find(&import.path.segments);
            let within = |module: &usize| {
                *module != self.module && self.workspace.is_within(*module, self.module)
            };
            let passes_on = import.is_reexport && found.modules.iter().any(within);
            if passes_on {
                continue;
            }
            if import.is_glob && found.definers.is_empty() {
                // A glob import may refer to any item of the last module.
                let last = found.modules.last().copied();
                self.note(last.into_iter(), &import.path, true);
            }
            self.note_found(&found, &import.path);
        }
    }

    fn find(&self, segments: &[String]) -> Found {
        let site = Site {
            module: self.module,
            blocks: &self.blocks,
        };
        self.resolver.find(segments, site)
    }

    fn note_found(&mut self, found: &Found, path: &Path) {
        self.note(found.definers.iter().copied(), path, true);
        let file = |module: &usize| self.workspace.modules[*module].file;
        let defines = |module: &usize| found.definers.iter().any(|d| file(d) == file(module));
        let passed: Vec<usize> = found
            .modules
            .iter()
            .copied()
            .filter(|m| !defines(m))
            .collect();
        self.note(passed.into_iter(), path, false);
    }

    fn note(&mut self, modules: impl Iterator<Item = usize>, path: &Path, is_definer: bool) {
        let from = self.workspace.modules[self.module].file;
        for module in modules {
            let to = self.workspace.modules[module].file;
            if to != from {
                self.found.push(Reference {
                    from,
                    line: path.line,
                    to,
                    is_definer,
                    path: path.segments.join("::"),
                });
            }
        }
    }

    fn read_path(&mut self, path: &Path) {
        let found = self.find(&path.segments);
        self.note_found(&found, path);
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().flatten().any(|local| local == name)
    }

    /// Reads a path in value position. A variable is not a reference.
    fn read_value(&mut self, path: &Path) {
        if !matches!(path.segments.as_slice(), [name] if self.is_local(name)) {
            self.read_path(path);
        }
    }

    fn inside_function(&mut self, locals: Vec<String>, read: impl FnOnce(&mut Self)) {
        self.locals.push(locals);
        read(self);
        self.locals.pop();
    }

    /// Reads the tokens of a macro call or an attribute.
    fn read_tokens(&mut self, tokens: TokenStream, given_to: GivenTo) {
        for written in tokens::paths(tokens, given_to) {
            if written.is_call {
                self.read_path(&written.path);
            } else {
                self.read_value(&written.path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, _: &'ast syn::ItemUse) {}

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.read_path(&written(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_path(&mut self, expr: &'ast syn::ExprPath) {
        if let Some(qself) = &expr.qself {
            // The path of `<A as B>::c` starts with `B`; that of `<A>::c` has no such prefix.
            self.visit_type(&qself.ty);
            if qself.position > 0 {
                self.visit_path(&expr.path);
            }
        } else {
            self.read_value(&written(&expr.path));
            visit::visit_path(self, &expr.path);
        }
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        if let Some(qself) = &path.qself {
            self.visit_type(&qself.ty);
        }
        if path.qself.as_ref().is_none_or(|qself| qself.position > 0) {
            self.visit_path(&path.path);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(callee) = &*call.func
            && callee.qself.is_none()
        {
            self.read_path(&written(&callee.path));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // In a pattern, a constant has the syntax of a variable.
        if text(&pattern.ident).starts_with(char::is_uppercase) {
            self.read_path(&written(&pattern.ident.clone().into()));
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.read_tokens(call.tokens.clone(), GivenTo::Macro);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("doc") {
            return;
        }
        match &attribute.meta {
            syn::Meta::List(list) => self.read_tokens(list.tokens.clone(), GivenTo::Attribute),
            syn::Meta::NameValue(meta) => self.visit_expr(&meta.value),
            syn::Meta::Path(path) => self.visit_path(path),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut locals = Locals::default();
        locals.visit_item_fn(item);
        self.inside_function(locals.0, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let mut locals = Locals::default();
        locals.visit_impl_item_fn(item);
        self.inside_function(locals.0, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let mut locals = Locals::default();
        locals.visit_trait_item_fn(item);
        self.inside_function(locals.0, |reader| visit::visit_trait_item_fn(reader, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_const(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !is_for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let mut scope = Scope::default();
        for statement in &block.stmts {
            if let syn::Stmt::Item(item) = statement {
                scope.add_item(item);
            }
        }
        let imports = scope.imports.clone();
        self.blocks.push(scope);
        self.read_imports(&imports);
        visit::visit_block(self, block);
        self.blocks.pop();
    }
}

/// Collects the variables of a function.
#[derive(Default)]
struct Locals(Vec<String>);

impl<'ast> Visit<'ast> for Locals {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.push(text(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }
}
