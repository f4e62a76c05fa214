//! From a path in code to the files that define what it names.

use super::scope::{Import, Name, Scope};
use super::workspace::Workspace;

/// A module or an item that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that can stand before `::`, by the module that defines it.
    Type(usize),
    /// Any other item, by the module that defines it.
    Value(usize),
}

/// What a path refers to.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The modules that define the item at its end; several if one name stands for several items.
    pub(super) definers: Vec<usize>,
    /// The modules that the path itself names, roots of crates left out.
    pub(super) modules: Vec<usize>,
}

/// Finds what paths mean where they stand.
pub(super) struct Resolver<'a> {
    workspace: &'a Workspace,
}

/// The place of a path: the blocks around it, innermost last, in a module.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) module: usize,
    pub(super) blocks: &'a [Scope],
}

/// The imports that are being followed for a name, by their addresses, so that circles of imports end.
type Pending = Vec<(*const Import, String)>;

impl<'a> Resolver<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace }
    }

    /// What a path refers to. Nothing if it leaves the workspace or names a local thing.
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

    /// The first name of a path: of a block, of the module, or of another crate.
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

    /// A name of a module, its imports followed.
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

    /// What an import leads to. Nothing if it is already being followed for this name.
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
