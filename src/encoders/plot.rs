//! A comparison as a drawing: each encoder's overall figure with its interval.

use std::fmt::Write as _;

use super::table::Comparison;

const LEFT: f64 = 190.0;
const WIDTH: f64 = 420.0;
const LINE: f64 = 34.0;

/// The comparison as a self-contained SVG of dots and whiskers, 0 to 100 percent.
pub fn svg(comparison: &Comparison) -> String {
    let bottom = 56.0 + LINE * comparison.rows.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
         height=\"{h}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<title>{title}</title>\n\
         <text x=\"12\" y=\"22\" font-weight=\"bold\">{title}</text>\n",
        w = LEFT + WIDTH + 80.0,
        h = bottom + 40.0,
        title = escaped(&title(comparison)),
    );
    for tick in (0..=100).step_by(20) {
        let x = place(f64::from(tick) / 100.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" y1=\"40\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{tick} %</text>",
            bottom + 18.0
        );
    }
    for (i, row) in comparison.rows.iter().enumerate() {
        let y = 60.0 + LINE * i as f64;
        let name = escaped(&short(&row.encoder));
        let _ = writeln!(text, "<text x=\"12\" y=\"{:.1}\">{name}</text>", y + 4.0);
        let Some(share) = row.figures.first().and_then(|f| f.share) else {
            continue;
        };
        let [low, high] = share.interval.map(place);
        let _ = writeln!(
            text,
            "<line x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\" stroke=\"#1b4f72\" \
             stroke-width=\"2\"/><circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"#1b4f72\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{:.1} %</text>",
            place(share.value),
            high + 8.0,
            y + 4.0,
            share.value * 100.0
        );
    }
    text + "</svg>\n"
}

fn title(comparison: &Comparison) -> String {
    let figure = comparison.rows.first().and_then(|row| row.figures.first());
    let figure = figure.map_or("", |f| f.name.as_str());
    format!("{} ({}, 95 % intervals)", figure, comparison.set)
}

fn place(share: f64) -> f64 {
    LEFT + WIDTH * share.clamp(0.0, 1.0)
}

/// A name that fits its column; of a path, the end tells more.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= 24 {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - 23).collect();
    format!("…{end}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;

    #[test]
    fn every_encoder_is_drawn_and_names_are_escaped() {
        let values = |n: usize| -> Vec<(String, f64)> {
            (0..10)
                .map(|i| (i.to_string(), f64::from(u8::from(i < n))))
                .collect()
        };
        let rows = ["a<b", "a-rather-long-path/to/some/encoder"]
            .into_iter()
            .zip([5, 10])
            .map(|(name, n)| Row::new(name, vec![("right".to_owned(), values(n))]));
        let drawn = svg(&Comparison::new(
            "probe",
            String::new(),
            "set",
            rows.collect(),
        ));
        for part in [
            "a&lt;b",
            "…ng-path/to/some/encoder",
            "50.0 %",
            "100.0 %",
            "</svg>",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        assert_eq!(drawn.matches("<circle").count(), 2);
    }
}
