use strum::{Display, EnumIter, EnumString, IntoEnumIterator};

/// How a disk image is stored. The text forms are Glance's `disk_format` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumIter, EnumString)]
#[strum(serialize_all = "lowercase", parse_err_ty = UnknownFormat, parse_err_fn = UnknownFormat::new)]
pub enum Format {
    /// The bytes of the disk, one after the other.
    Raw,
    /// QEMU's format, versions 2 and 3.
    Qcow2,
    /// `VMware`'s sparse formats, in one file.
    Vmdk,
    /// `VirtualBox`'s format.
    Vdi,
    /// Virtual PC's and older Hyper-V's format; `vpc` to QEMU.
    Vhd,
    /// Newer Hyper-V's format.
    Vhdx,
    /// An ISO 9660 CD or DVD.
    Iso,
}

impl Format {
    /// The value of Glance's `disk_format`.
    pub fn glance_name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
            Self::Vmdk => "vmdk",
            Self::Vdi => "vdi",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::Iso => "iso",
        }
    }

    /// The driver that `qemu-img` reads and writes it with; a CD is the raw bytes of one.
    pub(crate) fn driver(self) -> &'static str {
        match self {
            Self::Vhd => "vpc",
            Self::Iso => "raw",
            other => other.glance_name(),
        }
    }
}

/// A name that is no format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown image format `{name}`: valid are {}", valid())]
pub struct UnknownFormat {
    /// The name as given.
    pub name: String,
}

impl UnknownFormat {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

fn valid() -> String {
    Format::iter().map(Format::glance_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::Format;

    #[test]
    fn names_are_glances_and_read_back() {
        for format in Format::iter() {
            assert_eq!(format.to_string(), format.glance_name());
            assert_eq!(format.glance_name().parse::<Format>().unwrap(), format);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_valid_ones() {
        let error = "qcow3".parse::<Format>().unwrap_err();
        let expected = "unknown image format `qcow3`: valid are raw, qcow2, vmdk, vdi, vhd, vhdx, iso";
        assert_eq!(error.to_string(), expected);
    }
}
