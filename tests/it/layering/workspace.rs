//! Crates of a workspace and their module trees, read from files.

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::scope::{NameMeaning, Scope, ident_text, is_for_tests};

/// Workspace without its tests.
pub(super) struct Workspace {
    pub(super) crates: Vec<Crate>,
    pub(super) modules: Vec<Module>,
    /// Files of the module trees, as paths relative to the workspace root.
    pub(super) files: Vec<PathBuf>,
    root: PathBuf,
}

/// Workspace member.
pub(super) struct Crate {
    /// Folder relative to the workspace root; empty for the root package.
    pub(super) folder: String,
    /// Crate name in code, such as `acem3_vision`.
    pub(super) name: String,
    /// Crate names of all dependencies in its `Cargo.toml`.
    pub(super) dependencies: Vec<String>,
    /// Root module of its library.
    pub(super) library: Option<usize>,
}

/// Module: a file or an inline module.
pub(super) struct Module {
    /// Index of its file in [`Workspace::files`].
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) scope: Scope,
    /// Items of the module, without child modules, imports and tests.
    pub(super) items: Vec<Item>,
}

/// Location of a module: its file, and the folder with the files of its child modules.
struct ModuleLocation {
    file: usize,
    parent: Option<usize>,
    folder: PathBuf,
}

impl Workspace {
    /// Reads the workspace whose `Cargo.toml` is in `root`.
    pub(super) fn read(root: &Path) -> Self {
        let mut workspace = Self {
            crates: Vec::new(),
            modules: Vec::new(),
            files: Vec::new(),
            root: root.to_owned(),
        };
        let manifest = read_manifest(&root.join("Cargo.toml"));
        let members = manifest.get("workspace").and_then(|w| w.get("members"));
        let members = members.and_then(toml::Value::as_array);
        let members = members.into_iter().flatten().filter_map(|m| m.as_str());
        for member in members {
            workspace.read_crate(if member == "." { "" } else { member });
        }
        workspace
    }

    fn read_crate(&mut self, folder: &str) {
        let manifest = read_manifest(&self.root.join(folder).join("Cargo.toml"));
        let name = manifest["package"]["name"].as_str().unwrap();
        let library = self.read_root(&Path::new(folder).join("src/lib.rs"));
        self.read_root(&Path::new(folder).join("src/main.rs"));
        self.crates.push(Crate {
            folder: folder.to_owned(),
            name: name.replace('-', "_"),
            dependencies: dependencies(&manifest),
            library,
        });
    }

    fn read_root(&mut self, file: &Path) -> Option<usize> {
        let exists = self.root.join(file).is_file();
        exists.then(|| self.read_file(file, None, file.parent().unwrap().to_owned()))
    }

    /// Reads a file and the modules that it declares.
    ///
    /// `folder` contains the files of its child modules.
    fn read_file(&mut self, path: &Path, parent: Option<usize>, folder: PathBuf) -> usize {
        let display = path.display();
        let source = fs::read_to_string(self.root.join(path));
        let source = source.unwrap_or_else(|error| panic!("{display}: {error}"));
        let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{display}: {error}"));
        self.files.push(path.to_owned());
        let location = ModuleLocation { file: self.files.len() - 1, parent, folder };
        self.add_module(&location, parsed.items)
    }

    fn add_module(&mut self, location: &ModuleLocation, items: Vec<Item>) -> usize {
        let id = self.modules.len();
        self.modules.push(Module {
            file: location.file,
            parent: location.parent,
            scope: Scope::default(),
            items: Vec::new(),
        });
        for item in items.into_iter().filter(|item| !is_test_item(item)) {
            if let Item::Mod(child) = item {
                let name = child.ident.clone();
                let module = self.add_child(child, id, location);
                self.modules[id].scope.add(&name, NameMeaning::Module(module));
            } else {
                self.modules[id].scope.add_item(&item);
                self.modules[id].items.push(item);
            }
        }
        id
    }

    fn add_child(&mut self, child: ItemMod, parent: usize, location: &ModuleLocation) -> usize {
        let name = ident_text(&child.ident);
        let folder = location.folder.join(&name);
        if let Some((_, items)) = child.content {
            let location = ModuleLocation { file: location.file, parent: Some(parent), folder };
            return self.add_module(&location, items);
        }
        if let Some(path) = path_attribute(&child) {
            let parent_folder = self.files[location.file].parent().unwrap();
            let file = parent_folder.join(path);
            let folder = file.parent().unwrap().to_owned();
            return self.read_file(&file, Some(parent), folder);
        }
        let file = folder.with_extension("rs");
        if self.root.join(&file).is_file() {
            return self.read_file(&file, Some(parent), folder);
        }
        self.read_file(&folder.join("mod.rs"), Some(parent), folder)
    }

    /// Returns true if a module is `ancestor` or inside it.
    pub(super) fn is_within(&self, module: usize, ancestor: usize) -> bool {
        let parent = |module: &usize| self.modules[*module].parent;
        std::iter::successors(Some(module), parent).any(|module| module == ancestor)
    }

    /// Returns the root module of the crate of a module.
    pub(super) fn root_of(&self, module: usize) -> usize {
        let parent = |module: &usize| self.modules[*module].parent;
        std::iter::successors(Some(module), parent).last().unwrap()
    }
}

fn read_manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap()
}

/// Returns the crate names of all dependencies in a `Cargo.toml`, of any type.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let tables = kinds.iter().filter_map(|kind| manifest.get(*kind));
    let tables = tables.filter_map(toml::Value::as_table);
    let packages = tables.flatten().map(|(key, value)| {
        let package = value.get("package").and_then(toml::Value::as_str);
        package.unwrap_or(key).replace('-', "_")
    });
    packages.collect()
}

/// Returns true for an item with `#[test]` or a test-only `#[cfg]`.
pub(super) fn is_test_item(item: &Item) -> bool {
    is_for_tests(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    })
}

/// Returns the file in `#[path = "…"]`.
fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        match &meta.value {
            Expr::Lit(value) if meta.path.is_ident("path") => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}
