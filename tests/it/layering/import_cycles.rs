//! Import cycles: sets of files in which every file reaches every other through imports.

use std::collections::BTreeMap;

use super::imports::Reference;

/// Returns the first import per pair of files: importing file → defining file → import.
pub(super) fn first_imports(
    references: &[Reference],
) -> BTreeMap<usize, BTreeMap<usize, &Reference>> {
    let mut edges: BTreeMap<usize, BTreeMap<usize, &Reference>> = BTreeMap::new();
    for reference in references.iter().filter(|reference| reference.is_definer) {
        let targets = edges.entry(reference.from).or_default();
        targets.entry(reference.to).or_insert(reference);
    }
    edges
}

/// Returns the cycles among `files` files, each with its imports.
pub(super) fn import_cycles(files: usize, references: &[Reference]) -> Vec<Vec<&Reference>> {
    let edges = first_imports(references);
    let targets = |file: usize| edges.get(&file).into_iter().flatten();
    let reachable = |start: usize| {
        let mut visited = vec![false; files];
        let mut stack = vec![start];
        while let Some(file) = stack.pop() {
            for (next, _) in targets(file) {
                if !std::mem::replace(&mut visited[*next], true) {
                    stack.push(*next);
                }
            }
        }
        visited
    };
    let reaches: Vec<Vec<bool>> = (0..files).map(reachable).collect();
    let mut cycles = Vec::new();
    let mut done = vec![false; files];
    for first in 0..files {
        if done[first] || !reaches[first][first] {
            continue;
        }
        let members = (0..files).filter(|file| reaches[first][*file] && reaches[*file][first]);
        let members: Vec<usize> = members.collect();
        let mut cycle = Vec::new();
        for member in &members {
            done[*member] = true;
            let imports_of_members = targets(*member).filter(|(next, _)| members.contains(next));
            cycle.extend(imports_of_members.map(|(_, reference)| *reference));
        }
        cycles.push(cycle);
    }
    cycles
}
