//! Import cycles: sets of files in which every file reaches every other through imports.

use std::collections::BTreeMap;

use super::imports::Reference;

/// Returns the first import per pair of files, from user to definer.
pub(super) fn edges(references: &[Reference]) -> BTreeMap<usize, BTreeMap<usize, &Reference>> {
    let mut edges: BTreeMap<usize, BTreeMap<usize, &Reference>> = BTreeMap::new();
    for reference in references.iter().filter(|reference| reference.is_definer) {
        let targets = edges.entry(reference.from).or_default();
        targets.entry(reference.to).or_insert(reference);
    }
    edges
}

/// Returns the cycles among `files` files, each with its imports.
pub(super) fn circles(files: usize, references: &[Reference]) -> Vec<Vec<&Reference>> {
    let edges = edges(references);
    let targets = |file: usize| edges.get(&file).into_iter().flatten();
    let reached = |start: usize| {
        let mut seen = vec![false; files];
        let mut open = vec![start];
        while let Some(file) = open.pop() {
            for (next, _) in targets(file) {
                if !std::mem::replace(&mut seen[*next], true) {
                    open.push(*next);
                }
            }
        }
        seen
    };
    let reaches: Vec<Vec<bool>> = (0..files).map(reached).collect();
    let mut found = Vec::new();
    let mut done = vec![false; files];
    for first in 0..files {
        if done[first] || !reaches[first][first] {
            continue;
        }
        let members = (0..files).filter(|file| reaches[first][*file] && reaches[*file][first]);
        let members: Vec<usize> = members.collect();
        let mut circle = Vec::new();
        for member in &members {
            done[*member] = true;
            let inside = targets(*member).filter(|(next, _)| members.contains(next));
            circle.extend(inside.map(|(_, reference)| *reference));
        }
        found.push(circle);
    }
    found
}
