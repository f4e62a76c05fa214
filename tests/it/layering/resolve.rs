//! Resolves paths in code to the files that define their items.

use super::scope::{Import, Name, Scope};
use super::workspace::Workspace;

/// Module or item that a path resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that can precede `::`, as its defining module.
    Type(usize),
    /// Any other item, as its defining module.
    Value(usize),
}

/// Resolution of a path.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Modules that define the last item of the path; several if the name has several meanings.
    pub(super) definers: Vec<usize>,
    /// Modules named in the path, except crate roots.
    pub(super) modules: Vec<usize>,
}

/// Resolves paths at their position in the code.
pub(super) struct Resolver<'a> {
    workspace: &'a Workspace,
}

/// Position of a path: its module and the enclosing blocks, innermost last.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) module: usize,
    pub(super) blocks: &'a [Scope],
}

/// Addresses of the imports that are being followed for a name, to stop at import cycles.
type Pending = Vec<(*const Import, String)>;

impl<'a> Resolver<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace }
    }

    /// Resolves a path. The result is empty if the path leaves the workspace or names a local item.
    pub(super) fn find(&self, segments: &[String], site: Site) -> Found {
        let mut found = Found::default();
        let targets = self.walk(segments, site, &mut Vec::new(), Some(&mut found.modules));
        for target in targets {
            match target {
                Target::Module(module) => self.note(module, &mut found.modules),
                Target::Type(module) | Target::Value(module) => {
                    if !found.definers.contains(&module) {
                        found.definers.push(module);
                    }
                }
            }
        }
        found
    }

    fn walk(
        &self,
        segments: &[String],
        site: Site,
        pending: &mut Pending,
        mut named: Option<&mut Vec<usize>>,
    ) -> Vec<Target> {
        let Some((first, mut rest)) = segments.split_first() else {
            return Vec::new();
        };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(self.workspace.root_of(site.module))],
            "self" => vec![Target::Module(site.module)],
            "super" => self.parent(site.module),
            "" => {
                let Some((name, after)) = rest.split_first() else {
                    return Vec::new();
                };
                rest = after;
                self.library(name)
            }
            name => self.first(name, site, pending),
        };
        for segment in rest {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    Target::Module(module) => {
                        if let Some(named) = named.as_deref_mut() {
                            self.note(module, named);
                        }
                        next.extend(match segment.as_str() {
                            "super" => self.parent(module),
                            "self" => vec![target],
                            name => self.member(module, name, pending),
                        });
                    }
                    // An associated item or a variant belongs to its type.
                    Target::Type(_) => next.push(target),
                    Target::Value(_) => {}
                }
            }
            targets = next;
        }
        targets
    }

    fn note(&self, module: usize, named: &mut Vec<usize>) {
        if self.workspace.modules[module].parent.is_some() && !named.contains(&module) {
            named.push(module);
        }
    }

    fn parent(&self, module: usize) -> Vec<Target> {
        let parent = self.workspace.modules[module].parent;
        parent.map(Target::Module).into_iter().collect()
    }

    fn library(&self, name: &str) -> Vec<Target> {
        let crates = self.workspace.crates.iter();
        let library = crates.filter(|c| c.name == name).find_map(|c| c.library);
        library.map(Target::Module).into_iter().collect()
    }

    /// Resolves the first name of a path: a name of a block, of the module, or of another crate.
    fn first(&self, name: &str, site: Site, pending: &mut Pending) -> Vec<Target> {
        for depth in (0..site.blocks.len()).rev() {
            let outer = Site {
                blocks: &site.blocks[..depth],
                ..site
            };
            let found = self.in_scope(&site.blocks[depth], name, outer, pending);
            if !found.is_empty() {
                return found;
            }
        }
        let found = self.member(site.module, name, pending);
        if found.is_empty() {
            return self.library(name);
        }
        found
    }

    /// Resolves a name of a module and follows its imports.
    fn member(&self, module: usize, name: &str, pending: &mut Pending) -> Vec<Target> {
        let site = Site {
            module,
            blocks: &[],
        };
        self.in_scope(&self.workspace.modules[module].scope, name, site, pending)
    }

    fn in_scope(
        &self,
        scope: &Scope,
        name: &str,
        site: Site,
        pending: &mut Pending,
    ) -> Vec<Target> {
        let mut found = Vec::new();
        for meaning in scope.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Type => found.push(Target::Type(site.module)),
                Name::Value => found.push(Target::Value(site.module)),
                Name::Module(module) => found.push(Target::Module(*module)),
                Name::Import(i) => {
                    found.extend(self.follow(&scope.imports[*i], name, site, pending));
                }
            }
        }
        if !found.is_empty() {
            return found;
        }
        for import in scope.imports.iter().filter(|import| import.is_glob) {
            for target in self.follow(import, name, site, pending) {
                if let Target::Module(module) = target {
                    pending.push((import, name.to_owned()));
                    found.extend(self.member(module, name, pending));
                    pending.pop();
                }
            }
        }
        found
    }

    /// Resolves an import. The result is empty if the import is already being followed for this name.
    fn follow(
        &self,
        import: &Import,
        name: &str,
        site: Site,
        pending: &mut Pending,
    ) -> Vec<Target> {
        let key = (std::ptr::from_ref(import), name.to_owned());
        if pending.contains(&key) {
            return Vec::new();
        }
        pending.push(key);
        let found = self.walk(&import.path.segments, site, pending, None);
        pending.pop();
        found
    }
}
