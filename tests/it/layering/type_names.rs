//! Names of types: one name for one concept in the whole workspace.

use std::collections::BTreeMap;
use std::path::Path;

use syn::Item;

use super::workspace::Workspace;

/// Returns the type names that are defined more than once outside tests, each with its files.
pub(super) fn repeated_type_names(root: &Path) -> Vec<String> {
    let workspace = Workspace::read(root);
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for module in &workspace.modules {
        for name in module.items.iter().filter_map(type_name) {
            let file = workspace.files[module.file].display().to_string();
            files.entry(name).or_default().push(file);
        }
    }
    files.retain(|_, files| files.len() > 1);
    files.into_iter().map(|(name, files)| format!("{name}: {}", files.join(", "))).collect()
}

/// Returns the name of the type or trait that an item defines.
fn type_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
