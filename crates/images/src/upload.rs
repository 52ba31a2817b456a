use std::io;
use std::path::Path;

use bytes::Bytes;
use futures::Stream;
use tokio::fs::File;
use tokio_util::io::ReaderStream;

use crate::Error;

/// How much is read at once: enough for a fast disk, little enough for many uploads at a time.
const CHUNK: usize = 256 << 10;

/// A file to be sent somewhere: its length, and its bytes as they are read.
pub struct ImageFile {
    /// The length in bytes.
    pub length: u64,
    file: File,
}

impl ImageFile {
    /// Opens a file. Its length is fixed from here on; nobody may write to it meanwhile.
    pub async fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).await.map_err(Error::io("open the image"))?;
        let length = file.metadata().await.map_err(Error::io("look at the image"))?.len();
        Ok(Self { length, file })
    }

    /// The bytes in chunks, from the start.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + 'static {
        ReaderStream::with_capacity(self.file, CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::{CHUNK, ImageFile};
    use crate::Error;

    #[tokio::test]
    async fn streams_every_byte_in_bounded_chunks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..CHUNK * 2 + 7).map(|index| u8::try_from(index % 251).unwrap()).collect();
        std::fs::write(file.path(), &content).unwrap();
        let image = ImageFile::open(file.path()).await.unwrap();
        assert_eq!(image.length, content.len() as u64);
        let chunks: Vec<_> = image.into_stream().try_collect().await.unwrap();
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.len() <= CHUNK));
        assert_eq!(chunks.concat(), content);
    }

    #[tokio::test]
    async fn a_missing_file_is_an_error() {
        assert!(matches!(ImageFile::open("/no/such/file".as_ref()).await, Err(Error::Io { .. })));
    }
}
