//! What a path asks for.

use http::Uri;

use super::{TextApi, VERSION, answers::Refusal};

/// Lines from the end when nobody says how many.
const LINES: u32 = 500;
/// Longest name of an object; that of a namespace is shorter.
const LONGEST_NAME: usize = 253;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The group and its versions.
    Group,
    /// The version's resources.
    Resources,
    /// A text.
    Text(Wanted),
}

/// The text of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// How many of its last lines.
    pub(crate) lines: u32,
}

impl Route {
    pub(crate) fn of(api: &TextApi, uri: &Uri) -> Result<Self, Refusal> {
        let segments: Vec<_> = uri.path().split('/').skip(1).collect();
        match segments.as_slice() {
            ["apis", group] if *group == api.group => Ok(Self::Group),
            ["apis", group, VERSION] if *group == api.group => Ok(Self::Resources),
            ["apis", group, VERSION, "namespaces", namespace, resource, name, subresource]
                if *group == api.group && *resource == api.resource && *subresource == api.subresource =>
            {
                if !is_name(namespace) || !is_name(name) {
                    return Err(Refusal::no_path(uri.path()));
                }
                let lines = lines(uri.query().unwrap_or_default())?;
                Ok(Self::Text(Wanted { namespace: (*namespace).to_owned(), name: (*name).to_owned(), lines }))
            }
            _ => Err(Refusal::no_path(uri.path())),
        }
    }
}

/// It becomes a part of other paths, in which nothing else may be meant by it.
fn is_name(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= LONGEST_NAME
        && text.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.iter().all(|&byte| is_alphanumeric(byte) || byte == b'-')
                && bytes.first().is_some_and(|&byte| is_alphanumeric(byte))
                && bytes.last().is_some_and(|&byte| is_alphanumeric(byte))
        })
}

fn lines(query: &str) -> Result<u32, Refusal> {
    let mut values = query.split('&').filter_map(|pair| pair.strip_prefix("tailLines="));
    values.next_back().map_or(Ok(LINES), |value| value.parse().map_err(|_| Refusal::lines()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kupenstack_core::text::{Reading, TextSource};
    use rstest::rstest;

    use super::*;

    struct Nothing;

    impl TextSource for Nothing {
        fn read<'a>(&'a self, _: &'a str, _: &'a str, _: u32) -> Reading<'a> {
            Box::pin(async { Ok(String::new()) })
        }
    }

    fn of(path: &str) -> Result<Route, u16> {
        let api = TextApi {
            group: "sub.example.org".to_owned(),
            resource: "words".to_owned(),
            kind: "Word".to_owned(),
            subresource: "log".to_owned(),
            source: Arc::new(Nothing),
        };
        Route::of(&api, &path.parse().unwrap()).map_err(|refusal| refusal.code())
    }

    #[rstest]
    #[case("", 500)]
    #[case("?tailLines=7", 7)]
    #[case("?timeout=32s&tailLines=0", 0)]
    fn a_text_is_asked_for_with_a_number_of_lines(#[case] query: &str, #[case] lines: u32) {
        let wanted = Wanted { namespace: "shop".to_owned(), name: "a.b-c".to_owned(), lines };
        let path = format!("/apis/sub.example.org/v1/namespaces/shop/words/a.b-c/log{query}");
        assert_eq!(of(&path), Ok(Route::Text(wanted)));
    }

    #[test]
    fn the_group_and_its_resources_are_told() {
        assert_eq!(of("/apis/sub.example.org"), Ok(Route::Group));
        assert_eq!(of("/apis/sub.example.org/v1"), Ok(Route::Resources));
    }

    #[rstest]
    #[case("/apis", 404)]
    #[case("/openapi/v2", 404)]
    #[case("/apis/sub.example.org/v2", 404)]
    #[case("/apis/other.example.org/v1/namespaces/shop/words/w/log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w/exec", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w/log/x", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words//log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/../words/w/log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/a%2fb/log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/W/log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/-w/log", 404)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w/log?tailLines=-1", 400)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w/log?tailLines=", 400)]
    #[case("/apis/sub.example.org/v1/namespaces/shop/words/w/log?tailLines=99999999999", 400)]
    fn everything_else_is_refused(#[case] path: &str, #[case] code: u16) {
        assert_eq!(of(path), Err(code));
    }
}
