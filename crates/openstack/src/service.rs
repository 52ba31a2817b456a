//! What the services have in common: JSON calls below an endpoint, and lists that come in pages.

use futures::{Stream, TryStreamExt, stream};
use http::{HeaderName, HeaderValue, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;
use url::Url;

use crate::{Client, Error, call::Call, catalog, transport::Answer};

/// One service's API, as one user sees it.
///
/// The next services bring along what is theirs, by building a [`Call`] on [`ServiceClient::call`], such as Neutron's
/// `If-Match`.
#[derive(Debug, Clone)]
pub(crate) struct ServiceClient {
    pub(crate) client: Client,
    service_type: &'static str,
    version: &'static str,
    microversion: Option<&'static str>,
}

/// Asks for a microversion, and tells which one an answer has.
const API_VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// Where a list is, and the key that its items are under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collection {
    pub(crate) path: &'static str,
    pub(crate) key: &'static str,
}

impl From<&'static str> for Collection {
    fn from(key: &'static str) -> Self {
        Self { path: key, key }
    }
}

/// Query parameters.
pub(crate) type Query = Vec<(&'static str, String)>;

/// The parameters that have a value.
pub(crate) fn given<const N: usize>(parameters: [(&'static str, Option<String>); N]) -> Query {
    parameters.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

impl ServiceClient {
    pub(crate) fn new(client: Client, service_type: &'static str, version: &'static str) -> Self {
        Self { client, service_type, version, microversion: None }
    }

    /// The same at a microversion: each call asks for it, and an answer at another one is malformed, since it may lack
    /// what was asked for or mean something else.
    pub(crate) fn at_microversion(self, microversion: &'static str) -> Self {
        Self { microversion: Some(microversion), ..self }
    }

    /// A call to a path below the endpoint. Segments are encoded, so an id can't lead elsewhere.
    pub(crate) async fn call(&self, method: Method, segments: &[&str]) -> Result<Call, Error> {
        let endpoint = self.client.endpoint(self.service_type).await?;
        let url = append(catalog::versioned(endpoint, self.version), segments);
        let mut call = Call::new(self.service_type, method, url);
        if let Some(version) = self.microversion
            && let Ok(value) = HeaderValue::try_from(format!("{} {version}", self.service_type))
        {
            call.headers.insert(API_VERSION, value);
        }
        Ok(call)
    }

    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, Error> {
        let answer = self.client.send(call).await?;
        match (call.headers.get(API_VERSION), answer.headers.get(API_VERSION)) {
            (None, _) => Ok(answer),
            (asked, answered) if asked == answered => Ok(answer),
            (Some(asked), None) => Err(answer.malformed(format!("no microversion, asked for {asked:?}"))),
            (Some(asked), Some(other)) => Err(answer.malformed(format!("microversion {other:?}, asked for {asked:?}"))),
        }
    }

    /// None if there is no such thing.
    pub(crate) async fn get(&self, segments: &[&str]) -> Result<Option<Answer>, Error> {
        let call = self.call(Method::GET, segments).await?;
        Error::absent_is_none(self.send(&call).await)
    }

    /// The same, read from the key that the answer wraps it in.
    pub(crate) async fn get_member<T: DeserializeOwned>(
        &self,
        segments: &[&str],
        key: &str,
    ) -> Result<Option<T>, Error> {
        self.get(segments).await?.map(|answer| answer.member(key)).transpose()
    }

    /// Whether there is such a thing.
    pub(crate) async fn exists(&self, segments: &[&str]) -> Result<bool, Error> {
        let call = self.call(Method::HEAD, segments).await?;
        Ok(Error::absent_is_none(self.send(&call).await)?.is_some())
    }

    pub(crate) async fn post(&self, segments: &[&str], body: &Value) -> Result<Answer, Error> {
        let call = self.call(Method::POST, segments).await?.json(body);
        self.send(&call).await
    }

    pub(crate) async fn put(&self, segments: &[&str], body: &Value) -> Result<Answer, Error> {
        let call = self.call(Method::PUT, segments).await?.json(body);
        self.send(&call).await
    }

    pub(crate) async fn patch(&self, segments: &[&str], body: &Value) -> Result<Answer, Error> {
        let call = self.call(Method::PATCH, segments).await?.json(body);
        self.send(&call).await
    }

    /// False if it was not there, or no longer.
    pub(crate) async fn delete(&self, segments: &[&str]) -> Result<bool, Error> {
        let call = self.call(Method::DELETE, segments).await?;
        Ok(Error::absent_is_none(self.send(&call).await)?.is_some())
    }

    /// Everything in a list, page by page, as the reader asks for it.
    pub(crate) fn list<T>(
        self,
        collection: Collection,
        query: Query,
    ) -> impl Stream<Item = Result<T, Error>> + Send + use<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.pages(collection, query, move |page, answer| page.all(answer, collection.key))
    }

    /// The same, but what can't be read is left out and told in the log: one odd item of somebody's must not hide all
    /// others.
    pub(crate) fn survey<T>(
        self,
        collection: Collection,
        query: Query,
    ) -> impl Stream<Item = Result<T, Error>> + Send + use<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.pages(collection, query, move |page, _| Ok(page.readable(collection.key)))
    }

    /// The items of every page, as `items` reads them.
    fn pages<T, F>(
        self,
        collection: Collection,
        query: Query,
        items: F,
    ) -> impl Stream<Item = Result<T, Error>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Page, &Answer) -> Result<Vec<T>, Error> + Clone + Send + 'static,
    {
        stream::try_unfold(Some(Next::First(query)), move |next| {
            let (service, items) = (self.clone(), items.clone());
            async move {
                let Some(next) = next else { return Ok(None) };
                let (mut page, answer) = service.page(collection, &next).await?;
                let items = items(&mut page, &answer)?;
                Ok::<_, Error>(Some((stream::iter(items.into_iter().map(Ok)), page.next)))
            }
        })
        .try_flatten()
    }

    async fn page(&self, collection: Collection, next: &Next) -> Result<(Page, Answer), Error> {
        let segments: Vec<&str> = collection.path.split('/').collect();
        let mut call = self.call(Method::GET, &segments).await?;
        next.set_query(&mut call.url);
        let answer = self.send(&call).await?;
        let page = Page::read(&answer, collection.key)?;
        if let (Some(Next::Given(query)), Next::Given(this)) = (&page.next, next)
            && query == this
        {
            return Err(answer.malformed("the next page is this page"));
        }
        Ok((page, answer))
    }
}

/// How the next page is asked for.
enum Next {
    First(Query),
    /// The query of the link that the service gave. Its host and path may be made for other readers (Keystone's is
    /// the public address), and a token must not follow a link to just anywhere.
    Given(String),
}

impl Next {
    fn set_query(&self, url: &mut Url) {
        match self {
            Self::First(query) if query.is_empty() => {}
            Self::First(query) => {
                url.query_pairs_mut().extend_pairs(query);
            }
            Self::Given(query) => url.set_query(Some(query)),
        }
    }
}

struct Page {
    items: Vec<Value>,
    next: Option<Next>,
}

impl Page {
    fn read(answer: &Answer, collection: &str) -> Result<Self, Error> {
        let mut body: Value = answer.json()?;
        // Glance has `next`, Keystone `links.next`, Neutron a list of links.
        let links = body.get(format!("{collection}_links")).and_then(Value::as_array);
        let listed = links.into_iter().flatten().find(|link| link["rel"] == "next").map(|link| &link["href"]);
        let link = [body.get("next"), body.pointer("/links/next"), listed];
        let link = link.into_iter().flatten().find_map(Value::as_str);
        let next = match link {
            None => None,
            Some(link) => match link.split_once('?') {
                Some((_, query)) => Some(Next::Given(query.to_owned())),
                None => return Err(answer.malformed("the next page has no query")),
            },
        };
        // Keystone with a list limit: acting on a part as if it were the whole would be worse than failing.
        if next.is_none() && body.get("truncated").and_then(Value::as_bool) == Some(true) {
            return Err(answer.malformed(format!("the list of {collection} is cut off")));
        }
        match body.get_mut(collection).map(Value::take) {
            Some(Value::Array(items)) => Ok(Self { items, next }),
            Some(_) => Err(answer.malformed(format!("`{collection}` is no list"))),
            None => Err(answer.malformed(format!("no `{collection}`"))),
        }
    }

    /// The items, every one of them.
    fn all<T: DeserializeOwned>(&mut self, answer: &Answer, collection: &str) -> Result<Vec<T>, Error> {
        let items = Value::Array(std::mem::take(&mut self.items));
        serde_json::from_value(items).map_err(|error| answer.malformed(format!("`{collection}`: {error}")))
    }

    /// The items that can be read.
    fn readable<T: DeserializeOwned>(&mut self, collection: &str) -> Vec<T> {
        let read = |item: Value| {
            let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let read = serde_json::from_value(item);
            read.inspect_err(|error| warn!(collection, id, %error, "left out of the list, it can't be read")).ok()
        };
        std::mem::take(&mut self.items).into_iter().filter_map(read).collect()
    }
}

/// Appends path segments, each encoded.
pub(crate) fn append(mut url: Url, segments: &[&str]) -> Url {
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
