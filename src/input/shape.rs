//! The language as tables: which keys there are, and what may stand under each.
//!
//! A key is declared once. The reader takes unknown keys, missing keys, words and ranges from here;
//! `schema` makes the JSON Schema of it.

/// What may stand at one place.
pub(super) enum Form {
    /// A text that is not empty.
    Text,
    /// A text in a syntax of its own, as a regular expression. The reader parses it; this tells
    /// editors.
    Syntax(&'static str),
    /// A whole number in a range.
    Whole {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// `true` or `false`.
    Truth,
    /// One of some words.
    Words(fn() -> Vec<&'static str>),
    /// A text, number or truth value.
    Scalar,
    /// Anything.
    Any,
    /// A map with known keys.
    Map(&'static Shape),
    /// A map from names of the person's own choice.
    Named(&'static Form),
    /// A map from any keys of the person's own choice.
    Keyed(&'static Form),
    /// A list.
    List(&'static Form),
    /// One of several.
    Either(&'static [Form]),
}

/// A map with known keys.
pub(super) struct Shape {
    /// What it is, for editors.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Whether keys that must be there may come from elsewhere: defaults, groups, an included file.
    pub is_merged: bool,
}

/// A key of a map.
pub(super) struct Key {
    /// Its name.
    pub name: &'static str,
    /// What may stand under it.
    pub form: Form,
    /// Whether it must be there.
    pub is_required: bool,
    /// What it is for, for editors.
    pub about: &'static str,
    /// A value for it, as notes show it.
    pub example: &'static str,
}

/// An enumeration whose values have words in the language.
pub(super) trait Word: Copy + 'static {
    /// Every word with its value.
    const WORDS: &'static [(&'static str, Self)];
}

/// The words of an enumeration, as [`Form::Words`] wants them.
pub(super) fn words<T: Word>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// A size in bytes.
pub(super) const SIZE: Form = Form::Syntax("^[0-9]+ ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$");
/// A time span.
pub(super) const TIME: Form = Form::Syntax("^[0-9]+.*[a-z]$");
/// A name.
pub(super) const NAME: Form = Form::Syntax("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$");
/// A MAC address.
pub(super) const MAC: Form = Form::Syntax("^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$");
/// An IPv4 address.
pub(super) const IPV4: Form = Form::Syntax("^[0-9]+(\\.[0-9]+){3}$");
/// An IPv4 subnet.
pub(super) const SUBNET: Form = Form::Syntax("^[0-9]+(\\.[0-9]+){3}/[0-9]+$");
/// A sha256 digest.
pub(super) const SHA256: Form = Form::Syntax("^(sha256:)?[0-9a-fA-F]{64}$");
/// An absolute path in a guest.
pub(super) const GUEST_PATH: Form = Form::Syntax("^/");
/// Permission bits in octal digits, as text.
pub(super) const MODE: Form = Form::Syntax("^[0-7]{3,4}$");

impl Shape {
    /// A map whose keys all stand in it.
    pub const fn new(about: &'static str, keys: &'static [Key]) -> Self {
        Self {
            about,
            keys,
            is_merged: false,
        }
    }

    /// A map whose keys may come from elsewhere.
    pub const fn merged(about: &'static str, keys: &'static [Key]) -> Self {
        Self {
            about,
            keys,
            is_merged: true,
        }
    }

    /// A key of it.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Key {
    /// A key that may be left out.
    pub const fn new(
        name: &'static str,
        form: Form,
        example: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            form,
            is_required: false,
            about,
            example,
        }
    }

    /// A key that must be there.
    pub const fn required(
        name: &'static str,
        form: Form,
        example: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            form,
            is_required: true,
            about,
            example,
        }
    }
}

impl Form {
    /// Whether a map with keys of the language may stand here.
    pub fn is_map(&self) -> bool {
        match self {
            Self::Map(_) => true,
            Self::Either(forms) => forms.iter().any(Self::is_map),
            _ => false,
        }
    }

    /// What may stand under a key of a map that stands here.
    pub fn under(&'static self, key: &str) -> &'static Self {
        match self {
            Self::Map(shape) => shape.key(key).map_or(&Self::Any, |key| &key.form),
            Self::Named(form) | Self::Keyed(form) => form,
            Self::Either(forms) => {
                let mut under = forms.iter().map(|form| form.under(key));
                under
                    .find(|form| !matches!(form, Self::Any))
                    .unwrap_or(&Self::Any)
            }
            _ => &Self::Any,
        }
    }

    /// What may stand in a list that stands here.
    pub fn item(&'static self) -> &'static Self {
        match self {
            Self::List(form) => form,
            Self::Either(forms) => {
                let mut items = forms.iter().map(Self::item);
                items
                    .find(|form| !matches!(form, Self::Any))
                    .unwrap_or(&Self::Any)
            }
            _ => &Self::Any,
        }
    }

    /// The range of the whole numbers among what it takes.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self {
            Self::Whole { least, most } => Some((*least, *most)),
            Self::Either(forms) => forms.iter().find_map(Self::range),
            _ => None,
        }
    }
}
