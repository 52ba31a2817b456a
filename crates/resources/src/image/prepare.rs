//! From an address to a file that can be uploaded.

use kupenstack_core::Outcome;
use kupenstack_images::{Format, ImageFile, Progress as Bytes, Scratch};

use super::{Workshop, fault, wanted::Wanted};
use crate::{actuator::Progress, stop::Stop};

/// A file in the wanted format.
pub(super) struct Prepared {
    pub(super) file: ImageFile,
    pub(super) source_format: Format,
    /// Removes the file in the end.
    _scratch: Scratch,
}

impl Workshop {
    /// Fetches the source, verifies and inspects it, and converts it if it has another format than the wanted one.
    pub(super) async fn prepare(&self, wanted: &Wanted, progress: &dyn Progress) -> Result<Prepared, Stop> {
        let location = wanted.source.location();
        let told = |bytes: Bytes| progress.say("Downloading", format!("downloading {location}: {}", share(bytes)));
        let download = self.fetcher.fetch(&wanted.source, &self.workspace, told).await.map_err(fault::stop)?;
        let source = self.qemu.inspect(download.file.path()).await.map_err(fault::stop)?;
        let scratch = if source.format == wanted.format {
            download.file
        } else if wanted.format == Format::Iso {
            let message = format!(
                "spec.format: the source is {}, which can't be converted to iso; create another Image with another format",
                source.format
            );
            return Err(Outcome::blocked("UnsupportedFormat", message).into());
        } else {
            let what = format!("converting from {} to {}", source.format, wanted.format);
            let told = |bytes: Bytes| progress.say("Converting", format!("{what}: {}", share(bytes)));
            let path = download.file.path();
            let converted = self.qemu.convert(path, &source, wanted.format, &self.workspace, told).await;
            converted.map_err(fault::stop)?
        };
        let file = ImageFile::open(scratch.path()).await.map_err(fault::stop)?;
        Ok(Prepared { file, source_format: source.format, _scratch: scratch })
    }
}

/// How much is done, in percent where the whole is known.
fn share(bytes: Bytes) -> String {
    match bytes.total.filter(|total| *total > 0) {
        Some(total) => format!("{} %", u128::from(bytes.done) * 100 / u128::from(total)),
        None => size(bytes.done),
    }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_percent_of_a_known_whole_else_an_amount() {
        assert_eq!(share(Bytes { done: 1, total: Some(3) }), "33 %");
        assert_eq!(share(Bytes { done: u64::MAX, total: Some(u64::MAX) }), "100 %");
        assert_eq!(share(Bytes { done: 5 << 20, total: None }), "5 MiB");
        assert_eq!(share(Bytes { done: 0, total: Some(0) }), "0 bytes");
    }
}
