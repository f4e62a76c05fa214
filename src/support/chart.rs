//! Charts as SVG, in a page or as a file of their own. Each stands beside a table with the same numbers, and
//! says in words what it shows.

use std::fmt::Write as _;

use crate::support::escape::html;

/// The width of a chart in its own units: that of a small phone, so that its letters are never too small.
const WIDTH: f64 = 340.0;
/// Room beside the axis.
const MARGIN: f64 = 20.0;
/// The height of a row: a line of text and its mark.
const ROW: f64 = 40.0;

/// How the parts of a chart look in a file of its own; a page has its own style.
const STYLE: &str = "text{fill:#1d2226;font:12px sans-serif}.tick{fill:#565d63;font-size:11px}.title{font-weight:bold}\
    .grid{stroke:#d9d6cd}.even{stroke:#565d63;stroke-dasharray:4 3}.mark{fill:#0b5566;stroke:#0b5566;stroke-width:2}\
    path.mark{fill:none}";
/// The height of a line of a title, and how many letters fit on it.
const LINE: (f64, usize) = (16.0, 50);

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How it is read.
    pub description: String,
    height: f64,
    body: String,
}

/// An axis.
pub(crate) struct Axis {
    /// Its ends.
    pub(crate) ends: [f64; 2],
    /// Where it is marked, and with what.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Where a line stands that values are held against.
    pub(crate) line: Option<f64>,
}

/// A value with its interval.
pub(crate) struct ChartMark {
    /// Whose.
    pub(crate) label: String,
    /// The value; `None` where it is undefined.
    pub(crate) value: Option<f64>,
    /// Its interval.
    pub(crate) interval: Option<[f64; 2]>,
    /// Whether it is of the second kind: raters beside the judge.
    pub(crate) second: bool,
}

impl Axis {
    /// From 0 to 100 %.
    pub(crate) fn percent(line: Option<f64>) -> Self {
        let tick = |i: u8| (f64::from(i) / 4.0, format!("{} %", 25 * u32::from(i)));
        Self {
            ends: [0.0, 1.0],
            ticks: (0..=4).map(tick).collect(),
            line,
        }
    }

    /// The part of 0 to 100 % in which values and intervals lie, so that small differences are seen.
    pub(crate) fn around(marks: &[ChartMark]) -> Self {
        let ends = marks.iter().filter_map(|mark| mark.interval).flatten();
        let all = ends.chain(marks.iter().filter_map(|mark| mark.value));
        let (low, high) = all.fold((100.0_f64, 0.0_f64), |(low, high), value| {
            let percent = 100.0 * value.clamp(0.0, 1.0);
            (low.min(percent), high.max(percent))
        });
        let enclosing = |step: u8| {
            let step = f64::from(step);
            let (first, last) = ((low / step).floor(), (high / step).ceil());
            (last - first <= 5.0 && first < last).then_some((step, first, last))
        };
        let Some((step, first, last)) = [1, 2, 5, 10].into_iter().find_map(enclosing) else {
            return Self::percent(None);
        };
        let tick = |place: u8| {
            let percent = step * (first + f64::from(place));
            (percent / 100.0, format!("{percent:.0} %"))
        };
        Self {
            ends: [step * first / 100.0, step * last / 100.0],
            ticks: (0..=(last - first) as u8).map(tick).collect(),
            line: None,
        }
    }

    /// From 0 to 5 points.
    pub(crate) fn points() -> Self {
        Self {
            ends: [0.0, 5.0],
            ticks: (0..=5).map(|i| (f64::from(i), i.to_string())).collect(),
            line: None,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let [low, high] = self.ends;
        let part = ((value - low) / (high - low)).clamp(0.0, 1.0);
        MARGIN + part * (WIDTH - 2.0 * MARGIN)
    }

    /// The lines and labels of the axis, for rows that end at `bottom`.
    fn draw(&self, bottom: f64) -> String {
        let mut svg = String::new();
        for (value, label) in &self.ticks {
            let x = self.x(*value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                html(label)
            );
        }
        if let Some(value) = self.line {
            let x = self.x(value);
            let _ = write!(
                svg,
                "<line class=\"even\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>"
            );
        }
        svg
    }
}

impl Chart {
    /// Values with their intervals, a row for each.
    pub(crate) fn forest(title: &str, description: &str, axis: &Axis, marks: &[ChartMark]) -> Self {
        let bottom = 4.0 + ROW * marks.len() as f64;
        let mut body = axis.draw(bottom);
        for (i, mark) in marks.iter().enumerate() {
            let y = 4.0 + ROW * i as f64;
            let _ = write!(
                body,
                "<text class=\"name\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>",
                y + 16.0,
                html(&short(&mark.label))
            );
            let class = if mark.second { "mark second" } else { "mark" };
            let line = y + 28.0;
            if let Some([low, high]) = mark.interval.map(|ends| ends.map(|end| axis.x(end))) {
                let _ = write!(
                    body,
                    "<path class=\"{class}\" d=\"M{low:.1} {line:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\"/>",
                    line - 4.0,
                    line - 4.0
                );
            }
            let _ = match mark.value {
                Some(value) => write!(
                    body,
                    "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{line:.1}\" r=\"4.5\"/>",
                    axis.x(value)
                ),
                None => write!(
                    body,
                    "<text class=\"tick\" x=\"{MARGIN}\" y=\"{:.1}\">undefined</text>",
                    line + 4.0
                ),
            };
        }
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            height: bottom + 24.0,
            body,
        }
    }

    /// Bars of counts at equal steps from one end of the axis to the other.
    pub(crate) fn bars(title: &str, description: &str, axis: &Axis, counts: &[usize]) -> Self {
        const TALL: f64 = 64.0;
        let base = 30.0 + TALL;
        let n: usize = counts.iter().sum();
        let most = counts.iter().max().copied().unwrap_or(0).max(1);
        let [low, high] = axis.ends;
        let step = (high - low) / counts.len().saturating_sub(1).max(1) as f64;
        let width = (axis.x(low + step) - axis.x(low)) * 0.8;
        let mut body = axis.draw(base);
        let _ = write!(
            body,
            "<text class=\"name\" x=\"{MARGIN}\" y=\"18\">{}</text>\
             <line class=\"base\" x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>",
            html(&short(&format!("{title} (n {n})"))),
            WIDTH - MARGIN
        );
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (TALL * *count as f64 / most as f64).max(1.0);
            let x = axis.x(low + step * bin as f64) - width / 2.0;
            let _ = write!(
                body,
                "<rect class=\"count\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                base - height
            );
        }
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            height: base + 24.0,
            body,
        }
    }

    /// The figure, whose parts bear names that begin with `id`.
    pub(crate) fn svg(&self, id: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            self.height,
            html(&self.title),
            html(&self.description),
            self.body
        )
    }

    /// The chart as a file, with its title above it.
    pub(crate) fn file(&self) -> String {
        let mut title = String::new();
        let lines = lines(&self.title);
        let top = LINE.0 * lines.len() as f64 + 8.0;
        for (i, line) in lines.iter().enumerate() {
            let y = LINE.0 * (i + 1) as f64 - top;
            let _ = write!(
                title,
                "<text class=\"title\" x=\"{MARGIN}\" y=\"{y:.0}\">{}</text>",
                html(line)
            );
        }
        let tall = self.height + top;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -{top:.0} {WIDTH} {tall:.0}\" \
             width=\"{:.0}\" height=\"{:.0}\" role=\"img\"><title>{}</title><desc>{}</desc><style>{STYLE}</style>\
             <rect y=\"-{top:.0}\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>{title}{}</svg>\n",
            2.0 * WIDTH,
            2.0 * tall,
            html(&self.title),
            html(&self.description),
            self.body
        )
    }
}

/// What a chart of shares in a file of its own shows.
pub(crate) const DOTS: &str = "Dots are shares, lines their 95 % intervals.";

/// A label with its share, for charts without a table beside them.
pub(crate) fn labelled(name: &str, share: Option<f64>) -> String {
    share.map_or(name.to_owned(), |share| {
        format!("{name}: {:.1} %", 100.0 * share)
    })
}

/// A text on as many lines as it needs, broken between words.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LINE.1 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A label that fits into the width: the beginning and the end of a longer one, which tell names and paths apart.
fn short(label: &str) -> String {
    const MOST: usize = 44;
    let n = label.chars().count();
    if n <= MOST {
        return label.to_owned();
    }
    let begin = label.chars().take(MOST / 2 - 1).chain(['…']);
    begin.chain(label.chars().skip(n - MOST / 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_draws_every_value_and_escapes_names() {
        let mark = |label: &str, value, interval| ChartMark {
            label: label.to_owned(),
            value,
            interval,
            second: false,
        };
        let marks = [
            mark("a<b", Some(0.5), Some([0.4, 0.6])),
            mark(
                &format!("{}/to/some/encoder", "path".repeat(12)),
                Some(1.0),
                None,
            ),
            mark("nothing", None, None),
        ];
        let title = "a set whose name is far too long to stand on a line of its own";
        let drawn = Chart::forest(title, "dots", &Axis::percent(None), &marks).file();
        for part in [
            "a&lt;b",
            "pathpath",
            "th/to/some/encoder",
            "undefined",
            "</svg>\n",
        ] {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert_eq!(drawn.matches("<path").count(), 1);
        assert_eq!(drawn.matches("class=\"title\"").count(), 2);
        assert!(!drawn.contains("a<b"));
    }

    #[test]
    fn an_axis_is_as_wide_as_what_is_told_apart() {
        let mark = |value, interval| ChartMark {
            label: String::new(),
            value,
            interval,
            second: false,
        };
        let near = [
            mark(Some(0.927), Some([0.91, 0.943])),
            mark(Some(0.953), None),
        ];
        let axis = Axis::around(&near);
        let percent = |axis: &Axis| axis.ends.map(|end| (100.0 * end).round() as u8);
        assert_eq!(percent(&axis), [91, 96]);
        let ticks: Vec<&str> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(ticks, ["91 %", "92 %", "93 %", "94 %", "95 %", "96 %"]);
        for (far, ends) in [
            (vec![mark(Some(0.5), Some([0.02, 1.1]))], [0, 100]),
            (vec![mark(None, None)], [0, 100]),
            (vec![mark(Some(1.0), None)], [0, 100]),
            (vec![mark(Some(0.31), Some([0.11, 0.46]))], [10, 50]),
        ] {
            assert_eq!(percent(&Axis::around(&far)), ends);
        }
    }

    #[test]
    fn bars_are_as_high_as_their_counts() {
        let chart = Chart::bars("m", "counts", &Axis::points(), &[0, 2, 1]);
        assert_eq!(chart.body.matches("<rect").count(), 2);
        assert!(chart.body.contains("m (n 3)"));
        for height in ["height=\"64.0\"", "height=\"32.0\""] {
            assert!(chart.body.contains(height), "{}", chart.body);
        }
    }
}
