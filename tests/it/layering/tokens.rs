//! Paths in the arguments of macros and attributes, which syn does not parse.

use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

use super::scope::{SourcePath, ident_line, ident_text, source_path};

/// Origin of tokens: a macro call or an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenContext {
    /// Macro call: strings may contain names in braces, like format strings.
    Macro,
    /// Attribute: strings may be paths, as in serde attributes.
    Attribute,
}

/// Path in tokens.
pub(super) struct TokenPath {
    pub(super) path: SourcePath,
    /// True if parentheses follow, so the path is not a variable.
    pub(super) is_call: bool,
}

/// Returns every path in the tokens that refers to the enclosing scope.
pub(super) fn paths_in_tokens(tokens: TokenStream, context: TokenContext) -> Vec<TokenPath> {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut token_paths = Vec::new();
    let mut index = 0;
    while index < trees.len() {
        match &trees[index] {
            TokenTree::Group(group) => token_paths.extend(paths_in_tokens(group.stream(), context)),
            TokenTree::Literal(literal) => token_paths.extend(paths_in_string(literal, context)),
            TokenTree::Ident(_) => {
                let (path, end) = path_at(&trees, index);
                if refers_to_scope(&trees, index, end) {
                    let is_call = is_call(&trees, end);
                    token_paths.push(TokenPath { path, is_call });
                }
                index = end;
                continue;
            }
            TokenTree::Punct(_) => {}
        }
        index += 1;
    }
    token_paths
}

/// Returns the paths in a string literal.
fn paths_in_string(literal: &Literal, context: TokenContext) -> Vec<TokenPath> {
    let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) else {
        return Vec::new();
    };
    let text = text.value();
    let names: Vec<&str> = match context {
        TokenContext::Attribute => vec![&text],
        TokenContext::Macro => {
            let after_braces = text.split('{').skip(1);
            after_braces.filter_map(|rest| rest.split(['}', ':']).next()).collect()
        }
    };
    let parsed = names.into_iter().filter_map(|name| syn::parse_str::<syn::Path>(name).ok());
    let token_paths = parsed.map(|path| TokenPath {
        path: SourcePath { line: literal.span().start().line, ..source_path(&path) },
        is_call: false,
    });
    token_paths.collect()
}

/// Returns the path that starts with the name at `start`, and the index of the token after it.
fn path_at(trees: &[TokenTree], start: usize) -> (SourcePath, usize) {
    let ident = |index: usize| match trees.get(index) {
        Some(TokenTree::Ident(ident)) => Some(ident),
        _ => None,
    };
    let mut segments: Vec<String> = ident(start).map(ident_text).into_iter().collect();
    let mut end = start + 1;
    while let (true, true, Some(next)) =
        (is_punct(trees, end, ':'), is_punct(trees, end + 1, ':'), ident(end + 2))
    {
        segments.push(ident_text(next));
        end += 3;
    }
    let line = ident(start).map_or(0, ident_line);
    (SourcePath { segments, line }, end)
}

/// Returns true if the token at `index` is this punctuation character.
fn is_punct(trees: &[TokenTree], index: usize, character: char) -> bool {
    matches!(trees.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// Returns true if a path refers to the enclosing scope: it is not a field, method, lifetime or
/// argument name, and does not follow `::`, as in `<T>::NAME`.
fn refers_to_scope(trees: &[TokenTree], start: usize, end: usize) -> bool {
    let follows = |character: char| start > 0 && is_punct(trees, start - 1, character);
    let is_member = follows('.') && !(start > 1 && is_punct(trees, start - 2, '.'));
    let is_argument_name = is_punct(trees, end, ':') && !is_punct(trees, end + 1, ':')
        || is_punct(trees, end, '=')
            && !is_punct(trees, end + 1, '=')
            && !is_punct(trees, end + 1, '>');
    let is_after_path_separator = follows(':') && start > 1 && is_punct(trees, start - 2, ':');
    !(is_member || follows('\'') || is_after_path_separator || is_argument_name && end == start + 1)
}

/// Returns true if parentheses follow a path that ends at `end`.
fn is_call(trees: &[TokenTree], end: usize) -> bool {
    let Some(TokenTree::Group(group)) = trees.get(end) else {
        return false;
    };
    group.delimiter() == Delimiter::Parenthesis
}
