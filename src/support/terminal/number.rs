//! Numbers as tables and messages show them.

/// Two places, without a minus before a zero.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" {
        "0.00".to_owned()
    } else {
        text
    }
}

/// Two places and a sign; a zero is neither more nor less.
pub fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if text == "-0.00" || text == "+0.00" {
        "0.00".to_owned()
    } else {
        text
    }
}

/// A number of bytes in the unit that fits.
pub fn size(bytes: usize) -> String {
    const KIB: f64 = 1024.0;
    let kib = bytes as f64 / KIB;
    if kib < KIB {
        format!("{:.0} KiB", kib.ceil())
    } else {
        format!("{:.1} MiB", kib / KIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_have_no_sign_and_small_files_are_not_nothing() {
        assert_eq!([-0.004, 0.004, -1.0].map(plain), ["0.00", "0.00", "-1.00"]);
        assert_eq!([-0.004, 0.5, -0.5].map(signed), ["0.00", "+0.50", "-0.50"]);
        let sizes = [1, 1500, (1 << 20) - 1, 3 << 19];
        assert_eq!(sizes.map(size), ["1 KiB", "2 KiB", "1024 KiB", "1.5 MiB"]);
    }
}
