//! Files of test vectors, for algorithms and for schedulers.

/// The text of such a file.
pub fn vectors(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(error) = mptcplab_cc::vectors::run_text("any.json", text) {
        assert!(error.to_string().contains("any.json"), "{error}");
    }
    let Ok(file) = serde_json::from_str::<serde_json::Value>(text) else {
        return;
    };
    let schedulers = file.get("schedulers").and_then(|all| all.as_object());
    for (name, raw) in schedulers.into_iter().flatten() {
        if let Some(Some(Err(message))) = raw
            .as_array()
            .map(|raw| mptcplab_model::sched::vectors::run(name, raw))
        {
            assert!(message.contains(name.as_str()), "{message}");
        }
    }
}
