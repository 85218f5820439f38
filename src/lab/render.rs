//! Fills the lab's templates: `{{name}}` becomes its value.
//!
//! A dozen lines, not a template engine, because the templates have no loops or conditions, and because a unit file
//! with a placeholder left in it must be a bug that is seen at once.

/// Fills `template`.
///
/// # Panics
/// If the template has a placeholder without a value, or a value has no placeholder: template and values are both
/// part of this program, and every template is filled by a test.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut used = vec![false; values.len()];
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let (name, tail) = after.split_once("}}").unwrap_or((after, ""));
        let at = values.iter().position(|(n, _)| *n == name);
        assert!(at.is_some(), "the template has {{{{{name}}}}}, for which there is no value");
        if let Some(at) = at {
            used[at] = true;
            text.push_str(values[at].1);
        }
        rest = tail;
    }
    text.push_str(rest);
    for ((name, _), used) in values.iter().zip(used) {
        assert!(used, "the template has no {{{{{name}}}}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn values_go_in() {
        assert_eq!(fill("a={{a}} {b} {{c}}{{a}}", &[("a", "1"), ("c", "{{x")]), "a=1 {b} {{x1");
    }

    #[test]
    #[should_panic(expected = "{{b}}, for which there is no value")]
    fn a_placeholder_without_a_value() {
        let _ = fill("{{a}} {{b}}", &[("a", "1")]);
    }

    #[test]
    #[should_panic(expected = "the template has no {{b}}")]
    fn a_value_without_a_placeholder() {
        let _ = fill("{{a}}", &[("a", "1"), ("b", "2")]);
    }
}
