//! Number formats of tables and messages.

/// Table cell of a value that does not apply.
pub const NOT_APPLICABLE: &str = "-";

/// Table cell of an undefined statistic.
pub const UNDEFINED: &str = "undefined";

/// Formats a value with two decimals, without a minus sign before zero.
pub fn format_two_decimals(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" { "0.00".to_owned() } else { text }
}

/// Formats a value with two decimals and a sign; zero has none.
pub fn format_signed_two_decimals(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" || text == "+0.00" { "0.00".to_owned() } else { text }
}

/// Formats a value with its confidence interval, if there is one: `0.82 [0.75, 0.88]`.
pub fn format_with_interval(value: &str, interval: Option<[String; 2]>) -> String {
    match interval {
        Some([low, high]) => format!("{value} [{low}, {high}]"),
        None => value.to_owned(),
    }
}

/// Formats a proportion and its confidence interval in percent: `82.0 % [75.1, 88.4]`.
pub fn format_percent_with_interval(proportion: f64, interval: Option<[f64; 2]>) -> String {
    let percent = |value: f64| format!("{:.1}", 100.0 * value);
    let value = percent(proportion) + " %";
    format_with_interval(&value, interval.map(|ends| ends.map(percent)))
}

/// Formats a proportion in whole percent, rounded down: a coverage of 99.9 % is not complete.
pub fn format_floor_percent(proportion: f64) -> String {
    format!("{:.0} %", (100.0 * proportion + 1e-9).floor())
}

/// Formats a p-value with three decimals, or as `<0.001`.
pub fn format_p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// Formats a count with commas between thousands.
pub fn format_thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes in KiB or MiB.
pub fn format_bytes(bytes: usize) -> String {
    const KIB: f64 = 1024.0;
    let kib = bytes as f64 / KIB;
    if kib < KIB { format!("{:.0} KiB", kib.ceil()) } else { format!("{:.1} MiB", kib / KIB) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_no_sign() {
        let unsigned = [-0.004, 0.004, -1.0].map(format_two_decimals);
        assert_eq!(unsigned, ["0.00", "0.00", "-1.00"]);
        let signed = [-0.004, 0.5, -0.5].map(format_signed_two_decimals);
        assert_eq!(signed, ["0.00", "+0.50", "-0.50"]);
    }

    #[test]
    fn sizes_round_up_to_one_kib() {
        let sizes = [1, 1500, (1 << 20) - 1, 3 << 19];
        let expected = ["1 KiB", "2 KiB", "1024 KiB", "1.5 MiB"];
        assert_eq!(sizes.map(format_bytes), expected);
    }

    #[test]
    fn coverage_is_rounded_down() {
        let coverage = [0.999, 0.29, 1.0].map(format_floor_percent);
        assert_eq!(coverage, ["99 %", "29 %", "100 %"]);
    }

    #[test]
    fn thousands_are_grouped() {
        let counts = [0, 999, 2000, 1_234_567].map(format_thousands);
        assert_eq!(counts, ["0", "999", "2,000", "1,234,567"]);
    }

    #[test]
    fn intervals_follow_the_value() {
        let interval = format_percent_with_interval(0.82, Some([0.751, 0.884]));
        assert_eq!(interval, "82.0 % [75.1, 88.4]");
        assert_eq!(format_percent_with_interval(0.5, None), "50.0 %");
    }
}
