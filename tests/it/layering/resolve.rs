//! Resolves paths in code to the files that define their items.

use super::scope::{Import, NameMeaning, Scope};
use super::workspace::Workspace;

/// Module or item to which a path resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathTarget {
    Module(usize),
    /// An item that can precede `::`; the index of its defining module.
    Type(usize),
    /// Any other item; the index of its defining module.
    Value(usize),
}

/// Resolution of a path.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    /// Modules that define the last item of the path; several if the name has several meanings.
    pub(super) definers: Vec<usize>,
    /// Modules on the path, except crate roots.
    pub(super) modules: Vec<usize>,
}

/// Resolves paths at their position in the code.
pub(super) struct PathResolver<'a> {
    workspace: &'a Workspace,
}

/// Position of a path: its module and the enclosing blocks, innermost last.
#[derive(Clone, Copy)]
pub(super) struct PathPosition<'a> {
    pub(super) module: usize,
    pub(super) blocks: &'a [Scope],
}

/// Imports that are being followed, each with the looked-up name. Stops the search at import
/// cycles.
type PendingImports = Vec<(*const Import, String)>;

impl<'a> PathResolver<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace }
    }

    /// Resolves a path. The result is empty if the path leaves the workspace or names a local item.
    pub(super) fn resolve(&self, segments: &[String], position: PathPosition) -> Resolution {
        let mut resolution = Resolution::default();
        let targets = self.resolve_segments(
            segments,
            position,
            &mut Vec::new(),
            Some(&mut resolution.modules),
        );
        for target in targets {
            match target {
                PathTarget::Module(module) => self.record_module(module, &mut resolution.modules),
                PathTarget::Type(module) | PathTarget::Value(module) => {
                    if !resolution.definers.contains(&module) {
                        resolution.definers.push(module);
                    }
                }
            }
        }
        resolution
    }

    /// Resolves a path segment by segment. Adds the modules on the path to `path_modules`.
    fn resolve_segments(
        &self,
        segments: &[String],
        position: PathPosition,
        pending: &mut PendingImports,
        mut path_modules: Option<&mut Vec<usize>>,
    ) -> Vec<PathTarget> {
        let Some((first, mut rest)) = segments.split_first() else {
            return Vec::new();
        };
        let mut targets = match first.as_str() {
            "crate" => vec![PathTarget::Module(self.workspace.root_of(position.module))],
            "self" => vec![PathTarget::Module(position.module)],
            "super" => self.parent(position.module),
            "" => {
                let Some((name, after)) = rest.split_first() else {
                    return Vec::new();
                };
                rest = after;
                self.library_root(name)
            }
            name => self.resolve_first(name, position, pending),
        };
        for segment in rest {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    PathTarget::Module(module) => {
                        if let Some(path_modules) = path_modules.as_deref_mut() {
                            self.record_module(module, path_modules);
                        }
                        next.extend(match segment.as_str() {
                            "super" => self.parent(module),
                            "self" => vec![target],
                            name => self.resolve_member(module, name, pending),
                        });
                    }
                    // An associated item or a variant belongs to its type.
                    PathTarget::Type(_) => next.push(target),
                    PathTarget::Value(_) => {}
                }
            }
            targets = next;
        }
        targets
    }

    /// Adds a module to a list without duplicates; ignores crate roots.
    fn record_module(&self, module: usize, path_modules: &mut Vec<usize>) {
        if self.workspace.modules[module].parent.is_some() && !path_modules.contains(&module) {
            path_modules.push(module);
        }
    }

    fn parent(&self, module: usize) -> Vec<PathTarget> {
        let parent = self.workspace.modules[module].parent;
        parent.map(PathTarget::Module).into_iter().collect()
    }

    /// Returns the root module of the library with this crate name.
    fn library_root(&self, name: &str) -> Vec<PathTarget> {
        let crates = self.workspace.crates.iter();
        let library = crates.filter(|c| c.name == name).find_map(|c| c.library);
        library.map(PathTarget::Module).into_iter().collect()
    }

    /// Resolves the first name of a path in the enclosing blocks, the module and the list of
    /// crates.
    fn resolve_first(
        &self,
        name: &str,
        position: PathPosition,
        pending: &mut PendingImports,
    ) -> Vec<PathTarget> {
        for depth in (0..position.blocks.len()).rev() {
            let outer = PathPosition { blocks: &position.blocks[..depth], ..position };
            let targets = self.resolve_in_scope(&position.blocks[depth], name, outer, pending);
            if !targets.is_empty() {
                return targets;
            }
        }
        let targets = self.resolve_member(position.module, name, pending);
        if targets.is_empty() {
            return self.library_root(name);
        }
        targets
    }

    /// Resolves a name of a module and follows its imports.
    fn resolve_member(
        &self,
        module: usize,
        name: &str,
        pending: &mut PendingImports,
    ) -> Vec<PathTarget> {
        let position = PathPosition { module, blocks: &[] };
        self.resolve_in_scope(&self.workspace.modules[module].scope, name, position, pending)
    }

    /// Resolves a name in a scope: its definitions and imports first, then its glob imports.
    fn resolve_in_scope(
        &self,
        scope: &Scope,
        name: &str,
        position: PathPosition,
        pending: &mut PendingImports,
    ) -> Vec<PathTarget> {
        let mut targets = Vec::new();
        for meaning in scope.names.get(name).into_iter().flatten() {
            match meaning {
                NameMeaning::Type => targets.push(PathTarget::Type(position.module)),
                NameMeaning::Value => targets.push(PathTarget::Value(position.module)),
                NameMeaning::Module(module) => targets.push(PathTarget::Module(*module)),
                NameMeaning::Import(i) => {
                    targets.extend(self.follow_import(&scope.imports[*i], name, position, pending));
                }
            }
        }
        if !targets.is_empty() {
            return targets;
        }
        for import in scope.imports.iter().filter(|import| import.is_glob) {
            for target in self.follow_import(import, name, position, pending) {
                if let PathTarget::Module(module) = target {
                    pending.push((import, name.to_owned()));
                    targets.extend(self.resolve_member(module, name, pending));
                    pending.pop();
                }
            }
        }
        targets
    }

    /// Resolves an import. The result is empty if the import is already being followed for this
    /// name.
    fn follow_import(
        &self,
        import: &Import,
        name: &str,
        position: PathPosition,
        pending: &mut PendingImports,
    ) -> Vec<PathTarget> {
        let key = (std::ptr::from_ref(import), name.to_owned());
        if pending.contains(&key) {
            return Vec::new();
        }
        pending.push(key);
        let targets = self.resolve_segments(&import.path.segments, position, pending, None);
        pending.pop();
        targets
    }
}
