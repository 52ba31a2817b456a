//! Which VMs are to be on nodes with certain labels, and what the flavors are like that they name.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use kube::ResourceExt;
use kupenstack_api::{
    FINALIZER,
    resources::{Flavor, FlavorSpec, ResourceKind, VirtualMachine},
};
use kupenstack_runtime::Told;

use super::names::Selector;
use crate::{actuator::Kind, needs::Key};

/// A flavor by its name, and labels: VMs with the same share a flavor in Nova.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Wish {
    pub(super) flavor: String,
    pub(super) selector: Selector,
}

impl Wish {
    /// What a VM wishes for; none if any node will do.
    pub(super) fn of(vm: &VirtualMachine) -> Option<Self> {
        let (flavor, selector) = (vm.spec.flavor.clone()?, &vm.spec.node_selector);
        (!selector.is_empty()).then(|| Self { flavor, selector: selector.clone() })
    }
}

/// A flavor as it is declared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declared {
    pub(super) uid: String,
    pub(super) spec: FlavorSpec,
    /// Its identifier in Nova, if that does not follow from the object.
    pub(super) adopted: Option<String>,
}

/// All wishes, as the controllers' own watches tell them.
#[derive(Default)]
pub(super) struct Wishes {
    vms: Followed<Wish>,
    flavors: Followed<Declared>,
}

/// What is told of the objects of a kind.
struct Followed<T> {
    known: HashMap<Key, T>,
    /// What the list has shown that is under way.
    listing: Option<HashSet<Key>>,
    is_listed: bool,
}

impl<T> Default for Followed<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), listing: None, is_listed: false }
    }
}

impl<T: PartialEq> Followed<T> {
    /// Takes in what is told, of which `read` makes what is to be known. Whether that is news.
    fn take<K: Kind>(&mut self, told: &Told<'_, K>, read: impl Fn(&K) -> Option<T>) -> bool {
        match told {
            Told::Listing => {
                self.listing = Some(HashSet::new());
                false
            }
            Told::There(meta, object) => {
                let key = Key::of_meta::<K>(meta);
                if let Some(shown) = &mut self.listing {
                    shown.insert(key.clone());
                }
                // what can't be read any more is as it was
                object.is_some_and(|object| self.set(key, read(object)))
            }
            Told::Listed => {
                let (shown, before) = (self.listing.take().unwrap_or_default(), self.known.len());
                self.known.retain(|key, _| shown.contains(key));
                !std::mem::replace(&mut self.is_listed, true) || self.known.len() < before
            }
            Told::Gone(meta) => self.known.remove(&Key::of_meta::<K>(meta)).is_some(),
        }
    }

    fn set(&mut self, key: Key, now: Option<T>) -> bool {
        let is_news = self.known.get(&key) != now.as_ref();
        match now {
            Some(now) => drop(self.known.insert(key, now)),
            None => drop(self.known.remove(&key)),
        }
        is_news
    }
}

impl Wishes {
    /// Takes in what is told of a VM. Whether it is news.
    pub(super) fn take_vm(&mut self, told: &Told<'_, VirtualMachine>) -> bool {
        self.vms.take(told, |vm| Wish::of(vm).filter(|_| is_kept(vm)))
    }

    /// Takes in what is told of a flavor. Whether it is news for anybody.
    pub(super) fn take_flavor(&mut self, told: &Told<'_, Flavor>) -> bool {
        self.flavors.take(told, |flavor| {
            let (uid, spec) = (flavor.metadata.uid.clone().unwrap_or_default(), flavor.spec.clone());
            // of one that is made it is known before
            let adopted = spec.adopt.is_some().then(|| flavor.recorded().map(ToOwned::to_owned));
            let is_there = adopted != Some(None);
            (is_kept(flavor) && is_there).then_some(Declared { uid, spec, adopted: adopted.flatten() })
        })
    }

    /// Whether all VMs and flavors are known.
    pub(super) fn are_known(&self) -> bool {
        self.vms.is_listed && self.flavors.is_listed
    }

    /// Whether any VM wishes for anything.
    pub(super) fn are_some(&self) -> bool {
        !self.vms.known.is_empty()
    }

    /// The namespaces of the VMs that have each wish.
    pub(super) fn namespaces(&self) -> BTreeMap<Wish, BTreeSet<Arc<str>>> {
        let mut all: BTreeMap<Wish, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (key, wish) in &self.vms.known {
            match all.get_mut(wish) {
                Some(namespaces) => drop(namespaces.insert(Arc::clone(&key.place))),
                None => drop(all.insert(wish.clone(), BTreeSet::from([Arc::clone(&key.place)]))),
            }
        }
        all
    }

    /// The VMs whose wish is one of these.
    pub(super) fn vms(&self, of: &HashSet<&Wish>) -> Vec<Key> {
        let its = self.vms.known.iter().filter(|(_, wish)| of.contains(wish));
        its.map(|(key, _)| key.clone()).collect()
    }

    /// A flavor that is declared.
    pub(super) fn flavor(&self, name: &str) -> Option<&Declared> {
        self.flavors.known.get(&Key::named::<Flavor>("", name))
    }
}

/// Whether an object has something in OpenStack, or is going to: what we have let go has nothing, however long others keep it.
fn is_kept(object: &impl ResourceExt) -> bool {
    object.meta().deletion_timestamp.is_none() || object.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vm(name: &str, namespace: &str, selector: &Value, more: &Value) -> VirtualMachine {
        let mut metadata = json!({"name": name, "namespace": namespace, "uid": name});
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec = json!({"flavor": "small", "clusterImage": "linux", "networks": [], "nodeSelector": selector});
        serde_json::from_value(json!({"apiVersion": "kupenstack.io/v1", "kind": "VirtualMachine", "metadata": metadata,
            "spec": spec}))
        .unwrap()
    }

    fn ssd() -> Wish {
        Wish { flavor: "small".to_owned(), selector: [("disk".to_owned(), "ssd".to_owned())].into() }
    }

    fn wished(wishes: &Wishes) -> Vec<(Wish, Vec<String>)> {
        let all = wishes.namespaces().into_iter();
        all.map(|(wish, namespaces)| (wish, namespaces.iter().map(ToString::to_string).collect())).collect()
    }

    #[test]
    fn only_news_is_told() {
        let mut wishes = Wishes::default();
        let (plain, one) =
            (vm("plain", "a", &json!({}), &json!({})), vm("one", "a", &json!({"disk": "ssd"}), &json!({})));
        let mut take = |told: Told<'_, VirtualMachine>| wishes.take_vm(&told);
        assert!(!take(Told::Listing) && !take(Told::There(&plain.metadata, Some(&plain))));
        assert!(take(Told::There(&one.metadata, Some(&one))) && take(Told::Listed), "now all are known");
        assert!(!take(Told::There(&one.metadata, Some(&one))) && !take(Told::There(&one.metadata, None)));
        assert!(!take(Told::Gone(&plain.metadata)));
        assert_eq!(wished(&wishes), [(ssd(), vec!["a".to_owned()])]);
        assert!(wishes.take_vm(&Told::Gone(&one.metadata)) && wished(&wishes).is_empty());
    }

    #[test]
    fn a_list_tells_what_is_gone() {
        let mut wishes = Wishes::default();
        for (name, namespace) in [("one", "a"), ("two", "b")] {
            let vm = vm(name, namespace, &json!({"disk": "ssd"}), &json!({}));
            assert!(wishes.take_vm(&Told::There(&vm.metadata, Some(&vm))));
        }
        assert_eq!(wished(&wishes), [(ssd(), vec!["a".to_owned(), "b".to_owned()])]);
        let one = vm("one", "a", &json!({"disk": "ssd"}), &json!({}));
        for (told, is_news) in
            [(Told::Listing, false), (Told::There(&one.metadata, Some(&one)), false), (Told::Listed, true)]
        {
            assert_eq!(wishes.take_vm(&told), is_news);
        }
        assert_eq!(wished(&wishes), [(ssd(), vec!["a".to_owned()])]);
        assert_eq!(wishes.vms(&HashSet::from([&ssd()])).len(), 1);
    }

    #[test]
    fn what_was_let_go_wishes_for_nothing() {
        let mut wishes = Wishes::default();
        let leaving = |finalizer: &str| {
            let more = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]});
            vm("one", "a", &json!({"disk": "ssd"}), &more)
        };
        for (finalizer, count) in [(FINALIZER, 1), ("others", 0)] {
            let vm = leaving(finalizer);
            assert!(wishes.take_vm(&Told::There(&vm.metadata, Some(&vm))));
            assert_eq!(wished(&wishes).len(), count, "{finalizer}");
        }
    }
}
