//! Available resolutions of images in tiles, and the method `anyres_max_N`, in a configuration.

use acem3_vision::Resolutions;
use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Largest number of tiles next to each other, more than in any model.
const MAX_TILES_PER_SIDE: usize = 64;

/// Returns `N` of the method `anyres_max_N`; `None` for another method.
///
/// # Errors
/// If `N` is no positive integer. `field`: the name of the field in the message.
pub(super) fn parse_max_tiles(field: &str, method: &str) -> Result<Option<usize>> {
    let Some(number) = method.strip_prefix("anyres_max_") else {
        return Ok(None);
    };
    match number.parse() {
        Ok(max_tiles @ 1..=1024) => Ok(Some(max_tiles)),
        _ => bail!("{field} is `{method}`, expected anyres_max_ and a number from 1 to 1024"),
    }
}

/// Parses available resolutions. LLaVA's own code stores the width before the height, as a JSON
/// list, as a string with a Python list of tuples, or as the smallest and largest number of tiles:
/// `(1x1),...,(6x6)` (`process_anyres_image` in its `mm_utils.py`).
pub(super) fn parse_resolutions(value: Value) -> Result<Resolutions> {
    let excerpt: String = value.to_string().chars().take(60).collect();
    let list: Result<Vec<[usize; 2]>, _> = match value {
        Value::String(text) if text.contains('x') => {
            return parse_tile_range(&text).with_context(|| {
                format!(
                    "image_grid_pinpoints is {excerpt}, expected a list of widths and heights, or \
                     a range of tiles such as (1x1),...,(6x6)"
                )
            });
        }
        Value::String(text) => {
            let text = text.replace('(', "[").replace(')', "]");
            serde_json::from_str(&text)
        }
        list => serde_json::from_value(list),
    };
    let list = list.with_context(|| {
        format!("image_grid_pinpoints is {excerpt}, expected a list of widths and heights")
    })?;
    Ok(Resolutions::Pixels(list.into_iter().map(|[w, h]| [h, w]).collect()))
}

/// Parses a range of numbers of tiles.
fn parse_tile_range(text: &str) -> Result<Resolutions> {
    let mut sizes = text.split('(').skip(1).map(parse_tiles);
    let first = sizes.next().context("no number of tiles in parentheses")??;
    let last = sizes.last().transpose()?.unwrap_or(first);
    let sizes = (first[0]..=last[0]).flat_map(|w| (first[1]..=last[1]).map(move |h| [h, w]));
    let sizes: Vec<[usize; 2]> = sizes.collect();
    if sizes.is_empty() {
        bail!("the last number of tiles is smaller than the first");
    }
    Ok(Resolutions::Tiles(sizes))
}

/// Parses columns and rows of tiles from the text after a parenthesis: `2x3),…`.
fn parse_tiles(text: &str) -> Result<[usize; 2]> {
    let (columns, rows) = text
        .split_once(')')
        .and_then(|(size, _)| size.split_once('x'))
        .context("expected columns and rows such as (2x3)")?;
    let parse = |number: &str| {
        let number: usize = number.trim().parse().context("a number of tiles is no integer")?;
        if !(1..=MAX_TILES_PER_SIDE).contains(&number) {
            bail!("{number} tiles in a line, expected 1 to {MAX_TILES_PER_SIDE}");
        }
        Ok(number)
    };
    Ok([parse(columns)?, parse(rows)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_formats_of_resolutions_are_read() {
        let expected = Resolutions::Pixels(vec![[672, 336], [336, 1008]]);
        for value in [json!([[336, 672], [1008, 336]]), json!("[(336, 672), (1008, 336)]")] {
            assert_eq!(parse_resolutions(value).unwrap(), expected);
        }
        let tiles = parse_resolutions(json!("(1x1),...,(2x3)")).unwrap();
        let expected = [[1, 1], [2, 1], [3, 1], [1, 2], [2, 2], [3, 2]];
        assert_eq!(tiles, Resolutions::Tiles(expected.to_vec()));
        assert_eq!(tiles.in_pixels(384)[1], [768, 384]);
    }

    #[test]
    fn invalid_resolutions_are_rejected() {
        for (value, part) in [
            (json!("(1x1),...,(6xa)"), "no integer"),
            (json!("(0x1),...,(6x6)"), "0 tiles in a line"),
            (json!("(1x1),...,(6x6000)"), "6000 tiles in a line"),
            (json!("(3x3),...,(1x6)"), "smaller than the first"),
            (json!("1x1"), "no number of tiles"),
            (json!("(1,1),(6x6"), "expected columns and rows"),
            (json!([1, 2]), "image_grid_pinpoints is [1,2]"),
        ] {
            let error = format!("{:#}", parse_resolutions(value).unwrap_err());
            assert!(error.contains(part), "{error}");
            assert!(error.contains("image_grid_pinpoints is"), "{error}");
        }
    }

    #[test]
    fn limit_of_tiles_is_read_from_the_method() {
        let parse = |method| parse_max_tiles("image_aspect_ratio", method);
        assert_eq!(parse("anyres_max_9").unwrap(), Some(9));
        assert_eq!(parse("anyres").unwrap(), None);
        for method in ["anyres_max_", "anyres_max_0", "anyres_max_-1", "anyres_max_9x"] {
            let error = parse(method).unwrap_err().to_string();
            assert!(error.contains(method), "{error}");
        }
    }
}
