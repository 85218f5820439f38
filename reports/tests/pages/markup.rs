//! A strict reader of the HTML that the reports write: stricter than a browser, which forgives.

/// Elements without an end tag.
const VOID: [&str; 4] = ["meta", "link", "br", "doctype"];

/// Reads a page and says what is wrong with it: an unbalanced tag, an attribute without quotes, a doubled id, a stray
/// `<`, `"` or control character. Returns the page's elements with their attributes.
///
/// # Errors
/// The first thing that is wrong, with what stands round it.
pub(crate) fn read(page: &str) -> Result<Vec<Element>, String> {
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    let mut ids = std::collections::HashSet::new();
    if let Some(c) = page.chars().find(|c| c.is_control() && *c != '\n') {
        return Err(format!("control character {c:?}"));
    }
    while let Some(at) = rest.find(['<', '>']) {
        let near =
            || format!("near {:?}", rest.chars().skip(at.saturating_sub(40)).take(120).collect::<String>());
        if rest.as_bytes()[at] == b'>' {
            return Err(format!("stray > {}", near()));
        }
        let (element, used, closes) = tag(&rest[at..]).map_err(|e| format!("{e} {}", near()))?;
        rest = &rest[at + used..];
        if closes {
            match open.pop() {
                Some(name) if name == element.name => {}
                other => {
                    return Err(format!(
                        "</{}> closes {other:?} {}",
                        element.name,
                        rest.chars().take(80).collect::<String>()
                    ));
                }
            }
            continue;
        }
        if let Some(id) = element.get("id")
            && !ids.insert(id.to_owned())
        {
            return Err(format!("id {id} twice"));
        }
        let name = element.name.clone();
        let ends_itself = element.attributes.iter().any(|(n, _)| n == "/");
        elements.push(element);
        if matches!(name.as_str(), "style" | "script") {
            let end = format!("</{name}>");
            let to = rest.find(&end).ok_or(format!("no {end}"))?;
            rest = &rest[to + end.len()..];
        } else if !ends_itself && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(elements) } else { Err(format!("left open: {open:?}")) }
}

/// An element's start tag.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    /// Its name.
    pub(crate) name: String,
    /// Its attributes as written.
    pub(crate) attributes: Vec<(String, String)>,
}

impl Element {
    /// An attribute's value as written.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// One tag, its length, and whether it is an end tag.
fn tag(text: &str) -> Result<(Element, usize, bool), String> {
    let mut chars = text.char_indices().skip(1).peekable();
    let closes = chars.next_if(|(_, c)| *c == '/').is_some();
    chars.next_if(|(_, c)| *c == '!');
    let mut word = || {
        let mut word = String::new();
        while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_alphanumeric() || matches!(c, '-' | ':')) {
            word.push(c);
        }
        word
    };
    let name = word();
    if name.is_empty() {
        return Err("a < without a name".to_owned());
    }
    let mut attributes = Vec::new();
    loop {
        while chars.next_if(|(_, c)| c.is_ascii_whitespace()).is_some() {}
        match chars.next() {
            Some((end, '>')) => return Ok((Element { name, attributes }, end + 1, closes)),
            Some((_, '/')) => attributes.push(("/".to_owned(), String::new())),
            Some((_, first)) if first.is_ascii_alphabetic() => {
                let mut key = String::from(first);
                while let Some((_, c)) =
                    chars.next_if(|(_, c)| c.is_ascii_alphanumeric() || matches!(c, '-' | ':'))
                {
                    key.push(c);
                }
                let mut value = String::new();
                if chars.next_if(|(_, c)| *c == '=').is_some() {
                    if chars.next().is_none_or(|(_, c)| c != '"') {
                        return Err(format!("attribute {key} without quotes"));
                    }
                    loop {
                        match chars.next() {
                            Some((_, '"')) => break,
                            Some((_, '<')) => return Err(format!("a < in attribute {key}")),
                            Some((_, c)) => value.push(c),
                            None => return Err(format!("attribute {key} does not end")),
                        }
                    }
                }
                attributes.push((key, value));
            }
            other => return Err(format!("{other:?} in a tag")),
        }
    }
}
