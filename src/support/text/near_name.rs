//! Finds the name that a misspelt one was meant to be.

/// Returns the known name that a name is a misspelling of: equal in another case, or with one
/// change, and for names of at least five characters two.
pub(crate) fn find_near_name<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    // A long name is no misspelling of a short one, and comparing long names takes long.
    let near = known.into_iter().filter_map(|known| {
        let chars: Vec<char> = known.to_lowercase().chars().collect();
        let max = match chars.len() {
            0..3 => 0,
            3..5 => 1,
            _ => 2,
        };
        let is_similar = chars.len().abs_diff(name.len()) <= max && name.len() <= MAX_CHARS;
        let distance = if is_similar { edit_distance(&name, &chars) } else { usize::MAX };
        (distance <= max).then_some((distance, known))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Maximum characters of a name that is compared.
const MAX_CHARS: usize = 200;

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two
/// texts (optimal string alignment).
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut earlier = vec![0; b.len() + 1];
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (previous[j] + usize::from(x != y)).min(previous[j + 1] + 1);
            best = best.min(row[j] + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if is_swap {
                best = best.min(earlier[j - 1] + 1);
            }
            row.push(best);
        }
        earlier = std::mem::replace(&mut previous, row);
    }
    previous.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_found() {
        let known = ["id", "image", "question", "responses", "reference", "labels", "meta"];
        for (name, expected) in [
            ("imgae", Some("image")),
            ("Image", Some("image")),
            ("img", Some("image")),
            ("images", Some("image")),
            ("response", Some("responses")),
            ("refrence", Some("reference")),
            ("label", Some("labels")),
            ("meat", Some("meta")),
            ("ID", Some("id")),
            ("ids", None),
            ("note", None),
            ("modality", None),
            ("", None),
        ] {
            assert_eq!(find_near_name(name, known), expected, "{name}");
        }
        assert_eq!(find_near_name("llava-7b", ["llava-7c", "llava-7b-x"]), Some("llava-7c"));
    }
}
