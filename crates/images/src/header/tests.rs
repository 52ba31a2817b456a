use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// The marks of every format, at their places.
const MARKS: [(usize, &[u8]); 9] = [
    (0, b"QFI\xfb\0\0\0\x03"),
    (0, b"KDMV\x01\0\0\0"),
    (0, b"vhdxfile"),
    (0, b"conectix"),
    (0x40, &[0x7f, 0x10, 0xda, 0xbe]),
    (0x8001, b"CD001"),
    (192 << 10, b"regi"),
    (256 << 10, b"regi"),
    (512, b"# Disk DescriptorFile"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever the numbers in a header say, reading it ends, and ends in a verdict.
    #[test]
    fn no_header_is_too_strange(
        noise in proptest::collection::vec(any::<u8>(), 0..2048),
        places in proptest::collection::vec(0_usize..(320 << 10), 0..4),
        marks in proptest::collection::vec(0..MARKS.len(), 0..3),
        length in 0_usize..(320 << 10),
    ) {
        let mut image = vec![0; length];
        let mut put = |at: usize, bytes: &[u8]| {
            for (place, byte) in image.iter_mut().skip(at).zip(bytes) {
                *place = *byte;
            }
        };
        put(0, &noise);
        for place in places {
            put(place, &noise);
        }
        for mark in marks {
            put(MARKS[mark].0, MARKS[mark].1);
        }
        match detect_in(&mut Cursor::new(image)) {
            Ok(_)
            | Err(Error::UnsupportedFormat { .. } | Error::UnsafeImage { .. } | Error::Damaged { .. }) => {}
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }

    /// Nor is one whose every field is as large as can be.
    #[test]
    fn no_number_is_too_large(mark in 0..MARKS.len(), at in 0_usize..128, value in any::<u64>()) {
        let mut image = vec![0xff; 300 << 10];
        image[at..at + 8].copy_from_slice(&value.to_be_bytes());
        image[MARKS[mark].0..][..MARKS[mark].1.len()].copy_from_slice(MARKS[mark].1);
        let _ = detect_in(&mut Cursor::new(image));
    }
}

#[test]
fn only_the_beginning_of_a_packed_file_is_refused_early() {
    let refused = |beginning: &[u8]| refuse_early(beginning).is_err();
    assert!(refused(b"\xfd7zXZ\0\x04") && refused(b"\x28\xb5\x2f\xfd\0") && refused(b"\x1f\x8b\x08\0"));
    assert!(!refused(b"") && !refused(b"\xfd7z") && !refused(b"QFI\xfb") && !refused(&[0; 512]));
}
