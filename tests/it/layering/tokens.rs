//! The paths in what a macro or an attribute is given, which syn leaves as tokens.

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

use super::scope::{Path, line, text, written};

/// What the tokens are given to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenTo {
    /// Strings hold names in braces, as formats do.
    Macro,
    /// Strings hold paths, as those of serde do.
    Attribute,
}

/// A path in tokens.
pub(super) struct Written {
    pub(super) path: Path,
    /// True if parentheses follow, so that it is no variable.
    pub(super) is_call: bool,
}

/// Every path in the tokens that is read from the scope around them.
pub(super) fn paths(tokens: TokenStream, given_to: GivenTo) -> Vec<Written> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Group(group) => found.extend(paths(group.stream(), given_to)),
            TokenTree::Literal(literal) => found.extend(in_string(literal, given_to)),
            TokenTree::Ident(_) => {
                let (path, end) = path_at(&trees, at);
                if stands_alone(&trees, at, end) {
                    let is_call = is_call(&trees, end);
                    found.push(Written { path, is_call });
                }
                at = end;
                continue;
            }
            TokenTree::Punct(_) => {}
        }
        at += 1;
    }
    found
}

/// The paths in a string.
fn in_string(literal: &Literal, given_to: GivenTo) -> Vec<Written> {
    let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) else {
        return Vec::new();
    };
    let text = text.value();
    let names: Vec<&str> = match given_to {
        GivenTo::Attribute => vec![&text],
        GivenTo::Macro => {
            let after = text.split('{').skip(1);
            after
                .filter_map(|rest| rest.split(['}', ':']).next())
                .collect()
        }
    };
    let parsed = names
        .into_iter()
        .filter_map(|name| syn::parse_str::<syn::Path>(name).ok());
    let found = parsed.map(|path| Written {
        path: Path {
            line: literal.span().start().line,
            ..written(&path)
        },
        is_call: false,
    });
    found.collect()
}

/// The path that begins with the name at `start`, and where it ends.
fn path_at(trees: &[TokenTree], start: usize) -> (Path, usize) {
    let ident = |at: usize| match trees.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident),
        _ => None,
    };
    let mut segments: Vec<String> = ident(start).map(text).into_iter().collect();
    let mut end = start + 1;
    while let (true, true, Some(next)) =
        (is(trees, end, ':'), is(trees, end + 1, ':'), ident(end + 2))
    {
        segments.push(text(next));
        end += 3;
    }
    let line = ident(start).map_or(0, line);
    (Path { segments, line }, end)
}

fn is(trees: &[TokenTree], at: usize, sign: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Whether a path is read from the scope around it: it is no field, method, lifetime or name of an
/// argument, and nothing stands before its first `::`.
fn stands_alone(trees: &[TokenTree], start: usize, end: usize) -> bool {
    let before = |sign: char| start > 0 && is(trees, start - 1, sign);
    let field = before('.') && !(start > 1 && is(trees, start - 2, '.'));
    let named = is(trees, end, ':') && !is(trees, end + 1, ':')
        || is(trees, end, '=') && !is(trees, end + 1, '=') && !is(trees, end + 1, '>');
    let associated = before(':') && start > 1 && is(trees, start - 2, ':');
    !field && !before('\'') && !associated && !(named && end == start + 1)
}

fn is_call(trees: &[TokenTree], end: usize) -> bool {
    let Some(TokenTree::Group(group)) = trees.get(end) else {
        return false;
    };
    group.delimiter() == Delimiter::Parenthesis
}
