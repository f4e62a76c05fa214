//! Imports of a workspace: references between files, with line numbers.

use std::path::PathBuf;

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};

use super::resolve::{PathPosition, PathResolver, Resolution};
use super::scope::{Import, Scope, SourcePath, ident_text, is_for_tests, source_path};
use super::tokens::{self, TokenContext};
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
    /// Reads the workspace whose `Cargo.toml` is in `root`.
    pub(super) fn read(root: &std::path::Path) -> Self {
        let workspace = Workspace::read(root);
        let mut references = Vec::new();
        for module in 0..workspace.modules.len() {
            let mut reader = ImportReader::new(&workspace, module);
            reader.read_module();
            references.append(&mut reader.references);
        }
        references.sort();
        references.dedup();
        Self { crates: workspace.crates, files: workspace.files, references }
    }

    /// Returns the folder of the crate of a file.
    pub(super) fn crate_of(&self, file: usize) -> &str {
        let path = &self.files[file];
        let folders = self.crates.iter().map(|c| c.folder.as_str());
        let enclosing = folders.filter(|folder| path.starts_with(folder));
        enclosing.max_by_key(|folder| folder.len()).unwrap()
    }

    /// Formats a reference as `from:line → to (path)`.
    pub(super) fn describe(&self, reference: &Reference) -> String {
        let [from, to] = [reference.from, reference.to].map(|file| self.files[file].display());
        format!("{from}:{} → {to} ({})", reference.line, reference.path)
    }
}

/// Reads one module.
struct ImportReader<'a> {
    workspace: &'a Workspace,
    resolver: PathResolver<'a>,
    module: usize,
    /// Enclosing blocks of the current position.
    blocks: Vec<Scope>,
    /// Variables of the enclosing functions.
    locals: Vec<Vec<String>>,
    references: Vec<Reference>,
}

impl<'a> ImportReader<'a> {
    fn new(workspace: &'a Workspace, module: usize) -> Self {
        Self {
            workspace,
            resolver: PathResolver::new(workspace),
            module,
            blocks: Vec::new(),
            locals: Vec::new(),
            references: Vec::new(),
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
            let resolution = self.resolve(&import.path.segments);
            let is_child = |module: &usize| {
                *module != self.module && self.workspace.is_within(*module, self.module)
            };
            if import.is_reexport && resolution.modules.iter().any(is_child) {
                continue;
            }
            if import.is_glob && resolution.definers.is_empty() {
                // A glob import may refer to any item of the last module.
                let last = resolution.modules.last().copied();
                self.record(last.into_iter(), &import.path, true);
            }
            self.record_resolution(&resolution, &import.path);
        }
    }

    /// Resolves a path at the current position.
    fn resolve(&self, segments: &[String]) -> Resolution {
        let position = PathPosition { module: self.module, blocks: &self.blocks };
        self.resolver.resolve(segments, position)
    }

    /// Records references to the definers of a resolved path and to the other modules on the path.
    fn record_resolution(&mut self, resolution: &Resolution, path: &SourcePath) {
        self.record(resolution.definers.iter().copied(), path, true);
        let file = |module: &usize| self.workspace.modules[*module].file;
        let defines = |module: &usize| resolution.definers.iter().any(|d| file(d) == file(module));
        let modules_on_path: Vec<usize> =
            resolution.modules.iter().copied().filter(|m| !defines(m)).collect();
        self.record(modules_on_path.into_iter(), path, false);
    }

    /// Records references to the files of modules, except to the module's own file.
    fn record(
        &mut self,
        modules: impl Iterator<Item = usize>,
        path: &SourcePath,
        is_definer: bool,
    ) {
        let from = self.workspace.modules[self.module].file;
        for module in modules {
            let to = self.workspace.modules[module].file;
            if to != from {
                self.references.push(Reference {
                    from,
                    line: path.line,
                    to,
                    is_definer,
                    path: path.segments.join("::"),
                });
            }
        }
    }

    fn read_path(&mut self, path: &SourcePath) {
        let resolution = self.resolve(&path.segments);
        self.record_resolution(&resolution, path);
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().flatten().any(|local| local == name)
    }

    /// Reads a path in value position. A variable is not a reference.
    fn read_value(&mut self, path: &SourcePath) {
        if !matches!(path.segments.as_slice(), [name] if self.is_local(name)) {
            self.read_path(path);
        }
    }

    /// Calls `read` while these local variables are in scope.
    fn with_locals(&mut self, locals: Vec<String>, read: impl FnOnce(&mut Self)) {
        self.locals.push(locals);
        read(self);
        self.locals.pop();
    }

    /// Reads the tokens of a macro call or an attribute.
    fn read_tokens(&mut self, tokens: TokenStream, context: TokenContext) {
        for token_path in tokens::paths_in_tokens(tokens, context) {
            if token_path.is_call {
                self.read_path(&token_path.path);
            } else {
                self.read_value(&token_path.path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for ImportReader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test_item(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, _: &'ast syn::ItemUse) {}

    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.read_path(&source_path(path));
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
            self.read_value(&source_path(&expr.path));
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
            self.read_path(&source_path(&callee.path));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // In a pattern, a constant has the syntax of a variable.
        if ident_text(&pattern.ident).starts_with(char::is_uppercase) {
            self.read_path(&source_path(&pattern.ident.clone().into()));
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.read_tokens(call.tokens.clone(), TokenContext::Macro);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("doc") {
            return;
        }
        match &attribute.meta {
            syn::Meta::List(list) => self.read_tokens(list.tokens.clone(), TokenContext::Attribute),
            syn::Meta::NameValue(meta) => self.visit_expr(&meta.value),
            syn::Meta::Path(path) => self.visit_path(path),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut locals = LocalVariables::default();
        locals.visit_item_fn(item);
        self.with_locals(locals.0, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let mut locals = LocalVariables::default();
        locals.visit_impl_item_fn(item);
        self.with_locals(locals.0, |reader| visit::visit_impl_item_fn(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let mut locals = LocalVariables::default();
        locals.visit_trait_item_fn(item);
        self.with_locals(locals.0, |reader| visit::visit_trait_item_fn(reader, item));
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
struct LocalVariables(Vec<String>);

impl<'ast> Visit<'ast> for LocalVariables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.push(ident_text(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }
}
