//! From an address to a file that can be uploaded.

use kupenstack_images::{Download, Error, Format, ImageFile, Progress as Bytes, Scratch};

use super::{Workshop, fault, turn::Turn, wanted::Origin};
use crate::{actuator::Progress, stop::Stop};

/// A file in the wanted format.
pub(super) struct Prepared {
    /// Its length in bytes.
    pub(super) length: u64,
    pub(super) source_format: Format,
    scratch: Scratch,
}

impl Prepared {
    /// Opens the file, from the start.
    pub(super) async fn open(&self) -> Result<ImageFile, Stop> {
        ImageFile::open(self.scratch.path()).await.map_err(fault::stop)
    }
}

impl Workshop {
    /// Fetches the source, verifies and inspects it, and converts it if it has another format than the wanted one.
    pub(super) async fn prepare(
        &self,
        wanted: &Origin,
        turn: &Turn<'_>,
        progress: &dyn Progress,
    ) -> Result<Prepared, Stop> {
        let location = wanted.source.location();
        let told = |bytes: Bytes| {
            turn.weigh(bytes.total.unwrap_or(bytes.done));
            progress.say("Downloading", format!("downloading {location}: {}", share(bytes)));
        };
        let download = self.fetcher.fetch(&wanted.source, &self.workspace, told).await.map_err(fault::stop)?;
        match self.convert(&download, wanted.format, turn, progress).await {
            Ok((source_format, converted)) => {
                let scratch = converted.unwrap_or(download.file);
                let length = ImageFile::open(scratch.path()).await.map_err(fault::stop)?.length;
                Ok(Prepared { length, source_format, scratch })
            }
            Err(error) => {
                self.fetcher.reject(&wanted.source, &download, &error);
                Err(fault::stop(error))
            }
        }
    }

    /// The format of what was fetched, and a file in the wanted format if that is another one.
    async fn convert(
        &self,
        download: &Download,
        to: Format,
        turn: &Turn<'_>,
        progress: &dyn Progress,
    ) -> Result<(Format, Option<Scratch>), Error> {
        let path = download.file.path();
        let source = self.qemu.inspect(path).await?;
        if source.format == to {
            return Ok((to, None));
        }
        let what = format!("converting from {} to {to}", source.format);
        let told = |bytes: Bytes| {
            turn.weigh(bytes.total.unwrap_or(bytes.done));
            progress.say("Converting", format!("{what}: {}", share(bytes)));
        };
        let converted = self.qemu.convert(path, &source, to, &self.workspace, told).await?;
        Ok((source.format, Some(converted)))
    }
}

/// How much is done, and of how much where the whole is known.
fn share(bytes: Bytes) -> String {
    match bytes.total.filter(|total| *total > 0) {
        Some(total) => {
            let percent = u128::from(bytes.done) * 100 / u128::from(total);
            format!("{percent} % ({} of {})", size(bytes.done), size(total))
        }
        None => size(bytes.done),
    }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes >> 30, ((bytes & 0x3fff_ffff) * 10) >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_percent_of_a_known_whole_else_an_amount() {
        assert_eq!(share(Bytes { done: 1, total: Some(3) }), "33 % (1 bytes of 3 bytes)");
        assert_eq!(share(Bytes { done: 700 << 20, total: Some(2 << 30) }), "34 % (700 MiB of 2.0 GiB)");
        let all = Bytes { done: u64::MAX, total: Some(u64::MAX) };
        assert!(share(all).starts_with("100 % (17179869183.9 GiB of"), "{}", share(all));
        assert_eq!(share(Bytes { done: 5 << 20, total: None }), "5 MiB");
        assert_eq!(share(Bytes { done: 0, total: Some(0) }), "0 bytes");
    }
}
