//! Flags that have no effect on a source.

use crate::cli::args::SourceArgs;
use crate::data::cases::{Lang, SourceKind};

/// Returns a warning for each flag that has no effect on this type of source.
pub(super) fn ignored_flags(args: &SourceArgs, kind: SourceKind) -> Vec<String> {
    let path = args.path.display();
    let mut warnings = Vec::new();
    let has_splits =
        !matches!(kind, SourceKind::Cases | SourceKind::Questions | SourceKind::Import);
    if let Some(split) = args.split.as_ref().filter(|_| !has_splits || !args.path.is_dir()) {
        warnings.push(format!("--split {split} has no effect: {path} has no splits"));
    }
    if args.lang.is_some_and(|lang| lang != Lang::All) && kind != SourceKind::Slake {
        warnings.push(format!("--lang has no effect: {path} has no language field"));
    }
    if args.images.is_some() && kind != SourceKind::Import {
        warnings.push(format!("--images has no effect: {path} names its images itself"));
    }
    warnings
}
