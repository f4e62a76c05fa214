//! Paths in the arguments of macros and attributes, which syn does not parse.

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

use super::scope::{Path, line, text, written};

/// Macro or attribute type that receives the tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenTo {
    /// Strings contain names in braces, like format strings.
    Macro,
    /// Strings contain paths, like serde attributes.
    Attribute,
}

/// A path in tokens.
pub(super) struct Written {
    pub(super) path: Path,
    /// True if parentheses follow, so the path is not a variable.
    pub(super) is_call: bool,
}

/// Returns every path in the tokens that refers to the enclosing scope.
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

/// Returns the paths in a string.
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

/// Returns the path that starts with the name at `start`, and its end.
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

/// Returns true if a path refers to the enclosing scope: it is not a field, method, lifetime or argument
/// name, and no token precedes its first `::`.
fn stands_alone(trees: &[TokenTree], start: usize, end: usize) -> bool {
    let before = |sign: char| start > 0 && is(trees, start - 1, sign);
    let field = before('.') && !(start > 1 && is(trees, start - 2, '.'));
    let named = is(trees, end, ':') && !is(trees, end + 1, ':')
        || is(trees, end, '=') && !is(trees, end + 1, '=') && !is(trees, end + 1, '>');
    let associated = before(':') && start > 1 && is(trees, start - 2, ':');
    !(field || before('\'') || associated || named && end == start + 1)
}

fn is_call(trees: &[TokenTree], end: usize) -> bool {
    let Some(TokenTree::Group(group)) = trees.get(end) else {
        return false;
    };
    group.delimiter() == Delimiter::Parenthesis
}
