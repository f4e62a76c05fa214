//! Tests of the layering rules on small generated workspaces.

use std::fs;

use tempfile::TempDir;

use super::imports::Imports;
use super::type_names::repeated_type_names;
use super::{describe_cycles, room_violations, upward_dependencies, upward_imports};

/// Creates a workspace with these files, including the package manifests.
fn create_workspace(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Creates a package `app` with these files in `src`.
fn package(files: &[(&str, &str)]) -> TempDir {
    let manifest = "[workspace]\nmembers = [\".\"]\n[package]\nname = \"app\"\n";
    let folder = create_workspace(&[("Cargo.toml", manifest)]);
    for (name, text) in files {
        let path = folder.path().join("src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn read_imports(files: &[(&str, &str)]) -> Imports {
    Imports::read(package(files).path())
}

/// Returns the imports of items, as `from:line → to (path)`.
fn describe_imports(files: &[(&str, &str)]) -> Vec<String> {
    let imports = read_imports(files);
    let definers = imports.references.iter().filter(|r| r.is_definer);
    let descriptions = definers.map(|r| imports.describe(r).replace("src/", ""));
    let mut descriptions: Vec<String> = descriptions.collect();
    descriptions.sort();
    descriptions
}

const ROOMS: (&str, &str) = ("lib.rs", "pub mod cli;\npub mod data;\npub mod checkpoints;\n");

#[test]
fn imports_may_go_down() {
    let imports = read_imports(&[
        ROOMS,
        ("main.rs", "fn main() { app::cli::run() }"),
        ("cli/mod.rs", "use crate::data::Case;\npub fn run() {}"),
        ("data/mod.rs", "pub struct Case;"),
        ("checkpoints/mod.rs", ""),
    ]);
    assert_eq!(imports.references.len(), 2);
    assert_eq!(upward_imports(&imports), [""; 0]);
    assert_eq!(describe_cycles(&imports), [""; 0]);
}

#[test]
fn upward_import_is_found() {
    let imports = read_imports(&[
        ROOMS,
        ("cli/mod.rs", "pub struct Flags;"),
        ("data/mod.rs", "mod case;"),
        ("data/case.rs", "\nuse crate::cli::Flags;"),
        ("checkpoints/mod.rs", ""),
    ]);
    let upward = ["src/data/case.rs:2 → src/cli/mod.rs (crate::cli::Flags)"];
    assert_eq!(upward_imports(&imports), upward);
    assert_eq!(describe_cycles(&imports), [""; 0]);
}

#[test]
fn import_of_a_peer_is_found() {
    let imports = read_imports(&[
        ROOMS,
        ("cli/mod.rs", ""),
        ("data/mod.rs", "pub struct Case;"),
        ("checkpoints/mod.rs", "fn load() -> crate::data::Case { todo!() }"),
    ]);
    let peer = ["src/checkpoints/mod.rs:1 → src/data/mod.rs (crate::data::Case)"];
    assert_eq!(upward_imports(&imports), peer);
}

#[test]
fn upward_import_through_a_reexport_is_found() {
    let imports = read_imports(&[
        ROOMS,
        ("cli/mod.rs", "pub use crate::checkpoints::Hub;"),
        ("data/mod.rs", "use crate::cli::Hub;"),
        ("checkpoints/mod.rs", "pub struct Hub;"),
    ]);
    let upward = [
        "src/data/mod.rs:1 → src/cli/mod.rs (crate::cli::Hub)",
        "src/data/mod.rs:1 → src/checkpoints/mod.rs (crate::cli::Hub)",
    ];
    assert_eq!(upward_imports(&imports), upward);
}

#[test]
fn import_of_a_crate_root_is_found() {
    let imports = read_imports(&[
        ("lib.rs", "pub mod data;\npub const LIMIT: usize = 9;"),
        ("data/mod.rs", "fn f() -> usize { crate::LIMIT }"),
    ]);
    let upward = ["src/data/mod.rs:1 → src/lib.rs (crate::LIMIT)"];
    assert_eq!(upward_imports(&imports), upward);
}

#[test]
fn cycle_is_found() {
    let imports = read_imports(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "pub struct B;\nfn f() { super::c::go() }"),
        ("c.rs", "pub fn go() { println!(\"{:?}\", crate::a::A) }"),
        ("d.rs", "use crate::a::A;"),
    ]);
    let cycle = "import cycle of 3 files:\n\
                  \x20 src/a.rs:1 → src/b.rs (crate::b::B)\n\
                  \x20 src/b.rs:2 → src/c.rs (super::c::go)\n\
                  \x20 src/c.rs:1 → src/a.rs (crate::a::A)";
    assert_eq!(describe_cycles(&imports), [cycle]);
}

#[test]
fn reexporting_parent_forms_no_cycle() {
    let imports = read_imports(&[
        ("lib.rs", "mod a;"),
        (
            "a/mod.rs",
            "mod b;\npub use b::{B, Other as C};\npub(crate) use b::*;\npub const N: u8 = 1;",
        ),
        ("a/b.rs", "pub struct B;\npub struct Other;\nfn n() -> u8 { super::N }"),
    ]);
    assert_eq!(describe_cycles(&imports), [""; 0]);
}

#[test]
fn parent_and_child_that_use_each_other_form_a_cycle() {
    let child = ("a/b.rs", "pub struct B;\nfn n() -> u8 { super::N }");
    for code in [
        "use b::B;",
        "pub use b::B;\nfn f(b: B) {}",
        "fn f() { let b = b::B; }",
        "pub use b::B;\nfn f() { dbg!(B); }",
        "pub use b::B;\nfn f() { println!(\"{B}\") }",
        "use self::b::*;",
    ] {
        let parent = format!("mod b;\npub const N: u8 = 1;\n{code}");
        let imports = read_imports(&[("lib.rs", "mod a;"), ("a/mod.rs", &parent), child]);
        assert_eq!(describe_cycles(&imports).len(), 1, "{code}");
    }
}

#[test]
fn test_code_has_no_imports() {
    let descriptions = describe_imports(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "#[cfg(test)]\nuse crate::b::B;\npub struct A;\nimpl A {\n#[cfg(all(test, unix))]\n\
             fn b() { crate::b::B; }\n}\n#[test]\nfn t() { crate::b::B; }\n\
             #[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)]\nmod absent;",
        ),
        ("b.rs", "pub struct B;\n#[cfg(not(test))]\nuse crate::a::A;"),
    ]);
    assert_eq!(descriptions, ["b.rs:3 → a.rs (crate::a::A)"]);
}

#[test]
fn reexports_resolve_to_the_defining_file() {
    let descriptions = describe_imports(&[
        ("lib.rs", "mod a;\nmod b;\npub use a::Thing as Renamed;"),
        ("a/mod.rs", "mod inner;\npub use inner::*;"),
        ("a/inner/mod.rs", "mod deep;\npub use deep::Thing;"),
        ("a/inner/deep.rs", "pub struct Thing;"),
        ("b.rs", "use crate::a::Thing;\nuse crate::Renamed as R;"),
    ]);
    let definer = "a/inner/deep.rs";
    assert_eq!(
        descriptions,
        [
            format!("b.rs:1 → {definer} (crate::a::Thing)"),
            format!("b.rs:2 → {definer} (crate::Renamed)"),
        ]
    );
}

#[test]
fn all_path_syntaxes_are_read() {
    let source = "use crate::b;
        use crate::b::{self as renamed, Kind::*};
        fn one() -> b::Out { renamed::call() }
        fn two(x: &dyn Fn(super::b::In) -> u8) { use crate::b::inner; inner::go() }
        fn three() { vec![format!(\"{}\", self::b::NAME)]; matches!(1, b::ONE..=b::NINE) }
        #[derive(b::Make)]
        struct Four { #[serde(with = \"crate::b::form\")] x: Vec<<u8 as b::Trait>::Item> }
        fn five() { match 1 { b::ZERO => {}, _ => b::Out::<b::In>::make() } }";
    let descriptions = describe_imports(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", source),
        (
            "b.rs",
            "pub struct Out; pub struct In; pub enum Kind { A } pub fn call() {}
             pub mod inner { pub fn go() {} } pub const NAME: u8 = 0; pub const ONE: u8 = 1;
             pub const NINE: u8 = 9; pub const ZERO: u8 = 0; pub fn form() {} pub trait Trait {}
             pub use make::Make; mod make { pub struct Make; }",
        ),
    ]);
    let expected = [
        "2 (crate::b::Kind)",
        "3 (b::Out)",
        "3 (renamed::call)",
        "4 (inner::go)",
        "4 (super::b::In)",
        "5 (b::NINE)",
        "5 (b::ONE)",
        "5 (self::b::NAME)",
        "6 (b::Make)",
        "7 (b::Trait::Item)",
        "7 (crate::b::form)",
        "8 (b::In)",
        "8 (b::Out::make)",
        "8 (b::ZERO)",
    ];
    let expected = expected.map(|e| format!("a.rs:{}", e.replacen(" (", " → b.rs (", 1)));
    assert_eq!(descriptions, expected);
}

#[test]
fn module_and_function_of_same_name_both_count() {
    let descriptions = describe_imports(&[
        ("lib.rs", "mod ops;\nmod user;"),
        ("ops/mod.rs", "mod product;\npub use product::product;"),
        ("ops/product.rs", "pub fn product() {}\npub const N: u8 = 1;"),
        ("user.rs", "use crate::ops::product;\nfn f(go: u8) { product(); go }"),
    ]);
    assert_eq!(
        descriptions,
        [
            "user.rs:1 → ops/product.rs (crate::ops::product)",
            "user.rs:2 → ops/product.rs (product)",
        ]
    );
}

#[test]
fn variable_is_not_an_import() {
    let descriptions = describe_imports(&[
        ("lib.rs", "mod a;"),
        (
            "a/mod.rs",
            "mod b;\npub use b::count;\nfn f(count: u8) -> u8 { print!(\"{count}\"); count }",
        ),
        ("a/b.rs", "pub fn count() -> u8 { 1 }"),
    ]);
    assert_eq!(descriptions, [""; 0]);
}

#[test]
fn excess_rooms_and_entries_are_found() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let rooms = names.map(|name| (format!("{name}/mod.rs"), String::new()));
    let entries = names.map(|name| (format!("data/{name}.rs"), String::new()));
    let stray = [("stray.rs".to_owned(), String::new())];
    let files = rooms.iter().chain(&entries).chain(&stray);
    let files: Vec<(&str, &str)> = files.map(|(name, text)| (&**name, &**text)).collect();
    let violations = room_violations(package(&files).path());
    assert_eq!(
        violations[..2],
        ["src: 11 rooms, at most 9 are allowed", "src/stray.rs: expected in a room"]
    );
    assert!(violations.contains(&"src/a: not in the list of rooms".to_owned()));
    assert!(violations.contains(&"src/data: 10 entries, at most 9 are allowed".to_owned()));
    assert_eq!(violations.len(), 13);
}

#[test]
fn dependency_on_a_crate_above_is_found() {
    let folder = create_workspace(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"vision\", \"experts\", \"shed\"]"),
        (
            "vision/Cargo.toml",
            "[package]\nname = \"x-vision\"\n[dependencies]\nx-experts.path = \"y\"",
        ),
        (
            "experts/Cargo.toml",
            "[package]\nname = \"x-experts\"\n[dev-dependencies]\nx-vision.path = \"y\"",
        ),
        ("shed/Cargo.toml", "[package]\nname = \"shed\""),
    ]);
    let violations = upward_dependencies(&Imports::read(folder.path()));
    assert_eq!(violations, ["x_vision depends on x_experts", "shed: not in the list of crates"]);
}

#[test]
fn imports_between_crates_are_found() {
    let folder = create_workspace(&[
        ("Cargo.toml", "[workspace]\nmembers = [\"vision\", \"experts\"]"),
        ("vision/Cargo.toml", "[package]\nname = \"x-vision\""),
        ("vision/src/lib.rs", "pub mod tower;"),
        ("vision/src/tower.rs", "pub struct Tower;"),
        ("experts/Cargo.toml", "[package]\nname = \"x-experts\""),
        (
            "experts/src/lib.rs",
            "use x_vision::tower::Tower;\nuse ::x_vision as v;\nfn f(_: v::tower::Tower) {}",
        ),
    ]);
    let imports = Imports::read(folder.path());
    let references = imports.references.iter();
    let descriptions: Vec<String> = references.map(|r| imports.describe(r)).collect();
    let tower = "vision/src/tower.rs";
    assert!(
        descriptions.contains(&format!("experts/src/lib.rs:1 → {tower} (x_vision::tower::Tower)"))
    );
    assert!(descriptions.contains(&format!("experts/src/lib.rs:3 → {tower} (v::tower::Tower)")));
    assert_eq!(imports.crate_of(imports.references[0].to), "vision");
}

#[test]
fn repeated_type_name_is_found() {
    let folder = package(&[
        ("lib.rs", "pub mod a;\npub mod b;\n"),
        ("a.rs", "pub struct Case;\npub enum Kind {}\n"),
        ("b.rs", "trait Case {}\n#[cfg(test)]\nmod tests { struct Kind; }\n"),
    ]);
    assert_eq!(repeated_type_names(folder.path()), ["Case: src/a.rs, src/b.rs"]);
}
