//! Merging of layered values, as Helm does it: maps are merged, everything else is replaced, `null` removes.

use serde_json::{Map, Value};

/// Lays `over` upon `base`.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => merge_maps(base, over),
        (base, over) => *base = over,
    }
}

/// The layers merged in order, the last one winning.
pub fn layers(layers: impl IntoIterator<Item = Value>) -> Value {
    let mut result = Value::Object(Map::new());
    for layer in layers {
        merge(&mut result, layer);
    }
    result
}

fn merge_maps(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match base.get_mut(&key) {
            Some(existing) if existing.is_object() && value.is_object() => merge(existing, value),
            // a chart's own default is only removed by a null that reaches Helm, so the null is kept
            _ => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_merge_and_the_last_layer_wins() {
        let merged = layers([
            json!({"conf": {"keystone": {"DEFAULT": {"debug": false, "log": "a"}}}, "list": [1, 2]}),
            json!({"conf": {"keystone": {"DEFAULT": {"debug": true}}}, "list": [3]}),
            json!({"conf": {"keystone": {"token": null}}}),
        ]);
        assert_eq!(
            merged,
            json!({"conf": {"keystone": {"DEFAULT": {"debug": true, "log": "a"}, "token": null}}, "list": [3]})
        );
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), any::<i32>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect()))
        })
    }

    proptest! {
        #[test]
        fn merging_is_idempotent_and_keeps_the_upper_layer(a in tree(), b in tree()) {
            let once = layers([json!({"x": a}), json!({"x": b.clone()})]);
            let twice = layers([once.clone(), json!({"x": b})]);
            prop_assert_eq!(once, twice);
        }
    }
}
