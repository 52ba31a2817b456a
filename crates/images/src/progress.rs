/// How far a transfer or conversion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, when known.
    pub total: Option<u64>,
}

/// Reads the percentages that `qemu-img` prints, as in `    (12.50/100%)\r`.
pub(crate) struct Percentage<F> {
    total: u64,
    on_progress: F,
    line: Vec<u8>,
}

impl<F: FnMut(Progress)> Percentage<F> {
    pub(crate) fn new(total: u64, on_progress: F) -> Self {
        Self { total, on_progress, line: Vec::new() }
    }

    pub(crate) fn read(&mut self, printed: &[u8]) {
        for &byte in printed {
            match byte {
                b'\r' | b'\n' => self.end_line(),
                // Nothing we understand is longer.
                _ if self.line.len() >= 64 => {}
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self) {
        if let Some(hundredths) = hundredths(&self.line) {
            let done = u128::from(self.total) * u128::from(hundredths) / 10_000;
            let done = u64::try_from(done).unwrap_or(self.total).min(self.total);
            (self.on_progress)(Progress { done, total: Some(self.total) });
        }
        self.line.clear();
    }
}

/// Hundredths of a percent, so that no float is needed.
fn hundredths(line: &[u8]) -> Option<u32> {
    let text = str::from_utf8(line).ok()?.trim();
    let (whole, fraction) = text.strip_prefix('(')?.strip_suffix("/100%)")?.split_once('.')?;
    Some(whole.parse::<u32>().ok()?.checked_mul(100)? + fraction.get(..2)?.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::Percentage;

    #[test]
    fn reads_percentages_however_they_are_cut() {
        let mut seen = Vec::new();
        let mut percentage = Percentage::new(1000, |progress| seen.push(progress.done));
        for part in ["    (0.00/100%)\r    (12", ".50/100%)\r", "noise\r", "    (100.00/100%)\r\n"] {
            percentage.read(part.as_bytes());
        }
        assert_eq!(seen, [0, 125, 1000]);
    }
}
